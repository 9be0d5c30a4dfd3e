"""The toy language: small, the same each time, and in need of what comes later."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from pathlib import Path

import pytest

from simplexity.text.corpora import Bitext
from simplexity.text.files import read_lines
from simplexity.text.toy import toy_corpus, write_toy
from simplexity.text.vocabulary import UNK, VocabularySettings, learn

Pairs = list[tuple[list[str], list[str], str]]


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Words of source and target, and the mark at the end."""
    return [
        (source[:-1].split(), target[:-1].split(), source[-1])
        for source, target in toy_corpus(6000, seed=5)
    ]


def test_equal_seeds_give_equal_pairs() -> None:
    assert toy_corpus(50, seed=3) == toy_corpus(50, seed=3)
    assert toy_corpus(50, seed=3) == toy_corpus(80, seed=3)[:50]
    assert toy_corpus(50, seed=3) != toy_corpus(50, seed=4)
    assert len(toy_corpus(0, seed=1)) == 0


def test_shape(pairs: Pairs) -> None:
    assert {len(source) for source, _, _ in pairs} == set(range(2, 10))
    assert all(len(source) == len(target) for source, target, _ in pairs)
    assert 35 <= len({word for source, _, _ in pairs for word in source}) <= 45
    assert {end for _, _, end in pairs} == set(".?!")


def test_a_sentence_has_one_translation() -> None:
    found = toy_corpus(20_000, seed=6)
    assert len(set(found)) == len({source for source, _ in found})


def test_articles_agree_with_their_noun(pairs: Pairs) -> None:
    """Whatever follows the article and perhaps one adjective fixes the article's ending."""
    endings: defaultdict[str, set[str]] = defaultdict(set)
    articles = {"lo", "la", "li", "no", "na", "ni"}
    adjectives = {"granda", "peta", "roja", "nuva", "frida", "klara", "gaia"}
    for _, target, _ in pairs:
        for i, word in enumerate(target):
            if word in articles:
                noun = next(other for other in target[i + 1 :] if other not in adjectives)
                endings[noun].add(word[1])
    assert all(len(found) == 1 for found in endings.values())
    assert set.union(*endings.values()) == set("oai")


def test_a_noun_depends_on_the_verb_at_the_end(pairs: Pairs) -> None:
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for source, target, _ in pairs:
        if "bana" in source:
            meanings[source[-1]] |= {"ripo", "monta"} & set(target)
    assert all(len(found) == 1 for found in meanings.values())
    assert {word for found in meanings.values() for word in found} == {"ripo", "monta"}


def test_an_adjective_depends_on_the_noun_after_it(pairs: Pairs) -> None:
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for source, target, _ in pairs:
        if source.count("lum") == 1:
            meanings[source[source.index("lum") + 1]] |= {"klara", "gaia"} & set(target)
    assert all(len(found) == 1 for found in meanings.values())
    assert {word for found in meanings.values() for word in found} == {"klara", "gaia"}


def test_the_verb_is_last_in_the_source_and_early_in_the_target(pairs: Pairs) -> None:
    verbs = {source[-1]: target[0] for source, target, end in pairs if end == "?"}
    assert len(verbs) == 11
    for source, target, end in pairs:
        assert not set(source[:-1]) & set(verbs)
        place = target.index(verbs[source[-1]])
        assert place == 0 if end == "?" else 1 <= place <= 3


def test_written_splits_share_no_source(tmp_path: Path) -> None:
    directory = write_toy(tmp_path / "toy", seed=2, train=1500, dev=60, test=40)
    assert directory == tmp_path / "toy"
    splits = {name: list(Bitext.at(directory / name, "xa", "xb")) for name in ("train", "dev")}
    splits["test"] = list(Bitext.at(directory / "test", "xa", "xb"))
    assert [len(splits[name]) for name in ("train", "dev", "test")] == [1500, 60, 40]
    sources = {name: {source for source, _ in found} for name, found in splits.items()}
    assert not sources["train"] & (sources["dev"] | sources["test"])
    assert len(sources["dev"] | sources["test"]) == 100


def test_training_words_cover_the_test_words(tmp_path: Path) -> None:
    directory = write_toy(tmp_path)
    for language in ("xa", "xb"):
        vocabulary = learn(read_lines(directory / f"train.{language}"), VocabularySettings())
        assert len(vocabulary) < 70
        for line in islice(read_lines(directory / f"test.{language}"), 200):
            assert UNK not in vocabulary.encode(line)
            assert vocabulary.decode(vocabulary.encode(line)) == line


def test_writing_again_gives_the_same_files(tmp_path: Path) -> None:
    first = {p.name: p.read_bytes() for p in write_toy(tmp_path, train=50, dev=5, test=5).iterdir()}
    again = {p.name: p.read_bytes() for p in write_toy(tmp_path, train=50, dev=5, test=5).iterdir()}
    assert first == again
    assert set(first) == {
        f"{name}.{code}" for name in ("train", "dev", "test") for code in ("xa", "xb")
    }
