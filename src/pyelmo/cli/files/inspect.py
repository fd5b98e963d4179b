"""elmo inspect: a description of a checkpoint."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pyelmo.cli import options

HELP = "Describe a checkpoint: format, language, sizes, parameters, layers and vocabulary."
EXAMPLE = "elmo inspect en --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="MODEL", help=options.MODEL)
    options.add_model_files(parser)
    options.add_json(parser)


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
