"""N-best files: surveyed before use, completed where they lack something, read more than once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from simplexity.errors import SimplexityError
from simplexity.search.nbest import NBestLine
from simplexity.search.nbest_file import (
    Lines,
    completed,
    filled,
    is_empty,
    read_lists,
    rereadable,
    survey,
    with_features,
)


def write(path: Path, *lines: str) -> Lines:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Lines(path, "list")


@pytest.fixture
def nbest(tmp_path: Path) -> Lines:
    """Sentence 1 has no hypothesis, sentence 2 was an empty line."""
    return write(
        tmp_path / "nbest",
        "0 ||| a dog ||| l2r= -1 F0= -2 ||| -1",
        "0 ||| a cat ||| l2r= -2 F0= -1 ||| -2",
        "2 |||  |||  ||| 0.0",
        "3 ||| dogs ||| F0= -4 tokens= 1 ||| -3",
    )


def test_a_survey_says_what_is_there(nbest: Lines):
    found = survey(read_lists(nbest), nbest.name)
    assert (found.sentences, found.hypotheses) == (4, 4)
    assert found.terms() == ["F0"]
    assert found.missing(["F0", "l2r", "tokens", "r2l"]) == ["l2r", "tokens", "r2l"]


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        (["F0", "l2r"], "list, line 4 has no feature 'l2r'; give --model and --source"),
        (["tokens"], "list, line 1 has no feature 'tokens'; give --model"),
        (["r2l"], "list, line 1 has no feature 'r2l'; give --model"),
        (["F1"], "list, line 1 has no feature 'F1'; name one that every line has"),
    ],
)
def test_what_cannot_be_had_is_named_with_its_line(nbest: Lines, needs, expected):
    found = survey(read_lists(nbest), nbest.name)
    with pytest.raises(SimplexityError) as caught:
        completed(nbest, None, found, needs, None)
    assert str(caught.value).startswith(expected)


def test_a_feature_that_comes_late_is_missed_on_the_first_line_that_counts(tmp_path: Path):
    lines = write(
        tmp_path / "n", "0 |||  |||  ||| 0", "1 ||| a ||| F0= -1 ||| 0", "1 ||| b ||| r2l= -1 ||| 0"
    )
    found = survey(read_lists(lines), "n")
    assert found.first_without == {"F0": 3, "r2l": 2}
    with pytest.raises(SimplexityError, match="no feature that all its lines share"):
        found.terms()


def test_lists_without_any_hypothesis_lack_nothing(tmp_path: Path):
    lines = write(tmp_path / "n", "0 |||  |||  ||| 0")
    found = survey(read_lists(lines, 3), "n", 3)
    assert found.missing(["l2r"]) == []
    (first, *others) = completed(lines, None, found, ["l2r"], None)
    assert first[0].features == {"l2r": 0.0}
    assert others == [[], []]


def test_a_sentence_beyond_the_corpus_is_refused(nbest: Lines):
    assert survey(read_lists(nbest, 4), "list", 4).sentences == 4
    with pytest.raises(SimplexityError, match="list, line 4: its sentence lies beyond the 3 lines"):
        survey(read_lists(nbest, 3), "list", 3)


def test_a_sentence_far_beyond_is_refused_at_once(tmp_path: Path):
    lines = write(tmp_path / "n", f"{10**12} ||| a |||  ||| 0")
    with pytest.raises(SimplexityError, match="line 1: its sentence lies beyond"):
        survey(read_lists(lines, 3), "n", 3)


def test_sentences_at_the_end_may_be_passed_over(nbest: Lines):
    sizes = [len(hypotheses) for hypotheses in read_lists(nbest, 6)]
    assert sizes == [2, 0, 1, 1, 0, 0]


def test_only_what_is_lacking_is_computed(nbest: Lines, tmp_path: Path):
    source = write(tmp_path / "source", "ein Hund", "", "", "Hunde")
    asked: list[list[str]] = []

    def make(names: list[str]):
        asked.append(names)

        def complete(
            lists: Iterable[tuple[str, list[NBestLine]]],
        ) -> Iterator[list[NBestLine]]:
            for text, found in lists:
                if is_empty(found):
                    yield found
                else:
                    values = dict.fromkeys(names, -float(len(text)))
                    yield [with_features(line, values) for line in found]

        return complete

    found = survey(read_lists(nbest, 4), nbest.name, 4)
    lists = list(completed(nbest, source, found, ["F0", "l2r"], make))
    assert asked == [["l2r"]]
    assert [line.features["l2r"] for group in lists for line in group] == [-8, -8, 0, -5]
    assert next(completed(nbest, source, found, ["F0"], make))[0].features["F0"] == -2
    assert asked == [["l2r"]]  # F0 stands everywhere: no model is loaded
    with pytest.raises(SimplexityError, match="'F1'"):
        completed(nbest, source, found, ["F1", "r2l"], make)
    full = write(tmp_path / "full", "0 ||| a ||| l2r= -1 tokens= 1 ||| -1")
    found = survey(read_lists(full, 4), "full", 4)
    completed(full, source, found, ["l2r", "tokens"], make)
    assert len(asked) == 1
    completed(full, source, found, ["l2r", "tokens"], make, again=True)
    assert asked[1:] == [["l2r"]]


def test_only_a_lone_empty_string_without_features_is_an_empty_line():
    nothing, scored = NBestLine(0, "", {}, 0.0), NBestLine(0, "", {"F0": -1.0}, 0.0)
    assert is_empty([nothing])
    assert not any(map(is_empty, ([], [scored], [nothing, nothing], [NBestLine(0, "a", {}, 0.0)])))
    assert filled([nothing], ["a", "b"])[0].features == {"a": 0.0, "b": 0.0}
    assert filled([scored], ["a"]) == [scored]


def test_new_features_replace_old_ones_and_counts_come_last():
    line = NBestLine(0, "a", {"tokens": 9.0, "l2r": -1.0}, -1.0)
    found = with_features(line, {"l2r": -2.0, "r2l": -3.0}).features
    assert list(found.items()) == [("l2r", -2.0), ("r2l", -3.0), ("tokens", 9.0)]


def test_what_comes_through_a_pipe_can_be_read_again(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "eins\nzwei \u2028 drei\n\n"
    writer = threading.Thread(target=pipe.write_text, args=(text,), kwargs={"encoding": "utf-8"})
    writer.start()
    with rereadable(pipe) as lines:
        writer.join()
        assert list(lines) == list(lines) == text.split("\n")[:-1]
        kept = lines.path
    assert not kept.exists()


def test_a_file_that_is_missing_is_refused(tmp_path: Path):
    with (
        pytest.raises(SimplexityError, match="does not exist"),
        rereadable(tmp_path / "none") as lines,
    ):
        list(lines)
