"""Pairs of transformers' models with vocabularies of their own: loaded, scored, translated."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

import simplexity
from simplexity.cli import main
from simplexity.errors import SimplexityError, UsageError
from simplexity.models.pretrained import load_fluency, load_pair, load_translator
from simplexity.relax.tokens import Hard, pad_batch, unpad
from simplexity.search.beam import BeamSettings, beam_search

# The tokenizers that these tests load themselves advise a library that they do without.
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


@pytest.fixture(scope="module")
def lines(pretrained: Path) -> list[str]:
    found = (pretrained / "toy" / "test.xa").read_text(encoding="utf-8").splitlines()
    return [*found[:6], "", "ana 漢字 fum."]


@cache
def plain(kind: Any, directory: Path) -> Any:
    return AutoTokenizer.from_pretrained(directory), kind.from_pretrained(directory).eval()


def log_p(directory: Path, source: str, target: str) -> float:
    """log P(target | source), by the model's and its tokenizer's own means alone."""
    tokenizer, model = plain(AutoModelForSeq2SeqLM, directory)
    given = tokenizer(" ".join(source.split()), return_tensors="pt")
    labels = tokenizer(text_target=target, return_tensors="pt").input_ids
    with torch.no_grad():
        found = model(**given, labels=labels).logits.log_softmax(-1)
    return float(found.gather(-1, labels[..., None]).sum())


def log_p_lm(directory: Path, text: str) -> float:
    tokenizer, model = plain(AutoModelForCausalLM, directory)
    ids = torch.tensor([[0, *tokenizer(text).input_ids, 0]])
    with torch.no_grad():
        found = model(input_ids=ids).logits.log_softmax(-1)
    return float(found[:, :-1].gather(-1, ids[:, 1:, None]).sum())


@pytest.mark.parametrize("decoder", ["eg", "edits", "rerank"])
def test_costs_are_those_of_the_text_by_each_models_own_tokenizer(pretrained, lines, decoder):
    loaded = simplexity.load(
        pretrained / "fwd", reverse=pretrained / "rev", lm=pretrained / "gpt2", device="cpu"
    )
    found = loaded.translate(lines, decoder=decoder)
    assert len(found) == len(lines)
    for line, hypothesis in zip(lines, found, strict=True):
        if not line:
            assert hypothesis.text == ""
            continue
        text = hypothesis.text
        expected = {
            "l2r": -log_p(pretrained / "fwd", line, text),
            "reverse": -log_p(pretrained / "rev", text, line),
            "lm": -log_p_lm(pretrained / "gpt2", text),
        }
        costs = dict(hypothesis.terms)
        if decoder == "edits":  # its terms are costs per word
            words = len(hypothesis.ids) + 1
            given = len(loaded.family["l2r"].source.encode(line)) + 1
            costs = {name: cost * words for name, cost in costs.items()}
            costs["reverse"] *= given / words
        assert costs == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("objective", ["bilingual", "l2r=0.4,lm=0.6", "l2r=0.3,reverse=0.3,lm=0.4"])
def test_the_answer_never_costs_more_than_the_start(pretrained, lines, objective):
    loaded = load_pair(pretrained / "fwd", pretrained / "rev", pretrained / "xb.arpa")
    found = simplexity.Loaded(loaded).translate(lines[:4], objective=objective, decoder="edits")
    gains = [h.initial_cost - h.discrete_cost for h in found if h.stop != "empty"]
    assert min(gains) >= 0
    assert max(gains) > 0.01


def test_batches_change_nothing(pretrained, lines):
    loaded = simplexity.load(pretrained / "fwd", reverse=pretrained / "rev", device="cpu")
    alone, together = (loaded.translate(lines, batch_size=n, exact=True) for n in (1, 8))
    for one, other in zip(alone, together, strict=True):
        assert one.text == other.text
        assert one.discrete_cost == pytest.approx(other.discrete_cost, rel=1e-5)


def test_a_beam_string_that_reads_otherwise_has_the_score_of_its_text(pretrained, lines):
    loaded = simplexity.load(pretrained / "fwd", device="cpu")
    target, changed = loaded.family["l2r"].target, 0
    model = loaded.family["l2r"].model
    lists = loaded.n_best(lines, beam_size=8, n_best=8, output_type="json")
    for line, found in zip(lines, lists, strict=True):
        for hypothesis in found if line else ():
            cost = -log_p(pretrained / "fwd", line, hypothesis.text)
            assert hypothesis.discrete_cost == pytest.approx(cost, rel=1e-4)
            assert hypothesis.ids == tuple(target.encode(hypothesis.text))
            assert hypothesis.score == pytest.approx(-cost / (len(hypothesis.ids) + 1), rel=1e-4)
        source = pad_batch([loaded.family["l2r"].source.encode(line)], 0)
        raw = beam_search(model, source, BeamSettings(8, 8))
        changed += sum(
            target.encode(target.decode(ids)) != ids for ids in unpad(Hard(raw.ids[0], raw.mask[0]))
        )
    assert changed > 0  # or nothing was tested


def test_a_model_of_many_languages_is_told_them(pretrained):
    member = load_translator(pretrained / "nllb", "l2r", ("deu_Latn", "eng_Latn"))
    tokenizer = AutoTokenizer.from_pretrained(pretrained / "nllb")
    german, english = tokenizer.convert_tokens_to_ids(["deu_Latn", "eng_Latn"])
    assert member.model.source_prefix == (german,)
    assert member.model.target_prefix == (2, english)
    assert {german, english, 1, 2} <= set(member.model.banned)
    back = load_translator(pretrained / "nllb", "reverse", ("eng_Latn", "deu_Latn"))
    assert back.model.target_prefix == (2, german)
    with pytest.raises(UsageError, match="needs to be told its source language"):
        load_translator(pretrained / "nllb", "l2r")
    with pytest.raises(UsageError, match=r"does not know 'xx' as target language.*eng_Latn"):
        load_translator(pretrained / "nllb", "l2r", ("deu_Latn", "xx"))


def test_its_scores_are_its_own(pretrained):
    loaded = simplexity.load(
        pretrained / "nllb",
        source_language="deu_Latn",
        target_language="eng_Latn",
        device="cpu",
    )
    tokenizer = AutoTokenizer.from_pretrained(
        pretrained / "nllb", src_lang="deu_Latn", tgt_lang="eng_Latn"
    )
    model = AutoModelForSeq2SeqLM.from_pretrained(pretrained / "nllb").eval()
    pair = ("ta rek fum.", "lo hundo vidu.")
    (score,) = loaded.score([pair])
    given = tokenizer(pair[0], return_tensors="pt")
    labels = tokenizer(text_target=pair[1], return_tensors="pt").input_ids
    with torch.no_grad():
        own = model(**given, labels=labels).logits.log_softmax(-1)
    own = own.gather(-1, labels[..., None]).squeeze(-1)[0, 1:]  # not that of the language's code
    assert score.total == pytest.approx(float(own.sum()), rel=1e-5)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simplexity.models.pretrained.hub_is_there", lambda: False)


def test_names_that_lead_nowhere_are_explained_in_one_sentence(tmp_path, offline):
    with pytest.raises(SimplexityError, match=r"^no/such-model is no directory here.*directory\.$"):
        load_translator("no/such-model", "l2r")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SimplexityError, match=r"^The model in .*empty cannot be read: [^\n]+$"):
        load_translator(empty, "l2r")


def test_two_lines_and_a_command(pretrained, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text("ta rek fum.\n\nana sel lok.\n", encoding="utf-8")
    flags = ["--forward", str(pretrained / "fwd"), "--reverse", str(pretrained / "rev")]
    flags += ["--lm", str(pretrained / "xb.arpa"), "--output-type", "json", "--device", "cpu"]
    assert main(["translate", *flags, "-i", str(source), "--quiet"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    loaded = simplexity.load(
        pretrained / "fwd", reverse=pretrained / "rev", lm=pretrained / "xb.arpa", device="cpu"
    )
    found = loaded.translate(["ta rek fum.", "", "ana sel lok."])
    assert [record["translation"] for record in records] == [h.text for h in found]
    assert set(records[0]["terms"]) == {"l2r", "reverse", "lm"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-m", "a", "--forward", "b"], "--model or --forward, not both"),
        (["-m", "a", "--reverse", "b"], "--reverse goes with --forward"),
        (["--forward", "a", "--objective", "joint"], "is no directory here"),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags, message, capsys, offline):
    assert main(["translate", *flags]) in (1, 2)
    assert message in capsys.readouterr().err


def test_an_objective_without_its_model_is_explained(pretrained, lines):
    loaded = simplexity.load(pretrained / "fwd", device="cpu")
    with pytest.raises(SimplexityError, match="no language model; give one with --lm"):
        loaded.translate(lines, objective="l2r=0.5,lm=0.5")
    with pytest.raises(SimplexityError, match="give one with --reverse"):
        loaded.translate(lines, objective="bilingual")


def test_a_language_model_joins_a_family(tiny_family, pretrained):
    family = tiny_family()
    fluency = load_fluency(pretrained / "gpt2", family["l2r"].target)
    loaded = simplexity.Loaded(replace(family, lm=fluency))
    (found,) = loaded.translate(["der hund"], objective="l2r=0.5,r2l=0.3,lm=0.2", decoder="eg")
    assert found.terms["lm"] == pytest.approx(-log_p_lm(pretrained / "gpt2", found.text), rel=1e-4)
