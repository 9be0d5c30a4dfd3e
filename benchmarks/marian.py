"""Marian's attentional model, trained and run through `pymarian`, with the sizes of one of ours.

What is the same: the training pairs and their tokens (our vocabularies cut them), sizes, dropout
rate, label smoothing, loss per word, Adam and its settings, warm-up, clipping, the average of
weights, the mean size of a batch, the rule of learning-rate decay. What differs:

* Marian's first decoder layer is two cells with the attention between them (`dec-cell-base-depth
  2`), so `dec-depth 2` has three LSTM cells a word where ours has two, which take the context
  together with the word.
* Its alignment layer is as wide as an encoder state, twice `dim-rnn`; ours is a setting.
* Its LSTM dropout keeps one mask for a whole sentence and drops recurrent states too.
* Its layer before the softmax is as wide as an embedding, ours as a hidden state.
* It computes in float32 and has no other arithmetic for training on a CPU.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from simplexity.bench.marian import BEST, segment
from simplexity.bench.turns import Timing
from simplexity.config import TrainConfig
from simplexity.text.vocabulary import SPECIALS, Vocabulary
from simplexity.train.examples import plan
from simplexity.train.family import Material

UPDATE = re.compile(r"Up\. [\d,]+ .*\* ([\d,]+) @")
VALIDATION = re.compile(r"\[valid\] Ep\. (\d+) : Up\. (\d+) : perplexity : ([\d.]+)")
ASKED_TO_STOP = 128 + signal.SIGTERM


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Our pieces as Marian numbers them; padding and beginning have no entry there."""
    pieces = ["</s>", "<unk>", *vocabulary.pieces(range(len(SPECIALS), len(vocabulary)))]
    lines = (f"{json.dumps(piece, ensure_ascii=False)}: {n}\n" for n, piece in enumerate(pieces))
    path.write_text("".join(lines), encoding="utf-8")


def write_data(material: Material, folder: Path) -> None:
    """The vocabularies and the pairs that our own trainer would see, none left out or added."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("source", "target"):
        vocabulary = getattr(material, side)
        write_vocabulary(vocabulary, folder / f"{side}.yml")
        for part in ("train", "dev"):
            sentences = getattr(getattr(material, part), side)
            lines = (segment(vocabulary, ids) + "\n" for ids in sentences)
            (folder / f"{part}.{side}").write_text("".join(lines), encoding="utf-8")


def batch_words(config: TrainConfig, material: Material) -> tuple[int, int]:
    """Source words in our mean batch, which is how Marian measures its own; batches an epoch."""
    batches = len(plan(material.train, config.batch_tokens, config.seed, 0))
    return round(sum(len(x) + 1 for x in material.train.source) / batches), batches


def model_flags(config: TrainConfig, folder: Path, threads: int) -> dict[str, Any]:
    """Sizes, data and machine."""
    config = config.resolved()
    return {
        "type": "s2s",
        "train-sets": [folder / "train.source", folder / "train.target"],
        "vocabs": [folder / "source.yml", folder / "target.yml"],
        "enc-cell": "lstm",
        "dec-cell": "lstm",
        "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers,
        "dec-cell-base-depth": 2,
        "dec-cell-high-depth": 1,
        "dim-emb": config.embedding,
        "dim-rnn": config.hidden,
        "tied-embeddings": config.tie_embeddings,
        "max-length": config.max_length + 1,
        "cpu-threads": threads,
        "data-threads": 1,
        "workspace": 1024,
        "shuffle-in-ram": True,
        "seed": config.seed,
    }


def training_flags(config: TrainConfig, words: int) -> dict[str, Any]:
    """Our recipe in Marian's words; ce-sum is divided by the words of the batch."""
    config = config.resolved()
    return {
        "cost-type": "ce-sum",
        "label-smoothing": config.label_smoothing,
        "dropout-rnn": config.dropout,
        "mini-batch-words": words,
        "maxi-batch": 1000,
        "optimizer": "adam",
        "optimizer-params": [0.9, 0.98, 1e-8],
        "learn-rate": config.learning_rate,
        "lr-warmup": config.warmup,
        "lr-decay": config.decay,
        "lr-decay-strategy": "stalled",
        "lr-decay-start": config.patience + 1,
        "early-stopping": (config.patience + 1) * (config.stop_after + 1),
        "clip-norm": config.clip,
        "exponential-smoothing": 0 if config.average is None else round(1 - config.average, 6),
    }


