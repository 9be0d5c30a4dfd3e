"""Reranking with the terms of an objective: what people do today with models that cannot search.

Hypotheses are scored by the same energies that relaxed decoding minimises, as the hard strings
that they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from simplexity.decode import Detokenise, Hypothesis
from simplexity.initialise import Starts
from simplexity.models.seq2seq import Seq2Seq
from simplexity.pipeline import WINDOW
from simplexity.relax.tokens import Hard, pad_batch, unpad
from simplexity.search.beam import BeamSettings, beam_search
from simplexity.search.nbest import NBestLine
from simplexity.search.rerank import SOURCE_TOKENS, TOKENS, Rerank
from simplexity.search.sampling import sample_strings
from simplexity.terms.mix import Mix
from simplexity.text.batches import by_length
from simplexity.text.vocabulary import PAD

Ids: TypeAlias = Sequence[int]
ToScore: TypeAlias = tuple[Ids, Sequence[Ids]]
"""A source and its hypotheses, as word ids."""

SEARCHED = 8
"""Strings that a beam search may hold at once, for each that is scored at once: a step looks at
one word of each string, scoring at all."""


@dataclass(frozen=True)
class Scorer:
    """The terms that judge strings, and how many strings at a time, on which device.

    Strings of more than `longest` words, and all strings for a source of more, cost infinity: the
    models cannot read them.
    """

    objective: Mix
    batch_size: int
    longest: int
    device: torch.device | str = "cpu"


def score_nbest(lists: Iterable[ToScore], scorer: Scorer) -> Iterator[Tensor]:
    """The cost of every hypothesis by every term [hypotheses, terms], list by list, in order.

    A source is read once for all its hypotheses, a string that stands twice in a list is scored
    once, and at most `batch_size` strings of about one length are scored at a time, of one
    sentence or of several.
    """
    for window in _windows(lists, scorer.batch_size * WINDOW):
        tables: dict[int, Tensor] = {}
        for places in _groups(window, scorer.batch_size):
            found = _score([window[place] for place in places], scorer)
            tables.update(zip(places, found, strict=True))
        yield from (tables[place] for place in range(len(window)))


def _windows(lists: Iterable[ToScore], limit: int) -> Iterator[list[ToScore]]:
    """Lists read ahead: as many as reach the limit of hypotheses, or of sentences."""
    window: list[ToScore] = []
    hypotheses = 0
    for one in lists:
        window.append(one)
        hypotheses += len(one[1])
        if max(hypotheses, len(window)) >= limit:
            yield window
            window, hypotheses = [], 0
    if window:
        yield window


def _groups(window: Sequence[ToScore], limit: int) -> Iterator[list[int]]:
    """Places of lists with sources of about one length, `limit` hypotheses together or one list."""
    group: list[int] = []
    hypotheses = 0
    for place in sorted(range(len(window)), key=lambda place: len(window[place][0])):
        size = max(len(window[place][1]), 1)
        if group and hypotheses + size > limit:
            yield group
            group, hypotheses = [], 0
        group.append(place)
        hypotheses += size
    if group:
        yield group


@torch.no_grad()
def _score(group: Sequence[ToScore], scorer: Scorer) -> list[Tensor]:
    """The costs of a few lists whose sources are read together."""
    # Nothing is read of a source that is too long.
    sources = [list(source) if len(source) <= scorer.longest else [] for source, _ in group]
    energy = scorer.objective.bind(pad_batch(sources, PAD, scorer.device))
    strings = [
        [(owner, tuple(ids)) for ids in hypotheses] for owner, (_, hypotheses) in enumerate(group)
    ]
    distinct = list(dict.fromkeys(string for found in strings for string in found))
    row = {string: n for n, string in enumerate(distinct)}
    table = torch.full((len(distinct), len(energy.names)), torch.inf, dtype=torch.float64)
    fits = [len(source) <= scorer.longest for source, _ in group]
    readable = [n for n, (o, ids) in enumerate(distinct) if fits[o] and len(ids) <= scorer.longest]
    for batch in by_length([len(distinct[n][1]) for n in readable], scorer.batch_size):
        rows = [readable[n] for n in batch]
        owners = torch.tensor([distinct[n][0] for n in rows], device=scorer.device)
        padded = pad_batch([list(distinct[n][1]) for n in rows], PAD, scorer.device)
        costs = energy.select(owners).costs(padded).cpu().double()
        table[rows] = costs.masked_fill(costs.isnan(), torch.inf)
    return [table[[row[string] for string in found]] for found in strings]


@dataclass(frozen=True)
class ScoredBeam:
    """N-best lists of a beam search, every string with its cost by all terms; the beam's order.

    With a `seed` as many strings are drawn from the model instead. Complexity: a beam search, then
    one parallel pass of every term over all strings.
    """

    model: Seq2Seq
    settings: BeamSettings
    scorer: Scorer
    detokenise: Detokenise
    seed: int | None = None

    def __call__(self, source: Hard) -> list[list[Hypothesis]]:
        lists = [found for part in self._parts(source) for found in self._search(part)]
        strings = ([ids for ids, _ in found] for found in lists)
        tables = score_nbest(zip(unpad(source), strings, strict=True), self.scorer)
        return [
            self._hypotheses(found, costs.tolist())
            for found, costs in zip(lists, tables, strict=True)
        ]

    def _parts(self, source: Hard) -> list[Hard]:
        """The batch in parts whose live strings fit into memory together."""
        size = max(1, SEARCHED * self.scorer.batch_size // self.settings.size)
        starts = range(0, len(source.ids), size)
        return [Hard(source.ids[n : n + size], source.mask[n : n + size]) for n in starts]

    def _search(self, source: Hard) -> list[list[tuple[list[int], float]]]:
        """Word ids and scores of each sentence's strings."""
        if self.seed is None:
            found = beam_search(self.model, source, self.settings)
        else:
            found = sample_strings(self.model, source, self.settings, self.seed)
        # A sentence for which nothing ends has the empty string.
        counts = found.count.clamp_min(1).tolist()
        columns = (found.ids, found.mask, found.score.tolist())
        return [
            list(zip(unpad(Hard(ids, mask))[:count], scores[:count], strict=True))
            for count, ids, mask, scores in zip(counts, *columns, strict=True)
        ]

    def _hypotheses(
        self, found: list[tuple[list[int], float]], costs: list[list[float]]
    ) -> list[Hypothesis]:
        parts = self.scorer.objective.parts
        # Of strings that read alike, the likelier stays.
        answers: dict[str, Hypothesis] = {}
        for (ids, score), row in zip(found, costs, strict=True):
            text = self.detokenise(ids)
            terms = {part.name: cost for part, cost in zip(parts, row, strict=True)}
            total = sum(part.weight * cost for part, cost in zip(parts, row, strict=True))
            answers.setdefault(text, Hypothesis(text, tuple(ids), score, terms, total))
        return list(answers.values())


