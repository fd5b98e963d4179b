"""The standard streams of the command: some may be closed, and some cannot take every character."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys

from pyelmo.errors import OutputError

_ESCAPES = "pyelmo.escape"  # the name of the error handler


def prepare() -> None:
    """Make the standard streams safe to use: none crashes, whatever is written to it."""
    codecs.register_error(_ESCAPES, _escape)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next file that is opened takes this number, and gets what is meant for the stream.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- lives as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPES)


def give_up_output() -> None:
    """Send what is still written to stdout nowhere: Python flushes it at exit, which would fail a second time."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ClosedOutput(io.TextIOBase):
    """Stands for a stdout that was closed before the command began: to write to it is an error."""

    def write(self, text: str) -> int:
        raise OutputError("standard output: is closed, so the result cannot be printed. Leave out >&-.")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Write a character that a stream cannot take as JSON would: \\u1112, also inside of JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    units = [characters[start : start + 2].hex() for start in range(0, len(characters), 2)]
    return "".join(f"\\u{unit}" for unit in units), error.end
