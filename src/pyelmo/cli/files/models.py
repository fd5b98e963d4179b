"""elmo models: the bundled models."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options

HELP = "List the bundled models, or print the model card of one."
EXAMPLE = "elmo models en"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="name of the model whose card is printed (default: list all models)"
    )
    options.add_json(parser, "print the list as JSON")


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import bundled

    if args.name is not None:
        print(bundled.card(args.name).rstrip("\n"))
        return
    models = bundled.models()
    if args.json:
        print(json.dumps(models, indent=1))
        return
    for model in models:
        print(
            f"{model['name']:8}  language {model['language']}  {model['bytes'] / 2**20:.1f} MiB  "
            f"{model['layers']} layers x {model['dim']}  {model['predicts_words']:,} words  {model['licence']}"
        )
