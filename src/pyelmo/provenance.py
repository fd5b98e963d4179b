"""Describe how a result was produced: the command, the machine, the date, the commit and the versions.

Environment:
    PYELMO_COMMIT: The commit to record, for a copy of the repository without its Git history.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.version import __version__


def versions() -> dict[str, Any]:
    """Return the date, the versions of the software, the commit and the processor."""
    return {
        "date": datetime.date.today().isoformat(), "pyelmo": __version__, "python": platform.python_version(),
        "torch": _torch_version(), "numpy": np.__version__, "commit": _commit(), "cpu": _cpu(),
    }  # fmt: skip


def plain_command(program: str, arguments: Iterable[str]) -> str:
    """Return a command in which absolute paths are replaced by file names."""

    def plain(part: str) -> str:
        return Path(part).name if Path(part).is_absolute() else part

    # Paths occur between commas, after NAME= and after a prefix like cove:, but C: is part of a path.
    parts = (re.split(r"([,=+]|(?<=\w\w):)", argument) for argument in arguments)
    return " ".join([program, *("".join(map(plain, argument)) for argument in parts)])


def machine() -> dict[str, Any]:
    """Return the date, the commit, the machine and the versions of a benchmark run."""
    return {
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": _gpu(),
        "python": platform.python_version(),
        "torch": _torch_version(),
    }


def _torch_version() -> str | None:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu() -> str | None:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else None


def _commit() -> str:
    """Return the commit of the checkout that runs, or an empty string for an installed package."""
    if commit := os.environ.get("PYELMO_COMMIT"):
        return commit
    if not (Path(__file__).parents[2] / ".git").exists() or shutil.which("git") is None:
        return ""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", ".") else "")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
