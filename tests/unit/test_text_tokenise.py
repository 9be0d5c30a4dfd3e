"""Words and back: what is cut where, and that every line can be put together again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexity.text.tokenise import JOINER, is_cjk, join_words, split_words

MIXED = st.text(
    "aZé9٣5.,;:!?'’-–_()[]\"“”„«»¿ $€%@/ \t\u3000\u00a0"
    "中日ひらカナー。、「」，（ＡＢ１한국हिन्दी\u0301\ufe0f\u200d👩❤￭■",
    max_size=30,
)
APOSTROPHES = st.text("dstrevlmxN'’ .1中", max_size=12)


def expected(line: str) -> str:
    """The line with the documented losses: white space, spaces inside Chinese, joiners."""
    text = " ".join(line.replace(JOINER, "■").split())
    spare = [
        i
        for i, char in enumerate(text)
        if char == " " and is_cjk(text[i - 1]) and is_cjk(text[i + 1])
    ]
    return "".join(char for i, char in enumerate(text) if i not in spare)


@given(st.one_of(st.text(), MIXED, APOSTROPHES))
def test_every_line_comes_back(line: str) -> None:
    words = split_words(line)
    assert join_words(words) == expected(line)
    assert all(word.strip(JOINER) and word == "".join(word.split()) for word in words)


@given(st.one_of(MIXED, APOSTROPHES))
def test_marks_stand_only_where_a_space_is_missing(line: str) -> None:
    words = split_words(line)
    assert not any(
        left.endswith(JOINER) and right.startswith(JOINER) for left, right in pairwise(words)
    )
    if words:
        assert not words[0].startswith(JOINER)
        assert not words[-1].endswith(JOINER)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Hello, world!", "Hello ￭, world ￭!"),
        ("I don't think she's here", "I don ￭'t think she ￭'s here"),
        ("they’re who'd've DON'T", "they ￭’re who ￭'d ￭'ve DON ￭'T"),
        ("the dogs' 'n' rock'n'roll", "the dogs ￭' '￭ n ￭' rock'￭ n'￭ roll"),
        ("l'homme dell'acqua", "l'￭ homme dell'￭ acqua"),
        ("Die U-Bahn- und S-Bahn-Linien", "Die U ￭-￭ Bahn ￭- und S ￭-￭ Bahn ￭-￭ Linien"),
        ("3.5 1,000.50 in 2015. 7,", "3.5 1,000.50 in 2015 ￭. 7 ￭,"),
        ("(see [1])", "(￭ see [￭ 1 ￭] ￭)"),
        ("f(x) = “y”", "f ￭(￭ x ￭) = “￭ y ￭”"),
        ("„Hallo“. ¿Qué?", "„￭ Hallo ￭“ ￭. ¿￭ Qué ￭?"),
        ('a "quote"', 'a "￭ quote ￭"'),
        ("wait... 50% $5", "wait ￭... 50 ￭% $￭ 5"),
        ("你好，世界。", "你 好 ， 世 界 。"),
        ("テレビを 見る", "テ レ ビ を 見 る"),
        ("我用GPT-4写的", "我 用 ￭GPT ￭-￭ 4￭ 写 的"),
        ("中 a 中", "中 a 中"),
        ("한국어 문장.", "한국어 문장 ￭."),
        ("हिन्दी में", "हिन्दी में"),
        ("a￭b", "a ￭■￭ b"),
        ("", ""),
        (" \t\u3000 ", ""),
    ],
)
def test_what_is_cut_where(line: str, words: str) -> None:
    assert split_words(line) == words.split()


def test_any_words_can_be_joined() -> None:
    """A model may put marks where no line has them."""
    assert join_words(["￭,", "a￭", "￭b", "￭", "c￭"]) == ", abc"
    assert join_words(["中", "<unk>", "文", "文"]) == "中 <unk> 文文"
    assert join_words([]) == ""


@pytest.mark.parametrize("char", "中日ひカー々〇。、「」！ｶ𠀀")
def test_chinese_and_japanese_characters(char: str) -> None:
    assert is_cjk(char)


@pytest.mark.parametrize("char", "aé1한Ａ１.“￭■ㄱ\u3000")
def test_other_characters(char: str) -> None:
    assert not is_cjk(char)
