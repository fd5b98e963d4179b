"""Draw the learning curves of training runs from their logs.

    python benchmarks/models/curves.py English=run_en/log.jsonl Korean=run_ko/log.jsonl.gz -o docs/pictures/curves.svg

The chart shows perplexity against the number of training words, on logarithmic axes. A line without dots is the
training loss of the run, with dropout and, if the recipe samples the softmax, over sampled words, so it may be far
below the others. A line with dots is the held-out perplexity with the full softmax, each sentence by itself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

from pyelmo.files import atomic_path
from pyelmo.plots import Curve, curves

DIRECTIONS = ("forward", "backward")


def read_run(label: str, path: Path, colour: int) -> list[Curve]:
    """Return the curves of a log. If a resumed run repeated a step, the later entry counts."""
    kinds: dict[str, dict[int, dict[str, Any]]] = {"train": {}, "valid": {}}
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
                if entry["kind"] in kinds:
                    kinds[entry["kind"]][entry["step"]] = entry
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                sys.exit(f"{path}, line {number}: not a line of a training log ({error!r})")
    if not kinds["train"]:
        sys.exit(f"{path}: the log contains no training step")
    train, valid = ([entries[step] for step in sorted(entries)] for entries in kinds.values())
    drawn = []
    for number, name in enumerate(DIRECTIONS[: len(train[0]["losses"])]):
        losses = [(entry["words"] / 1e6, math.exp(entry["losses"][number])) for entry in train]
        drawn.append(Curve(f"{label}, {name}: training loss", losses, colour + number, dots=False))
        if valid:
            held_out = [(entry["words"] / 1e6, entry[name]) for entry in valid]
            title = f"{label}, {name}: held out, {held_out[-1][1]:.1f} at the end"
            drawn.append(Curve(title, held_out, colour + number))
    return drawn


def labelled_log(value: str) -> tuple[str, Path]:
    label, _, path = value.rpartition("=")
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{path!r}: not a file; expected LABEL=PATH or PATH")
    return label or Path(path).resolve().parent.name, Path(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "logs", type=labelled_log, nargs="+", metavar="[LABEL=]LOG", help="log.jsonl or log.jsonl.gz of a run"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.svg", help="file for the drawing")
    args = parser.parse_args()
    drawn = []
    for number, (label, path) in enumerate(args.logs):
        drawn += read_run(label, path, number * len(DIRECTIONS))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(args.output) as part:
        part.write_text(curves(drawn, "million training words", "perplexity", log_y=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
