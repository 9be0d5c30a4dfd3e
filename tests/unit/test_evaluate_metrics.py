"""Corpus scores against sacrebleu's own, and what users are told when lines do not match."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from simplexity.errors import SimplexityError, UsageError
from simplexity.evaluate.metrics import (
    METRICS,
    Bleu,
    ChrF,
    Ter,
    average_length,
    check_parallel,
    from_sufficient,
    lengths,
    metric_named,
    score,
    sufficient,
    sufficient_lists,
)

WORDS = ["a", "A", "the", "cat", "Cat,", "sat", "down.", "on", "It's", "2,5"]
lines = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


def judge(name, hypotheses, references):
    """What sacrebleu's public functions say."""
    match name:
        case "bleu":
            return sacrebleu.corpus_bleu(hypotheses, references, lowercase=True, force=True).score
        case "bleu-cased":
            return sacrebleu.corpus_bleu(hypotheses, references, force=True).score
        case "chrf":
            return sacrebleu.corpus_chrf(hypotheses, references).score
        case "ter":
            return sacrebleu.corpus_ter(hypotheses, references).score


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_score_is_sacrebleus(name, data):
    size, sets = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    corpus = st.lists(lines, min_size=size, max_size=size)
    hypotheses = data.draw(corpus)
    references = [data.draw(corpus) for _ in range(sets)]
    value = score(metric_named(name), hypotheses, references).value
    assert value == pytest.approx(judge(name, hypotheses, references), abs=1e-9)


def random_corpus(seed, size=30):
    rng = np.random.default_rng(seed)
    references = [
        [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(size)] for _ in range(2)
    ]
    hypotheses = []
    for line in references[0]:
        words = line.split()
        words[rng.integers(len(words))] = str(rng.choice(WORDS))
        hypotheses.append(" ".join(words[rng.integers(2) :]))
    return hypotheses, references


@pytest.mark.parametrize("name", METRICS)
def test_sums_of_any_subsets_score_as_sacrebleu_scores_the_subsets(name):
    hypotheses, references = random_corpus(0)
    metric = metric_named(name)
    stats = sufficient(metric, hypotheses, references)
    rows = np.random.default_rng(1).integers(30, size=(2, 3, 8))
    values = from_sufficient(metric, stats[rows].sum(-2))
    assert values.shape == (2, 3)
    for place in np.ndindex(2, 3):
        chosen = [hypotheses[i] for i in rows[place]]
        against = [[lines[i] for i in rows[place]] for lines in references]
        assert values[place] == pytest.approx(judge(name, chosen, against), abs=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_lists_are_counted_like_single_lines(name):
    hypotheses, references = random_corpus(2, size=4)
    other, _ = random_corpus(3, size=4)
    metric = metric_named(name)
    lists = [[hypotheses[0], other[0], ""], [], [other[2]], [hypotheses[3], hypotheses[3]]]
    counted = sufficient_lists(metric, lists, references)
    first, second = (sufficient(metric, lines, references) for lines in (hypotheses, other))
    assert [len(stats) for stats in counted] == [3, 0, 1, 2]
    assert counted[1].shape[1] == first.shape[1]
    np.testing.assert_array_equal(counted[0][:2], np.stack([first[0], second[0]]))
    np.testing.assert_array_equal(counted[2][0], second[2])
    np.testing.assert_array_equal(counted[3], np.stack([first[3], first[3]]))


def test_case_counts_only_when_asked():
    hypotheses, references = ["THE CAT SAT ON IT"], [["the cat sat on it"]]
    assert score(Bleu(), hypotheses, references).value == pytest.approx(100)
    assert score(Bleu(lowercase=False), hypotheses, references).value == 0


def test_the_signature_says_what_was_done():
    one = score(Bleu(), ["a b"], [["a b"]])
    assert one.signature == str(_signature(sacrebleu.BLEU(lowercase=True), 1))
    two = score(metric_named("bleu-cased", "zh"), ["a b"], [["a b"], ["a"]])
    assert two.signature == str(_signature(sacrebleu.BLEU(tokenize="zh"), 2))
    assert score(ChrF(), ["a b"], [["a b"]]).signature == str(_signature(sacrebleu.CHRF(), 1))
    assert score(Ter(), ["a b"], [["a b"]]).signature == str(_signature(sacrebleu.TER(), 1))


def _signature(metric, sets):
    metric.corpus_score(["a b"], [["a b"]] * sets)
    return metric.get_signature()


def test_tokenisation_decides_what_a_word_is():
    assert average_length(["你好世界", "hello"], "zh") == 2.5
    assert average_length(["你好世界", "hello"], "char") == 4.5
    assert average_length(["Well, no.", ""]) == 2
    assert score(Bleu(tokenise="zh"), ["你好世界啊"], [["你好世界吗"]]).value > 0
    assert score(Bleu(), ["你好世界啊"], [["你好世界吗"]]).value == 0


def test_lengths_are_bleus():
    hypotheses, references = random_corpus(4)
    found = lengths(hypotheses, references)
    known = sacrebleu.corpus_bleu(hypotheses, references, lowercase=True)
    assert found.average == pytest.approx(known.sys_len / len(hypotheses))
    assert found.ratio == pytest.approx(known.sys_len / known.ref_len)
    assert found.penalty == pytest.approx(known.bp)
    assert found.penalty < 1


def test_nothing_translated_has_no_length():
    found = lengths(["", ""], [["a b", "c"]])
    assert (found.average, found.ratio, found.penalty) == (0, 0, 0)


@pytest.mark.skipif(importlib.util.find_spec("MeCab") is not None, reason="MeCab is installed")
def test_missing_mecab_is_said_with_the_remedy():
    with pytest.raises(SimplexityError, match="install sacrebleu with its extra 'ja'"):
        score(Bleu(tokenise="ja-mecab"), ["a"], [["a"]])


def test_unequal_counts_name_both_sides():
    with pytest.raises(
        SimplexityError, match=r"reference 2 .* has 1 line and out\.txt has 2 lines"
    ):
        score(Bleu(), ["a", "b"], [["a", "b"], ["a"]], "out.txt")
    with pytest.raises(SimplexityError, match="ref has 3 lines and hyp has 1 line"):
        check_parallel({"hyp": ["a"], "ref": ["a", "b", "c"]})


def test_nothing_to_evaluate_is_an_error():
    with pytest.raises(SimplexityError, match="the hypotheses has no lines"):
        score(Bleu(), [], [[]])
    with pytest.raises(SimplexityError, match="no lines"):
        average_length([])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metric_named("blue"), "no metric 'blue'; choose from bleu"),
        (lambda: score(Bleu(tokenise="14a"), ["a"], [["a"]]), "no tokenisation '14a'"),
        (lambda: score(Bleu(), ["a"], ["a"]), "list of sets"),
        (lambda: score(Bleu(), ["a"], []), "list of sets"),
    ],
)
def test_requests_that_make_no_sense(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_importing_the_metrics_is_light():
    heavy = (
        "import sys, simplexity.evaluate.metrics; print({'sacrebleu', 'torch'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
