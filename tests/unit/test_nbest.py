"""N-best files: what we write is read back, and what others write is read rightly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexity.errors import SimplexityError
from simplexity.search.nbest import NBestLine, format_line, parse_line, read_nbest

numbers = st.floats(allow_nan=False)
names = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="=|"), min_size=1
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")) | st.text(
    "| a&#124;"
)


@given(st.integers(0, 10**6), texts, st.dictionaries(names, numbers, max_size=4), numbers)
def test_written_lines_are_read_back(sentence, text, features, score):
    text = text.replace("&#124;&#124;&#124;", "")
    line = NBestLine(sentence, text, features, score)
    read = parse_line(format_line(line) + "\n")
    assert read == line
    assert list(read.features) == list(features)


def test_the_printed_form():
    line = NBestLine(0, "ein Hund", {"l2r": -12.3, "r2l": -9.1}, -1.02)
    assert format_line(line) == "0 ||| ein Hund ||| l2r= -12.3 r2l= -9.1 ||| -1.02"


def test_a_separator_in_the_text_adds_no_field():
    written = format_line(NBestLine(3, "a ||| b||||", {}, -1.0))
    assert written.count("|||") == 3
    assert parse_line(written).text == "a ||| b||||"


def test_marian_line():
    line = parse_line("12 ||| A man . ||| F0= -4.25 F1= -3.5 ||| -0.5\n")
    assert line == NBestLine(12, "A man .", {"F0": -4.25, "F1": -3.5}, -0.5)


def test_moses_line_with_several_values_and_alignments():
    line = parse_line(
        "0 ||| a man  ||| Distortion0= 0 LM0= -20.5 TM0= -1 -2 -3 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1"
    )
    expected = {"Distortion0": 0.0, "LM0": -20.5, "TM0.0": -1.0, "TM0.1": -2.0, "TM0.2": -3.0}
    assert line == NBestLine(0, "a man ", expected, -7.5)


def test_infinite_scores_are_kept():
    assert parse_line("0 ||| a ||| l2r= -inf ||| -inf").score == -math.inf


@pytest.mark.parametrize("empty", ["0 |||  ||| F0= -1 ||| -1", "0 ||| ||| F0= -1 ||| -1"])
def test_an_empty_text(empty):
    assert parse_line(empty) == NBestLine(0, "", {"F0": -1.0}, -1.0)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "found 1 field "),
        ("0 ||| a ||| -1", "found 3 fields"),
        ("0 ||| a ||| b ||| c ||| F0= 1 ||| 2 ||| 3", "found 7 fields"),
        ("x ||| a ||| F0= -1 ||| -1", "'x' is no sentence number"),
        ("-1 ||| a ||| F0= -1 ||| -1", "'-1' is no sentence number"),
        ("0 ||| a ||| F0= -1 ||| ", "score is no number: ''"),
        ("0 ||| a ||| F0= -1 ||| nan", "score is no number: 'nan'"),
        ("0 ||| a ||| F0= minus ||| -1", "value of F0 is no number: 'minus'"),
        ("0 ||| a ||| -3 F0= -1 ||| -1", "'-3' stands before"),
        ("0 ||| a ||| F0= F1= -1 ||| -1", "'F0' has no value"),
        ("0 ||| a ||| F0= -1 F0= -2 ||| -1", "occurs twice: 'F0'"),
        ("0 ||| a ||| = -1 ||| -1", "has no name"),
    ],
)
def test_malformed_lines_name_file_and_line(line, problem):
    lines = ["0 ||| fine ||| F0= -1 ||| -1", line]
    with pytest.raises(SimplexityError) as caught:
        list(read_nbest(lines, "test.nbest"))
    assert str(caught.value).startswith("test.nbest, line 2: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("name", ["", "two words", "a=b", "a|||b"])
def test_unusable_feature_names_are_refused(name):
    with pytest.raises(SimplexityError, match="cannot name a feature"):
        format_line(NBestLine(0, "a", {name: 1.0}, 0.0))


@pytest.mark.parametrize("text", ["a\nb", "a\rb"])
def test_line_breaks_are_refused(text):
    with pytest.raises(SimplexityError, match="sentence 7 contains a line break"):
        format_line(NBestLine(7, text, {}, 0.0))


@given(st.lists(st.integers(0, 3), max_size=8))
def test_groups_come_in_order_with_gaps_empty(sizes):
    groups = [
        [NBestLine(i, f"{i}.{j}", {"F0": -1.0}, -1.0) for j in range(size)]
        for i, size in enumerate(sizes)
    ]
    lines = [format_line(line) + "\n" for group in groups for line in group]
    while groups and not groups[-1]:
        groups.pop()
    assert list(read_nbest(lines, "list")) == groups


def test_sentences_out_of_order_are_refused():
    lines = ["1 ||| a ||| F0= -1 ||| -1", "0 ||| a ||| F0= -1 ||| -1"]
    with pytest.raises(SimplexityError, match=r"list, line 2: sentence 0 comes after sentence 1"):
        list(read_nbest(lines, "list"))


def test_reading_is_lazy():
    def endless() -> Iterator[str]:
        sentence = 0
        while True:
            yield f"{sentence} ||| a ||| F0= -1 ||| -1"
            sentence += 1

    groups = read_nbest(endless(), "endless")
    assert [next(groups)[0].sentence for _ in range(3)] == [0, 1, 2]
