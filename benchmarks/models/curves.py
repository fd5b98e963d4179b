"""The learning curves of training runs, from their logs.

    python benchmarks/models/curves.py English=run_en/log.jsonl Korean=run_ko/log.jsonl.gz -o docs/pictures/curves.png

A panel for each run, on the same logarithmic axes: perplexity against words seen. The lines are the training loss as
the run counted it (with dropout, and over sampled words where the recipe samples, so it may lie far below), the points
the held-out text with the full softmax, each sentence by itself. Needs matplotlib: pip install 'pyelmo[plots]'.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.errors import missing_extra
from pyelmo.files import atomic_path

DIRECTIONS = {"forward": "tab:blue", "backward": "tab:orange"}


@dataclass(frozen=True)
class Curve:
    words: list[int]
    perplexity: list[float]


@dataclass(frozen=True)
class Run:
    """Curves by direction."""

    label: str
    training: dict[str, Curve]
    held_out: dict[str, Curve]


def read_run(label: str, path: Path) -> Run:
    """A run's log; of steps that a resumed run did twice, the second time."""
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
        sys.exit(f"{path}: no training step in it")
    train, valid = ([entries[step] for step in sorted(entries)] for entries in kinds.values())
    directions = list(DIRECTIONS)[: len(train[0]["losses"])]
    return Run(
        label,
        {
            name: Curve([entry["words"] for entry in train], [math.exp(entry["losses"][place]) for entry in train])
            for place, name in enumerate(directions)
        },
        {
            name: Curve([entry["words"] for entry in valid], [entry[name] for entry in valid])
            for name in directions
            if valid
        },
    )


def draw(runs: list[Run], path: Path) -> None:
    try:
        import matplotlib
    except ImportError as error:
        raise missing_extra("plots", "drawing curves") from error
    matplotlib.use("Agg")  # a file, on a machine that may have no screen
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    columns = min(len(runs), 3)
    rows = -(-len(runs) // columns)
    figure, panels = pyplot.subplots(
        rows, columns, sharex=True, sharey=True, squeeze=False, figsize=(1.2 + 4.4 * columns, 0.8 + 3.4 * rows), dpi=150
    )
    for run, panel in zip(runs, panels.flat, strict=False):
        draw_run(run, panel)
        panel.set(xscale="log", yscale="log", title=run.label)
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:,.4g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3)
        panel.legend(frameon=False, fontsize="small")
    for panel in panels.flat[len(runs) :]:
        panel.set_visible(False)
    figure.supxlabel("words seen, millions", fontsize="medium")
    figure.supylabel("perplexity", fontsize="medium")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as draft:
        figure.savefig(draft)


def draw_run(run: Run, panel: Any) -> None:
    for name, curve in run.training.items():
        panel.plot(
            curve.words,
            curve.perplexity,
            color=DIRECTIONS[name],
            linewidth=1,
            alpha=0.6,
            label=f"training loss, {name}",
        )
    for name, curve in run.held_out.items():
        marker = {"forward": ">", "backward": "<"}[name]  # both lie on the same spots
        label = f"held out, {name}: {curve.perplexity[-1]:.1f} at the end"
        panel.plot(curve.words, curve.perplexity, f"{marker}--", color=DIRECTIONS[name], linewidth=1.2, label=label)


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
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.png")
    args = parser.parse_args()
    try:
        draw([read_run(label, path) for label, path in args.logs], args.output)
    except ImportError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
