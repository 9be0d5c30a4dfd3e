"""`simplexity tune`: weights of an objective, or a step size, chosen on development data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from simplexity.cli.progress import Progress
from simplexity.cli.rerank import models
from simplexity.config import TranslateConfig, TuneConfig
from simplexity.objectives import parse_objective, parse_weights
from simplexity.runtime import device_named, keep_memory, use_threads
from simplexity.settings import load_config

if TYPE_CHECKING:
    from simplexity.evaluate.learn import Candidate, Chosen, Test
    from simplexity.evaluate.lists import Cached
    from simplexity.evaluate.metrics import Metric
    from simplexity.evaluate.tuning import Tuned
    from simplexity.models.family import Family
    from simplexity.search.nbest import NBestLine
    from simplexity.search.rerank import Rerank

STEPS = {"sum": (0.1, 0.2, 0.5, 1.0, 2.0, 3.0), "length": (10.0, 25.0, 50.0, 100.0, 200.0, 400.0)}
N_BEST = 100
SAMPLES = 1000
DECODED = 8


def run(config: TuneConfig) -> None:
    """Learn weights or a step size on development data.

    'simplexity tune' learns the weights of an objective. For reranking it needs an n-best list
    with features, as 'simplexity rerank' writes and takes them, or a family and a source that it
    makes one from, and touches no model once all hypotheses are scored. For --decoder eg, sgd or
    projected it decodes the source anew for each of a few weights. 'simplexity tune step' decodes
    it with each of several step sizes, as the paper does. The last line of the report gives the
    flags for 'simplexity rerank' or 'simplexity translate'. Of gains it says how far they can be
    chance, and what is left of them on sentences that were not used to choose.
    """
    from simplexity.evaluate.learn import Test
    from simplexity.evaluate.metrics import metric_named
    from simplexity.text.files import read_lines, writing

    references = [list(read_lines(file)) for file in config.references]
    metric = metric_named(config.metric, config.tokenize)
    test = Test(config.resamples, config.folds, config.seed)
    with writing(config.output, config.overwrite) as output:
        tune = _tune_reranking if config.reranks() else _tune_decoding
        output.write(tune(config, references, metric, test))


def _tune_reranking(
    config: TuneConfig, references: list[list[str]], metric: Metric, test: Test
) -> str:
    from simplexity.evaluate.learn import cached_lists, learn_weights
    from simplexity.evaluate.learn_report import render_learnt

    with Progress("scoring", len(references[0]), "lists", quiet=config.quiet) as progress:
        rerank, lists = _lists(config, len(references[0]), progress)
        cached = cached_lists(lists, rerank, references, metric)
        begin = time.perf_counter()
        learnt = learn_weights(cached, rerank.weights, metric, _method(config, metric, rerank), test)
        progress.say(f"weights learnt and tested in {time.perf_counter() - begin:.1f} s")
    return render_learnt(learnt, rerank, config.format)
