"""Files of sentences -> sentences, from the start or from the middle.

    text      one sentence a line
    parquet   one sentence a row: a column of strings, or of lists of words

`scan` reads everything once and says where each part of a bulk job begins; `read` goes on from there.
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

# Where a Parquet file's sentences are looked for, in this order. Lists of words need no splitting, so they come first.
COLUMNS = ("tokens", "sentence", "text")
PARQUET_MAGIC = b"PAR1"
BLOCK = 1 << 20


@dataclass(frozen=True)
class InputSentence:
    """One sentence of the input; `words` where it came as a list of them."""

    text: str
    words: list[str] | None = None


@dataclass(frozen=True)
class InputPosition:
    """Where a sentence begins: the file, the byte (text) or row (Parquet) in it, and how many sentences come before."""

    file: int = 0
    offset: int = 0
    before: int = 0


@dataclass(frozen=True)
class Scan:
    """What all files hold together: their content by a hash, their sentences, and where every part begins."""

    sha256: list[str]
    sentences: int
    places: list[InputPosition]


def read(
    inputs: Sequence[str], column: str | None = None, place: InputPosition | None = None
) -> Iterator[InputSentence]:
    """The sentences of all files in order, from `place` on; one (of Parquet a few) in memory at a time."""
    place = place or InputPosition()
    for path in inputs[place.file :]:
        yield from _read_file(path, column, place)
        place = InputPosition()


def _read_file(path: str, column: str | None, place: InputPosition) -> Iterator[InputSentence]:
    if is_parquet(path):
        yield from _read_parquet(path, column, place.offset)
        return
    with open_text(path) as file:
        if place.offset:
            file.seek(place.offset)
        for line in read_lines(file, "stdin" if path == "-" else path, place.before + 1):
            yield InputSentence(line.strip())


def is_parquet(path: str) -> bool:
    """By the name or the first bytes; a stream is text."""
    if path == "-" or not Path(path).is_file():
        return False
    with open_text(path) as file:
        return file.read(4) == PARQUET_MAGIC or path.endswith(".parquet")


def count(inputs: Sequence[str]) -> int | None:
    """How many sentences there are; None where a stream is among the inputs."""
    if not all(Path(path).is_file() for path in inputs):
        return None
    return sum(sum(len(ends) for _, ends in _ends(path)) for path in inputs)


def scan(inputs: Sequence[str], part: int) -> Scan:
    """Where each `part` sentences begin. Reads all once and holds one place a part, whatever the size."""
    hashes: list[str] = []
    places = [InputPosition()]
    total = 0
    for number, path in enumerate(inputs):
        digest = hashlib.sha256()
        before = 0  # sentences of this file
        for block, ends in _ends(path):
            digest.update(block)
            # A part begins behind the sentence that fills the one before it, be it at the end of a file.
            for index in range(-(total + before + 1) % part, len(ends), part):
                places.append(InputPosition(number, int(ends[index]), before + index + 1))
            before += len(ends)
        total += before
        hashes.append(digest.hexdigest())
    return Scan(hashes, total, places[: max(1, -(-total // part))])  # one part even of nothing


def _ends(path: str) -> Iterator[tuple[bytes, Sequence[int] | Int64Array]]:
    """A file block by block, with the offsets behind each sentence that ends there."""
    if is_parquet(path):
        with _open_parquet(path) as table:
            yield b"", range(1, table.metadata.num_rows + 1)
        yield from ((block, ()) for block in _blocks(path))
        return
    position, last = 0, b"\n"
    for block in _blocks(path):
        yield block, np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + (position + 1)
        position, last = position + len(block), block[-1:]
    if last != b"\n":
        yield b"", (position,)


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
    except Exception as error:  # pyarrow has its own, and OSError, for a file that is cut short or holds something else
        raise FormatError(f"{path}: cannot be read as Parquet: {str(error).partition(chr(10))[0]}") from error


def _read_parquet(path: str, column: str | None, first: int) -> Iterator[InputSentence]:
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
    raise InputError(f"{where}: expected text or a list of words, got {type(value).__name__} {str(value)[:40]}.")
