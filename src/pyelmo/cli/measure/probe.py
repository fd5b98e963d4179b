"""elmo probe: what each layer of an encoder encodes."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say
from pyelmo.errors import InputError, NotFoundError, OutputError

if TYPE_CHECKING:
    from pyelmo.probes.figures import Measurement

HELP = "Measure what the vectors of encoders encode, layer by layer, and write a report."
EXAMPLE = "elmo probe senses --encoders en -o report/"
PROBES = ("wsd", "pos", "wic", "scws", "senses", "phrases", "typos")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "probe", metavar="PROBE", choices=("all", *PROBES),
        help=f"probe to run: {', '.join(PROBES)}, or all of them that the language and the data sets allow",
    )  # fmt: skip
    parser.add_argument(
        "--encoders", default="en", metavar="ENCODER,...",
        help=f"encoders to measure, each {options.ENCODER}; NAME=ENCODER sets the name in the report (default: en)",
    )  # fmt: skip
    parser.add_argument(
        "--language", metavar="LANG", choices=("en", "ko"), default="en",
        help="language of the data sets: en or ko (default: en)",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, nargs="+", default=[], metavar="DIR", help="folders with the data sets (default: none)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="folder for report.html and figures.json; a second run resumes it (default: only print the tables)",
    )  # fmt: skip
    options.add_precision(parser, ("float32", "int8"))
    options.add_device(parser)
    options.add_threads(parser)
    parser.add_argument(
        "--no-control", action="store_true", help="skip the control task of the probe pos, which takes half its time"
    )
    options.add_seed(parser, default=0)
    options.add_force(parser, "measure again what is already in the report")
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.encoders import open_encoders
    from pyelmo.probes import report
    from pyelmo.probes.figures import begin, measure
    from pyelmo.provenance import plain_command, versions

    for folder in args.data:
        if not folder.is_dir():
            raise NotFoundError(f"--data {folder}: not a folder")
    if args.output is not None and args.output.exists() and not args.output.is_dir():
        raise OutputError(f"{args.output}: is a file. Name a folder for the report")
    options.set_threads(args.threads)
    device = options.choose_device(args.device, args.precision)
    # Only the plans refer to the encoders, so that each one is freed once its plan has been cleared.
    plans, skipped = _make_plans(args, open_encoders(args.encoders.split(","), precision=args.precision, device=device))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.output or Path(temporary)
        origin = {"command": plain_command("elmo", ["probe", *_result_arguments(args)]), "made": versions()}
        figures, about = folder / report.FIGURES, {"language": args.language}
        results, _ = begin([step for plan in plans for step in plan], figures, about, force=args.force)
        with resumable(args.output) if args.output else contextlib.nullcontext():
            for plan in plans:
                results = measure(plan, figures, about, origin=origin, force=args.force, log=say)
                plan.clear()
        if args.output is not None:
            say(f"{report.write_report(folder, results, skipped)}: written")
    print(json.dumps(results, indent=1, ensure_ascii=False) if args.json else report.markdown(results["figures"]))


def _make_plans(args: argparse.Namespace, encoders: list[Any]) -> tuple[list[list[Measurement]], list[str]]:
    """Return the measurements of each encoder, and why others have to be skipped: their data sets are missing."""
    from pyelmo.probes import suite

    probes = suite.PROBES[args.language] if args.probe == "all" else (args.probe,)
    plans: list[list[Measurement]] = []
    skipped: dict[str, None] = {}  # in order, each reason once
    for encoder in encoders:
        plan: list[Measurement] = []
        for probe in probes:
            try:
                steps = suite.plan(
                    probe, encoder, args.language, args.data, control=not args.no_control, seed=args.seed
                )
            except NotFoundError as error:
                if args.probe != "all":
                    raise
                skipped[f"{probe}: {error}"] = None
                continue
            plan += [dataclasses.replace(step, key=f"{encoder.name}: {step.key}") for step in steps]
        plans.append(plan)
    if not any(plans):
        raise InputError("no probe can run: " + "; ".join(skipped))
    for reason in skipped:
        say(f"skipped: {reason}")
    return plans, list(skipped)


def _result_arguments(args: argparse.Namespace) -> list[str]:
    """Return the arguments that a result depends on."""
    words = [args.probe, "--encoders", args.encoders, "--language", args.language]
    words += ["--data", *map(str, args.data)] if args.data else []
    words += ["--precision", args.precision] if args.precision != "float32" else []
    words += ["--no-control"] if args.no_control else []
    return words + (["-o", str(args.output)] if args.output else [])
