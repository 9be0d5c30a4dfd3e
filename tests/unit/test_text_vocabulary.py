"""Vocabularies: what is learnt, that text comes back, and that files keep it all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from simplexity.errors import SimplexityError, UsageError
from simplexity.text.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Kind,
    Side,
    SubwordVocabulary,
    Vocabulary,
    VocabularySettings,
    WordVocabulary,
    first_difference,
    learn,
    load_vocabulary,
    normalise,
)

LETTERS = "abcdeéñ.,!'（）你好世界ひらカナ"
KINDS: tuple[Kind, ...] = ("words", "bpe", "unigram")


def corpus() -> Iterator[str]:
    """Enough random text for every letter to be learnt."""
    random = Random(7)
    for _ in range(400):
        yield " ".join("".join(random.choices(LETTERS, k=random.randint(1, 6))) for _ in range(8))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request: pytest.FixtureRequest) -> Vocabulary:
    return learn(corpus(), VocabularySettings(kind=request.param, size=200))


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest) -> VocabularySettings:
    return VocabularySettings(kind=request.param, size=120, cutoff=1)


def words(lines: list[str], **changes: int | bool) -> WordVocabulary:
    found = learn(lines, VocabularySettings(**changes))  # type: ignore[arg-type]
    assert isinstance(found, WordVocabulary)
    return found


def test_special_ids() -> None:
    assert [PAD, BOS, EOS, UNK] == [0, 1, 2, 3]
    assert SPECIALS == ("<pad>", "<s>", "</s>", "<unk>")


def test_words_are_kept_by_frequency_then_by_order() -> None:
    lines = ["b a c", "a b", "a b d", "a"]
    assert words(lines, cutoff=1).words == ("a", "b", "c", "d")
    assert words(lines, cutoff=3).words == ("a", "b")
    assert words(lines, cutoff=4).words == ("a",)
    assert words(lines, cutoff=1, size=7).words == ("a", "b", "c")
    assert len(words(lines, cutoff=1, size=7)) == 7
    assert words(["x"] * 5 + ["y"] * 4).words == ("x",)


def test_words_to_ids_and_back() -> None:
    found = WordVocabulary(("hello", "￭,", "world", "￭!"), lowercase=False)
    assert found.encode("hello,  world! Hello") == [4, 5, 6, 7, UNK]
    assert found.decode([BOS, 4, 5, UNK, 7, EOS, PAD, PAD]) == "hello, <unk>!"
    assert found.pieces([2, 3, 4, 7]) == ["</s>", "<unk>", "hello", "￭!"]
    assert found.encode("") == []
    assert found.decode([]) == ""


def test_the_names_of_special_ids_are_plain_text(settings: VocabularySettings) -> None:
    found = learn(["<s> </s> <pad> <unk>", *corpus()], settings)
    assert not {PAD, BOS, EOS} & set(found.encode("<s> </s> <pad> <unk>"))


def test_text_is_normalised_first(settings: VocabularySettings) -> None:
    found = learn(corpus(), settings)
    assert found.encode("e\u0301 \u3000 a\t") == found.encode("é a")
    assert normalise(" A\u0308\n ÉÑ ", lowercase=True) == "ä éñ"


def test_lowercase(settings: VocabularySettings) -> None:
    lower = VocabularySettings(settings.kind, settings.size, settings.cutoff, lowercase=True)
    found = learn((line.upper() for line in corpus()), lower)
    line = next(corpus())
    assert found.encode(line.upper()) == found.encode(line)
    assert UNK not in found.encode(next(corpus())[:1].upper())
    assert found.pieces(range(len(found))) == learn(corpus(), settings).pieces(range(len(found)))


@given(st.lists(st.text("aBé9.,!?'-(\"中日ひカ。 ", max_size=20), min_size=1))
def test_known_words_come_back(lines: list[str]) -> None:
    lines = [*lines, "a"]
    found = words(lines, cutoff=1)
    for line in lines:
        ids = found.encode(line)
        assert UNK not in ids
        assert found.encode(found.decode(ids)) == ids
        assert found.decode(ids).replace(" ", "") == line.replace(" ", "")


@given(line=st.text(LETTERS + " ", max_size=40))
def test_subwords_come_back(subwords: Vocabulary, line: str) -> None:
    ids = subwords.encode(line)
    assert not {PAD, BOS, EOS, UNK} & set(ids)
    assert subwords.decode([BOS, *ids, EOS, PAD]) == normalise(line, lowercase=False)


def test_unknown_characters_are_shown(subwords: Vocabulary) -> None:
    ids = subwords.encode("a ж b")
    assert ids.count(UNK) == 1
    assert subwords.decode(ids) == "a <unk> b"
    assert subwords.pieces([0, 1, 2, 3]) == list(SPECIALS)
    assert subwords.encode("") == []
    assert subwords.decode([]) == ""


def test_subword_sizes(subwords: Vocabulary) -> None:
    assert 150 < len(subwords) <= 200
    assert len(set(subwords.pieces(range(len(subwords))))) == len(subwords)
    assert len(learn(corpus(), VocabularySettings(kind="bpe", size=90))) == 90
    # A text too small for the size asked for gives what it has.
    few = learn(["ab ab"], VocabularySettings(kind="bpe"))
    assert 4 < len(few) < 20
    with pytest.raises(SimplexityError, match="more different characters than a vocabulary of 9"):
        learn(corpus(), VocabularySettings(kind="unigram", size=9))


def test_learning_is_silent_and_repeatable(
    settings: VocabularySettings, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (learn(corpus(), settings) for _ in range(2))
    assert first == second
    assert first.fingerprint == second.fingerprint
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("lines", [[], ["", "  \t "]])
def test_no_text_is_an_error(settings: VocabularySettings, lines: list[str]) -> None:
    with pytest.raises(SimplexityError, match="no text to learn"):
        learn(lines, settings)


def test_errors_of_the_corpus_come_through(settings: VocabularySettings) -> None:
    def broken() -> Iterator[str]:
        yield from corpus()
        raise SimplexityError("a.de, line 401")

    with pytest.raises(SimplexityError, match=r"^a\.de, line 401$"):
        learn(broken(), settings)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(SimplexityError, match="no word occurs 5 times; lower the cut-off"):
        learn(["a b c"], VocabularySettings())
    with pytest.raises(UsageError, match="cut-off of 0"):
        learn(["a"], VocabularySettings(cutoff=0))
    with pytest.raises(UsageError, match="a vocabulary of 4 "):
        learn(["a"], VocabularySettings(size=4))
    with pytest.raises(UsageError, match="'wordz'; use words, bpe or unigram"):
        learn(["a"], VocabularySettings(kind="wordz"))  # type: ignore[arg-type]


@pytest.mark.parametrize("lowercase", [False, True])
def test_saved_is_loaded(tmp_path: Path, settings: VocabularySettings, lowercase: bool) -> None:
    chosen = VocabularySettings(settings.kind, settings.size, settings.cutoff, lowercase)
    found = learn(corpus(), chosen)
    found.save(tmp_path / "family", "source")
    found.save(tmp_path / "family", "source")
    again = load_vocabulary(tmp_path / "family", "source")
    assert again == found
    assert again.fingerprint == found.fingerprint
    assert again.encode("abc 你好") == found.encode("abc 你好")
    names = {"source.vocabulary.json"} | ({"source.spm"} if settings.kind != "words" else set())
    assert {path.name for path in (tmp_path / "family").iterdir()} == names


def test_fingerprints_tell_vocabularies_apart() -> None:
    found = [
        WordVocabulary(("a", "b"), lowercase=False),
        WordVocabulary(("a", "b"), lowercase=True),
        WordVocabulary(("b", "a"), lowercase=False),
        WordVocabulary(("ab",), lowercase=False),
        WordVocabulary((), lowercase=False),
        SubwordVocabulary(b"a\nb", lowercase=False),
    ]
    assert len({vocabulary.fingerprint for vocabulary in found}) == len(found)


SIDES: tuple[Side, ...] = ("source", "target")


@pytest.mark.parametrize("side", SIDES)
def test_a_directory_without_a_vocabulary(tmp_path: Path, side: Side) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(SimplexityError, match=rf"holds no model: {side}.vocabulary.json is"):
            load_vocabulary(directory, side)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 0, "kind": "words", "lowercase": false, "words": []}',
        '{"format": 1, "kind": "words", "lowercase": false}',
        '{"format": 1, "kind": "words", "lowercase": false, "words": ["a", 1]}',
        '{"format": 1, "kind": "words", "lowercase": false, "words": ["a", "a"]}',
        '{"format": 1, "kind": "letters", "lowercase": false, "words": ["a"]}',
        '{"format": 1, "kind": "words", "lowercase": 1, "words": ["a"]}',
        b"\xff".decode("latin-1"),
    ],
)
def test_a_damaged_description(tmp_path: Path, content: str) -> None:
    (tmp_path / "target.vocabulary.json").write_text(content, encoding="latin-1")
    with pytest.raises(SimplexityError, match=r"target\.vocabulary\.json is damaged"):
        load_vocabulary(tmp_path, "target")


def test_a_newer_format(tmp_path: Path) -> None:
    WordVocabulary(("a",), lowercase=False).save(tmp_path, "target")
    path = tmp_path / "target.vocabulary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(SimplexityError, match="format 2, made by a newer version"):
        load_vocabulary(tmp_path, "target")


def test_a_damaged_or_foreign_subword_model(
    tmp_path: Path, subwords: Vocabulary, capfd: pytest.CaptureFixture[str]
) -> None:
    subwords.save(tmp_path, "source")
    path = tmp_path / "source.spm"
    foreign = BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=corpus(), model_writer=foreign, vocab_size=100, minloglevel=2
    )
    path.write_bytes(foreign.getvalue())
    with pytest.raises(SimplexityError, match=r"source\.spm has <unk>, <s>, </s>,"):
        load_vocabulary(tmp_path, "source")
    for content in (b"", b"garbage"):
        path.write_bytes(content)
        with pytest.raises(SimplexityError, match=r"source\.spm is damaged"):
            load_vocabulary(tmp_path, "source")
    path.unlink()
    with pytest.raises(SimplexityError, match=r"holds no model: source\.spm is missing"):
        load_vocabulary(tmp_path, "source")
    assert capfd.readouterr() == ("", "")


def test_first_difference(subwords: Vocabulary) -> None:
    a = WordVocabulary(("a", "b", "c"), lowercase=False)
    assert first_difference(a, WordVocabulary(("a", "b", "c"), lowercase=True)) is None
    assert first_difference(a, WordVocabulary(("a", "x", "c"), lowercase=False)) == 5
    assert first_difference(a, WordVocabulary(("a", "b"), lowercase=False)) == 6
    assert first_difference(WordVocabulary((), lowercase=False), a) == 4
    assert first_difference(a, subwords) == 4
    assert first_difference(subwords, subwords) is None
