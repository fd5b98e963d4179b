"""Runs side by side: what an encoder brings over the first run of the same task and data, and how sure that is.

S seeds, N examples, C numbers that each adds, R resamples.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float64Array
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.files import write_text
from pyelmo.formats.pretrained import read_json
from pyelmo.plots import Curve, Shares, curves, share_grid
from pyelmo.tasks.harness.metrics import Metric, main_score
from pyelmo.tasks.harness.task import find_task

RESAMPLES = 10_000
AT_ONCE = 1_000  # resamples drawn together: bounds memory


@dataclass(frozen=True)
class TaskRun:
    """A run as `experiment.train` left it, with the results of the seeds that are done."""

    folder: Path
    facts: dict[str, Any]
    results: list[dict[str, Any]]

    @property
    def part(self) -> str:
        """The part whose score counts: dev only where there is no test."""
        return "test" if "test" in self.facts["data"] else "dev"

    def scores(self, part: str) -> list[float]:
        return [main_score(result[part]) for result in self.results]

    def counts(self) -> Float64Array:  # (S, N, C)
        """What every example adds to the score; runs of accuracy once counted a third number, which says nothing."""
        paths = [self.folder / f"seed-{result['seed']}" / f"answers-{self.part}.jsonl" for result in self.results]
        numbers = len(find_task(self.facts["task"]).metric.counts)
        return np.stack([_counts(path)[:, :numbers] for path in paths])

    @property
    def group(self) -> tuple[Any, ...]:
        """What two runs must share to be compared."""
        return self.facts["task"], self.facts["fraction"], json.dumps(self.facts["data"][self.part])

    @property
    def elmo(self) -> str:
        """How the encoder came in, in words."""
        if self.facts["encoder"] is None:
            return ""
        elmo = self.facts["recipe"]["elmo"]
        layers = f"mix, lambda {elmo['penalty']:g}" if elmo["layers"] == "mix" else elmo["layers"]
        return f"{elmo['where']}; {layers}{'; tuned' if elmo['tune'] else ''}"


@dataclass(frozen=True)
class BootstrapResult:
    """A paired bootstrap of the difference between two runs."""

    p: float  # the share of resamples in which the second is not better
    low: float  # of the difference, 95 %
    high: float


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """A run in the table; the last values are against the group's first run."""

    run: str
    task: str
    metric: str
    part: str
    data: str
    fraction: float
    encoder: str | None
    elmo: str
    seeds: int
    dev: float
    dev_deviation: float | None
    score: float
    deviation: float | None
    absolute: float | None = None
    error_reduction: float | None = None  # in percent
    paper: str = ""
    bootstrap: BootstrapResult | None = None


def read_run(folder: str | Path) -> TaskRun:
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        raise NotFoundError(f"{folder}: no run.json in it; name the folder of a run that elmo task train made")
    facts = read_json(folder / "run.json")
    results = [read_json(path) for path in folder.glob("seed-*/result.json")]
    if not results:
        raise FormatError(f"{folder}: no seed of this run is finished; run its command again")
    return TaskRun(folder, facts, sorted(results, key=lambda result: int(result["seed"])))


def rows(runs: Sequence[TaskRun], *, resamples: int = RESAMPLES) -> list[ComparisonRow]:
    """A row for each run, compared with the first run of its task, data and fraction."""
    firsts: dict[tuple[Any, ...], TaskRun] = {}
    found = []
    for run in runs:
        base = firsts.setdefault(run.group, run)
        task, part, scores = find_task(run.facts["task"]), run.part, run.scores(run.part)
        new, old = statistics.fmean(scores), statistics.fmean(base.scores(part))
        compared: dict[str, Any] = {}
        if base is not run:
            compared = {
                "absolute": new - old, "error_reduction": error_reduction(old, new),
                "paper": f"{task.paper_reduction:g} ({task.paper_dataset})",
                "bootstrap": bootstrap(base.counts(), run.counts(), task.metric, resamples=resamples),
            }  # fmt: skip
        found.append(ComparisonRow(
            run=run.folder.name, task=task.name, metric=task.metric.name, part=part,
            data=run.facts["data"][part]["file"], fraction=run.facts["fraction"],
            encoder=run.facts["encoder_name"], elmo=run.elmo, seeds=len(scores),
            dev=statistics.fmean(run.scores("dev")), dev_deviation=_deviation(run.scores("dev")), score=new,
            deviation=_deviation(scores), **compared,
        ))  # fmt: skip
    return found


def error_reduction(old: float, new: float) -> float:
    """The paper's relative improvement: the share of errors that went away, in percent."""
    return 100 * (new - old) / (100 - old) if old < 100 else 0.0


