"""N-gram models as tensors against the back-off recursion in plain Python."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pytest
import torch

from simplexity.errors import SimplexityError
from simplexity.models.arpa import ngrams
from simplexity.relax.tokens import Hard, Soft, one_hot, pad_batch
from simplexity.text.arpa import arpa_vocabulary, read_arpa
from simplexity.text.vocabulary import WordVocabulary

FILE = """\\data\\
ngram 1=5
ngram 2=5
ngram 3=3

\\1-grams:
-0.8\t</s>
-99\t<s>\t-0.3
-0.5\tdog\t-0.2
-0.7\tred\t-0.4
-2.5\t<unk>

\\2-grams:
-0.3\t<s> red\t-0.1
-0.9\t<s> dog
-0.2\tred dog\t-0.25
-0.6\tdog </s>
-1.1\tdog dog

\\3-grams:
-0.05\t<s> red dog
-0.15\tred dog </s>
-0.02\tred dog dog

\\end\\
"""
LINES = [line.split("\t") for line in FILE.splitlines() if line.startswith("-")]
PROBS = {tuple(line[1].split()): float(line[0]) for line in LINES}
BACK = {tuple(line[1].split()): float(line[2]) for line in LINES if len(line) > 2}


def log10(words: tuple[str, ...]) -> float:
    """log10 p of the last word after the others, by the definition of the format."""
    if words in PROBS:
        return PROBS[words]
    return BACK.get(words[:-1], 0.0) + log10(words[1:])


def expected(words: tuple[str, ...]) -> float:
    """Natural log P of a string and its end under the trigram model."""
    string = ("<s>", *words, "</s>")
    grams = (string[max(0, end - 2) : end + 1] for end in range(1, len(string)))
    return math.log(10) * sum(map(log10, grams))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arpa") / "three.arpa"
    place.write_text(FILE, encoding="utf-8")
    return place


WORDS = ("dog", "red", "<unk>")
STRINGS = [string for n in range(4) for string in product(WORDS, repeat=n)]


def test_every_string_has_its_probability(file):
    arpa = read_arpa(file)
    model = ngrams(arpa)
    batch = pad_batch([[arpa.ids[word] for word in string] for string in STRINGS], 0)
    wanted = torch.tensor([expected(string) for string in STRINGS])
    torch.testing.assert_close(model.log_prob(batch), wanted)
    vertex = one_hot(batch, len(arpa.ids))
    torch.testing.assert_close(model.log_prob(vertex), wanted)


@pytest.mark.parametrize("own", [False, True])
def test_the_gradient_is_the_change_that_each_word_makes(file, own):
    arpa = read_arpa(file)
    model, ids = ngrams(arpa), [arpa.ids[word] for word in WORDS]
    strings = [("red", "dog", "dog"), ("dog",), ("<unk>", "red")]
    batch = pad_batch([[arpa.ids[word] for word in string] for string in strings], 0)
    support = torch.tensor([ids, ids, ids] if own else ids)
    hit = (batch.ids[..., None] == torch.tensor(ids)).float()
    probs = (hit * 0.4 + 0.2).requires_grad_()
    total = model.log_prob(Soft(probs, batch.mask, support))
    (grad,) = torch.autograd.grad(total.sum(), probs)
    for row, string in enumerate(strings):
        for place in range(3):
            for column, word in enumerate(WORDS):
                if place >= len(string):
                    assert grad[row, place, column] == 0
                    continue
                other = (*string[:place], word, *string[place + 1 :])
                change = expected(other) - expected(string)
                assert float(grad[row, place, column]) == pytest.approx(change, abs=1e-4)


def test_lines_are_cut_into_its_words(file):
    arpa = read_arpa(file)
    plain = WordVocabulary(("some", "other"), lowercase=False)
    vocabulary = arpa_vocabulary(arpa, plain)
    assert vocabulary.cut is None
    assert vocabulary.pieces(vocabulary.encode("red  dog barks")) == ["red", "dog", "<unk>"]
    assert vocabulary.decode(vocabulary.encode("red dog")) == "red dog"
    own = arpa_vocabulary(arpa, WordVocabulary(("dog", "red", "cat"), lowercase=True))
    assert own.cut is not None
    assert own.pieces(own.encode("RED dog")) == ["red", "dog"]


def test_a_bigram_model_and_a_unigram_model_too(tmp_path):
    two = tmp_path / "two.arpa"
    two.write_text(FILE[: FILE.index("\\3-grams")], encoding="utf-8")
    model = ngrams(read_arpa(two))
    ids = read_arpa(two).ids
    found = model.log_prob(pad_batch([[ids["red"], ids["dog"]]], 0))
    assert float(found[0]) == pytest.approx(math.log(10) * (-0.3 - 0.2 - 0.6), rel=1e-5)
    one = tmp_path / "one.arpa"
    one.write_text(FILE[: FILE.index("\\2-grams")], encoding="utf-8")
    found = ngrams(read_arpa(one)).log_prob(pad_batch([[ids["red"]]], 0))
    assert float(found[0]) == pytest.approx(math.log(10) * (-0.7 - 0.8), rel=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (FILE.replace("-0.5\tdog\t-0.2", "-0.5 dog cat mouse"), r"line 9, is no 1-gram"),
        ("just text\n", "no language model in ARPA form"),
        (FILE.replace("red dog dog", "cat dog dog"), "'cat', which is not among its words"),
        (FILE.replace("<s> red dog", "red red dog"), "'red red dog', but not the 2-gram"),
    ],
)
def test_a_broken_file_is_explained(tmp_path, wrong, message):
    place = tmp_path / "wrong.arpa"
    place.write_text(wrong, encoding="utf-8")
    with pytest.raises(SimplexityError, match=message):
        ngrams(read_arpa(place))


def test_no_words_have_an_end(file):
    model = ngrams(read_arpa(file))
    nothing = Hard(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0, dtype=torch.bool))
    torch.testing.assert_close(model.log_prob(nothing), torch.full((2,), expected(())))
    empty = Soft(torch.zeros(2, 0, 3), nothing.mask, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(model.log_prob(empty), torch.full((2,), expected(())))
