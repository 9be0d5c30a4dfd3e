"""The library in three lines: load a family, translate, look at the hypotheses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from simplexity import build
from simplexity.config import ExplainConfig, TranslateConfig
from simplexity.decode import Hypothesis
from simplexity.models.family import Family, MemberName, load_family
from simplexity.models.pretrained import is_family, load_pair, with_lm
from simplexity.objectives import parse_weights, usual_objective
from simplexity.rescore import ranked
from simplexity.runtime import device_named, quiet_transformers
from simplexity.score import Score, score_pairs
from simplexity.search.nbest import NBestLine
from simplexity.search.nbest_file import filled
from simplexity.search.rerank import Rerank
from simplexity.settings import load_config
from simplexity.shipped import family_or_shipped
from simplexity.show.story import Story


@dataclass(frozen=True)
class Loaded:
    """The models of a language pair, ready to translate and to score."""

    family: Family

    def translate(self, lines: Iterable[str], **settings: Any) -> list[Hypothesis]:
        """The best translation of every line, in order.

        The settings are those of `simplexity translate`, such as `objective="bidirectional"`,
        `decoder="sgd"`, `beam_size=10`, `iterations=20`. A reverse or language model that was
        loaded beside the forward one takes part unless the objective says otherwise.
        """
        return [found[0] for found in self.n_best(lines, **settings)]

    def n_best(self, lines: Iterable[str], **settings: Any) -> Iterator[list[Hypothesis]]:
        """All hypotheses of every line, best first, as they are found."""
        family = self.family
        reverse = family.through_text and "reverse" in family.members
        usual = {
            "model": family.directory,
            "objective": usual_objective(reverse, family.lm is not None),
            # Several hypotheses a line are no plain text, which is what a command would write.
            "output_type": "json",
        }
        config = load_config(TranslateConfig, None, {**usual, **settings})
        return build.translator(config, family)(lines)

    def explain(self, sentence: str, **settings: Any) -> Story:
        """One sentence followed through a descent: masses, costs, and why each word changed.

        The settings are those of `simplexity explain`, such as `objective="bilingual"`.
        """
        given = {"model": self.family.directory, "sentence": sentence, **settings}
        config = load_config(ExplainConfig, None, given)
        return build.narrator(config.translation(), self.family)(sentence)

    def score(
        self, pairs: Iterable[tuple[str, str]], member: MemberName = "l2r", batch_size: int = 64
    ) -> Iterator[Score]:
        """log P of every (source, target) pair under one member."""
        return score_pairs(pairs, self.family[member], batch_size)

    def rerank(
        self,
        lists: Iterable[tuple[str, Sequence[str]]],
        objective: str = "joint",
        normalise: Literal["sum", "length"] = "length",
        filtered: bool = False,
        batch_size: int = 64,
    ) -> Iterator[list[Hypothesis]]:
        """Sources with the hypotheses of any system, best first, in the order of an objective.

        `filtered` leaves out what has more words than the first hypothesis of its list;
        `batch_size` counts hypotheses.
        """
        rerank = Rerank(parse_weights(objective), normalise, filtered)
        scored = build.rescorer(rerank.weights, self.family, batch_size)(
            (source, [NBestLine(n, text, {}, 0.0) for text in hypotheses])
            for n, (source, hypotheses) in enumerate(lists)
        )
        return (ranked(filled(found, rerank.needs()), rerank) for found in scored)


def load(
    forward: str | Path | None = None,
    reverse: str | Path | None = None,
    lm: str | Path | None = None,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str = "auto",
) -> Loaded:
    """Load the models that a directory holds, those that are shipped, or models of transformers.

    forward: a directory of `simplexity train`, or the name or directory of a model of transformers
    from source to target; unset: the family that comes with the package. reverse: one from target
    to source, lm: one of the target, or an ARPA file. Their vocabularies may differ. Models of many
    languages need their codes.
    """
    quiet_transformers()
    where, languages = device_named(device), (source_language, target_language)
    if forward is None:
        forward = family_or_shipped(None)
    if reverse is None and languages == (None, None) and is_family(forward):
        return Loaded(with_lm(load_family(Path(forward), device=where), lm, where))
    return Loaded(load_pair(forward, reverse, lm, languages, where))
