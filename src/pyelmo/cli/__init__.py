"""The command `elmo`: verbs, data on stdout, progress on stderr, one line for an error.

Each verb is a module with `HELP`, `EXAMPLE`, `add_arguments(parser)` and `run(args)`; nothing heavy is imported before
`run`, so that --help is instant.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Sequence

from pyelmo import __version__
from pyelmo.errors import GPU_FULL, PyelmoError

NOTHING = "nothing was changed"  # by a command that was stopped and says nothing else
# The folder of each group of verbs, its title in `elmo --help`, and its verbs.
GROUPS = {
    "use": ("use a model", ("embed", "predict", "score", "explore", "neighbours")),
    "files": ("model files", ("models", "inspect", "convert")),
    "train": ("train a model", ("prepare", "pretrain", "finetune", "vectors")),
    "measure": ("measure", ("evaluate", "probe", "bench")),
    "tasks": ("downstream tasks", ("task",)),
}
VERBS = tuple(name for _, names in GROUPS.values() for name in names)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="elmo",
        description="ELMo: contextual word vectors from a bidirectional language model.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pyelmo {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, help="one of those listed below")
    lines: list[str] = []
    for folder, (title, names) in GROUPS.items():
        lines += ["", f"{title}:"]
        for name in names:
            module = importlib.import_module(f"pyelmo.cli.{folder}.{name}")
            verb = verbs.add_parser(name, description=module.HELP, epilog=f"example: {module.EXAMPLE}")
            module.add_arguments(verb)
            verb.set_defaults(run=module.run)
            lines += textwrap.wrap(module.HELP, 96, initial_indent=f"  {name:12}", subsequent_indent=" " * 14)
    example = "example: elmo embed sentences.txt -o vectors.hdf5 --model en"
    parser.epilog = "\n".join([*lines[1:], "", "`elmo VERB --help` describes a verb and its options.", example])
    return parser


# Torch is some 300,000 objects, none of them garbage: to look through them again and again while they come in, and once
# more at the end, takes a quarter of the time of a short command.
GARBAGE_AFTER = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is not None:  # a caller's process, with a collector of its own
        return _run(arguments)
    gc.set_threshold(GARBAGE_AFTER)
    try:
        return _run(None)
    finally:
        if "triton" not in sys.modules:  # which takes what is frozen for leaks, and says so at length
            gc.freeze()


def _run(arguments: Sequence[str] | None) -> int:
    args = build_parser().parse_args(arguments)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
    try:
        args.run(args)
    except PyelmoError as error:
        return _fail(str(error))
    except Terminated as stop:
        return _fail(f"terminated; {str(stop) or NOTHING}", 143)
    except KeyboardInterrupt as stop:
        return _fail(f"interrupted; {str(stop) or NOTHING}", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more: no second complaint
        return 141
    except MemoryError:
        return _fail("out of memory; try a smaller --batch-size")
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which may never have been imported
            return _fail("the GPU's memory is full; try smaller batches, or fewer processes on it", GPU_FULL)
        if os.environ.get("ELMO_DEBUG"):
            raise
        return _fail(f"a bug in pyelmo: {type(error).__name__}: {error} (ELMO_DEBUG=1 shows where)", 70)
    return 0


class Terminated(KeyboardInterrupt):
    """SIGTERM unwinds like Ctrl-C, so that no half-written part stays behind."""


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _fail(message: str, status: int = 1) -> int:
    print(f"elmo: {' '.join(message.split())}", file=sys.stderr)
    return status
