"""Settings of `simplexity pack`."""

from __future__ import annotations

from pathlib import Path

from simplexity.settings import Settings, setting


class PackConfig(Settings):
    """Settings of `simplexity pack`."""

    model: Path = setting(..., "directory of a model or a family", section="Files", positional=True)
    output: Path = setting(..., "new directory for the small models", short="-o")
    overwrite: bool = setting(False, "replace a model directory that exists")
    quiet: bool = setting(False, "do not tell on stderr what was saved")
