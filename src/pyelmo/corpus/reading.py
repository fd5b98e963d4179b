"""Read the text files of a corpus line by line, and report how much of them is read.

    paths --TextReader--> line, line, "", line, ...        a line is a paragraph, "" ends a document

Only one line (or row) is in memory at a time. The formats are those of pyelmo/text/rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from pyelmo.text.rows import ReadOptions, check_input, read_paragraphs


class TextReader:
    """Iterates over the lines of all inputs in order, and reports how many bytes it has read."""

    def __init__(
        self, inputs: Sequence[str | Path], options: ReadOptions | None = None, *, tokenised: bool = False
    ) -> None:
        self._inputs = [str(path) for path in inputs]
        self._options = options or ReadOptions()
        self._tokenised = tokenised
        self._sizes = [_size(path) for path in self._inputs]  # a missing file is an error before any work
        self._finished = 0  # bytes of the inputs read to their end
        self._raw: IO[bytes] | None = None

    @property
    def total_bytes(self) -> int | None:
        """The size of all input files (compressed); None if standard input is one of the inputs."""
        return None if None in self._sizes else sum(size or 0 for size in self._sizes)

    @property
    def bytes_read(self) -> int:
        return self._finished + (self._raw.tell() if self._raw is not None and self._raw.seekable() else 0)

    def __iter__(self) -> Iterator[str]:
        for path, size in zip(self._inputs, self._sizes, strict=True):
            yield from read_paragraphs(path, self._options, self._opened, tokenised=self._tokenised)
            self._raw = None
            self._finished += size or 0

    def _opened(self, file: IO[bytes]) -> None:
        self._raw = file


def _size(path: str) -> int | None:
    check_input(path)
    return None if path == "-" else Path(path).stat().st_size
