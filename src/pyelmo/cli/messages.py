"""Messages for people on stderr; results go to stdout."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path


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