def bootstrap(
    first: Float64Array, second: Float64Array, metric: Metric, *, resamples: int = RESAMPLES, seed: int = 0
) -> BootstrapResult:  # (S, N, C) each
    """Draw examples with replacement, the same for both runs and all seeds, and compare the means over seeds."""
    examples = first.shape[1]
    if second.shape[1] != examples:
        raise InputError(f"the runs answered {examples} and {second.shape[1]} examples; they must be the same")
    random = np.random.default_rng(seed)
    differences = []
    for start in range(0, resamples, AT_ONCE):
        times = random.multinomial(examples, np.full(examples, 1 / examples), min(AT_ONCE, resamples - start))
        weights = times.astype(np.float64)  # (R, N)
        differences.append(_means(weights, second, metric) - _means(weights, first, metric))
    drawn = np.concatenate(differences)
    low, high = np.percentile(drawn, [2.5, 97.5])
    # Rounding must not decide between equals; and no number of resamples proves that p is 0.
    worse = int((drawn <= 1e-9).sum())
    return BootstrapResult((worse + 1) / (resamples + 1), float(low), float(high))


def _means(weights: Float64Array, counts: Float64Array, metric: Metric) -> Float64Array:  # (R, N), (S, N, C) -> (R,)
    sums = np.einsum("rn,snc->src", weights, counts, optimize=True)
    means: Float64Array = metric.main(sums).mean(0)
    return means


def markdown(found: Sequence[ComparisonRow]) -> str:
    head = ["run", "data", "encoder", "ELMo", "seeds", "dev", "score", "absolute", "errors fewer by", "paper", "p"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in found:
        share = "" if row.fraction == 1 else f" ({100 * row.fraction:g} %)"
        cells = [
            row.run, f"{row.task}, {row.data}{share}", row.encoder or "none", row.elmo, str(row.seeds),
            number(row.dev, row.dev_deviation), f"{row.metric} {number(row.score, row.deviation)}",
            "" if row.absolute is None else f"{row.absolute:+.2f}",
            "" if row.error_reduction is None else f"{row.error_reduction:.1f} %", row.paper,
            "" if row.bootstrap is None else f"{row.bootstrap.p:.4f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write(runs: Sequence[TaskRun], path: Path, *, resamples: int = RESAMPLES) -> list[Path]:
    """The table as Markdown, as JSON beside it, and pictures of learnt mixes and of the amount of data."""
    found = rows(runs, resamples=resamples)
    write_text(path.with_suffix(".md"), markdown(found))
    write_text(path.with_suffix(".json"), json.dumps([asdict(row) for row in found], indent=1) + "\n")
    written = [path.with_suffix(".md"), path.with_suffix(".json")]
    for end, picture in (("", layers_picture(runs)), ("-curve", curve_picture(found))):
        if picture:
            place = path.with_name(f"{path.stem}{end}.svg")
            write_text(place, picture)
            written.append(place)
    return written


def layers_picture(runs: Sequence[TaskRun]) -> str | None:
    """The paper's Figure 2: the share of each layer in each learnt mix, mean over the seeds."""
    drawn = []
    for run in runs:
        for place in run.results[0]["layers"]:
            shares = [result["layers"][place]["weights"] for result in run.results]
            if len(shares[0]) > 1:
                means = np.mean(shares, axis=0).tolist()
                drawn.append(Shares(f"{run.folder.name}: {place} of {run.facts['task']}", means))
    return share_grid(drawn) if drawn else None


def curve_picture(found: Sequence[ComparisonRow]) -> str | None:
    """The paper's Figure 1: the score by the share of training data, where runs differ in it."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in found:
        name = f"{row.task}, {row.data}: {row.encoder or 'no encoder'}{f' ({row.elmo})' if row.elmo else ''}"
        lines.setdefault(name, []).append((100 * row.fraction, row.score))
    if len({row.fraction for row in found}) < 2:
        return None
    drawn = [Curve(name, points) for name, points in lines.items() if len(points) > 1]
    if not drawn:
        return None
    return curves(drawn, "training data in percent", " and ".join(dict.fromkeys(row.metric for row in found)))


def number(mean: float, deviation: float | None) -> str:
    """A mean and, where there are several values, their deviation."""
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _deviation(scores: Sequence[float]) -> float | None:
    return statistics.stdev(scores) if len(scores) > 1 else None


def _counts(path: Path) -> Float64Array:  # (N, C)
    try:
        found = np.array([json.loads(line)["counts"] for line in path.read_text("utf-8").splitlines()], np.float64)
        if found.ndim != 2:
            raise ValueError("no answer in it")
        return found
    except FileNotFoundError:
        raise NotFoundError(f"{path}: not found; run the command of this run again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: not the answers of a run ({error})") from error
