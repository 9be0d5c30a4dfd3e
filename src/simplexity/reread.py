"""Scores of the string that the user gets, where a tokenizer would cut it otherwise.

A search builds strings of pieces. Decoded to text and cut again, some of them have other pieces,
and another probability; that of the text is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from simplexity.decode import Decoder, Hypothesis, best_first
from simplexity.relax.tokens import Hard, pad_batch
from simplexity.terms.mix import Mix


@dataclass(frozen=True)
class Reread:
    """A decoder whose hypotheses are scored as their text would be read.

    objective: the decoder's own, of one term, through text. encode: from text to pieces.
    length_penalty: scores are log P / (pieces + 1)^penalty, as in a beam search.
    """

    decoder: Decoder
    objective: Mix
    encode: Callable[[str], list[int]]
    length_penalty: float

    @torch.no_grad()
    def __call__(self, source: Hard) -> list[list[Hypothesis]]:
        found = self.decoder(source)
        read = {h.text: tuple(self.encode(h.text)) for hypotheses in found for h in hypotheses}
        changed = [
            (row, place)
            for row, hypotheses in enumerate(found)
            for place, hypothesis in enumerate(hypotheses)
            if read[hypothesis.text] != hypothesis.ids
        ]
        if changed:
            device = source.ids.device
            rows = torch.tensor([row for row, _ in changed], device=device)
            strings = pad_batch([list(found[r][p].ids) for r, p in changed], 0, device)
            costs = self.objective.bind(source.select(rows)).costs(strings)
            for (row, place), cost in zip(changed, costs.tolist(), strict=True):
                old = found[row][place]
                found[row][place] = self._again(old, read[old.text], cost[0])
        return [best_first(hypotheses) for hypotheses in found]

    def _again(self, old: Hypothesis, ids: tuple[int, ...], cost: float) -> Hypothesis:
        score = -cost / (len(ids) + 1) ** self.length_penalty
        terms = dict.fromkeys(old.terms, cost)
        return replace(old, ids=ids, terms=terms, discrete_cost=cost, score=score)
