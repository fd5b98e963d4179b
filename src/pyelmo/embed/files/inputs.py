"""Files of sentences -> sentences, from the start or from a position in the middle.

    text      one sentence per line
    parquet   one sentence per row: a column of strings, or of lists of words

`scan` reads all files once and returns the position where each part of a bulk job begins. `read` starts at a position.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Int64Array
from pyelmo.embed.files.formats import pyarrow_parquet
from pyelmo.errors import FormatError, InputError, PyelmoError
from pyelmo.text.lines import open_text, read_lines

# Columns of a Parquet file that may hold its sentences; the first that exists is read. Lists of words come first,
# because they need no splitting.
COLUMNS = ("tokens", "sentence", "text")
PARQUET_MAGIC = b"PAR1"
BLOCK = 1 << 20


@dataclass(frozen=True)
class InputSentence:
    """One sentence of the input. `words` is None unless the input holds a list of words."""

    text: str
    words: list[str] | None = None


@dataclass(frozen=True)
class InputPosition:
    """Where a sentence begins: its file, the byte (text) or row (Parquet), and the sentences before it in the file."""

    file: int = 0
    offset: int = 0
    before: int = 0


@dataclass(frozen=True)
class InputScan:
    """The checksums of the files, the number of their sentences, and the position where each part begins."""

    sha256: list[str]
    sentences: int
    positions: list[InputPosition]


def read(
    inputs: Sequence[str], column: str | None = None, position: InputPosition | None = None
) -> Iterator[InputSentence]:
    """Yield the sentences of all files in order, starting at `position`. One (of Parquet a few) is in memory."""
    position = position or InputPosition()
    for path in inputs[position.file :]:
        yield from _read_file(path, column, position)
        position = InputPosition()


def _read_file(path: str, column: str | None, position: InputPosition) -> Iterator[InputSentence]:
    if is_parquet(path):
        yield from _read_parquet(path, column, position.offset)
        return
    with open_text(path) as file:
        if position.offset:
            file.seek(position.offset)
        for line in read_lines(file, "stdin" if path == "-" else path, position.before + 1):
            yield InputSentence(line.strip())


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet, by its name or its first bytes. A stream is always text."""
    if path == "-" or not Path(path).is_file():
        return False
    with open_text(path) as file:
        return file.read(4) == PARQUET_MAGIC or path.endswith(".parquet")


def count(inputs: Sequence[str]) -> int | None:
    """Return the number of sentences, or None if one of the inputs is a stream."""
    if not all(Path(path).is_file() for path in inputs):
        return None
    return sum(sum(len(ends) for _, ends in _sentence_ends(path)) for path in inputs)


def scan(inputs: Sequence[str], part_sentences: int) -> InputScan:
    """Read all files once; return their checksums, and where each part of `part_sentences` sentences begins."""
    hashes: list[str] = []
    positions = [InputPosition()]
    total = 0
    for number, path in enumerate(inputs):
        digest = hashlib.sha256()
        before = 0  # sentences of this file
        for block, ends in _sentence_ends(path):
            digest.update(block)
            # A part begins after the last sentence of the part before it, even if that is the last one of a file.
            for index in range(-(total + before + 1) % part_sentences, len(ends), part_sentences):
                positions.append(InputPosition(number, int(ends[index]), before + index + 1))
            before += len(ends)
        total += before
        hashes.append(digest.hexdigest())
    parts = max(1, -(-total // part_sentences))  # empty input makes one empty part
    return InputScan(hashes, total, positions[:parts])


def _sentence_ends(path: str) -> Iterator[tuple[bytes, Sequence[int] | Int64Array]]:
    """Yield a file in blocks, each with the offsets after the sentences that end in it."""
    if is_parquet(path):
        with _open_parquet(path) as table:
            yield b"", range(1, table.metadata.num_rows + 1)
        yield from ((block, ()) for block in _blocks(path))
        return
    offset, last = 0, b"\n"
    for block in _blocks(path):
        yield block, np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + (offset + 1)
        offset, last = offset + len(block), block[-1:]
    if last != b"\n":
        yield b"", (offset,)


def _blocks(path: str) -> Iterator[bytes]:
    with open_text(path) as file:
        while block := file.read(BLOCK):
            yield block


@contextlib.contextmanager
def _open_parquet(path: str) -> Iterator[Any]:
    parquet = pyarrow_parquet()
    try:
        with parquet.ParquetFile(path) as table:
            yield table
    except PyelmoError:
        raise
    except Exception as error:  # for a damaged file pyarrow raises its own errors and OSError
        raise FormatError(
            f"{path}: cannot be read as Parquet: {str(error).partition(chr(10))[0]}. Is the file complete?"
        ) from error


def _read_parquet(path: str, column: str | None, first: int) -> Iterator[InputSentence]:
    """Yield the sentences from row `first` on, without reading the row groups before it."""
    with _open_parquet(path) as table:
        name = _choose_column(table.schema_arrow.names, column, path)
        row = 0
        groups: list[int] = []
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if row + rows > first or groups:
                groups.append(group)
            else:
                row += rows
        for batch in table.iter_batches(batch_size=256, row_groups=groups, columns=[name]):
            skipped = max(0, first - row)
            for number, value in enumerate(batch.column(0).slice(skipped).to_pylist(), row + skipped):
                yield _from_value(value, f"{path}, row {number}, column {name!r}")
            row += len(batch)


def _choose_column(names: Sequence[str], column: str | None, path: str) -> str:
    for name in [column] if column else COLUMNS:
        if name in names:
            return name
    wanted = repr(column) if column else " or ".join(map(repr, COLUMNS))
    raise InputError(f"{path}: has no column {wanted}, only {', '.join(names)}. Choose one with --column (column=).")


def _from_value(value: Any, where: str) -> InputSentence:
    if value is None:
        return InputSentence("")
    if isinstance(value, str):
        return InputSentence(value.strip())
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return InputSentence(" ".join(value), value)
    raise InputError(
        f"{where}: expected text or a list of words, got {type(value).__name__} {str(value)[:40]}. "
        "Choose another column with --column (column=)."
    )
