"""The command `elmo`: data on stdout, progress on stderr, one line for an error.

Each command is a module with `HELP` (one sentence) and `EXAMPLE`. A command with several actions also has `ACTIONS`;
any other has `add_arguments(parser)` and `run(args)`. Heavy imports stay inside `run`, so that --help is instant.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import os
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import MutableMapping, Sequence
from types import FrameType

from pyelmo import __version__
from pyelmo.cli import messages, standard_streams
from pyelmo.cli.actions import add_actions
from pyelmo.errors import GPU_FULL, PyelmoError, missing_torch

NOTHING = "nothing was changed"  # said of an interrupted command that says nothing else
# For each folder of commands: the title of the group in `elmo --help`, and the commands.
GROUPS = {
    "use": ("use a model", ("embed", "predict", "score", "explore", "neighbours", "serve")),
    "files": ("model files", ("models", "inspect", "convert", "sentences", "push")),
    "train": ("train a model", ("prepare", "pretrain", "finetune", "vectors")),
    "measure": ("measure", ("evaluate", "probe", "bench")),
    "tasks": ("downstream tasks", ("task",)),
}
VERBS = tuple(name for _, names in GROUPS.values() for name in names)


def build_parser(verb: str | None = None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="elmo",
        description="ELMo: contextual word vectors from a bidirectional language model.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"pyelmo {__version__}", help="show the version and exit"
    )
    commands = parser.add_subparsers(
        dest="verb", metavar="COMMAND", required=True, title="command", help="one of the commands listed below"
    )
    known = any(verb in names for _, names in GROUPS.values())
    width = max(40, min(shutil.get_terminal_size().columns, 98) - 2)
    lines: list[str] = []
    for folder, (title, names) in GROUPS.items():
        lines += [f"{title}:"]
        for name in names:
            if known and name != verb:
                continue  # its module need not be imported
            module = importlib.import_module(f"pyelmo.cli.{folder}.{name}")
            command = commands.add_parser(name, description=module.HELP, epilog=f"example: {module.EXAMPLE}")
            if hasattr(module, "ACTIONS"):
                add_actions(command, module.ACTIONS)
            else:
                module.add_arguments(command)
                command.set_defaults(run=module.run)
            lines += textwrap.wrap(module.HELP, width, initial_indent=f"  {name:12}", subsequent_indent=" " * 14)
        lines += [""]
    example = "example: elmo embed sentences.txt -o vectors.hdf5 --model en"
    parser.epilog = "\n".join([*lines, "`elmo COMMAND --help` describes a command and its options.", example])
    return parser


# Importing torch creates some 300,000 objects that are never garbage. Collecting less often, and not at all at exit,
# saves a quarter of the time of a short command.
GARBAGE_AFTER = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; `arguments` are those of the process unless a caller passes some."""
    if arguments is not None:
        return _run(arguments)  # the collector and the environment of the caller's process stay as they are
    gc.set_threshold(GARBAGE_AFTER)
    wait_passively(os.environ)
    standard_streams.prepare()
    handled = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    try:
        return _run(None)
    finally:
        if handled:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the result stands: only Python's own exit is left
        if "triton" not in sys.modules:  # Triton reports frozen objects as leaks
            gc.freeze()


def wait_passively(environment: MutableMapping[str, str]) -> None:
    """Let the threads of torch sleep while they wait for each other, unless the user has chosen a policy.

    By default they spin. Beside other work, a spinning thread takes the core that the thread it waits for needs:
    training was 14 times slower with two threads than with one. OpenMP reads this variable when torch is imported.
    """
    environment.setdefault("OMP_WAIT_POLICY", "passive")


def _run(arguments: Sequence[str] | None) -> int:
    stopped = threading.Event()
    try:
        args = _parse(arguments)
        if threading.current_thread() is threading.main_thread():
            _handle_signals(stopped, own_process=arguments is None)
        with messages.plain_warnings():
            args.run(args)
        sys.stdout.flush()
    except PyelmoError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return _fail(str(missing_torch("this command")))
    except Terminated as stop:
        return _fail(f"terminated; {str(stop) or NOTHING}", 143)
    except KeyboardInterrupt as stop:
        return _fail(f"interrupted; {str(stop) or NOTHING}", 130)
    except BrokenPipeError:
        standard_streams.give_up_output()
        return 141
    except MemoryError:
        return _fail("out of memory. Use a smaller --batch-size")
    except OSError as error:
        if error.filename is None and error.errno == errno.ENOSPC:  # of stdout, into a file on a full disk
            standard_streams.give_up_output()
            return _fail(f"standard output: cannot be written: {error.strerror}")
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except Exception as error:
        if stopped.is_set():  # a module that was interrupted while it was imported may raise anything
            return _fail(f"interrupted; {NOTHING}", 130)
        if type(error).__name__ == "OutOfMemoryError":  # torch's class, known by name because torch may not be imported
            return _fail("out of GPU memory. Use a smaller batch, or fewer processes on this GPU", GPU_FULL)
        if os.environ.get("ELMO_DEBUG"):
            raise
        message = f"{type(error).__name__}: {error}"
        return _fail(f"internal error, a bug in pyelmo: {message}. Set ELMO_DEBUG=1 to see the traceback", 70)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse arguments. Options may stand between the positional arguments: `elmo task predict RUN --json TEXT`."""
    first = (sys.argv[1:] if arguments is None else arguments)[:1]
    parser = build_parser(*first)
    args, rest = parser.parse_known_args(arguments)
    if not rest:
        return args
    takes_texts = isinstance(getattr(args, "text", None), list)
    if not takes_texts or any(word.startswith("-") and word != "-" for word in rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.text = [*args.text, *rest]
    return args


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised like Ctrl-C so that no partly written file is left behind."""


def _handle_signals(stopped: threading.Event, *, own_process: bool) -> None:
    """Raise KeyboardInterrupt for Ctrl-C, and Terminated for SIGTERM; both set `stopped`.

    A caller's process keeps its own way with Ctrl-C, and one that ignores it (nohup) keeps ignoring it.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()
        if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            # The machinery of imports drops exceptions in some places: try again in a moment.
            threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
            return
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    signal.signal(signal.SIGTERM, stop)
    if own_process and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)


def _fail(message: str, status: int = 1) -> int:
    print(f"elmo: {' '.join(message.split())}", file=sys.stderr)
    return status
