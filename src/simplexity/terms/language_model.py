"""Language models as parts of the objective: how well a translation reads by itself.

    lm   -log P_LM(y), relaxed: the model reads the expected embeddings; n-grams see each word's
         change in place (models/arpa.py)

The source does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from simplexity.models.language_model import LanguageModel
from simplexity.relax.tokens import Hard, Tokens, words


@dataclass(frozen=True)
class ReadsWell:
    """-log P(y) under a language model, the end included."""

    model: LanguageModel

    def bind(self, source: Hard) -> ReadsWellEnergy:
        """Nothing depends on the sources."""
        return ReadsWellEnergy(self.model)


@dataclass(frozen=True)
class ReadsWellEnergy:
    """Cost of targets."""

    model: LanguageModel

    def __call__(self, y: Tokens) -> Tensor:
        return -self.model.log_prob(y)

    def factors(self, y: Tokens) -> Tensor:
        return words(y) + 1

    def select(self, rows: Tensor) -> ReadsWellEnergy:
        return self
