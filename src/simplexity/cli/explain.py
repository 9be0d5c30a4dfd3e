"""`simplexity explain`: one sentence and what the descent did to it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from simplexity.config import ExplainConfig
from simplexity.runtime import device_named, use_threads
from simplexity.shipped import family_or_shipped

if TYPE_CHECKING:
    from simplexity.config.explain import WatchedConfig
    from simplexity.show.story import Story


def run(config: ExplainConfig) -> None:
    """Show how a joint translation comes about.

    Translates one sentence by descent and draws how the mass moves from word to word, what every
    model makes of the string before and after, and which of them wanted each word that changed.
    """
    from simplexity.show.terminal import Palette, explained

    story = told(config)
    for line in explained(story, Palette(_coloured(config.color)), _width()):
        print(line)


def told(config: WatchedConfig) -> Story:
    """Load the models and follow the sentence."""
    directory = family_or_shipped(config.model)
    use_threads(config.threads)
    import torch

    from simplexity import build
    from simplexity.models.family import load_family

    torch.manual_seed(config.seed)
    family = load_family(directory, device=device_named(config.device))
    return build.narrator(config.translation(), family)(config.sentence)


def _coloured(wish: str) -> bool:
    if wish == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return wish == "always"


def _width() -> int:
    return shutil.get_terminal_size().columns
