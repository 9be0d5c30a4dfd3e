"""Relaxed decoding inside `generate`: alone, through a trainer, and from a local directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

import simplexity
from simplexity.errors import SimplexityError, UsageError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
LINES = ["ta rek fum.", "ana sel lum bana lok.", "un misa fum."]


@pytest.fixture(scope="module")
def model(pretrained: Path) -> Any:
    return AutoModelForSeq2SeqLM.from_pretrained(pretrained / "fwd")


@pytest.fixture(scope="module")
def tokenizer(pretrained: Path) -> Any:
    return AutoTokenizer.from_pretrained(pretrained / "fwd")


@pytest.fixture(scope="module")
def expected(pretrained: Path) -> list[str]:
    loaded = simplexity.load(pretrained / "fwd", reverse=pretrained / "rev", device="cpu")
    return [hypothesis.text for hypothesis in loaded.translate(LINES)]


def test_generate_gives_what_load_gives(model, tokenizer, pretrained, expected):
    inputs = tokenizer(LINES, return_tensors="pt", padding=True)
    decode = simplexity.relaxed(tokenizer, reverse=pretrained / "rev")
    plain = model.generate(**inputs, num_beams=5, max_new_tokens=60)
    plain = tokenizer.batch_decode(plain, skip_special_tokens=True)
    found = model.generate(**inputs, num_beams=5, max_new_tokens=60, custom_generate=decode)
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == expected
    assert expected != plain
    assert found[:, 0].tolist() == [model.config.decoder_start_token_id] * 3
    again = model.generate(
        **inputs, max_new_tokens=60, custom_generate=decode, return_dict_in_generate=True
    )
    assert again.sequences_scores.shape == (3,)


def test_the_model_is_left_as_it_was(pretrained, tokenizer):
    model = AutoModelForSeq2SeqLM.from_pretrained(pretrained / "fwd").train()
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    inputs = tokenizer(LINES, return_tensors="pt", padding=True)
    decode = simplexity.relaxed(iterations=2)
    model.generate(**inputs, max_new_tokens=60, custom_generate=decode)
    assert model.training
    assert [name for name, p in model.named_parameters() if p.requires_grad] == names
    model(**inputs, labels=inputs.input_ids).loss.backward()


def test_a_trainer_predicts_with_it(model, tokenizer, pretrained, expected, tmp_path):
    data = [{**tokenizer(line), "labels": tokenizer(text_target="no").input_ids} for line in LINES]
    trainer = Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(
            output_dir=str(tmp_path),
            predict_with_generate=True,
            per_device_eval_batch_size=2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
    )
    decode = simplexity.relaxed(tokenizer, reverse=pretrained / "rev")
    found = trainer.predict(data, custom_generate=decode, num_beams=5, max_length=60).predictions
    rows = torch.tensor(found).masked_fill(torch.tensor(found) < 0, tokenizer.pad_token_id)
    assert tokenizer.batch_decode(rows, skip_special_tokens=True) == expected


def test_a_local_directory_holds_it(model, tokenizer, pretrained, expected, monkeypatch, tmp_path):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path))
    inputs = tokenizer(LINES, return_tensors="pt", padding=True)
    found = model.generate(
        **inputs,
        num_beams=5,
        max_new_tokens=60,
        custom_generate=str(ROOT / "examples" / "generate"),
        trust_remote_code=True,
        tokenizer=tokenizer,
        reverse=str(pretrained / "rev"),
    )
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == expected


def test_what_cannot_be_done_is_said(model, tokenizer):
    inputs = {**tokenizer(LINES, return_tensors="pt", padding=True), "max_new_tokens": 60}
    decode = simplexity.relaxed(tokenizer)
    with pytest.raises(UsageError, match="one string a sentence"):
        model.generate(**inputs, custom_generate=decode, num_beams=3, num_return_sequences=2)
    bare = tokenizer(LINES[:1], return_tensors="pt", add_special_tokens=False)
    with pytest.raises(SimplexityError, match="let its tokenizer add the special tokens"):
        model.generate(**bare, max_new_tokens=60, custom_generate=decode)
