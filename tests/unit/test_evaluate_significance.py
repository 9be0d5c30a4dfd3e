"""Significance tests against sacrebleu's, against full enumeration, and where they differ."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from simplexity.errors import UsageError
from simplexity.evaluate import significance
from simplexity.evaluate.metrics import Bleu, ChrF, Ter, from_sufficient, sufficient
from simplexity.evaluate.significance import (
    approximate_randomisation,
    bootstrap_interval,
    paired_bootstrap,
)

WORDS = ["the", "cat", "sat", "on", "a", "red", "mat", "while", "it", "was", "raining", "in"]


def corpus(seed, size=50, noise=(0.3, 0.2)):
    """References and two systems that change each word with these probabilities."""
    rng = np.random.default_rng(seed)
    references = [list(rng.choice(WORDS, rng.integers(6, 14))) for _ in range(size)]
    systems = [
        [" ".join(rng.choice(WORDS) if rng.random() < p else w for w in r) for r in references]
        for p in noise
    ]
    return [" ".join(line) for line in references], *systems


METRICS = [
    pytest.param(Bleu(), sacrebleu.BLEU(lowercase=True), id="bleu"),
    pytest.param(ChrF(), sacrebleu.CHRF(), id="chrf"),
    pytest.param(Ter(), sacrebleu.TER(), id="ter"),
]


@pytest.mark.parametrize(("ours", "theirs"), METRICS)
@pytest.mark.parametrize("noise", [(0.3, 0.28), (0.3, 0.26)])
@pytest.mark.parametrize(
    ("kind", "test", "samples"),
    [("bs", paired_bootstrap, 1000), ("ar", approximate_randomisation, 2000)],
)
def test_p_values_are_sacrebleus(ours, theirs, noise, kind, test, samples, monkeypatch):
    references, baseline, system = corpus(2, noise=noise)
    paired = PairedTest(
        [("baseline", baseline), ("system", system)],
        {"metric": theirs},
        [references],
        test_type=kind,
        n_samples=samples,
    )
    _, results = paired()
    (known,) = (values[1] for name, values in results.items() if name != "System")
    stats = [sufficient(ours, lines, [references]) for lines in (system, baseline)]
    found = test(*stats, ours, samples)
    assert 0.005 < found.p_value < 0.9
    # The random numbers are the same; sacrebleu sums in single precision and counts no ties.
    # Whole edits make many of them.
    tied = kind == "ar" and isinstance(ours, Ter)
    assert found.p_value == pytest.approx(known.p_value, abs=0.07 if tied else 3 / samples)
    assert found.p_value >= known.p_value - 3 / samples
    monkeypatch.setattr(significance, "_TIE", -1e-9)
    assert test(*stats, ours, samples).p_value == pytest.approx(known.p_value, abs=3 / samples)
    first = results[next(name for name in results if name != "System")][0].score
    assert found.difference == pytest.approx(known.score - first, abs=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), METRICS)
def test_intervals_are_sacrebleus(ours, theirs):
    references, baseline, _ = corpus(2)
    known = theirs.corpus_score(baseline, [references], n_bootstrap=1000)
    found = bootstrap_interval(sufficient(ours, baseline, [references]), ours)
    assert found.mean == pytest.approx(known._mean, abs=1e-4)
    assert (found.high - found.low) / 2 == pytest.approx(known._ci, abs=1e-4)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_identical_systems_do_not_differ(test):
    references, baseline, _ = corpus(3)
    stats = sufficient(Bleu(), baseline, [references])
    found = test(stats, stats.copy(), Bleu())
    assert (found.difference, found.p_value, found.low, found.high) == (0, 1, 0, 0)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_a_far_better_system_is_significant_and_only_in_size_signed(test):
    references, baseline, system = corpus(4, noise=(0.5, 0.05))
    a, b = (sufficient(Bleu(), lines, [references]) for lines in (system, baseline))
    up, down = test(a, b, Bleu()), test(b, a, Bleu())
    assert up.p_value < 0.01
    assert up.p_value == down.p_value
    assert 0 < up.low < up.difference < up.high
    assert (down.low, down.high) == pytest.approx((-up.high, -up.low))


def test_one_changed_sentence_proves_nothing():
    references, baseline, _ = corpus(5)
    system = [references[0], *baseline[1:]]
    a, b = (sufficient(Bleu(), lines, [references]) for lines in (system, baseline))
    found = approximate_randomisation(a, b, Bleu())
    assert found.difference > 0
    assert found.p_value == 1


def test_randomisation_estimates_the_exact_permutation_test():
    references, baseline, system = corpus(6, size=8, noise=(0.5, 0.2))
    a, b = (sufficient(ChrF(), lines, [references]) for lines in (system, baseline))

    def difference(swap):
        swap = np.array(swap)[:, None]
        sums = np.where(swap, b, a).sum(0), np.where(swap, a, b).sum(0)
        return abs(float(from_sufficient(ChrF(), sums[0]) - from_sufficient(ChrF(), sums[1])))

    differences = np.array([difference(swap) for swap in product([False, True], repeat=8)])
    exact = (differences >= differences[0] - 1e-9).mean()
    assert 0.01 < exact < 0.9
    found = approximate_randomisation(a, b, ChrF(), samples=20000)
    assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20000))


def test_bootstrap_estimates_all_resamples():
    references, baseline, system = corpus(7, size=5, noise=(0.5, 0.45))
    a, b = (sufficient(ChrF(), lines, [references]) for lines in (system, baseline))
    rows = np.array(list(product(range(5), repeat=5)))
    drawn = from_sufficient(ChrF(), a[rows].sum(1)) - from_sufficient(ChrF(), b[rows].sum(1))
    observed = abs(paired_bootstrap(a, b, ChrF(), 1).difference)
    exact = (np.abs(drawn) - np.abs(drawn).mean() >= observed - 1e-9).mean()
    assert 0.01 < exact < 0.9
    found = paired_bootstrap(a, b, ChrF(), samples=20000)
    assert found.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20000))
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.5)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.5)


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_blocks_change_nothing(test, monkeypatch):
    references, baseline, system = corpus(8, size=13)
    stats = [sufficient(Bleu(), lines, [references]) for lines in (system, baseline)]
    whole = test(*stats, Bleu(), 500)
    monkeypatch.setattr(significance, "_BLOCK", 40)
    assert test(*stats, Bleu(), 500) == whole


def test_seeds_are_obeyed():
    references, baseline, system = corpus(9)
    stats = [sufficient(Bleu(), lines, [references]) for lines in (system, baseline)]
    one, again, other = (paired_bootstrap(*stats, Bleu(), seed=s) for s in (1, 1, 2))
    assert one == again
    assert one.low != other.low


def test_unpaired_statistics_are_refused():
    stats = np.ones((3, 10))
    with pytest.raises(UsageError, match=r"\(3, 10\) and \(2, 10\)"):
        paired_bootstrap(stats, stats[:2], Bleu())
    with pytest.raises(UsageError, match="same sentences"):
        bootstrap_interval(stats[:0], Bleu())
    with pytest.raises(UsageError, match="at least one sample"):
        approximate_randomisation(stats, stats, Bleu(), samples=0)
