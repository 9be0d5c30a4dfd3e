"""`simplexity rerank`: n-best lists in a new order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from simplexity.config import RerankConfig, TuneConfig
from simplexity.runtime import device_named, keep_memory, use_threads

if TYPE_CHECKING:
    from simplexity.search.nbest import NBestLine
    from simplexity.search.nbest_file import Complete, MakeComplete
    from simplexity.search.rerank import Rerank


def run(config: RerankConfig) -> None:
    """Put n-best lists into the order of a joint objective.

    The list, ours or another system's, is in the format of Moses and Marian. What it lacks of the
    objective is computed with --model and --source; what stands there is taken as it is. So a list
    that --scores-cache has written can be put into any order without a model. Every source line
    gets its line: an empty one if it has no hypothesis. The whole list is checked before anything
    is written.
    """
    from simplexity.cli.progress import Progress
    from simplexity.objectives import parse_weights
    from simplexity.search.nbest import format_line
    from simplexity.search.nbest_file import completed, read_lists, rereadable, survey
    from simplexity.search.rerank import Rerank
    from simplexity.text.files import writing

    rerank = Rerank(parse_weights(config.objective), config.normalise, config.filtered)
    with ExitStack() as stack:
        nbest = stack.enter_context(rereadable(config.nbest))
        source, sentences = None, None
        if config.source is not None:
            source = stack.enter_context(rereadable(config.source))
            sentences = sum(1 for _ in source)
        found = survey(read_lists(nbest, sentences), nbest.name, sentences)
        make = models(config)
        lists = completed(nbest, source, found, rerank.needs(), make, config.rescore)
        output = stack.enter_context(writing(config.output, config.overwrite))
        cache = None
        if config.scores_cache is not None:
            cache = stack.enter_context(writing(config.scores_cache, config.overwrite))
        progress = stack.enter_context(
            Progress("reranking", found.sentences, "lists", quiet=config.quiet)
        )
        for number, hypotheses in enumerate(lists):
            if cache is not None:
                cache.writelines(format_line(line) + "\n" for line in hypotheses)
            for line in _lines(number, hypotheses, rerank, config):
                output.write(line + "\n")
            progress.update(number + 1)


def models(config: RerankConfig | TuneConfig) -> MakeComplete | None:
    """What scores with the models of a configuration; they are loaded when there is need."""
    directory = config.model
    if directory is None:
        return None

    def make(names: list[str]) -> Complete:
        keep_memory()
        use_threads(config.threads)
        from simplexity import build
        from simplexity.models.family import load_family

        family = load_family(directory, device=device_named(config.device))
        return build.rescorer(names, family, config.batch_size)

    return make


def _lines(
    sentence: int, hypotheses: Sequence[NBestLine], rerank: Rerank, config: RerankConfig
) -> list[str]:
    """What is written for one sentence."""
    from simplexity.search.nbest import format_line

    if config.output_type == "json":
        return [_json(sentence, hypotheses, rerank, config.n_best)]
    order = rerank.order([line.features for line in hypotheses])
    best = [hypotheses[place] for place in order]
    if config.output_type == "text":
        return [best[0].text if best else ""]
    kept = best[: config.n_best]
    return [format_line(replace(line, score=rerank.score(line.features))) for line in kept]


def _json(
    sentence: int, hypotheses: Sequence[NBestLine], rerank: Rerank, n_best: int | None
) -> str:
    """The record that `simplexity translate` writes, too."""
    from simplexity.output import record
    from simplexity.rescore import ranked
    from simplexity.translate import NOTHING

    found = ranked(hypotheses, rerank)[:n_best] or [NOTHING]
    return json.dumps(record(sentence, found), ensure_ascii=False)
