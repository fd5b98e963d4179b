"""Read data set files line by line; errors contain the line number. Texts of users are read by rows.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.text.rows import received, text_lines
from pyelmo.text.streams import input_name, open_text


def numbered_lines(path: str | Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a data set file with their numbers, starting at 1."""
    with open_text(path, encoding) as file:
        yield from ((number, received(line)) for number, line in enumerate(text_lines(file, input_name(path)), 1))


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
