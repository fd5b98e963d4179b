"""Read text files or stdin line by line; errors contain the line number."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pyelmo.errors import FormatError, InputError, NotFoundError


@contextlib.contextmanager
def open_text(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading, or stdin for "-"."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise NotFoundError(f"{path}: not found") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder. Name a file, or - for stdin.") from None
    with file:
        yield file


def read_lines(file: BinaryIO, name: str, first: int = 1) -> Iterator[str]:
    """Yield lines without their line ends, split only at line feeds; `first` is the number of the first line."""
    for number, line in enumerate(file, first):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: not UTF-8 at byte {error.start} (0x{line[error.start]:02x}). "
                "Convert the file first, for example with iconv -t UTF-8."
            ) from error


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a data set file with their numbers, starting at 1."""
    try:
        with open_text(str(path)) as file:
            yield from enumerate(read_lines(file, str(path)), 1)
    except InputError as error:  # not UTF-8: in a data set file this is an error of the format
        raise FormatError(str(error)) from error


def existing(path: str | Path) -> Path:
    """Return the path if it exists."""
    if not Path(path).exists():
        raise NotFoundError(f"{path}: not found")
    return Path(path)


def check_published(path: str | Path, count: int, expected: int | None, what: str, *, exact: bool = False) -> None:
    """Check the number of examples in a file: at least one, and no fewer than in the published file.

    Args:
        path: The file, for the error message.
        count: The number of examples read from it.
        expected: The number of examples in the published file, or None for any other file.
        what: The name of the examples in the plural.
        exact: Whether more examples than in the published file are an error; otherwise a later release may have more.

    Raises:
        FormatError: The file has no examples, or not as many as the published one.
    """
    if not count:
        raise FormatError(f"{path}: holds no {what}. Is it empty, or in another format?")
    if expected is not None and (count != expected if exact else count < expected):
        raise FormatError(f"{path}: {count:,} {what}, expected {expected:,} as published. Is the copy complete?")