@dataclass(frozen=True)
class RerankDecoder:
    """The n-best list of one model in the order of a joint objective (paper, section 5).

    `Hypothesis.score` is what the list is ranked by, and `initial_cost` the joint cost of the
    beam's own best. Complexity: that of the `ScoredBeam`.
    """

    lists: ScoredBeam
    rerank: Rerank

    def __call__(self, source: Hard) -> list[list[Hypothesis]]:
        found = zip(self.lists(source), source.mask.sum(-1).tolist(), strict=True)
        return [reranked(hypotheses, length, self.rerank) for hypotheses, length in found]


@dataclass(frozen=True)
class FromRerank:
    """Start from the strings that reranking prefers, the `starts` best of each sentence."""

    lists: ScoredBeam
    rerank: Rerank
    starts: int = 1

    def __call__(self, source: Hard) -> Starts:
        found = RerankDecoder(self.lists, self.rerank)(source)
        chosen = [
            (owner, list(hypothesis.ids))
            for owner, hypotheses in enumerate(found)
            for hypothesis in hypotheses[: self.starts]
        ]
        device = source.ids.device
        owner = torch.tensor([owner for owner, _ in chosen], device=device)
        return Starts(pad_batch([ids for _, ids in chosen], PAD, device), owner)


def reranked(
    hypotheses: Sequence[Hypothesis], source_tokens: int, rerank: Rerank
) -> list[Hypothesis]:
    """A list of hypotheses, the one-best first, in their new order."""
    features = [features_of(hypothesis, source_tokens) for hypothesis in hypotheses]
    return [
        replace(
            hypotheses[place],
            score=rerank.score(features[place]),
            initial_cost=hypotheses[0].discrete_cost,
            initial_text=hypotheses[0].text,
        )
        for place in rerank.order(features)
    ]


def features_of(hypothesis: Hypothesis, source_tokens: int) -> dict[str, float]:
    """Log-probabilities by term, and the counts of words that belong to them."""
    terms = {name: -cost for name, cost in hypothesis.terms.items()}
    return {**terms, TOKENS: len(hypothesis.ids), SOURCE_TOKENS: source_tokens}


def nbest_lines(
    sentence: int, hypotheses: Sequence[Hypothesis], source_tokens: int
) -> list[NBestLine]:
    """A list of hypotheses as lines of an n-best file, with all features.

    What stands for an empty source line has no terms, and gets no features.
    """
    return [
        NBestLine(sentence, h.text, features_of(h, source_tokens) if h.terms else {}, h.score)
        for h in hypotheses
    ]
