"""Settings of `simplexity export`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from simplexity.settings import Settings, setting


class ExportConfig(Settings):
    """Settings of `simplexity export`."""

    model: Path = setting(..., "directory of a model or a family", section="Files", positional=True)
    output: Path = setting(..., "new directory for the plain model", short="-o")
    member: Literal["l2r", "reverse"] = setting("l2r", "which model of a family")
    quiet: bool = setting(False, "do not tell on stderr what was written")
