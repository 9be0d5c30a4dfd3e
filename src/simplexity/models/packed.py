"""Weights in 8 bits: a quarter of the room, for models that are sent around.

Each row of a matrix has a scale of its own,

    scale_r = max_c |w_rc| / 127,    q_rc = round(w_rc / scale_r)

so no weight moves by more than half a scale. Vectors, which are few, stay as they are. A packed
model computes in single precision like any other: its weights are read back as scale_r q_rc.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

PACKED = "model.int8.safetensors"
SCALE = ".scale"
LARGEST = 127


def pack(weights: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix [rows, ...] as bytes of the same shape and the scales of its rows [rows].

    >>> pack(torch.tensor([[0.5, -1.27], [0.0, 0.0]]))[0].tolist()
    [[50, -127], [0, 0]]
    """
    rows = weights.detach().float().flatten(1)
    scale = rows.abs().amax(1) / LARGEST
    # A row of zeros has no scale; any will do.
    steps = (rows / torch.where(scale > 0, scale, 1.0)[:, None]).round()
    return steps.to(torch.int8).view(weights.shape), scale


def unpack(steps: Tensor, scale: Tensor) -> Tensor:
    """What `pack` made of a matrix, as numbers again."""
    return steps.float() * scale.view(-1, *[1] * (steps.dim() - 1))


def write_packed(network: Any, directory: Path) -> None:
    """Write the weights of a network in 8 bits into its directory; tied ones once."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in network.state_dict().items():
        if tensor.data_ptr() in seen:
            continue
        seen.add(tensor.data_ptr())
        if tensor.is_floating_point() and tensor.dim() > 1:
            found[name], found[name + SCALE] = pack(tensor)
        else:
            found[name] = tensor.clone()
    save_file(found, directory / PACKED, {"format": "pt"})


def read_packed(file: Path) -> dict[str, Tensor]:
    """The weights of a packed model as numbers, by name."""
    stored = load_file(file)
    scales = {name for name in stored if name.endswith(SCALE)}
    return {
        name: unpack(tensor, stored[name + SCALE]) if name + SCALE in scales else tensor
        for name, tensor in stored.items()
        if name not in scales
    }


def is_packed(directory: Path) -> bool:
    """Whether a model directory keeps its weights in 8 bits."""
    return (directory / PACKED).exists()


def read_network(directory: Path, config: Any) -> Any:
    """The network of a model directory, packed or not, as transformers builds it."""
    if not is_packed(directory):
        return AutoModelForSeq2SeqLM.from_pretrained(directory, config=config)
    weights = read_packed(directory / PACKED)
    network = AutoModelForSeq2SeqLM.from_config(config)
    here = network.state_dict()
    # What is tied to a weight that was stored is no weight of its own.
    filled = {here[name].data_ptr() for name in weights if name in here}
    lacking = [name for name, tensor in here.items() if tensor.data_ptr() not in filled]
    wrong = [name for name, tensor in weights.items() if _shape(here.get(name)) != tensor.shape]
    if lacking or wrong:
        name = (lacking + wrong)[0]
        raise ValueError(f"{PACKED} and config.json are not of one model; see {name}")
    network.load_state_dict(weights, strict=False)
    return network


def _shape(tensor: Tensor | None) -> torch.Size | None:
    return None if tensor is None else tensor.shape
