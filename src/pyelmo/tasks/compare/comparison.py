"""A table that compares runs: the scores of each and its gain over the first run of the same task and data."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.errors import FormatError
from pyelmo.files import write_text
from pyelmo.plots import Curve, curves
from pyelmo.tasks.compare.bootstrap import RESAMPLES, BootstrapResult, describe_draws, paired_bootstrap
from pyelmo.tasks.compare.items import ItemChoice, choose_items
from pyelmo.tasks.harness.run_folder import SavedAnswers, TaskRun, layers_picture
from pyelmo.tasks.harness.task import Task, find_task


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """A run in the table. The last five values compare it with the first run of its group."""

    run: str
    task: str
    metric: str
    part: str  # the data set of the score: test, or dev if there is no test set
    data: str
    fraction: float
    encoder: str | None
    elmo: str
    seeds: int
    dev: float
    dev_deviation: float | None
    score: float
    deviation: float | None
    items: int | None = None  # how many test examples were chosen and scored; None: all
    absolute: float | None = None
    error_reduction: float | None = None  # in percent
    paper: str = ""
    bootstrap: BootstrapResult | None = None
    resampled: str = ""  # what the bootstrap drew


def compare_runs(
    runs: Sequence[TaskRun], *, resamples: int = RESAMPLES, items: ItemChoice | None = None
) -> list[ComparisonRow]:
    """Return a row for each run, compared with the first run of its task, data and fraction.

    `items` chooses the test examples that are scored (default: all).
    """
    first_runs: dict[tuple[Any, ...], TaskRun] = {}
    rows = []
    for run in runs:
        base = first_runs.setdefault(run.group, run)
        task, part = find_task(run.facts["task"]), run.part
        scores, base_scores = _scores(run, task, items), _scores(base, task, items)
        new, old = statistics.fmean(scores), statistics.fmean(base_scores)
        gain: dict[str, Any] = {}
        if items is not None:
            gain["items"] = _answers(run, items).counts.shape[1]
        if base is not run:
            gain |= {
                "absolute": new - old, "error_reduction": error_reduction(old, new),
                "paper": f"{task.paper_reduction:g} ({task.paper_dataset})",
                **_bootstrap(base, run, task, items, resamples),
            }  # fmt: skip
        rows.append(ComparisonRow(
            run=run.folder.name, task=task.name, metric=task.metric.name, part=part,
            data=run.facts["data"][part]["file"], fraction=run.facts["fraction"],
            encoder=run.facts["encoder_name"], elmo=run.elmo, seeds=len(scores),
            dev=statistics.fmean(run.scores("dev")), dev_deviation=_deviation(run.scores("dev")), score=new,
            deviation=_deviation(scores), **gain,
        ))  # fmt: skip
    return rows


def _answers(run: TaskRun, items: ItemChoice | None) -> SavedAnswers:
    answers = run.answers()
    return answers if items is None else choose_items(run, answers, items)


def _scores(run: TaskRun, task: Task, items: ItemChoice | None) -> list[float]:
    """Return the score of each seed."""
    if items is None:
        return run.scores(run.part)
    scores: list[float] = task.metric.main(_answers(run, items).counts.sum(1)).tolist()
    return scores


def _bootstrap(base: TaskRun, run: TaskRun, task: Task, items: ItemChoice | None, resamples: int) -> dict[str, Any]:
    """Compare two runs. Units that one of them saved are those of the other, too: both have the same data."""
    old, new = _answers(base, items), _answers(run, items)
    if old.units is not None and new.units is not None and not np.array_equal(old.units, new.units):
        raise FormatError(f"{run.folder}: its examples have other units than those of {base.folder}. Train one again.")
    units = new.units if new.units is not None else old.units
    result = paired_bootstrap(old.counts, new.counts, task.metric, units=units, resamples=resamples)
    return {"bootstrap": result, "resampled": describe_draws(result, task.unit, saved=units is not None)}


def error_reduction(old: float, new: float) -> float:
    """Return the relative error reduction in percent, which the paper calls relative improvement."""
    return 100 * (new - old) / (100 - old) if old < 100 else 0.0


def markdown(rows: Sequence[ComparisonRow]) -> str:
    head = ["run", "data", "encoder", "ELMo", "seeds", "dev", "score", "absolute", "error reduction", "paper"]
    head += ["p", "resampled"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        fraction = "" if row.fraction == 1 else f" ({100 * row.fraction:g} %)"
        items = "" if row.items is None else f", {row.items:,} chosen items"
        cells = [
            row.run, f"{row.task}, {row.data}{fraction}{items}", row.encoder or "none", row.elmo, str(row.seeds),
            with_deviation(row.dev, row.dev_deviation), f"{row.metric} {with_deviation(row.score, row.deviation)}",
            "" if row.absolute is None else f"{row.absolute:+.2f}",
            "" if row.error_reduction is None else f"{row.error_reduction:.1f} %", row.paper,
            "" if row.bootstrap is None else f"{row.bootstrap.p:.4f}", row.resampled,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write(
    runs: Sequence[TaskRun], path: Path, *, resamples: int = RESAMPLES, items: ItemChoice | None = None
) -> list[Path]:
    """Write the table as Markdown and JSON, with plots of the layer weights and of the score by the amount of data."""
    rows = compare_runs(runs, resamples=resamples, items=items)
    write_text(path.with_suffix(".md"), markdown(rows))
    write_text(path.with_suffix(".json"), json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    written = [path.with_suffix(".md"), path.with_suffix(".json")]
    for ending, picture in (("", layers_picture(runs)), ("-curve", curve_picture(rows))):
        if picture:
            picture_path = path.with_name(f"{path.stem}{ending}.svg")
            write_text(picture_path, picture)
            written.append(picture_path)
    return written


def curve_picture(rows: Sequence[ComparisonRow]) -> str | None:
    """Draw the score by the fraction of the training data (Figure 1 of the paper), if the runs differ in it."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        name = f"{row.task}, {row.data}: {row.encoder or 'no encoder'}{f' ({row.elmo})' if row.elmo else ''}"
        points.setdefault(name, []).append((100 * row.fraction, row.score))
    if len({row.fraction for row in rows}) < 2:
        return None
    lines = [Curve(name, values) for name, values in points.items() if len(values) > 1]
    if not lines:
        return None
    return curves(lines, "training data in percent", " and ".join(dict.fromkeys(row.metric for row in rows)))


def with_deviation(mean: float, deviation: float | None) -> str:
    """Format a mean and, if there are several values, their standard deviation."""
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _deviation(scores: Sequence[float]) -> float | None:
    return statistics.stdev(scores) if len(scores) > 1 else None
