"""Table 1 of the paper from the runs of a plan: the baseline of each set beside the same network with ELMo.

OUT/NAME                     a run (see tasks/harness/run.py)
OUT/cache                    vectors of frozen encoders, shared by all runs
OUT/logs/NAME-1.log          the log of the process that trained a seed
OUT/table1.md, table1.json   Table 1, and all runs of each set
OUT/table1.svg               the learnt layer weights of its runs (Figure 2 of the paper)
OUT/table1-SET-curve.svg     the score by the amount of training data (Figure 1), if a set has several fractions
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError, NotFoundError, PyelmoError
from pyelmo.experiments.jobs import FinishedJob, Job, run_jobs
from pyelmo.experiments.plans import PlannedRun, RunSet, check_existing, check_files
from pyelmo.files import write_text
from pyelmo.tasks.compare import comparison
from pyelmo.tasks.compare.bootstrap import RESAMPLES
from pyelmo.tasks.compare.comparison import ComparisonRow, with_deviation
from pyelmo.tasks.harness.run_folder import RESULT, TaskRun, join_folds, layers_picture, read_run
from pyelmo.tasks.harness.task import find_task

LOGS, NAME = "logs", "table1"
# The paper's baseline and its score with ELMo. Each task holds the error reduction and the data set.
PAPER = {
    "qa": ("81.1", "85.8"),
    "nli": ("88.0", "88.7 ± 0.17"),
    "srl": ("81.4", "84.6"),
    "coref": ("67.2", "70.4"),
    "ner": ("90.15", "92.22 ± 0.10"),
    "sentiment": ("51.4", "54.7 ± 0.5"),
}
_HEAD = (
    "task", "data here", "metric", "seeds", "baseline", "with ELMo", "absolute", "relative", "p", "paper's data",
    "baseline", "with ELMo", "relative",
)  # fmt: skip
_FORMATS = {"absolute": "{:+.2f}", "relative": "{:.1f} %", "p": "{:.4f}"}


@dataclass(frozen=True)
class SeedRun:
    """One seed of a run."""

    run: PlannedRun
    number: int

    @property
    def name(self) -> str:
        return f"{self.run.name}-{self.number}"

    def result_path(self, output: Path) -> Path:
        return output / self.run.name / f"seed-{self.number}" / RESULT


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The folders, device and number of the processes."""

    data: Path
    output: Path
    cache: Path
    device: str
    jobs: int
    threads: int | None = None  # of each process; None: the default of `elmo task train`
    program: tuple[str, ...] = (sys.executable, "-m", "pyelmo")


def make_runs(
    sets: Sequence[RunSet],
    settings: JobSettings,
    *,
    on_start: Callable[[int], None] = lambda jobs: None,
    on_finish: Callable[[FinishedJob, SeedRun | None], None] = lambda finished, seed: None,
) -> list[FinishedJob]:
    """Train every seed that is not finished, and return the jobs that failed.

    `on_start` is called with the number of jobs. `on_finish` is called after each job, with its seed if it has one.
    """
    runs = [run for run_set in sets for run in run_set.runs]
    check_files(runs, settings.data)
    for run in runs:
        check_existing(run, settings.output)
    seeds = {seed.name: seed for run in runs for seed in _seeds(run) if not seed.result_path(settings.output).is_file()}
    jobs = plan_jobs(list(seeds.values()), settings)
    on_start(len(jobs))
    finished = run_jobs(
        jobs, at_once=settings.jobs, folder=settings.data,
        on_finish=lambda result: on_finish(result, seeds.get(result.job.name)),
    )  # fmt: skip
    return [result for result in finished if result.error is not None]


def _seeds(run: PlannedRun) -> list[SeedRun]:
    return [SeedRun(run, number) for number in range(1, run.options.seeds + 1)]


def plan_jobs(seeds: Sequence[SeedRun], settings: JobSettings) -> list[Job]:
    """Return a job for each seed, and before the first seed that needs the vectors of an encoder a job that embeds."""
    jobs: list[Job] = []
    embedding_jobs: dict[str | None, str | None] = {None: None}  # vectors key -> the name of the job that embeds them
    for seed in seeds:
        command = (*settings.program, *seed.run.arguments(settings.output))
        command += ("--cache", str(settings.cache), "--device", settings.device)
        command += () if settings.threads is None else ("--threads", str(settings.threads))
        key = seed.run.vectors_key
        if key not in embedding_jobs:
            mark = settings.cache / f"embedded-{_stamp(seed.run, str(key), settings.data)}"
            embedding_jobs[key] = None if mark.exists() else f"vectors of {seed.run.encoder} for {seed.run.name}"
            if name := embedding_jobs[key]:
                log = settings.output / LOGS / f"vectors-{seed.run.name}.log"
                jobs.append(Job(name, (*command, "--seeds", "0"), log, mark=mark))
        log = settings.output / LOGS / f"{seed.name}.log"
        jobs.append(Job(seed.name, (*command, "--seeds", f"{seed.number}-{seed.number}"), log, embedding_jobs[key]))
    return jobs


def _stamp(run: PlannedRun, key: str, data: Path) -> str:
    """Return a hash of what is embedded. It changes with the size or the time of a data file."""
    paths = [path for name in run.data for path in find_task(run.task).data_files(data / name, located_data(run, data))]
    state = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return hashlib.sha256(f"{key} {state}".encode()).hexdigest()[:12]


