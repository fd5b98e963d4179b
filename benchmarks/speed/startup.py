"""CPU seconds until `import pyelmo`, `elmo --help` and the first vectors, each the best of several new processes.

python benchmarks/speed/startup.py
"""

from __future__ import annotations

import json
import subprocess
import sys

from pyelmo.provenance import machine

RUNS = 5
USED = "import os; times = os.times(); print(times.user + times.system)"
PROGRAMS = {
    "python": "",
    "import pyelmo": "import pyelmo",
    "elmo --help": (
        "import contextlib, io\nfrom pyelmo.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--help'])"
    ),
    "load en and embed a sentence": "import pyelmo\npyelmo.load('en').embed(['A bank account.'])",
}


def cpu_seconds(code: str) -> float:
    command = [sys.executable, "-c", f"{code}\n{USED}"]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(RUNS))


if __name__ == "__main__":
    seconds = {name: round(cpu_seconds(code), 3) for name, code in PROGRAMS.items()}
    print(json.dumps({"machine": machine(), "cpu_seconds": seconds}, indent=1))
