"""A Transformer of ours in other programs: the same scores and the same strings."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import SentencePieceProcessor
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianConfig, MarianMTModel

import simplexity
from simplexity.cli import main
from simplexity.models.export import export_marian
from simplexity.models.family import Card
from simplexity.text.plain_pieces import with_rules
from simplexity.text.vocabulary import (
    BOS,
    EOS,
    PAD,
    SubwordVocabulary,
    VocabularySettings,
    learn,
)

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
LINES = ["Ta rek fum.", "ana SEL lum bana lok.", "un misa fum.", "ana 漢字 fum"]


def write_model(directory: Path, corpus: Path, lowercase: bool = True, tied: bool = True) -> Path:
    """A model with random weights as training writes it, its sides cut by different pieces."""
    vocabularies = []
    for side, number, kind, size in (("source", "xa", "unigram", 70), ("target", "xb", "bpe", 90)):
        lines = (corpus / f"train.{number}").read_text(encoding="utf-8").splitlines()
        vocabulary = learn(lines, VocabularySettings(kind, size, lowercase=lowercase))
        vocabulary.save(directory, side)
        vocabularies.append(len(vocabulary))
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "init_std": 0.4}
    sizes |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": 24 for side in ("encoder", "decoder")}
    config = MarianConfig(
        vocab_size=vocabularies[0],
        decoder_vocab_size=vocabularies[1],
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=tied,
        scale_embedding=True,
        max_position_embeddings=100,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        **sizes,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = MarianMTModel(config)
        for layer in model.modules():
            if isinstance(layer, torch.nn.Linear) and layer.bias is not None:
                torch.nn.init.normal_(layer.bias, std=0.3)
        # padding_idx made these zero, which training does not leave them.
        torch.nn.init.normal_(model.model.decoder.embed_tokens.weight, std=0.4)
    model.final_logits_bias[0, EOS] = 4.0  # or sentences would hardly end
    model.save_pretrained(directory)
    Card("l2r", "xa", "xb").save(directory)
    return directory


@pytest.fixture(scope="module", params=["tied", "untied"])
def models(
    request: pytest.FixtureRequest, toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A model and the same exported by the command."""
    place = tmp_path_factory.mktemp("export")
    ours = write_model(place / "ours", toy_corpus, tied=request.param == "tied")
    assert main(["export", str(ours), "-o", str(place / "plain"), "--quiet"]) == 0
    return ours, place / "plain"


@pytest.fixture(scope="module")
def lines(toy_corpus: Path) -> list[str]:
    found = (toy_corpus / "test.xa").read_text(encoding="utf-8").splitlines()
    return [*LINES, *found[:20]]


def plain(directory: Path) -> tuple[Any, Any]:
    return (
        AutoTokenizer.from_pretrained(directory),
        AutoModelForSeq2SeqLM.from_pretrained(directory).eval().requires_grad_(False),
    )


def test_the_padding_row_is_zero_and_nothing_else_starts(models):
    _, model = plain(models[1])
    table = model.model.decoder.embed_tokens.weight
    pad = model.config.pad_token_id
    assert pad == len(table) - 1 == model.config.decoder_start_token_id
    assert table[pad].abs().max() == 0
    modes = {file.stat().st_mode for file in models[1].iterdir()}
    assert len(modes) == 1  # or others could read the tokenizer, but not the weights
    assert (table.data_ptr() == model.lm_head.weight.data_ptr()) is model.config.tie_word_embeddings


def test_plain_transformers_give_the_same_scores(models, lines, toy_corpus):
    ours = simplexity.load(models[0], device="cpu")
    tokenizer, model = plain(models[1])
    targets = (toy_corpus / "test.xb").read_text(encoding="utf-8").splitlines()
    pairs = list(zip(lines, targets, strict=False))
    sides = (ours.family["l2r"].source, ours.family["l2r"].target)
    known = [set(side.pieces(range(len(side)))) for side in sides]
    foreign = sorted(piece for piece in known[1] - known[0] if len(piece) == 1)
    assert foreign  # letters of the target, unknown in a source
    pairs += [(f"ta re{letter}k", "a") for letter in foreign]
    for (source, target), score in zip(pairs, ours.score(pairs), strict=True):
        given = tokenizer(source, return_tensors="pt")
        labels = tokenizer(text_target=target, return_tensors="pt").input_ids
        found = model(**given, labels=labels).logits.log_softmax(-1)
        found = found.gather(-1, labels[..., None])[0, :, 0]
        torch.testing.assert_close(found, torch.tensor(score.tokens), rtol=1e-4, atol=1e-4)


