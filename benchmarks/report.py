"""What stands beside every measured number: machine, date, commit and versions."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    import torch

    return {
        "date": datetime.date.today().isoformat(),
        "commit": os.environ.get("PYELMO_COMMIT") or _commit(),  # a copy without its history is told from outside
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _commit() -> str:
    here = Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=here).stdout
    dirty = subprocess.run(["git", "status", "--porcelain", "../src"], capture_output=True, text=True, cwd=here).stdout
    return commit.strip() + ("+changes" if dirty.strip() else "")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
