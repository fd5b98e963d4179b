"""What stands beside every measured figure: the command, the machine, the date, the commit and the versions."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyelmo.version import __version__


def versions() -> dict[str, Any]:
    """Return the date and the versions behind a figure."""
    return {
        "date": datetime.date.today().isoformat(), "pyelmo": __version__, "python": platform.python_version(),
        "torch": torch.__version__, "numpy": np.__version__,
    }  # fmt: skip


def plain_command(program: str, arguments: Iterable[str]) -> str:
    """Return a command without the folders of the machine it ran on."""

    def plain(part: str) -> str:
        return Path(part).name if Path(part).is_absolute() else part

    # Paths stand between commas, after NAME= and after a prefix like cove:, but C: is part of one.
    parts = (re.split(r"([,=+]|(?<=\w\w):)", argument) for argument in arguments)
    return " ".join([program, *("".join(map(plain, argument)) for argument in parts)])


def machine() -> dict[str, Any]:
    """Return the date, the commit and the machine behind a benchmark's figure."""
    return {
        "date": datetime.date.today().isoformat(),
        "commit": os.environ.get("PYELMO_COMMIT") or _commit(),  # set for a copy without its history
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _commit() -> str:
    here = Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=here).stdout
    dirty = subprocess.run(["git", "status", "--porcelain", "."], capture_output=True, text=True, cwd=here).stdout
    return commit.strip() + ("+changes" if dirty.strip() else "")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
