"""What `elmo score` costs beside `elmo evaluate`: words per CPU second of both commands on the same text, one thread.

    python benchmarks/models/scoring.py en text.txt --runs 3 -o benchmarks/results/scoring.json --label after

The CPU time is that of the whole process, as the system counts it, so other work on the machine changes it little. The
number of words is that of `evaluate`, with the ends of sentences, for all commands. The best of the runs counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyelmo.provenance import machine, plain_command

COMMANDS = {
    "evaluate": ["evaluate", "--json"],
    "evaluate --context sentence": ["evaluate", "--json", "--context", "sentence"],
    "score": ["score"],
}


def cpu_seconds(arguments: list[str]) -> tuple[float, str]:
    """Run a command; return its CPU time and its output."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen([sys.executable, "-m", "pyelmo", *arguments], stdout=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(arguments)} failed")
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, output.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("text", type=Path, metavar="TEXT")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--label", default="after", help="name of the figures in the file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.json")
    args = parser.parse_args()
    seconds: dict[str, float] = {}
    words = 0
    for name, (verb, *more) in COMMANDS.items():
        for _ in range(args.runs):
            taken, output = cpu_seconds([verb, args.model, str(args.text), *more])
            seconds[name] = min(taken, seconds.get(name, taken))
        if verb == "evaluate":
            words = json.loads(output)["words"]
    figures: dict[str, Any] = {
        "words": words,
        "cpu_seconds": {name: round(value, 2) for name, value in seconds.items()},
        "words_per_cpu_second": {name: round(words / value) for name, value in seconds.items()},
        "score_costs": {name: round(seconds["score"] / value, 2) for name, value in seconds.items() if name != "score"},
        "command": plain_command("python benchmarks/models/scoring.py", sys.argv[1:]),
        "machine": machine(),
    }
    known = json.loads(args.output.read_text("utf-8")) if args.output.exists() else {}
    args.output.write_text(json.dumps({**known, args.label: figures}, indent=1) + "\n", "utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
