"""N-best lists in the order of a weighted sum of log-probabilities.

A hypothesis is known here by its features alone: log-probabilities by name, of models or of
whatever system wrote the list, and two counts that say how many words they belong to. No model is
asked, so weights can be tried on lists that were scored once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Features = Mapping[str, float]

TOKENS = "tokens"
"""Words of a hypothesis, without its end."""

SOURCE_TOKENS = "source_tokens"
"""Words of its source, without the end: what the reverse model predicts."""

COUNTS = (TOKENS, SOURCE_TOKENS)
REVERSE = "reverse"


@dataclass(frozen=True)
class Rerank:
    """Which hypothesis of a list is the best: that of the greatest sum_k weight_k log P_k.

    With `normalise` "length" every log-probability is divided by the number of its factors: the
    words of the hypothesis, or of the source for the reverse model, and the end. Counts and their
    weights stay as they are. `filtered` leaves out what has more words than the first hypothesis of
    its list, as the paper does when it compares reranking with a decoder that keeps the length.
    """

    weights: Mapping[str, float]
    normalise: Literal["sum", "length"] = "length"
    filtered: bool = False

    def needs(self) -> tuple[str, ...]:
        """The features without which nothing can be ranked."""
        counted = self.normalise == "length"
        words = [TOKENS] if counted or self.filtered else []
        source = [SOURCE_TOKENS] if counted and REVERSE in self.weights else []
        return tuple(dict.fromkeys([*self.weights, *words, *source]))

    def values(self, features: Features) -> list[float]:
        """The features that are weighed, in the order of the weights, normalised if asked."""
        if self.normalise == "sum":
            return [features[name] for name in self.weights]
        return [features[name] / factors(name, features) for name in self.weights]

    def score(self, features: Features) -> float:
        """The weighted sum, higher is better; -infinity where a feature is no finite number."""
        pairs = zip(self.weights.values(), self.values(features), strict=True)
        total = sum(weight * value for weight, value in pairs)
        # A negative weight must not make a virtue of a string that a model cannot score.
        known = all(math.isfinite(features[name]) for name in self.weights)
        return total if known else -math.inf

    def kept(self, hypotheses: Sequence[Features]) -> list[int]:
        """The places of the hypotheses that take part."""
        if not self.filtered:
            return list(range(len(hypotheses)))
        limit = hypotheses[0][TOKENS] if hypotheses else 0
        return [n for n, features in enumerate(hypotheses) if features[TOKENS] <= limit]

    def order(self, hypotheses: Sequence[Features]) -> list[int]:
        """The places of the hypotheses that take part, best first; of equals the first wins."""
        return sorted(self.kept(hypotheses), key=lambda n: -self.score(hypotheses[n]))


def factors(name: str, features: Features) -> float:
    """How many probabilities a feature multiplies; a count is divided by nothing."""
    if name in COUNTS:
        return 1
    return features[SOURCE_TOKENS if name == REVERSE else TOKENS] + 1


def show_weights(weights: Mapping[str, float]) -> str:
    """Weights as they are given for an objective, what counts nothing left out.

    >>> show_weights({"l2r": 0.25, "r2l": 0.75, "reverse": 0.0})
    'l2r=0.25,r2l=0.75'
    """
    return ",".join(f"{name}={weight:.6g}" for name, weight in weights.items() if weight)