def located_data(run: PlannedRun, data: Path) -> Any:
    """Return the data settings with the path of the document folder as this process sees it."""
    settings: Any = run.recipe.data
    folder = getattr(settings, "folder", None)
    return replace(settings, folder=str(data / folder)) if folder else settings


def read_finished(sets: Sequence[RunSet], output: Path) -> tuple[dict[str, TaskRun], list[str]]:
    """Return the runs that have results, by the name of their row, and descriptions of the seeds that are missing.

    The folds of a run are one run, with the seeds that all of them have.
    """
    finished: dict[str, TaskRun] = {}
    missing: list[str] = []
    for run in (run for run_set in sets for run in run_set.runs):
        seeds = _seeds(run)
        unfinished = [seed.number for seed in seeds if not seed.result_path(output).is_file()]
        missing += [f"{run.name} (seed {', '.join(map(str, unfinished))})"] if unfinished else []
        try:
            finished[run.name] = read_run(output / run.name)
        except (NotFoundError, FormatError):
            if len(unfinished) < len(seeds):
                raise
    for name, names in _folds(sets).items():
        folds = [finished.pop(fold) for fold in names if fold in finished]
        if len(folds) == len(names) and (joined := join_folds(folds, output / name)):
            finished[name] = joined
    return finished, missing


def _folds(sets: Sequence[RunSet]) -> dict[str, list[str]]:
    """Return the names of the folds of each run that has them."""
    names: dict[str, list[str]] = {}
    for run in (run for run_set in sets for run in run_set.runs if run.fold is not None):
        names.setdefault(run.row_name, []).append(run.name)
    return names


def write(sets: Sequence[RunSet], output: Path, *, resamples: int = RESAMPLES) -> list[Path]:
    """Write Table 1 and the tables of all sets from the runs that have results."""
    finished, missing = read_finished(sets, output)
    if not finished:
        raise PyelmoError(f"{output}: no run of the plan has a finished seed, so there is nothing to write")
    table, pages, set_rows, shown, written = [], [], {}, [], []
    for run_set in sets:
        names = dict.fromkeys(run.row_name for run in run_set.runs)
        runs = [finished[name] for name in names if name in finished]
        if not runs:
            continue
        rows = comparison.compare_runs(runs, resamples=resamples)
        set_rows[run_set.name] = [asdict(row) for row in rows]
        table.append(_row(run_set, {row.run: row for row in rows}))
        page = f"## {run_set.name}\n\n{comparison.markdown(rows)}"
        if picture := comparison.curve_picture(rows):
            written.append(output / f"{NAME}-{run_set.name}-curve.svg")
            write_text(written[-1], picture)
            page += f"\n![the score by the amount of data]({written[-1].name})\n"
        pages.append(page)
        shown += [finished[run_set.row.row_name]] if run_set.row and run_set.row.row_name in finished else []
    first_page = "# Table 1\n\n" + markdown(table)
    if picture := layers_picture(shown):
        written.append(output / f"{NAME}.svg")
        write_text(written[-1], picture)
        first_page += f"\n![the learnt layer weights]({written[-1].name})\n"
    first_page += f"\nNot finished yet: {'; '.join(missing)}.\n" if missing else ""
    write_text(output / f"{NAME}.md", "\n".join([first_page, *pages]))
    facts = {"table1": table, "sets": set_rows, "missing": missing}
    write_text(output / f"{NAME}.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return [output / f"{NAME}.md", output / f"{NAME}.json", *written]


def _row(run_set: RunSet, rows: dict[str, ComparisonRow]) -> dict[str, Any]:
    """Return a row of Table 1, with None for results that are missing."""
    task, info = find_task(run_set.info.task), run_set.info
    baseline = rows.get(run_set.runs[0].row_name)
    elmo = rows.get(run_set.row.row_name) if run_set.row else None
    compared = elmo if baseline and elmo and elmo.absolute is not None else None
    paper = dict(zip(("baseline", "elmo"), PAPER[task.name], strict=True))
    return {
        "set": run_set.name,
        "task": task.name,
        "data": info.about or Path(info.data[-1]).name,
        "metric": task.metric.name,
        "part": next((row.part for row in (baseline, elmo) if row), None),
        "baseline": _score(baseline),
        "elmo": _score(elmo),
        "absolute": compared.absolute if compared else None,
        "relative": compared.error_reduction if compared else None,
        "p": compared.bootstrap.p if compared and compared.bootstrap else None,
        "paper": {"data": task.paper_dataset, **paper, "relative": task.paper_reduction} if info.paper else None,
    }


def _score(row: ComparisonRow | None) -> dict[str, Any] | None:
    return {"run": row.run, "score": row.score, "deviation": row.deviation, "seeds": row.seeds} if row else None


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    for row in rows:
        scores = [row["baseline"], row["elmo"]]
        paper = row["paper"]
        seeds = " and ".join(dict.fromkeys(str(score["seeds"]) for score in scores if score))
        cells = [
            row["task"], f"{row['data']}, {row['part']}", row["metric"], seeds,
            *("" if score is None else with_deviation(score["score"], score["deviation"]) for score in scores),
            *("" if row[name] is None else pattern.format(row[name]) for name, pattern in _FORMATS.items()),
            *((paper["data"], paper["baseline"], paper["elmo"], f"{paper['relative']:g} %") if paper else ("",) * 4),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