def test_plain_transformers_find_the_same_strings(models, lines):
    ours = simplexity.load(models[0], device="cpu").translate(lines)
    tokenizer, model = plain(models[1])
    compared, words = 0, 0
    for line, hypothesis in zip(lines, ours, strict=True):  # a batch would share its limit
        ids = model.generate(**tokenizer(line, return_tensors="pt"), max_length=40)[0, 1:].tolist()
        if len(ids) < 15:  # random models go on for ever, and limits of length are everybody's own
            assert tokenizer.decode(ids, skip_special_tokens=True) == hypothesis.text
            compared, words = compared + 1, words + len(ids) - 1
    assert compared > 5
    assert words > compared


def test_it_comes_back_as_a_forward_model(models, lines):
    texts = [
        [hypothesis.text for hypothesis in simplexity.load(name, device="cpu").translate(lines)]
        for name in models
    ]
    assert texts[0] == texts[1]


def test_ctranslate2_gives_the_same_scores(models, lines, toy_corpus, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="a peer, no dependency")
    converter = ctranslate2.converters.TransformersConverter(str(models[1]))
    converter.convert(str(tmp_path / "ct2"))
    tokenizer, model = plain(models[1])
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), "cpu", intra_threads=1)
    targets = (toy_corpus / "test.xb").read_text(encoding="utf-8").splitlines()
    for source, target in zip(lines, targets, strict=False):
        given, wanted = tokenizer(source), tokenizer(text_target=target)
        pieces = [tokenizer.convert_ids_to_tokens(side.input_ids) for side in (given, wanted)]
        (score,) = translator.score_batch([pieces[0]], [pieces[1][:-1]])
        labels = torch.tensor([wanted.input_ids])
        found = model(input_ids=torch.tensor([given.input_ids]), labels=labels).logits[..., :-1]
        own = found.log_softmax(-1).gather(-1, labels[..., None])[0, :, 0]
        torch.testing.assert_close(torch.tensor(score.log_probs), own, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lowercase", [True, False])
def test_rules_inside_the_pieces_do_what_the_vocabulary_does(lowercase):
    text = "Ein Käse für Ärzte in İzmir, Ôû ở Ấn Độ 한국 ½ ﬁ Å Straße ẞ"
    learnt = learn([text.lower(), text], VocabularySettings("bpe", 120, lowercase=lowercase))
    assert isinstance(learnt, SubwordVocabulary)
    processor = SentencePieceProcessor()
    processor.LoadFromSerializedProto(with_rules(learnt))
    odd = "Ein\u00a0 Käse\tfür\u3000ärzte  Å Ω"
    for line in (text, text.upper(), odd):
        for form in ("NFC", "NFD"):
            written = unicodedata.normalize(form, line)
            assert processor.encode(written) == learnt.encode(written)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    return captured.err


def test_what_cannot_be_exported(models, toy_family, toy_corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert "no other program reads" in refusal(capsys, "export", toy_family, "-o", out)
    assert "exists" in refusal(capsys, "export", models[0], "-o", models[1])
    assert "make the folder" in refusal(capsys, "export", models[0], "-o", out / "in" / "it")
    assert "holds no model" in refusal(capsys, "export", tmp_path, "-o", out)
    backwards = tmp_path / "r2l"
    shutil.copytree(models[0], backwards)
    Card("r2l", "xa", "xb").save(backwards)
    assert "right to left" in refusal(capsys, "export", backwards, "-o", out)
    words = tmp_path / "words"
    shutil.copytree(models[0], words)
    learn(["a b c"], VocabularySettings("words", cutoff=1)).save(words, "target")
    assert "vocabulary of words" in refusal(capsys, "export", words, "-o", out)
    assert not out.exists()


def test_a_member_of_a_family_is_chosen(models, tmp_path):
    shutil.copytree(models[0], tmp_path / "family" / "reverse")
    assert export_marian(tmp_path / "family", tmp_path / "out", "reverse") > 90
    assert (tmp_path / "out" / "vocab.json").exists()
