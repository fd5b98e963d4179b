"""elmo push: upload a model with its card to the Hugging Face Hub."""

from __future__ import annotations

import argparse

from pyelmo.cli import options

HELP = "Upload a model with a model card to the Hugging Face Hub, from where every command reads it as user/name."
EXAMPLE = "elmo push my-model user/my-model --private"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="MODEL", help=options.MODEL)
    parser.add_argument("hub_id", metavar="USER/NAME", help="repository; it is created if it does not exist")
    parser.add_argument("--private", action="store_true", help="make a new repository private (default: public)")
    parser.add_argument(
        "--revision", metavar="BRANCH", help="branch to upload to; it is created if it does not exist (default: main)"
    )


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import hub, resolve

    model = resolve.read(args.source)
    print(hub.push(model, args.hub_id, private=args.private, revision=args.revision))
