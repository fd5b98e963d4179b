"""elmo task table1: every run of a plan, several processes at once, and the paper's Table 1 from them."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli.train.pretrain import check_device
from pyelmo.errors import InputError, PyelmoError

if TYPE_CHECKING:
    from pyelmo.experiments.jobs import FinishedJob
    from pyelmo.experiments.plans import RunSet
    from pyelmo.experiments.table1 import JobSettings, SeedRun

HELP = "make all runs of a plan and the paper's Table 1 of them; the same command again goes on where it stopped"
EXAMPLE = "elmo task table1 plan.toml --data . -o out --jobs 2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", nargs="?", default="table1", metavar="PLAN", help="a TOML file (default: table1, which is in the box)"
    )
    parser.add_argument("--data", required=True, metavar="DIR", help="the folder with the files that the plan names")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="a folder of runs, logs and the table")
    parser.add_argument("--only", type=_names, default=[], metavar="NAME,...", help="runs, or sets of them")
    parser.add_argument("--seeds", type=int, metavar="N", help="of every run (default: as the plan has it)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes at once; 0 only writes the table (default: 1)"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="of each process (default: cores by jobs)")
    parser.add_argument("--device", help="cpu or cuda, which the processes share (default: cpu)")
    parser.add_argument("--cache", metavar="DIR", help="for vectors of frozen encoders (default: OUT/cache)")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from pyelmo.experiments import table1
    from pyelmo.experiments.plans import choose, read_plan
    from pyelmo.tasks.harness.run import CACHE

    for name, least in {"jobs": 0, "threads": 1, "seeds": 1}.items():
        if getattr(args, name) is not None and getattr(args, name) < least:
            raise InputError(f"--{name} {getattr(args, name)}: must be {least} or more")
    if not Path(args.data).is_dir():
        raise InputError(f"--data {args.data}: is no folder")
    sets = read_plan(args.plan)
    if args.seeds:
        sets = [_with_seeds(each, args.seeds) for each in sets]
    output, threads = Path(args.output).resolve(), args.threads or max(1, _cores() // max(args.jobs, 1))
    setting = table1.JobSettings(
        data=Path(args.data).resolve(), output=output, cache=Path(args.cache or output / CACHE).resolve(),
        device=check_device(args.device) or "cpu", jobs=args.jobs, threads=threads,
    )  # fmt: skip
    chosen = choose(sets, args.only)
    try:
        failed = _make(chosen, setting, quiet=args.quiet) if args.jobs else []
    except KeyboardInterrupt as stop:
        raise type(stop)(f"the same command goes on with {args.output}") from stop
    for path in table1.write(sets, output):
        print(f"{path}: written", file=sys.stderr)
    if failed:
        names = ", ".join(each.job.name for each in failed)
        raise PyelmoError(f"{len(failed)} jobs failed: {names}. See {output / table1.LOGS}; the same command goes on.")


def _make(chosen: list[RunSet], setting: JobSettings, *, quiet: bool) -> list[FinishedJob]:
    from tqdm import tqdm

    from pyelmo.experiments import table1

    with tqdm(unit="job", disable=quiet, dynamic_ncols=True) as bar:

        def begin(count: int) -> None:
            bar.reset(total=count)

        def tell(ended: FinishedJob, seed: SeedRun | None) -> None:
            bar.update()
            if ended.error is not None or not quiet:
                tqdm.write(_line(ended, seed, setting.output), file=sys.stderr)

        return table1.make_runs(chosen, setting, begin=begin, tell=tell)


def _line(ended: FinishedJob, seed: SeedRun | None, output: Path) -> str:
    """What is known of a job that has ended."""
    from pyelmo.formats.pretrained import read_json
    from pyelmo.tasks.harness.metrics import main_score
    from pyelmo.tasks.harness.task import find_task

    name = f"{seed.run.name} | seed {seed.number}" if seed else ended.job.name
    if ended.error is not None:
        return f"{name} | failed: {ended.error}"
    if seed is None:
        return f"{name} | {ended.seconds:.0f} s"
    result = read_json(seed.result(output))
    part = "test" if "test" in result else "dev"
    metric = find_task(seed.run.task).metric.name
    return f"{name} | {part} {metric} {main_score(result[part]):.2f} | {ended.seconds:.0f} s"


def _with_seeds(each: RunSet, count: int) -> RunSet:
    return replace(each, runs=tuple(replace(run, options=replace(run.options, seeds=count)) for run in each.runs))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
