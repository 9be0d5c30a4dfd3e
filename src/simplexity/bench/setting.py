"""With what figures were found: machine, threads, load, versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import simplexity

LIBRARIES = ("torch", "transformers", "ctranslate2", "pymarian")
CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """The machine as it is at this moment."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": list(os.getloadavg()),
        "versions": versions(),
    }


def processor() -> str:
    """The name of the processor, and of the graphics device if there is one."""
    lines = CPU_INFO.read_text().splitlines() if CPU_INFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    found = [names[0] if names else platform.processor() or platform.machine()]
    if torch.cuda.is_available():
        found.append(torch.cuda.get_device_name())
    return ", ".join(found)


def versions() -> dict[str, str]:
    """Of this package, and of those libraries that are installed."""
    found = {"simplexity": simplexity.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
