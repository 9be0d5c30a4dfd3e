"""What a run can be told: one model a command, whose fields are YAML keys and flags alike.

A field `beam_size` is the key `beam_size` in a configuration file and the flag `--beam-size`. Flags
override the file, the file overrides the defaults written here. Nothing here imports torch, so that
help and errors come at once.
"""

from __future__ import annotations

from simplexity.config.bench import BenchConfig
from simplexity.config.evaluate import EvaluateConfig, InfoConfig, ScoreConfig
from simplexity.config.experiment import ITEMS, ExperimentConfig, Item, Recipe
from simplexity.config.explain import ExplainConfig, PlotConfig
from simplexity.config.export import ExportConfig
from simplexity.config.kinds import Member, is_stdin
from simplexity.config.pack import PackConfig
from simplexity.config.train import TrainConfig
from simplexity.config.translate import PRESETS, TranslateConfig
from simplexity.config.tune import RerankConfig, TuneConfig

__all__ = [
    "ITEMS",
    "PRESETS",
    "BenchConfig",
    "EvaluateConfig",
    "ExperimentConfig",
    "ExplainConfig",
    "ExportConfig",
    "InfoConfig",
    "Item",
    "Member",
    "PackConfig",
    "PlotConfig",
    "Recipe",
    "RerankConfig",
    "ScoreConfig",
    "TrainConfig",
    "TranslateConfig",
    "TuneConfig",
    "is_stdin",
]
