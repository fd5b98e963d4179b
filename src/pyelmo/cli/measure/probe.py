"""elmo probe: what the vectors of encoders know, layer by layer."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.errors import InputError, NotFoundError, OutputError

if TYPE_CHECKING:
    from pyelmo.probes.figures import Measurement

HELP = "measure what the vectors of encoders know, layer by layer, and write a report"
EXAMPLE = "elmo probe senses --encoders LM -o report/"
PROBES = ("wsd", "pos", "wic", "scws", "senses", "typos")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("probe", choices=("all", *PROBES), help="all: those of the language whose data is found")
    parser.add_argument(
        "--encoders", default="en", metavar="NAME,NAME,...",
        help="a model as for elmo embed, vectors.txt, cove:WEIGHTS+VECTORS, transformers:ID; X=NAME calls it X "
        "(default: en)",
    )  # fmt: skip
    parser.add_argument("--language", choices=("en", "ko"), default="en", help="of the labelled sets (default: en)")
    parser.add_argument("--data", type=Path, nargs="+", default=[], metavar="DIR", help="where labelled sets are")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="a folder for report.html and figures.json; a stopped run goes on there. Without: tables on stdout",
    )  # fmt: skip
    parser.add_argument("--precision", choices=("float32", "int8"), default="float32", help="of ELMo models on a CPU")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, ... (default: cpu)")
    parser.add_argument("--no-control", action="store_true", help="pos without its control task, in half the time")
    parser.add_argument("--seed", type=int, default=0, help="of the misspellings (default: 0)")
    parser.add_argument("--force", action="store_true", help="measure again what the folder has already")
    parser.add_argument("--json", action="store_true", help="the figures on stdout, for programs")


def run(args: argparse.Namespace) -> None:
    import tempfile

    from pyelmo.encoders import open_encoders
    from pyelmo.probes import report
    from pyelmo.probes.figures import begin, measure
    from pyelmo.provenance import plain_command, versions

    for folder in args.data:
        if not folder.is_dir():
            raise NotFoundError(f"{folder}: not a folder")
    if args.output is not None and args.output.exists() and not args.output.is_dir():
        raise OutputError(f"{args.output}: is a file; name a folder for the report")
    # The encoders are held by the plans alone, so that one whose figures are done goes before the next is read.
    plans, skipped = planned(
        args, open_encoders(args.encoders.split(","), precision=args.precision, device=args.device)
    )
    with tempfile.TemporaryDirectory() as temporary:
        place = args.output or Path(temporary)
        origin = {"command": plain_command("elmo", ["probe", *told(args)]), "made": versions()}
        figures, about = place / report.FIGURES, {"language": args.language}
        results, _ = begin([each for plan in plans for each in plan], figures, about, force=args.force)
        for plan in plans:
            try:
                results = measure(plan, figures, about, origin=origin, force=args.force, tell=say)
            except KeyboardInterrupt as stop:
                if args.output is None:
                    raise
                raise type(stop)(f"the same command goes on with {args.output}") from stop
            plan.clear()
        if args.output is not None:
            say(f"{report.write_report(place, results, skipped)}: written")
    print(json.dumps(results, indent=1, ensure_ascii=False) if args.json else report.markdown(results["figures"]))


def say(line: str) -> None:
    print(line, file=sys.stderr)


def planned(args: argparse.Namespace, encoders: list[Any]) -> tuple[list[list[Measurement]], list[str]]:
    """What is to be measured of each encoder, and what cannot be because its data is missing."""
    from pyelmo.probes import suite

    wanted = suite.PROBES[args.language] if args.probe == "all" else (args.probe,)
    plans: list[list[Measurement]] = []
    skipped: list[str] = []
    for encoder in encoders:
        plan: list[Measurement] = []
        for probe in wanted:
            try:
                found = suite.plan(
                    probe, encoder, args.language, args.data, control=not args.no_control, seed=args.seed
                )
            except NotFoundError as error:
                if args.probe != "all":
                    raise
                skipped.append(f"{probe}: {error}")
                continue
            plan += [dataclasses.replace(each, key=f"{encoder.name}: {each.key}") for each in found]
        plans.append(plan)
    if not any(plans):
        raise InputError("nothing can be measured: " + "; ".join(dict.fromkeys(skipped)))
    skipped = list(dict.fromkeys(skipped))
    for reason in skipped:
        say(f"left out: {reason}")
    return plans, skipped


def told(args: argparse.Namespace) -> list[str]:
    """The command's arguments as they count for a figure."""
    words = [args.probe, "--encoders", args.encoders, "--language", args.language]
    words += ["--data", *map(str, args.data)] if args.data else []
    words += ["--precision", args.precision] if args.precision != "float32" else []
    words += ["--no-control"] if args.no_control else []
    return words + (["-o", str(args.output)] if args.output else [])
