"""The paper's Table 1 from the runs of a plan: the baseline of each set beside the same network with ELMo.

OUT/NAME                     a run (see experiment.py)
OUT/cache                    vectors of frozen encoders, one for all runs
OUT/logs/NAME-1.log          what the process of a seed said
OUT/table1.md, table1.json   Table 1, and all runs of each set
OUT/table1.svg               the learnt weights of the layers of its rows (the paper's Figure 2)
OUT/table1-SET-curve.svg     the score by the amount of data (Figure 1), where a set has several
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
from pyelmo.experiments.plans import PlannedRun, RunSet, check_files, check_made
from pyelmo.files import write_text
from pyelmo.tasks.compare import comparison
from pyelmo.tasks.compare.comparison import ComparisonRow, TaskRun
from pyelmo.tasks.harness.run import RESULT
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


@dataclass(frozen=True)
class SeedRun:
    """One training of a run."""

    run: PlannedRun
    number: int

    @property
    def name(self) -> str:
        return f"{self.run.name}-{self.number}"

    def result(self, output: Path) -> Path:
        return output / self.run.name / f"seed-{self.number}" / RESULT


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Where and how the processes run."""

    data: Path
    output: Path
    cache: Path
    device: str
    jobs: int
    threads: int
    program: tuple[str, ...] = (sys.executable, "-m", "pyelmo")


