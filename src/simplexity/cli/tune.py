"""`simplexity tune`: weights of an objective, or a step size, chosen on development data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from simplexity.cli.progress import Progress
from simplexity.cli.rerank import models
from simplexity.config import TranslateConfig, TuneConfig
from simplexity.errors import UsageError
from simplexity.objectives import parse_objective, parse_weights
from simplexity.runtime import device_named, keep_memory, use_threads
from simplexity.settings import load_config

if TYPE_CHECKING:
    from simplexity.decode import Hypothesis
    from simplexity.evaluate.learn import Candidate, Resampling
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

Lists = list[list["NBestLine"]]


def run(config: TuneConfig) -> None:
    """Learn weights or a step size on development data.

    'simplexity tune' learns the weights of an objective. For reranking it takes an n-best list with
    features, as 'simplexity rerank --scores-cache' writes it, or makes one of a source with the
    models of a family; it touches no model once all hypotheses are scored. For --decoder eg, sgd
    or projected it decodes the source with each of a few weights. 'simplexity tune step' decodes it
    with each of several step sizes. The last line of the report has the flags for 'simplexity
    rerank' or 'simplexity translate'. Gains come with 95% intervals and, held out, on sentences
    that were not used to choose.
    """
    from simplexity.evaluate.learn import Resampling
    from simplexity.evaluate.metrics import metric_named
    from simplexity.text.files import read_lines, writing

    references = [list(read_lines(file)) for file in config.references]
    metric = metric_named(config.metric, config.tokenize)
    test = Resampling(config.resamples, config.folds, config.seed)
    tune = _tune_reranking if config.reranks() else _tune_decoding
    with writing(config.output, config.overwrite) as output:
        output.write(tune(config, references, metric, test))


def _tune_reranking(
    config: TuneConfig, references: list[list[str]], metric: Metric, test: Resampling
) -> str:
    from simplexity.evaluate.learn import cached_lists, learn_weights
    from simplexity.evaluate.learn_report import render_learnt

    with Progress("scoring", len(references[0]), "lists", quiet=config.quiet) as progress:
        if config.nbest is None:
            rerank, lists = _searched(config, progress)
        else:
            rerank, lists = _read(config, references[0], progress)
        _keep(config, lists)
        cached = cached_lists(lists, rerank, references, metric)
        begin = time.perf_counter()
        method = _method(config, metric, list(rerank.weights.values()))
        learnt = learn_weights(cached, rerank.weights, metric, method, test)
        progress.say(f"weights learnt and tested in {time.perf_counter() - begin:.1f} s")
    flags = f"--normalise {rerank.normalise}{' --filtered' * rerank.filtered}"
    return render_learnt(learnt, flags, config.format)


def _read(config: TuneConfig, reference: list[str], progress: Progress) -> tuple[Rerank, Lists]:
    """The lists of a file, completed by models where it lacks something."""
    from simplexity.evaluate.metrics import check_parallel
    from simplexity.search.nbest_file import completed, read_lists, rereadable, survey

    with ExitStack() as stack:
        nbest = stack.enter_context(rereadable(config.nbest))
        source = None
        if config.source is not None:
            source = stack.enter_context(rereadable(config.source))
            check_parallel({str(config.references[0]): reference, source.name: list(source)})
        found = survey(read_lists(nbest, len(reference)), nbest.name, len(reference))
        unset = ",".join(f"{name}=1" for name in found.terms()) if source is None else "joint"
        rerank = _rerank(config, unset)
        lists = completed(nbest, source, found, rerank.needs(), models(config))
        return rerank, list(_counting(lists, progress))


def _searched(config: TuneConfig, progress: Progress) -> tuple[Rerank, Lists]:
    """The lists of a beam search, with the scores of every model."""
    from simplexity import build
    from simplexity.rerank import nbest_lines
    from simplexity.search.nbest_file import filled
    from simplexity.search.rerank import COUNTS

    rerank = _rerank(config, "joint")
    names = [name for name in rerank.weights if name not in COUNTS]
    even = ",".join(f"{name}={1 / len(names)}" for name in names)
    size = config.beam_size or N_BEST
    decoding = _decoding(config, decoder="rerank", objective=even, beam_size=size)
    translator = build.n_best_translator(decoding, _family(config))
    lines = _source(config)
    found = _counting(translator(lines), progress)
    return rerank, [
        filled(nbest_lines(n, hypotheses, len(translator.source.encode(line))), rerank.needs())
        for n, (line, hypotheses) in enumerate(zip(lines, found, strict=True))
    ]


def _rerank(config: TuneConfig, unset: str) -> Rerank:
    """How lists are ranked before anything is learnt."""
    from simplexity.search.rerank import Rerank

    weights = parse_weights(config.objective or unset)
    return Rerank(weights, config.normalise or "length", config.filtered)


def _keep(config: TuneConfig, lists: Lists) -> None:
    """Write the lists where they are wanted."""
    from simplexity.search.nbest import format_line
    from simplexity.text.files import writing

    if config.scores_cache is not None:
        with writing(config.scores_cache, config.overwrite) as cache:
            cache.writelines(format_line(line) + "\n" for found in lists for line in found)


def _method(config: TuneConfig, metric: Metric, start: list[float]) -> Callable[[Cached], Tuned]:
    import numpy as np

    from simplexity.evaluate.tuning import mert, random_search

    if config.method == "random":
        samples = config.samples or SAMPLES
        return partial(random_search, metric=metric, samples=samples, seed=config.seed)
    return partial(
        mert,
        metric=metric,
        start=np.array(start),
        restarts=config.restarts,
        seed=config.seed,
        non_negative=config.non_negative,
    )


def _tune_decoding(
    config: TuneConfig, references: list[list[str]], metric: Metric, test: Resampling
) -> str:
    from simplexity import build
    from simplexity.evaluate.learn import choose
    from simplexity.evaluate.learn_report import render_chosen
    from simplexity.evaluate.metrics import check_parallel

    lines = _source(config)
    check_parallel({str(config.references[0]): references[0], str(config.source): lines})
    family = _family(config)
    flag, usual, settings = (_steps if config.what == "step" else _weights)(config)
    candidates, starts = [], {}
    with Progress("tuning", len(settings), "runs", quiet=config.quiet) as progress:
        for label, decoding in settings.items():
            begin = time.perf_counter()
            found = [one[0] for one in build.translator(decoding, family)(lines)]
            seconds = time.perf_counter() - begin
            candidates.append(_candidate(label, found, seconds))
            starts[label] = _start(found)
            progress.update(len(candidates), f"{flag} {label} took {seconds:.1f} s")
    baseline = list(settings).index(usual)
    chosen = choose(candidates, starts[usual], baseline, config.by, references, metric, test)
    return render_chosen(chosen, flag, config.format)


Settings = tuple[str, str, dict[str, TranslateConfig]]
"""A flag, its usual value, and configurations by the value that they give it."""


def _steps(config: TuneConfig) -> Settings:
    """Step sizes to try, the usual one among them."""
    decoding = _decoding(config, objective=config.objective or "joint")
    resolved = decoding.resolved()
    assert resolved.step is not None  # every preset has one
    assert resolved.normalise is not None
    steps = {resolved.step, *(config.steps or STEPS[resolved.normalise])}
    tried = {f"{step:g}": decoding.model_copy(update={"step": step}) for step in sorted(steps)}
    return "--step", f"{resolved.step:g}", tried


def _weights(config: TuneConfig) -> Settings:
    """Weights to try, those to start from first."""
    from simplexity.evaluate.learn import drawn_weights
    from simplexity.search.rerank import show_weights

    start = {str(n): weight for n, weight in parse_objective(config.objective or "joint").items()}
    drawn = drawn_weights(list(start), config.samples or DECODED, config.seed)
    labels = dict.fromkeys(map(show_weights, [start, *drawn]))
    tried = {label: _decoding(config, objective=label) for label in labels}
    return "--objective", show_weights(start), tried


def _decoding(config: TuneConfig, **given: Any) -> TranslateConfig:
    """How to decode: by what is set here, then by the settings file, then as usual."""
    same = {key: getattr(config, key) for key in ("model", "beam_size", "preset", "batch_size")}
    usual = {"decoder": config.decoder or "eg", "normalise": config.normalise}
    wanted = {k: v for k, v in {**same, **usual, **given}.items() if v is not None}
    found = load_config(TranslateConfig, config.settings, wanted)
    if found.init == "file":
        raise UsageError(f"{config.settings}: tuning cannot start from a file; name another init")
    return found


def _family(config: TuneConfig) -> Family:
    keep_memory()
    use_threads(config.threads)
    from simplexity.models.family import load_family

    assert config.model is not None  # the configuration's own check
    return load_family(config.model, device=device_named(config.device))


def _source(config: TuneConfig) -> list[str]:
    from simplexity.text.files import read_lines

    return list(read_lines(config.source))


def _candidate(label: str, found: Sequence[Hypothesis], seconds: float) -> Candidate:
    from simplexity.evaluate.learn import Candidate

    cost = sum(hypothesis.discrete_cost for hypothesis in found) / len(found)
    return Candidate(label, [hypothesis.text for hypothesis in found], cost, seconds)


def _start(found: Sequence[Hypothesis]) -> Candidate:
    """What descent began from; an empty line has nothing."""
    from simplexity.evaluate.learn import Candidate

    cost = sum(hypothesis.initial_cost or 0.0 for hypothesis in found) / len(found)
    return Candidate("start", [hypothesis.initial_text or "" for hypothesis in found], cost, 0.0)


def _counting(lists: Iterable[list[Any]], progress: Progress) -> Iterator[list[Any]]:
    for number, found in enumerate(lists, 1):
        yield found
        progress.update(number)
