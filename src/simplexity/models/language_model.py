"""What a term asks of a language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from simplexity.relax.tokens import Tokens
from simplexity.text.vocabulary import Vocabulary


class LanguageModel(Protocol):
    """A model of P(y), without a source."""

    @property
    def max_length(self) -> int:
        """Most words it can score."""
        ...

    @property
    def device(self) -> torch.device: ...

    def log_prob(self, target: Tokens) -> Tensor:
        """log P(y) of each string, its end included [batch]; of soft strings a relaxation."""
        ...


@dataclass(frozen=True)
class Fluency:
    """A language model with the vocabulary that it was trained on."""

    model: LanguageModel
    vocabulary: Vocabulary
