"""elmo task table1: all runs of a plan, several at a time, and the paper's Table 1 from their results."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say
from pyelmo.errors import InputError, PyelmoError

if TYPE_CHECKING:
    from pyelmo.experiments.jobs import FinishedJob
    from pyelmo.experiments.plans import RunSet
    from pyelmo.experiments.table1 import JobSettings, SeedRun

HELP = "Train all runs of a plan and write the paper's Table 1; the same command again resumes an interrupted plan."
EXAMPLE = "elmo task table1 plan.toml --data . -o out --workers 2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", nargs="?", default="table1", metavar="PLAN",
        help="TOML file with the plan (default: table1, which is bundled)",
    )  # fmt: skip
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with the files that the plan names")
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="folder for the runs, their logs and the table"
    )
    parser.add_argument(
        "--only", type=_names, default=[], metavar="NAME,...", help="runs, or sets of runs, to train (default: all)"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds of every run (default: as in the plan)")
    options.add_workers(parser, " that train runs; 0 only writes the table")
    options.add_threads(parser, otherwise="1 to train, all cores to embed")
    options.add_device(parser)
    parser.add_argument("--cache", metavar="DIR", help="folder for the vectors of frozen encoders (default: OUT/cache)")
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.experiments import table1
    from pyelmo.experiments.plans import choose, read_plan
    from pyelmo.tasks.harness.run import CACHE

    for name, minimum in {"workers": 0, "threads": 1, "seeds": 1}.items():
        options.check_at_least(f"--{name}", getattr(args, name), minimum)
    if not Path(args.data).is_dir():
        raise InputError(f"--data {args.data}: not a folder. Name the folder with the files of the plan")
    sets = read_plan(args.plan)
    if args.seeds:
        sets = [_with_seeds(runs, args.seeds) for runs in sets]
    output = Path(args.output).resolve()
    settings = table1.JobSettings(
        data=Path(args.data).resolve(), output=output, cache=Path(args.cache or output / CACHE).resolve(),
        device=options.choose_device(args.device), jobs=args.workers, threads=args.threads,
    )  # fmt: skip
    chosen = choose(sets, args.only)
    with resumable(args.output):
        failed = _make(chosen, settings, quiet=args.quiet) if args.workers else []
    for path in table1.write(sets, output):
        say(f"{path}: written")
    if failed:
        names = ", ".join(finished.job.name for finished in failed)
        raise PyelmoError(
            f"{len(failed)} jobs failed: {names}. See the logs in {output / table1.LOGS}, then run the same command "
            "again to resume"
        )


def _make(chosen: list[RunSet], settings: JobSettings, *, quiet: bool) -> list[FinishedJob]:
    from tqdm import tqdm

    from pyelmo.experiments import table1

    with tqdm(unit="job", disable=quiet, dynamic_ncols=True) as bar:

        def on_start(count: int) -> None:
            bar.reset(total=count)

        def on_finish(finished: FinishedJob, seed: SeedRun | None) -> None:
            bar.update()
            if finished.error is not None or not quiet:
                tqdm.write(_line(finished, seed, settings.output), file=sys.stderr)

        return table1.make_runs(chosen, settings, on_start=on_start, on_finish=on_finish)


def _line(finished: FinishedJob, seed: SeedRun | None, output: Path) -> str:
    """Return one line about a finished job: its score and time, or its error."""
    from pyelmo.parsing import read_json
    from pyelmo.tasks.harness.metrics import main_score
    from pyelmo.tasks.harness.task import find_task

    name = f"{seed.run.name} | seed {seed.number}" if seed else finished.job.name
    if finished.error is not None:
        return f"{name} | failed: {finished.error}"
    if seed is None:
        return f"{name} | {finished.seconds:.0f} s"
    result = read_json(seed.result_path(output))
    scored = "test" if "test" in result else "dev"
    metric = find_task(seed.run.task).metric.name
    return f"{name} | {scored} {metric} {main_score(result[scored]):.2f} | {finished.seconds:.0f} s"


def _with_seeds(runs: RunSet, count: int) -> RunSet:
    return replace(runs, runs=tuple(replace(run, options=replace(run.options, seeds=count)) for run in runs.runs))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]
