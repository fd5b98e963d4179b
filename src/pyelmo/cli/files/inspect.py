"""elmo inspect: what a checkpoint is."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pyelmo.cli.options import add_model_files

HELP = "say what a checkpoint is: format, language, sizes, parameters, layers, vocabulary"
EXAMPLE = "elmo inspect en --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", help="a folder, a file, a name in the box or a Hub id")
    add_model_files(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import resolve
    from pyelmo.formats.describe import describe

    facts = describe(resolve.read(args.source, options=args.options, vocab=args.vocab))
    if args.json:
        print(json.dumps(facts, indent=1))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for inner, detail in value.items():
                print(f"  {inner}: {_text(detail)}")
        else:
            print(f"{name}: {_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)
