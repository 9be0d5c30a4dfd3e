"""Settings chosen on development data: what was chosen, what it gained, and what remains of that.

Two kinds of choice. Weights for reranking are learnt on n-best lists. Settings of a decoder, its
step size or the weights of its objective, are candidates of which each has translated the corpus;
a sentence's candidates are then a list as well, from which one hypothesis is taken everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simplexity.evaluate.lists import Cached, score_weights
from simplexity.evaluate.metrics import (
    Array,
    Metric,
    References,
    from_sufficient,
    sufficient,
    sufficient_lists,
)
from simplexity.evaluate.significance import Difference, paired_bootstrap
from simplexity.evaluate.tuning import Tuned, gain, held_out_gain
from simplexity.search.nbest import NBestLine
from simplexity.search.rerank import Rerank

Tune = Callable[[Cached], Tuned]


@dataclass(frozen=True)
class Resampling:
    """How gains are tested: resampled corpora, folds of the cross-validation, seed."""

    resamples: int = 1000
    folds: int = 5
    seed: int = 12345


@dataclass(frozen=True)
class Learnt:
    """Weights for reranking; `gain` is on the sentences they were learnt on, which flatters them.

    `one_best`, `before` and `after` are the scores of the lists' first hypotheses, of the starting
    weights, and of the learnt ones. Without enough sentences for the folds nothing is held out.
    """

    metric: str
    sentences: int
    hypotheses: int
    start: dict[str, float]
    weights: dict[str, float]
    one_best: float
    before: float
    after: float
    gain: Difference
    held_out: Difference | None


def cached_lists(
    lists: Sequence[Sequence[NBestLine]], rerank: Rerank, references: References, metric: Metric
) -> Cached:
    """The lists as numbers; the names are those of the weights.

    A hypothesis with a feature that is no finite number is left out. A sentence of which nothing
    is left counts as its first hypothesis, or as an empty one.
    """
    texts, features = [], []
    for found in lists:
        kept = [found[place] for place in rerank.kept([line.features for line in found])]
        rows = [(line.text, rerank.values(line.features)) for line in kept]
        rows = [(text, values) for text, values in rows if np.isfinite(values).all()]
        if not rows:
            rows = [(found[0].text if found else "", [0.0] * len(rerank.weights))]
        texts.append([text for text, _ in rows])
        features.append(np.array([values for _, values in rows], dtype=np.float64))
    statistics = sufficient_lists(metric, texts, references)
    return Cached(features, statistics, tuple(rerank.weights))


def learn_weights(
    cached: Cached, start: Mapping[str, float], metric: Metric, tune: Tune, test: Resampling
) -> Learnt:
    """Learn weights, and compare them with those that one started from."""
    before = np.array([start[name] for name in cached.names])
    weights = _rounded(_best_of(tune(cached), before, cached, metric).weights)
    first = np.stack([statistics[0] for statistics in cached.statistics])
    old, new = score_weights(cached, np.stack([before, weights]), metric).tolist()
    held_out = _held_out(
        cached, lambda part: _best_of(tune(part), before, part, metric), before, metric, test
    )
    return Learnt(
        metric.name,
        len(cached.features),
        sum(map(len, cached.features)),
        dict(start),
        dict(zip(cached.names, weights.tolist(), strict=True)),
        float(from_sufficient(metric, first.sum(0))),
        old,
        new,
        gain(cached, weights, before, metric, test.resamples, test.seed),
        held_out,
    )


def _held_out(
    cached: Cached, tune: Tune, baseline: Array, metric: Metric, test: Resampling
) -> Difference | None:
    if len(cached.features) < test.folds:
        return None
    return held_out_gain(cached, tune, baseline, metric, test.folds, test.resamples, test.seed)


def _best_of(tuned: Tuned, start: Array, cached: Cached, metric: Metric) -> Tuned:
    """What was found, or the start, scaled to sum |w| = 1, where that is better."""
    score = float(score_weights(cached, start, metric)[0])
    sign = 1 if metric.higher_is_better else -1
    if sign * tuned.score >= sign * score:
        return tuned
    return replace(tuned, weights=start / np.abs(start).sum(), score=score)


def _rounded(weights: Array) -> Array:
    """The weights as they will be written, so that what is reported is what they do."""
    return np.array([float(f"{weight:.6g}") for weight in weights])


@dataclass(frozen=True)
class Candidate:
    """A setting under its label: what it made of the corpus, at what mean joint cost, how fast."""

    label: str
    translations: Sequence[str]
    cost: float
    seconds: float


@dataclass(frozen=True)
class Scored:
    """A candidate and its score."""

    label: str
    score: float
    cost: float
    seconds: float


@dataclass(frozen=True)
class Chosen:
    """The best candidate by a metric or by cost; gains are over the baseline, as in `Learnt`.

    `start` is what they began from; it cannot be chosen. A choice by cost has seen no reference, so
    nothing needs to be held out.
    """

    metric: str
    by: str
    start: Scored
    candidates: tuple[Scored, ...]
    baseline: str
    best: str
    gain: Difference
    held_out: Difference | None


def choose(
    candidates: Sequence[Candidate],
    start: Candidate,
    baseline: int,
    by: str,
    references: References,
    metric: Metric,
    test: Resampling,
) -> Chosen:
    """Score all candidates and take the best: by "cost" the cheapest, by "metric" the best one."""
    statistics = np.stack([sufficient(metric, c.translations, references) for c in candidates], 1)
    choices = np.eye(len(candidates))
    cached = Cached(
        [choices] * len(statistics), list(statistics), tuple(c.label for c in candidates)
    )

    def take_best(part: Cached) -> Tuned:
        found = score_weights(part, choices, metric)
        best = found.argmax() if metric.higher_is_better else found.argmin()
        return Tuned(choices[best], float(found[best]), ())

    held_out = None
    if by == "cost":
        best = int(np.argmin([candidate.cost for candidate in candidates]))
    else:
        best = int(take_best(cached).weights.argmax())
        held_out = _held_out(cached, take_best, choices[baseline], metric, test)
    return Chosen(
        metric.name,
        by,
        _scored(start, sufficient(metric, start.translations, references), metric),
        tuple(_scored(c, statistics[:, n], metric) for n, c in enumerate(candidates)),
        candidates[baseline].label,
        candidates[best].label,
        paired_bootstrap(
            statistics[:, best], statistics[:, baseline], metric, test.resamples, test.seed
        ),
        held_out,
    )


def _scored(candidate: Candidate, statistics: Array, metric: Metric) -> Scored:
    score = float(from_sufficient(metric, statistics.sum(0)))
    return Scored(candidate.label, score, candidate.cost, candidate.seconds)


def drawn_weights(names: Sequence[str], samples: int, seed: int) -> list[dict[str, float]]:
    """Weights above 0 that sum to 1: even steps for two terms, at random for more."""
    if len(names) == 2:
        shares = [number / (samples + 1) for number in range(1, samples + 1)]
        rows = [[share, 1 - share] for share in shares]
    else:
        # Two digits are enough for a decoder, and at least one hundredth keeps a term in.
        drawn = np.random.default_rng(seed).dirichlet(np.ones(len(names)), size=samples)
        rows = (drawn.clip(0.01) / drawn.clip(0.01).sum(-1, keepdims=True)).tolist()
    return [{n: round(w, 4) for n, w in zip(names, row, strict=True)} for row in rows]
