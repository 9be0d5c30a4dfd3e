"""Several systems against references and a baseline: scores, significance, length, search error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simplexity.errors import UsageError
from simplexity.evaluate.metrics import (
    Array,
    Bleu,
    Lengths,
    Metric,
    References,
    check_parallel,
    from_sufficient,
    lengths_from_sums,
    reference_sets,
    signature,
    sufficient,
)
from simplexity.evaluate.significance import (
    Difference,
    Interval,
    Test,
    approximate_randomisation,
    bootstrap_interval,
    paired_bootstrap,
)

SEARCH_TOLERANCE = 1e-4
LEVEL = 0.05


@dataclass(frozen=True)
class SearchError:
    """How far a system's costs lie above the lowest that any system here found.

    `share` is the part of sentences above it by more than 1e-4, `excess` the mean over all.
    """

    share: float
    excess: float


@dataclass(frozen=True)
class Cell:
    """One metric of one system; `against` is missing for the baseline and without one."""

    value: float
    interval: Interval
    against: Difference | None
    better: bool
    best: bool


@dataclass(frozen=True)
class Row:
    """One system; its cells stand in the order of the table's metrics."""

    system: str
    cells: tuple[Cell, ...]
    lengths: Lengths
    search: SearchError | None


@dataclass(frozen=True)
class Table:
    """Systems by metrics; `signatures` holds sacrebleu's signature of each metric."""

    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    signatures: tuple[str, ...]
    rows: tuple[Row, ...]
    baseline: str | None
    test: str


def compare(
    systems: Mapping[str, Sequence[str]],
    references: References,
    metrics: Sequence[Metric],
    baseline: str | None = None,
    test: str = "bootstrap",
    samples: int | None = None,
    seed: int = 12345,
    search_costs: Mapping[str, Sequence[float]] | None = None,
) -> Table:
    """Score every system and test it against the baseline.

    `search_costs` are one model's costs of the systems' outputs, a number for each sentence; a
    system without them gets no search error.
    """
    run, key, usual = _test(test)
    count = usual if samples is None else samples
    size = _check(systems, references, baseline, search_costs or {})
    resampling = {"seed": str(seed), key: str(count)} if baseline is not None else {}
    words = next((metric for metric in metrics if isinstance(metric, Bleu)), Bleu())
    counted = {
        metric: _statistics(metric, systems, references)
        for metric in dict.fromkeys([*metrics, words])
    }
    columns = [_column(metric, counted[metric], baseline, run, count, seed) for metric in metrics]
    errors = _search_errors(search_costs or {})
    return Table(
        tuple(metric.name for metric in metrics),
        tuple(metric.label for metric in metrics),
        tuple(signature(metric, len(references), resampling) for metric in metrics),
        tuple(
            Row(
                name,
                tuple(column[name] for column in columns),
                lengths_from_sums(counted[words][name].sum(0), size),
                errors.get(name),
            )
            for name in systems
        ),
        baseline,
        test,
    )


def _test(name: str) -> tuple[Test, str, int]:
    """A test, its key in sacrebleu's signatures and its usual number of samples."""
    tests: dict[str, tuple[Test, str, int]] = {
        "bootstrap": (paired_bootstrap, "bs", 1000),
        "randomisation": (approximate_randomisation, "ar", 10000),
    }
    if name not in tests:
        raise UsageError(f"there is no test {name!r}; choose from {', '.join(tests)}")
    return tests[name]


def _check(
    systems: Mapping[str, Sequence[str]],
    references: References,
    baseline: str | None,
    costs: Mapping[str, Sequence[float]],
) -> int:
    if not systems:
        raise UsageError("there is no system to evaluate")
    for name in [*([] if baseline is None else [baseline]), *costs]:
        if name not in systems:
            raise UsageError(f"there is no system {name!r}; there are {', '.join(systems)}")
    named = {f"system {name!r}": lines for name, lines in systems.items()}
    numbers = {f"the costs of system {name!r}": values for name, values in costs.items()}
    for name, values in numbers.items():
        if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
            raise UsageError(f"{name} hold a value that is no finite number")
    return check_parallel({**reference_sets(references), **named, **numbers})


def _statistics(
    metric: Metric, systems: Mapping[str, Sequence[str]], references: References
) -> dict[str, Array]:
    return {
        name: sufficient(metric, lines, references, f"system {name!r}")
        for name, lines in systems.items()
    }


def _column(
    metric: Metric,
    statistics: Mapping[str, Array],
    baseline: str | None,
    run: Test,
    samples: int,
    seed: int,
) -> dict[str, Cell]:
    values = {n: float(from_sufficient(metric, s.sum(0))) for n, s in statistics.items()}
    best = (max if metric.higher_is_better else min)(values.values())
    cells = {}
    for name, stats in statistics.items():
        against = None
        if baseline is not None and name != baseline:
            against = run(stats, statistics[baseline], metric, samples, seed)
        cells[name] = Cell(
            values[name],
            bootstrap_interval(stats, metric, seed=seed),
            against,
            against is not None and _better(against, metric),
            len(values) > 1 and values[name] == best,
        )
    return cells


def _better(against: Difference, metric: Metric) -> bool:
    gain = against.difference if metric.higher_is_better else -against.difference
    return gain > 0 and against.p_value < LEVEL


def _search_errors(costs: Mapping[str, Sequence[float]]) -> dict[str, SearchError]:
    if not costs:
        return {}
    found = np.array([np.asarray(values, dtype=np.float64) for values in costs.values()])
    return {
        name: SearchError(float((above > SEARCH_TOLERANCE).mean()), float(above.mean()))
        for name, above in zip(costs, found - found.min(0), strict=True)
    }
