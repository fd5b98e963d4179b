"""elmo serve: an HTTP server for models."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyelmo.cli import options
from pyelmo.errors import InputError

HELP = "Serve models over HTTP, with OpenAI's protocol for embeddings and a page to explore them."
EXAMPLE = "elmo serve en --port 8000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", metavar="MODEL", nargs="*", help=f"{options.MODEL}, or NAME=MODEL to choose its name (default: en)"
    )
    parser.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="PORT", default=8000, help="port to listen on (default: 8000)")
    options.add_precision(parser, ("float32", "int8"))
    options.add_threads(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.server.run import run as serve
    from pyelmo.server.settings import ServerSettings

    settings = ServerSettings(
        models=_by_name(args.models or ["en"]), precision=args.precision, threads=args.threads, host=args.host,
        port=args.port,
    )  # fmt: skip
    serve(settings)


def _by_name(texts: list[str]) -> dict[str, str]:
    """Return what NAME=PATH arguments name; without a name, the last part of the path is the name."""
    named: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not equals:
            name, source = Path(text).name, text
        if name in named:
            raise InputError(f"{name}: two models have this name. Write NAME={source}")
        named[name] = source
    return named
