"""elmo serve: an HTTP server for models."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.errors import InputError, NotFoundError

HELP = "Serve models over HTTP: OpenAI's protocol for embeddings, all layers, predictions, and a page to explore them."
EXAMPLE = "elmo serve en ko --port 8000"
API_KEY = "ELMO_API_KEY"  # the environment variable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", metavar="MODEL", nargs="*",
        help=f"{options.MODEL}; NAME=MODEL chooses the name for requests (default: en)",
    )  # fmt: skip
    parser.add_argument(
        "--index", metavar="NAME=PATH", action="append", default=[],
        help="index of `elmo neighbours build` for /neighbours; may be repeated (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--task", metavar="RUN", action="append", default=[],
        help="folder of `elmo task train`, or NAME=RUN, for /task/NAME; may be repeated (default: none)",
    )  # fmt: skip
    parser.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="PORT", default=8000, help="port to listen on (default: 8000)")
    options.add_precision(parser, ("float32", "int8"))
    options.add_threads(parser, otherwise="all cores, shared by the workers")
    options.add_workers(parser, " that share the port")
    parser.add_argument(
        "--api-key-file", metavar="FILE",
        help=f"file with the key that requests must have (default: the variable {API_KEY}, else no key)",
    )  # fmt: skip
    parser.add_argument(
        "--cors", metavar="ORIGIN", action="append", default=[],
        help="origin of web pages that may use the server, such as https://example.org; may be repeated "
        "(default: none)",
    )  # fmt: skip
    _add_limits(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-body", type=int, metavar="BYTES", default=4 * 2**20, help="size of a request (default: 4194304)"
    )
    parser.add_argument(
        "--max-texts", type=int, metavar="N", default=2048, help="number of texts in a request (default: 2048)"
    )
    parser.add_argument(
        "--max-words", type=int, metavar="N", default=8192, help="number of words in a request (default: 8192)"
    )
    parser.add_argument(
        "--max-queue", type=int, metavar="N", default=32768,
        help="number of words that may wait for a model; further requests are refused (default: 32768)",
    )  # fmt: skip
    parser.add_argument(
        "--max-time", type=float, metavar="SECONDS", default=120.0,
        help="time to send a request, to compute its answer, or to read it (default: 120)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from pyelmo.server.run import run as serve
    from pyelmo.server.settings import Limits, ServerSettings

    options.check_at_least("--threads", args.threads, 1)
    options.check_at_least("--workers", args.workers, 1)
    settings = ServerSettings(
        models=_by_name("model", args.models or ["en"]),
        indexes=_by_name("--index", args.index),
        tasks=_by_name("--task", args.task),
        precision=args.precision,
        threads=args.threads or _default_threads(args.workers),
        workers=args.workers,
        host=args.host,
        port=args.port,
        api_key=_api_key(args.api_key_file),
        cors=tuple(args.cors),
        limits=Limits(
            body=args.max_body, texts=args.max_texts, words=args.max_words, queue=args.max_queue, time=args.max_time
        ),
    )
    if settings.api_key is None and not settings.local:
        say(f"elmo: warning: anybody who reaches {settings.host} can use this server. Set a key with --api-key-file")
    serve(settings, lambda address: say(f"elmo: {', '.join(settings.models)} at {address} (Ctrl-C stops)"))


def _default_threads(workers: int) -> int:
    from pyelmo.embed.engines.build import default_threads

    return max(1, default_threads() // workers)


def _by_name(what: str, texts: list[str]) -> dict[str, str]:
    """Return what NAME=PATH arguments name; without a name, the last part of the path is the name."""
    named: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not equals:
            name, source = Path(text).name, text
        if not name or not source:
            raise InputError(f"{what} {text}: expected a path, or NAME=PATH")
        if name in named:
            raise InputError(f"{what} {text}: {name} is named twice. Choose another name: NAME={source}")
        named[name] = source
    return named


def _api_key(path: str | None) -> str | None:
    """Return the key in a file, or in the environment; it is no argument, because others could read it there."""
    if path is None:
        return os.environ.get(API_KEY) or None
    try:
        key = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"--api-key-file {path}: cannot be read: {error}") from error
    if not key:
        raise InputError(f"--api-key-file {path}: is empty. Write a key into it")
    return key
