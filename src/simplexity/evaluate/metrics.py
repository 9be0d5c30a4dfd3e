"""Corpus scores of translations, counted by sacrebleu and recomputed from sums.

A corpus score here is a function of sentence statistics (n-gram matches, lengths, edits) that are
summed before anything is divided. So each sentence is counted once; after that any resampling of
the corpus and any choice from n-best lists costs a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simplexity.errors import SimplexityError, UsageError

Array = NDArray[np.float64]
References = Sequence[Sequence[str]]
"""Reference sets: one sequence of lines for each, as sacrebleu takes them."""

TOKENISERS = ("13a", "zh", "ja-mecab", "char", "intl")
METRICS = ("bleu", "bleu-cased", "chrf", "ter")


class Metric(Protocol):
    """A corpus score that depends on the sums of sentence statistics alone."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def label(self) -> str:
        """How a table heads its column."""

    @property
    def higher_is_better(self) -> bool:
        """False for an error rate."""

    def counter(self) -> Any:
        """sacrebleu's metric of these settings: it counts one sentence at a time."""

    def from_sums(self, sums: Array) -> Array:
        """Corpus scores [...] of summed statistics [..., d]."""


@dataclass(frozen=True)
class Bleu:
    """BLEU of Papineni et al. (2002); case-insensitive unless told otherwise, as in the paper.

    Statistics: hypothesis length, reference length, matches of order 1 to 4, n-grams of order 1
    to 4.
    """

    lowercase: bool = True
    tokenise: str = "13a"

    higher_is_better: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`bleu`, or `bleu-cased` when letter case counts."""
        return "bleu" if self.lowercase else "bleu-cased"

    @property
    def label(self) -> str:
        """The column head."""
        return "BLEU" if self.lowercase else "BLEU (cased)"

    def counter(self) -> Any:
        """sacrebleu's BLEU."""
        from sacrebleu.metrics.bleu import BLEU

        if self.tokenise not in TOKENISERS:
            raise UsageError(
                f"there is no tokenisation {self.tokenise!r}; choose from {', '.join(TOKENISERS)}"
            )
        try:
            return BLEU(lowercase=self.lowercase, tokenize=self.tokenise, force=True)
        except RuntimeError as error:
            raise SimplexityError(
                f"tokenisation {self.tokenise!r} needs packages that are not installed: "
                "install sacrebleu with its extra 'ja'"
            ) from error

    def from_sums(self, sums: Array) -> Array:
        """BLEU = BP exp(1/4 sum_n log p_n), a zero match count smoothed as 1 / 2^k."""
        matches, totals = sums[..., 2:6], sums[..., 6:10]
        missing = matches == 0
        halvings = np.cumsum(missing, axis=-1)
        found = np.where(missing, 0.5**halvings, matches) / np.maximum(totals, 1)
        score = 100 * brevity_penalty(sums) * np.exp(np.log(found).mean(-1))
        defined = (totals > 0).all(-1) & ~missing.all(-1)
        return np.where(defined, score, 0.0)


@dataclass(frozen=True)
class ChrF:
    """chrF2 of Popović (2015): F-score of character n-grams of order 1 to 6.

    Statistics: for each order the n-grams of the hypothesis, of the reference, and matched.
    """

    name: ClassVar[str] = "chrf"
    label: ClassVar[str] = "chrF"
    higher_is_better: ClassVar[bool] = True

    def counter(self) -> Any:
        """sacrebleu's chrF."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()

    def from_sums(self, sums: Array) -> Array:
        """F_2 = 5 P R / (4 P + R), P and R averaged over the orders that both sides have."""
        hypothesis, reference, matches = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        both = (hypothesis > 0) & (reference > 0)
        orders = np.maximum(both.sum(-1), 1)
        precision = np.where(both, matches / np.maximum(hypothesis, 1), 0).sum(-1) / orders
        recall = np.where(both, matches / np.maximum(reference, 1), 0).sum(-1) / orders
        bottom = 4 * precision + recall
        positive = bottom > 0
        return np.where(positive, 500 * precision * recall / np.where(positive, bottom, 1), 0.0)


@dataclass(frozen=True)
class Ter:
    """Translation edit rate of Snover et al. (2006), case-insensitive, words split at spaces.

    Statistics: edits, and the average length of the references.
    """

    name: ClassVar[str] = "ter"
    label: ClassVar[str] = "TER"
    higher_is_better: ClassVar[bool] = False

    def counter(self) -> Any:
        """sacrebleu's TER."""
        from sacrebleu.metrics.ter import TER

        return TER()

    def from_sums(self, sums: Array) -> Array:
        """TER = 100 edits / reference words; 100 if only the references are empty."""
        edits, words = sums[..., 0], sums[..., 1]
        rate = np.where(words > 0, edits / np.where(words > 0, words, 1), edits > 0)
        return 100 * rate


