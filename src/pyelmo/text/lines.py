"""Text with one sentence a line: a file or stdin -> its lines, with their numbers in every error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pyelmo.errors import FormatError, InputError, NotFoundError


@contextlib.contextmanager
def open_text(path: str) -> Iterator[BinaryIO]:
    """A file, or stdin for "-"."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise NotFoundError(f"{path}: not found") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name a file, or - for stdin") from None
    with file:
        yield file


def read_lines(file: BinaryIO, name: str, first: int = 1) -> Iterator[str]:
    """Lines split at line feeds alone, without their ends; `first` is the number of the next one."""
    for number, line in enumerate(file, first):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: not UTF-8 at byte {error.start} (0x{line[error.start]:02x}). "
                "Convert the file first, for example with iconv -t UTF-8."
            ) from error


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a labelled file with their numbers from 1, without their ends."""
    try:
        with open_text(str(path)) as file:
            yield from enumerate(read_lines(file, str(path)), 1)
    except InputError as error:  # not UTF-8: here it is the file that is wrong
        raise FormatError(str(error)) from error


def existing(path: str | Path) -> Path:
    """The path, or one clear error."""
    if not Path(path).exists():
        raise NotFoundError(f"{path}: not found")
    return Path(path)


def check_published(path: str | Path, count: int, expected: int | None, what: str, *, exact: bool = False) -> None:
    """Refuse a file without examples, and a copy of a published file that is cut short.

    Args:
        path: The file, for the error.
        count: How many examples were read from it.
        expected: How many the published file holds, or None for a file that is not a published one.
        what: What the examples are, in the plural.
        exact: Whether more than the published number is an error, too; else a later release may hold more.
    """
    if not count:
        raise FormatError(f"{path}: holds no {what}. Is it empty, or in another format?")
    if expected is not None and (count != expected if exact else count < expected):
        raise FormatError(f"{path}: {count:,} {what}, expected {expected:,} as published. Is the copy complete?")
