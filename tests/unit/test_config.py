"""Settings: defaults, then a YAML file, then flags; what is wrong is said in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexity.config import (
    EvaluateConfig,
    InfoConfig,
    RerankConfig,
    ScoreConfig,
    TrainConfig,
    TranslateConfig,
    TuneConfig,
)
from simplexity.errors import UsageError
from simplexity.evaluate.metrics import METRICS, TOKENISERS
from simplexity.evaluate.tables import FORMATS
from simplexity.settings import Settings, dump_config, load_config, shown

CORPORA = {"train": "a/train", "dev": "a/dev", "source_language": "de", "target_language": "en"}
LEAST: dict[type[Settings], dict[str, Any]] = {
    TrainConfig: {**CORPORA, "output": "out"},
    TranslateConfig: {"model": "m"},
    RerankConfig: {},
    TuneConfig: {"references": "r", "nbest": "n"},
    ScoreConfig: {"model": "m", "source": "a", "target": "b"},
    EvaluateConfig: {"hypotheses": ("a",), "references": "r"},
    InfoConfig: {},
}
ALL = pytest.mark.parametrize("cls", LEAST, ids=lambda cls: cls.__name__)


def least(cls: type[Settings], **more: Any) -> dict[str, Any]:
    return {**LEAST[cls], **more}


def train(**more: Any) -> TrainConfig:
    return load_config(TrainConfig, None, least(TrainConfig, **more))


def refusal(cls: type[Settings], path: Path | None = None, **more: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load_config(cls, path, more)
    message = str(caught.value)
    assert "\n" not in message
    return message


def yaml(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_override_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    path = yaml(tmp_path, "model: theirs\nbeam_size: 7\nbatch_size: 8\n")
    config = load_config(TranslateConfig, path, {"beam_size": 9})
    assert (config.model, config.beam_size, config.batch_size) == (Path("theirs"), 9, 8)
    assert config.length_penalty == TranslateConfig.model_fields["length_penalty"].default


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_changes_nothing(tmp_path: Path, text: str) -> None:
    assert load_config(InfoConfig, yaml(tmp_path, text), {}) == InfoConfig()


@ALL
def test_dumped_settings_are_read_back(cls: type[Settings], tmp_path: Path) -> None:
    config = load_config(cls, None, least(cls))
    path = yaml(tmp_path, dump_config(config))
    assert load_config(cls, path, {}) == config


@given(
    output=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1),
    dropout=st.floats(0, 1, exclude_max=True),
    average=st.none() | st.floats(0.5, 0.99),
    directions=st.lists(st.sampled_from(["l2r", "r2l", "reverse"]), min_size=1, unique=True),
    language=st.sampled_from(["no", "on", "1e3", "zh-Hant", "null", "日本"]),
)
def test_any_values_survive_yaml(
    tmp_path_factory: pytest.TempPathFactory,
    output: str,
    dropout: float,
    average: float | None,
    directions: list[str],
    language: str,
) -> None:
    config = train(
        output=output,
        dropout=dropout,
        average=average,
        directions=directions,
        source_language=language,
    )
    path = yaml(tmp_path_factory.mktemp("yaml"), dump_config(config))
    assert load_config(TrainConfig, path, {}) == config


@ALL
def test_every_setting_explains_itself(cls: type[Settings]) -> None:
    fields = cls.model_fields.values()
    assert all(field.description for field in fields)
    assert shown(next(iter(fields)))["section"]
    shorts = [shown(field)["short"] for field in fields if shown(field)["short"]]
    assert len({*shorts, "-c", "-h"}) == len(shorts) + 2


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        InfoConfig().models = ()


def test_numbers_that_yaml_takes_for_text(tmp_path: Path) -> None:
    path = yaml(tmp_path, "learning_rate: 1e-3\n")
    assert load_config(TrainConfig, path, LEAST[TrainConfig]).learning_rate == 0.001


def test_lists_may_be_written_with_commas_or_as_lists(tmp_path: Path) -> None:
    path = yaml(tmp_path, "directions: [l2r, reverse]\n")
    listed = load_config(TrainConfig, path, LEAST[TrainConfig])
    assert listed.directions == ("l2r", "reverse") == train(directions="l2r, reverse").directions


def test_none_can_be_said(tmp_path: Path) -> None:
    assert train(average="none").average is None
    assert train(average="0.9").average == 0.9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beam_sise: 3", "unknown key 'beam_sise'; did you mean 'beam_size'?"),
        ("beam-size: 3", "unknown key 'beam-size'; did you mean 'beam_size'?"),
        ("zzz: 3", "unknown key 'zzz'; known are model, forward, "),
        ("7: 3", "unknown key '7'"),
        ("beam_size: many", "beam_size should be a valid integer, not 'many'"),
        ("beam_size: 0", "beam_size should be greater than or equal to 1, not 0"),
        ("momentum: .nan", "momentum should be "),
        ("decoder: beem", "decoder should be 'greedy', 'beam', "),
        ("beam_size: 3\nseed: 1\nbeam_size: 4", "line 3: the key 'beam_size' stands there twice"),
        ("- beam_size", "must consist of lines such as 'seed: 1'"),
        ("beam_size: [3", "line 1, is not valid YAML"),
        ("a: 1\n\tb: 2", "line 2, is not valid YAML"),
        ("n_best: 2", "n_best 2 needs --output-type nbest or json"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, expected: str) -> None:
    path = yaml(tmp_path, text)
    message = refusal(TranslateConfig, path, model="m")
    assert str(path) in message
    assert expected in message


def test_a_language_that_yaml_takes_for_a_truth_value(tmp_path: Path) -> None:
    path = yaml(tmp_path, "target_language: no\n")
    given = {key: value for key, value in LEAST[TrainConfig].items() if key != "target_language"}
    message = refusal(TrainConfig, path, **given)
    assert "target_language should be text: put it in quotes" in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(InfoConfig, tmp_path / "missing.yaml")
    assert "cannot be read" in refusal(InfoConfig, tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("model: Köln".encode("latin-1"))
    assert "not valid UTF-8" in refusal(InfoConfig, latin)


def test_a_wrong_flag_is_named_as_a_flag(tmp_path: Path) -> None:
    assert refusal(TranslateConfig, yaml(tmp_path, "model: m"), beam_size="x").startswith(
        "--beam-size should be a valid integer"
    )
    assert refusal(EvaluateConfig, hypotheses=["x"]).startswith("--references is missing")
    assert refusal(EvaluateConfig, references="r").startswith("HYPOTHESES is missing")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"train": None}, "no train corpus: give --train PREFIX"),
        ({"dev": None}, "no dev corpus: give --dev PREFIX"),
        ({"train": None, "train_source": "x"}, "no train corpus"),
        ({"dev_target": "x"}, "give --dev or --dev-source and --dev-target, not both"),
        ({"source_language": None}, "--train needs --source-language and --target-language"),
        ({"directions": "l2r,l2r"}, "directions names a model twice"),
        ({"directions": "l2r,right"}, "--directions should be 'l2r', 'r2l' or 'reverse'"),
        ({"directions": []}, "--directions"),
        ({"architecture": "transformer", "hidden": 100, "heads": 8}, "not divisible by heads"),
        ({"dropout": 1.0}, "--dropout should be less than 1, not 1.0"),
        ({"learning_rate": float("inf")}, "--learning-rate should be a finite number"),
    ],
)
def test_training_that_makes_no_sense(change: dict[str, Any], expected: str) -> None:
    assert expected in refusal(TrainConfig, **least(TrainConfig, **change))


def test_a_corpus_may_be_four_files() -> None:
    files = {f"{part}_{side}": "x" for part in ("train", "dev") for side in ("source", "target")}
    config = load_config(TrainConfig, None, {**files, "output": "o"})
    assert config.dev_target == Path("x")


def test_an_n_best_list_is_no_longer_than_the_beam() -> None:
    given = least(TranslateConfig, n_best=6, output_type="nbest")
    assert "n_best (6) is more than beam_size (5)" in refusal(TranslateConfig, **given)
    assert load_config(TranslateConfig, None, {**given, "beam_size": 6}).n_best == 6


def test_unset_sizes_follow_the_architecture() -> None:
    paper = train().resolved()
    assert (paper.encoder_layers, paper.decoder_layers) == (1, 2)
    other = train(architecture="transformer", decoder_layers=1).resolved()
    assert (other.encoder_layers, other.decoder_layers) == (3, 1)
    for name in ("learning_rate", "warmup"):
        assert None not in (getattr(paper, name), getattr(other, name))
        assert getattr(train(**{name: 7}).resolved(), name) == 7


def test_evaluation_offers_what_there_is() -> None:
    fields = EvaluateConfig.model_fields
    (metrics, _) = get_args(fields["metrics"].annotation)
    assert get_args(metrics) == METRICS
    assert get_args(fields["tokenize"].annotation) == TOKENISERS
    assert get_args(fields["format"].annotation) == FORMATS