def make_runs(
    sets: Sequence[RunSet],
    setting: JobSettings,
    *,
    begin: Callable[[int], None] = lambda count: None,
    tell: Callable[[FinishedJob, SeedRun | None], None] = lambda ended, seed: None,
) -> list[FinishedJob]:
    """Train every seed that is not finished; gives those that failed. `begin` hears how many jobs there are."""
    runs = [run for each in sets for run in each.runs]
    check_files(runs, setting.data)
    for run in runs:
        check_made(run, setting.output)
    seeds = [SeedRun(run, number) for run in runs for number in range(1, run.options.seeds + 1)]
    wanted = {seed.name: seed for seed in seeds if not seed.result(setting.output).is_file()}
    jobs = plan_jobs(list(wanted.values()), setting)
    begin(len(jobs))

    threads = {name: str(setting.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    found = run_jobs(
        jobs, at_once=setting.jobs, folder=setting.data, environment=threads,
        tell=lambda each: tell(each, wanted.get(each.job.name)),
    )  # fmt: skip
    return [each for each in found if each.error is not None]


def plan_jobs(seeds: Sequence[SeedRun], setting: JobSettings) -> list[Job]:
    """A process for each seed, and before the first that needs vectors of an encoder one that only embeds them."""
    jobs: list[Job] = []
    embedding: dict[str | None, str | None] = {None: None}  # what vectors are read -> the job that embeds them
    for seed in seeds:
        words = (*setting.program, *seed.run.words(setting.output))
        words += ("--cache", str(setting.cache), "--device", setting.device)
        key = seed.run.vectors_key
        if key not in embedding:
            mark = setting.cache / f"embedded-{_stamp(seed.run, str(key), setting.data)}"
            embedding[key] = None if mark.exists() else f"vectors of {seed.run.encoder} for {seed.run.name}"
            if name := embedding[key]:
                log = setting.output / LOGS / f"vectors-{seed.run.name}.log"
                jobs.append(Job(name, (*words, "--seeds", "0"), log, mark=mark))
        log = setting.output / LOGS / f"{seed.name}.log"
        jobs.append(Job(seed.name, (*words, "--seeds", f"{seed.number}-{seed.number}"), log, embedding[key]))
    return jobs


def _stamp(run: PlannedRun, key: str, data: Path) -> str:
    """Stands for what was embedded: other files of the same names are embedded again."""
    paths = [file for name in run.data for file in find_task(run.task).data_files(data / name, _located(run, data))]
    state = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return hashlib.sha256(f"{key} {state}".encode()).hexdigest()[:12]


def _located(run: PlannedRun, data: Path) -> Any:
    """The data settings with the folder of documents as it is seen from here."""
    settings: Any = run.recipe.data
    folder = getattr(settings, "folder", None)
    return replace(settings, folder=str(data / folder)) if folder else settings


def finished(sets: Sequence[RunSet], output: Path) -> tuple[dict[str, TaskRun], list[str]]:
    """The runs that have results, by their names, and what is missing."""
    found: dict[str, TaskRun] = {}
    missing: list[str] = []
    for run in (run for each in sets for run in each.runs):
        seeds = [SeedRun(run, number) for number in range(1, run.options.seeds + 1)]
        lacking = [seed.number for seed in seeds if not seed.result(output).is_file()]
        missing += [f"{run.name} (seed {', '.join(map(str, lacking))})"] if lacking else []
        try:
            found[run.name] = comparison.read_run(output / run.name)
        except (NotFoundError, FormatError):
            if len(lacking) < len(seeds):
                raise
    return found, missing


def write(sets: Sequence[RunSet], output: Path, *, resamples: int = comparison.RESAMPLES) -> list[Path]:
    """Table 1 and the tables of all sets from the runs that are there."""
    found, missing = finished(sets, output)
    if not found:
        raise PyelmoError(f"{output}: no run of the plan has a finished seed, so there is no table")
    first, pages, all_rows, drawn, written = [], [], {}, [], []
    for each in sets:
        runs = [found[run.name] for run in each.runs if run.name in found]
        if not runs:
            continue
        rows = comparison.rows(runs, resamples=resamples)
        all_rows[each.name] = [asdict(row) for row in rows]
        first.append(_row(each, {row.run: row for row in rows}))
        page = f"## {each.name}\n\n{comparison.markdown(rows)}"
        if picture := comparison.curve_picture(rows):
            written.append(output / f"{NAME}-{each.name}-curve.svg")
            write_text(written[-1], picture)
            page += f"\n![the score by the amount of data]({written[-1].name})\n"
        pages.append(page)
        drawn += [found[each.row.name]] if each.row and each.row.name in found else []
    head = "# Table 1\n\n" + markdown(first)
    if picture := comparison.layers_picture(drawn):
        written.append(output / f"{NAME}.svg")
        write_text(written[-1], picture)
        head += f"\n![the learnt weights of the layers]({written[-1].name})\n"
    head += f"\nNot there yet: {'; '.join(missing)}.\n" if missing else ""
    write_text(output / f"{NAME}.md", "\n".join([head, *pages]))
    facts = {"table1": first, "sets": all_rows, "missing": missing}
    write_text(output / f"{NAME}.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return [output / f"{NAME}.md", output / f"{NAME}.json", *written]


def _row(each: RunSet, rows: dict[str, ComparisonRow]) -> dict[str, Any]:
    """A row of Table 1. What is not there yet is None."""
    task = find_task(each.head.task)
    base = rows.get(each.runs[0].name)
    elmo = rows.get(each.row.name) if each.row else None
    compared = base is not None and elmo is not None and elmo.absolute is not None
    paper = dict(zip(("baseline", "elmo"), PAPER[task.name], strict=True))
    return {
        "set": each.name,
        "task": task.name,
        "data": each.head.about or Path(each.head.data[-1]).name,
        "metric": task.metric.name,
        "part": next((row.part for row in (base, elmo) if row), None),
        "baseline": _score(base),
        "elmo": _score(elmo),
        "absolute": elmo.absolute if elmo and compared else None,
        "relative": elmo.error_reduction if elmo and compared else None,
        "p": elmo.bootstrap.p if elmo and elmo.bootstrap and compared else None,
        "paper": {"data": task.paper_dataset, **paper, "relative": task.paper_reduction} if each.head.paper else None,
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
            *("" if score is None else comparison.number(score["score"], score["deviation"]) for score in scores),
            *("" if row[name] is None else form.format(row[name]) for name, form in _FORMS.items()),
            *((paper["data"], paper["baseline"], paper["elmo"], f"{paper['relative']:g} %") if paper else ("",) * 4),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


_FORMS = {"absolute": "{:+.2f}", "relative": "{:.1f} %", "p": "{:.4f}"}
