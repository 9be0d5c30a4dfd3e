"""Relaxed decoding inside `generate` of transformers: `custom_generate=simplexity.relaxed(...)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer
from transformers.generation import GenerateBeamEncoderDecoderOutput

from simplexity import build
from simplexity.config import TranslateConfig
from simplexity.decode import Decoder, Hypothesis
from simplexity.errors import SimplexityError, UsageError
from simplexity.models.family import Family
from simplexity.models.huggingface import HuggingFaceSeq2Seq
from simplexity.models.pretrained import Languages, family_of, joined
from simplexity.objectives import usual_objective
from simplexity.relax.tokens import pad_batch
from simplexity.settings import load_config


@dataclass(frozen=True)
class Relaxed:
    """What `generate` calls in place of its own search; made by `relaxed`.

    Models are read when they are first needed, and kept: `generate` is called once a batch.
    """

    tokenizer: Any
    reverse: str | Path | None
    lm: str | Path | None
    languages: Languages
    settings: dict[str, Any]
    ready: dict[int, Family] = field(default_factory=dict, repr=False, compare=False)

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        inputs_tensor: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """The strings that `generate` returns, one a sentence."""
        if inputs_tensor is None or inputs_tensor.dtype.is_floating_point:
            raise UsageError("Relaxed decoding reads word ids; give input_ids to generate.")
        if generation_config.num_return_sequences > 1:
            raise UsageError("Relaxed decoding gives one string a sentence; leave out "
                             "num_return_sequences.")  # fmt: skip
        with frozen(model), torch.enable_grad():
            family = self._family(model)
            decoder = self._decoder(family, generation_config.num_beams)
            sources = words_of(family, inputs_tensor, attention_mask)
            found = decoder(pad_batch(sources, 0, inputs_tensor.device))
        best = [hypotheses[0] for hypotheses in found]
        sequences = as_sequences(best, family["l2r"].model, generation_config.max_length)
        if not generation_config.return_dict_in_generate:
            return sequences
        scores = torch.tensor([hypothesis.score for hypothesis in best], device=sequences.device)
        return GenerateBeamEncoderDecoderOutput(sequences=sequences, sequences_scores=scores)

    def _family(self, model: Any) -> Family:
        if id(model) not in self.ready:
            name = str(model.name_or_path)
            tokenizer = self.tokenizer
            if tokenizer is None:
                tokenizer = AutoTokenizer.from_pretrained(name)
            first = joined(model, tokenizer, "l2r", self.languages, name)
            self.ready[id(model)] = family_of(
                first, name, self.reverse, self.lm, self.languages, model.device
            )
        return self.ready[id(model)]

    def _decoder(self, family: Family, beams: int) -> Decoder:
        usual = {
            "model": family.directory,
            "decoder": "eg",
            "objective": usual_objective(self.reverse is not None, self.lm is not None),
            "beam_size": beams if beams > 1 else TranslateConfig.model_fields["beam_size"].default,
        }
        config = load_config(TranslateConfig, None, {**usual, **self.settings})
        return build.translator(config, family).decoder


def relaxed(
    tokenizer: Any = None,
    *,
    reverse: str | Path | None = None,
    lm: str | Path | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    **settings: Any,
) -> Relaxed:
    """A way to decode for `model.generate(**inputs, custom_generate=relaxed(...))`.

    tokenizer: that of the model; unset: the one beside it. reverse, lm: names or directories of
    models that take part, as in `simplexity.load`. The settings are those of `simplexity
    translate`; a beam search of `num_beams` finds the strings to start from.
    """
    languages = (source_language, target_language)
    return Relaxed(tokenizer, reverse, lm, languages, settings)


@contextmanager
def frozen(model: Any) -> Iterator[None]:
    """While open the model does not learn and does not drop out; then it is as it was."""
    training = model.training
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.eval().requires_grad_(False)
    try:
        yield
    finally:
        model.train(training)
        for parameter in learning:
            parameter.requires_grad_(True)


def words_of(family: Family, ids: Tensor, mask: Tensor | None) -> list[list[int]]:
    """The words of each source between its boundaries, padding on either side left out."""
    model = family["l2r"].model
    assert isinstance(model, HuggingFaceSeq2Seq)
    before, after = list(model.source_prefix), list(model.source_suffix)
    # `generate` repeats the mask for every beam.
    kept = ids != model.pad if mask is None else mask[:: len(mask) // len(ids)].bool()
    rows = [row[real].tolist() for row, real in zip(ids, kept, strict=True)]
    for row in rows:
        if row[: len(before)] != before or row[len(row) - len(after) :] != after:
            raise SimplexityError(
                f"A source begins or ends otherwise than {type(model.model).__name__}"
                " expects; let its tokenizer add the special tokens."
            )
    return [row[len(before) : len(row) - len(after)] for row in rows]


def as_sequences(found: list[Hypothesis], model: Any, longest: int | None) -> Tensor:
    """Ids as `generate` gives them: the decoder's start, the words, the end, padding."""
    rows = [[*model.target_prefix, *hypothesis.ids, model.eos][:longest] for hypothesis in found]
    return pad_batch(rows, model.pad, model.device).ids
