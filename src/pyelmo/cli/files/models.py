"""elmo models: what is in the box."""

from __future__ import annotations

import argparse
import json

HELP = "list the models that come with pyelmo, or print the card of one"
EXAMPLE = "elmo models en"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this model's card")
    parser.add_argument("--json", action="store_true", help="the list, for programs")


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import bundled

    if args.name is not None:
        print(bundled.card(args.name).rstrip("\n"))
        return
    found = bundled.models()
    if args.json:
        print(json.dumps(found, indent=1))
        return
    for model in found:
        print(
            f"{model['name']:8}  language {model['language']}  {model['bytes'] / 2**20:.1f} MiB  "
            f"{model['layers']} layers x {model['dim']}  {model['predicts_words']:,} words  {model['licence']}"
        )
