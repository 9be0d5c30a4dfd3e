"""One sentence followed through a descent: where the mass goes, what changed, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from simplexity.decode import Descent, Hypothesis, RelaxedDecoder
from simplexity.errors import SimplexityError
from simplexity.relax.optimise import Iterate
from simplexity.relax.tokens import Hard, Soft, harden, pad_batch, unpad
from simplexity.terms.mix import MixEnergy
from simplexity.text.vocabulary import PAD, Vocabulary

WORDS = 4
"""Most words shown at a position."""
NOTICED = 0.05
"""A word that never has this mass is not shown, unless the start or the answer has it."""
SPACE = "▁"


@dataclass(frozen=True)
class Costs:
    """What a string or a relaxed string costs: by term, and their weighted sum."""

    terms: dict[str, float]
    total: float


@dataclass(frozen=True)
class Frame:
    """One iterate: its relaxed cost, the string that it rounds to, and that string's cost."""

    relaxed: Costs
    text: str
    words: tuple[str, ...]
    rounded: Costs


@dataclass(frozen=True)
class Exchange:
    """A word of the start that another replaced, and what this exchange alone adds to each cost."""

    place: int
    before: str
    after: str
    adds: Costs


@dataclass(frozen=True)
class Story:
    """A descent from its start to its answer.

    paths: for each position, the words that had mass there, each with its mass in every frame.
    """

    source: str
    weights: dict[str, float]
    start: tuple[str, ...]
    start_costs: Costs
    frames: tuple[Frame, ...]
    paths: tuple[dict[str, tuple[float, ...]], ...]
    answer: tuple[str, ...]
    answer_costs: Costs
    exchanges: tuple[Exchange, ...]
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Narrator:
    """A relaxed decoder whose descent is told, with the vocabularies of its models."""

    decoder: RelaxedDecoder
    source: Vocabulary
    target: Vocabulary
    longest: int
    device: torch.device | str = "cpu"

    def __call__(self, sentence: str) -> Story:
        """Translate one sentence and keep all that passes."""
        ids = self.source.encode(sentence)
        if not ids:
            raise SimplexityError("The sentence is empty; give one in quotes.")
        if len(ids) > self.longest:
            raise SimplexityError(
                f"The sentence has {len(ids)} tokens, but the models take {self.longest} at most; "
                "split it."
            )
        source = pad_batch([ids], PAD, self.device)
        starts = self.decoder.initialise(source)
        seen: list[Iterate] = []
        watched = replace(self.decoder, watch=lambda descent, _: _recorded(descent, seen))
        hypothesis = watched(source, starts)[0][0]
        energy = self.decoder.objective.bind(source)
        return self._tell(sentence, energy, starts.strings, seen, hypothesis)

    @torch.no_grad()
    def _tell(
        self,
        sentence: str,
        energy: MixEnergy,
        start: Hard,
        seen: list[Iterate],
        hypothesis: Hypothesis,
    ) -> Story:
        strings = Hard(torch.cat([harden(it.y).ids for it in seen]), start.mask[[0] * len(seen)])
        relaxed = torch.cat([energy.costs(it.y) for it in seen])
        begun, answer = unpad(start)[0], list(hypothesis.ids)
        costs = _scored(energy, strings)
        frames = tuple(
            Frame(mine, self.target.decode(ids), self._named(ids), rounded)
            for mine, ids, rounded in zip(
                _costs(energy, relaxed), unpad(strings), costs, strict=True
            )
        )
        before, after = _scored(energy, pad_batch([begun, answer], PAD, self.device))
        return Story(
            source=sentence,
            weights=dict(zip(energy.names, energy.weights, strict=True)),
            start=self._named(begun),
            start_costs=before,
            frames=frames,
            paths=self._paths(seen, begun, answer),
            answer=self._named(answer),
            answer_costs=after,
            exchanges=self._exchanges(energy, begun, answer, before),
            hypothesis=hypothesis,
        )

    def _exchanges(
        self, energy: MixEnergy, start: list[int], answer: list[int], before: Costs
    ) -> tuple[Exchange, ...]:
        """Each exchanged word by itself, put into the start and scored exactly."""
        places = [i for i, pair in enumerate(zip(start, answer, strict=True)) if pair[0] != pair[1]]
        if not places:
            return ()
        swapped = [[*start[:i], answer[i], *start[i + 1 :]] for i in places]
        found = _scored(energy, pad_batch(swapped, PAD, self.device))
        old, new = self._named(start), self._named(answer)
        return tuple(
            Exchange(i, old[i], new[i], _less(costs, before))
            for i, costs in zip(places, found, strict=True)
        )

    def _paths(
        self, seen: list[Iterate], start: list[int], answer: list[int]
    ) -> tuple[dict[str, tuple[float, ...]], ...]:
        """For each position its words in the order of their greatest mass, and these masses."""
        mass = torch.stack([it.y.probs[0] for it in seen])  # [frames, length, candidates]
        words = _candidates(seen[0].y, mass.shape[-1])
        paths = []
        for place, own in enumerate(zip(start, answer, strict=True)):
            here = mass[:, place]
            peak, columns = here.amax(0).topk(min(WORDS, here.shape[-1]))
            kept = columns[peak >= NOTICED].tolist()
            kept += [c for c in (_column(words, word) for word in own) if c not in (None, *kept)]
            names = self._named([words[column] for column in kept])
            values = here[:, kept].T.tolist()
            paths.append({name: tuple(row) for name, row in zip(names, values, strict=True)})
        return tuple(paths)

    def _named(self, ids: Sequence[int]) -> tuple[str, ...]:
        pieces = self.target.pieces(ids)
        return tuple(map(shown, pieces)) if self._subwords else tuple(pieces)

    @cached_property
    def _subwords(self) -> bool:
        return any(p.startswith(SPACE) for p in self.target.pieces(range(len(self.target))))


def shown(piece: str) -> str:
    """A subword as a reader knows words: one that goes on a word begins with a hyphen.

    >>> [shown(piece) for piece in ("▁un", "real", "▁")]
    ['un', '-real', '▁']
    """
    return (piece.removeprefix(SPACE) or SPACE) if piece.startswith(SPACE) else f"-{piece}"


def _recorded(descent: Descent, seen: list[Iterate]) -> Descent:
    iterate = next(descent)
    while True:
        seen.append(iterate)
        keep = yield iterate
        iterate = next(descent) if keep is None else descent.send(keep)


def _candidates(y: Soft, size: int) -> list[int]:
    if y.support is None:
        return list(range(size))
    return (y.support if y.support.dim() == 1 else y.support[0]).tolist()


def _column(words: list[int], word: int) -> int | None:
    return words.index(word) if word in words else None


def _scored(energy: MixEnergy, strings: Hard) -> list[Costs]:
    """The costs of strings that all translate the one sentence."""
    rows = torch.zeros(len(strings.ids), dtype=torch.long, device=strings.ids.device)
    return _costs(energy, energy.select(rows).costs(strings))


def _costs(energy: MixEnergy, costs: Tensor) -> list[Costs]:
    pairs = zip(costs.tolist(), energy.total(costs).tolist(), strict=True)
    return [Costs(dict(zip(energy.names, row, strict=True)), total) for row, total in pairs]


def _less(costs: Costs, others: Costs) -> Costs:
    terms = {name: costs.terms[name] - others.terms[name] for name in costs.terms}
    return Costs(terms, costs.total - others.total)
