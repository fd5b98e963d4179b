"""elmo task table: a comparison of runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import say

HELP = "Compare runs: absolute and relative improvement over the baseline, with a paired bootstrap test."
EXAMPLE = "elmo task table baseline run -o table.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN",
        help="folder of a run; the first run of a task, data set and fraction is the baseline of the others",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="file to write, as FILE.md, FILE.json and FILE.svg (default: print to stdout)",
    )  # fmt: skip
    parser.add_argument(
        "--items", metavar="FILE",
        help="JSON file with the test examples to score, as benchmarks/tasks/clean_items.py writes it (default: all)",
    )  # fmt: skip
    options.add_json(parser, "print JSON instead of Markdown")


def run(args: argparse.Namespace) -> None:
    from pyelmo.tasks.compare import comparison
    from pyelmo.tasks.compare.items import read_items
    from pyelmo.tasks.harness.run_folder import read_run

    runs = [read_run(folder) for folder in args.runs]
    items = read_items(args.items) if args.items else None
    if args.output:
        for path in comparison.write(runs, Path(args.output), items=items):
            say(f"{path}: written")
        return
    rows = comparison.compare_runs(runs, items=items)
    print(json.dumps([asdict(row) for row in rows], indent=1) if args.json else comparison.markdown(rows), end="")
