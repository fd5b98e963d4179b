"""Messages for people on stderr; results go to stdout."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyelmo.errors import ScriptWarning


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def say_nothing(line: str) -> None:
    """Replace `say` if --quiet is set."""


@contextlib.contextmanager
def resumable(output: str | Path) -> Iterator[None]:
    """Make an interrupt of the work inside say how to resume it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise type(stop)(f"run the same command again to resume {output}") from stop


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print a warning of pyelmo as one line, without the place in the code; others as Python does."""
    show = warnings.showwarning

    def show_plainly(message: Warning | str, category: type[Warning], *where: Any, **others: Any) -> None:
        if issubclass(category, ScriptWarning):
            say(f"elmo: warning: {message}")
        else:
            show(message, category, *where, **others)

    warnings.showwarning = show_plainly
    try:
        yield
    finally:
        warnings.showwarning = show