def validation_flags(folder: Path, batches: int) -> dict[str, Any]:
    """Once an epoch, counted in updates: Marian knows no validation by epochs."""
    return {
        "valid-sets": [folder / "dev.source", folder / "dev.target"],
        "valid-metrics": "perplexity",
        "valid-freq": f"{batches}u",
        "valid-mini-batch": 64,
        "save-freq": f"{batches}u",
        "disp-freq": "20u",
        "overwrite": True,
        "keep-best": True,
        "log": folder / "marian.log",
        "valid-log": folder / "valid.log",
    }


def command(flags: dict[str, Any], extra: list[str]) -> list[str]:
    """The command line of a training; a flag given by hand takes the place of ours."""
    words = [sys.executable, "-m", "pymarian", "train"]
    for name, value in flags.items():
        if f"--{name}" in extra or value is False:
            continue
        values = value if isinstance(value, list) else [] if value is True else [value]
        words += [f"--{name}", *map(str, values)]
    return [*words, *extra]


def train(arguments: list[str], folder: Path, minutes: float | None) -> None:
    """Train until Marian stops by itself, or so long; the time spent goes to sessions.jsonl.

    At its time limit, and when this program is stopped by SIGINT or SIGTERM, Marian is asked to
    save and exit; the same command goes on from there.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun, before = time.perf_counter(), _children_cpu()
    process = subprocess.Popen(arguments, start_new_session=True)  # signals reach it through us
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(None if minutes is None else 60 * minutes)
    finally:
        process.terminate()  # nothing happens if it has ended
        process.wait()
        record = {
            "seconds": round(time.perf_counter() - begun, 2),
            "cpu_seconds": round(_children_cpu() - before, 2),
            "exit": process.returncode,
            "load": os.getloadavg(),
            "command": arguments[1:],
        }
        with (folder / "sessions.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    if process.returncode not in (0, ASKED_TO_STOP):
        raise SystemExit(f"Marian stopped with exit code {process.returncode}")


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def training_record(folder: Path) -> dict[str, Any]:
    """How long Marian was trained, and what its dev perplexity was after each validation."""
    if not (folder / BEST).exists():
        raise SystemExit(f"{folder} holds no Marian model with a validation; run the step train")
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").open(encoding="utf-8")]
    found = VALIDATION.findall((folder / "valid.log").read_text(encoding="utf-8"))
    perplexities = [float(perplexity) for _, _, perplexity in found]
    return {
        "seconds": sum(session["seconds"] for session in sessions),
        "cpu_seconds": sum(session["cpu_seconds"] for session in sessions),
        "updates": int(found[-1][1]),
        "perplexities": perplexities,
        "perplexity": min(perplexities),
        "parameters": parameters(folder / BEST),
        "command": sessions[-1]["command"],
    }


def parameters(model: Path) -> int:
    """Numbers in a model file, beside its settings and the optimiser's state."""
    with np.load(model) as content:
        return sum(content[name].size for name in content if not name.startswith("special:"))


def timed_updates(arguments: list[str]) -> Iterator[Timing]:
    """Target words between two lines of Marian's log, and the time that they took.

    The first line ends a stretch that holds the start as well, and is left out.
    """
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        yield from islice(_stretches(process), 1, None)
    if process.returncode:
        raise SystemExit(f"Marian stopped with exit code {process.returncode}")


def _stretches(process: subprocess.Popen[str]) -> Iterator[Timing]:
    seconds, cpu = time.perf_counter(), 0.0
    assert process.stderr is not None
    for line in process.stderr:
        if "Error" in line:
            print(line, end="", file=sys.stderr)
        if found := UPDATE.search(line):
            now, spent = time.perf_counter(), _cpu_seconds(process.pid)
            yield Timing(int(found[1].replace(",", "")), now - seconds, spent - cpu)
            seconds, cpu = now, spent


def _cpu_seconds(pid: int) -> float:
    """Processor time of all threads of a process, as Linux tells it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