@dataclass(frozen=True)
class Score:
    """A corpus score with the signature that says how it was computed."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True)
class Lengths:
    """Words per hypothesis, their ratio to the references' words, and BLEU's brevity penalty."""

    average: float
    ratio: float
    penalty: float


def metric_named(name: str, tokenise: str = "13a") -> Metric:
    """The metric a user asks for by name; the tokenisation matters to BLEU alone."""
    known: dict[str, Metric] = {
        "bleu": Bleu(tokenise=tokenise),
        "bleu-cased": Bleu(lowercase=False, tokenise=tokenise),
        "chrf": ChrF(),
        "ter": Ter(),
    }
    if name not in known:
        raise UsageError(f"there is no metric {name!r}; choose from {', '.join(METRICS)}")
    return known[name]


def check_parallel(streams: Mapping[str, Sequence[object]]) -> int:
    """The number of lines that all these named streams have, or an error that names two."""
    first, *others = streams
    size = len(streams[first])
    for name in others:
        if len(streams[name]) != size:
            raise SimplexityError(
                f"{name} and {first} must be parallel, line by line, but {name} has "
                f"{_lines(len(streams[name]))} and {first} has {_lines(size)}"
            )
    if size == 0:
        raise SimplexityError(f"{first} has no lines, so there is nothing to evaluate")
    return size


def reference_sets(references: References) -> dict[str, Sequence[str]]:
    """The reference sets under the names that errors give them."""
    if len(references) == 0 or isinstance(references, str) or isinstance(references[0], str):
        raise UsageError("references are a list of sets of lines: put a single set into a list")
    return {f"reference {number}": lines for number, lines in enumerate(references, start=1)}


def score(
    metric: Metric,
    hypotheses: Sequence[str],
    references: References,
    name: str = "the hypotheses",
) -> Score:
    """The corpus score of these hypotheses; `name` is what errors call them.

    >>> score(Bleu(), ["the cat sat on the mat"], [["The cat sat on the mat"]]).value
    100.0
    """
    sums = sufficient(metric, hypotheses, references, name).sum(0)
    value = float(from_sufficient(metric, sums))
    return Score(metric.name, value, signature(metric, len(references)))


def sufficient(
    metric: Metric,
    hypotheses: Sequence[str],
    references: References,
    name: str = "the hypotheses",
) -> Array:
    """Statistics of each sentence [sentences, d]; their sum determines the corpus score."""
    check_parallel({name: hypotheses, **reference_sets(references)})
    return np.concatenate(sufficient_lists(metric, [[line] for line in hypotheses], references))


def sufficient_lists(
    metric: Metric, lists: Sequence[Sequence[str]], references: References
) -> list[Array]:
    """Statistics [n_i, d] of every hypothesis of each n-best list; references are read once."""
    check_parallel({"the n-best lists": lists, **reference_sets(references)})
    counter = metric.counter()
    known = counter._cache_references(references)
    width = len(_count(counter, "", known[0]))
    return [
        np.array([_count(counter, line, reference) for line in lines], dtype=np.float64).reshape(
            len(lines), width
        )
        for lines, reference in zip(lists, known, strict=True)
    ]


def from_sufficient(metric: Metric, sums: Array) -> Array:
    """Corpus scores [...] from summed statistics [..., d], equal to sacrebleu's."""
    return metric.from_sums(np.asarray(sums, dtype=np.float64))


def signature(metric: Metric, reference_sets: int, test: Mapping[str, str] | None = None) -> str:
    """sacrebleu's signature of the metric; `test` adds the keys of a significance test."""
    counter = metric.counter()
    counter.num_refs = reference_sets
    described = counter.get_signature()
    for key, value in (test or {}).items():
        described.update(key, value)
    return str(described)


def brevity_penalty(sums: Array) -> Array:
    """BP = min(1, exp(1 - r / h)) from BLEU's statistics; 0 if nothing was translated."""
    hypothesis, reference = sums[..., 0], sums[..., 1]
    ratio = reference / np.maximum(hypothesis, 1)
    penalty = np.where(hypothesis < reference, np.exp(np.minimum(1 - ratio, 0)), 1.0)
    return np.where((hypothesis == 0) & (reference > 0), 0.0, penalty)


def lengths(hypotheses: Sequence[str], references: References, tokenise: str = "13a") -> Lengths:
    """Average length, length ratio and brevity penalty, in words as BLEU counts them."""
    return lengths_from_sums(
        sufficient(Bleu(tokenise=tokenise), hypotheses, references).sum(0), len(hypotheses)
    )


def lengths_from_sums(sums: Array, sentences: int) -> Lengths:
    """The lengths in BLEU's summed statistics [10] of this many sentences."""
    hypothesis, reference = float(sums[0]), float(sums[1])
    ratio = hypothesis / reference if reference else 0.0
    return Lengths(hypothesis / sentences, ratio, float(brevity_penalty(sums)))


def average_length(hypotheses: Sequence[str], tokenise: str = "13a") -> float:
    """Words per hypothesis after tokenisation (the paper's AvgLen).

    >>> average_length(["Hello, world!", ""])
    2.0
    """
    check_parallel({"the hypotheses": hypotheses})
    split = Bleu(tokenise=tokenise).counter().tokenizer
    return sum(len(split(line.rstrip()).split()) for line in hypotheses) / len(hypotheses)


def _count(counter: Any, line: str, reference: Any) -> list[float]:
    counts: list[float] = counter._compute_segment_statistics(
        counter._preprocess_segment(line), reference
    )
    return counts


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
