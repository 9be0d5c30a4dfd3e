"""N-best lists of text, completed with the scores of models."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from simplexity.decode import Hypothesis
from simplexity.rerank import Scorer, ToScore, score_nbest
from simplexity.search.nbest import NBestLine
from simplexity.search.nbest_file import is_empty, with_features
from simplexity.search.rerank import SOURCE_TOKENS, TOKENS, Rerank
from simplexity.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Rescorer:
    """Gives hypotheses of text the log-probabilities of models, and counts their words.

    Without a scorer it only counts. What stood under the same names is replaced; the list of an
    empty source line stays as it is.
    """

    source: Vocabulary
    target: Vocabulary
    scorer: Scorer | None

    def __call__(self, lists: Iterable[tuple[str, list[NBestLine]]]) -> Iterator[list[NBestLine]]:
        counted = (self._count(source, hypotheses) for source, hypotheses in lists)
        if self.scorer is None:
            return (lines for lines, _ in counted)
        return self._score(counted, self.scorer)

    def _count(self, source: str, hypotheses: list[NBestLine]) -> tuple[list[NBestLine], ToScore]:
        read = self.source.encode(source)
        if is_empty(hypotheses):
            return hypotheses, (read, [])
        strings = [self.target.encode(line.text) for line in hypotheses]
        lines = [
            with_features(line, {TOKENS: len(ids), SOURCE_TOKENS: len(read)})
            for line, ids in zip(hypotheses, strings, strict=True)
        ]
        return lines, (read, strings)

    def _score(
        self, counted: Iterable[tuple[list[NBestLine], ToScore]], scorer: Scorer
    ) -> Iterator[list[NBestLine]]:
        waiting: deque[list[NBestLine]] = deque()

        def strings() -> Iterator[ToScore]:
            for lines, ids in counted:
                waiting.append(lines)
                yield ids

        names = [part.name for part in scorer.objective.parts]
        for costs in score_nbest(strings(), scorer):
            lines = waiting.popleft()
            features = ({n: -c for n, c in zip(names, row, strict=True)} for row in costs.tolist())
            yield lines if is_empty(lines) else list(map(with_features, lines, features))


def ranked(hypotheses: Sequence[NBestLine], rerank: Rerank) -> list[Hypothesis]:
    """A list in its new order, as decoders give theirs."""
    cost = replace(rerank, normalise="sum")
    return [
        Hypothesis(
            text=hypotheses[place].text,
            ids=(),
            score=rerank.score(hypotheses[place].features),
            terms={name: -hypotheses[place].features[name] for name in rerank.weights},
            discrete_cost=-cost.score(hypotheses[place].features),
            initial_cost=-cost.score(hypotheses[0].features),
            initial_text=hypotheses[0].text,
        )
        for place in rerank.order([line.features for line in hypotheses])
    ]
