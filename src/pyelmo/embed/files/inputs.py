"""Files of sentences -> sentences, from the start or from a position in the middle.

The formats are those of pyelmo/text/rows.py. `scan` reads all files once and returns the position where each part of a
bulk job begins; `read` starts at a position. Only lines of plain text and rows of Parquet have such positions. All
other inputs (compressed, csv, jsonl, documents) are first written as one file of rows, by `write_rows`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.arrays import Int64Array
from pyelmo.errors import InputError
from pyelmo.text.encodings import decode_line
from pyelmo.text.parquet import open_parquet
from pyelmo.text.rows import (
    ReadOptions,
    TextRow,
    is_plain_parquet,
    is_plain_text,
    parquet_rows,
    read_rows,
    received,
)
from pyelmo.text.streams import open_bytes
from pyelmo.text.tokens import split_sentences

BLOCK = 1 << 20
DOCUMENT = "document"  # the column with the number of a sentence's document
# Types of columns that are kept as they are; values of other columns become text.
_KEPT_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double")


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
    inputs: Sequence[str], options: ReadOptions | None = None, position: InputPosition | None = None
) -> Iterator[TextRow]:
    """Yield the sentences of all files in order, starting at `position`. One (of Parquet a few) is in memory."""
    options = options or ReadOptions()
    position = position or InputPosition()
    for path in inputs[position.file :]:
        if not position.offset:
            yield from read_rows(path, options)
        elif is_plain_parquet(path, options):
            yield from parquet_rows(path, options, position.offset)
        else:
            yield from _lines_from(path, position)
        position = InputPosition()


def _lines_from(path: str, position: InputPosition) -> Iterator[TextRow]:
    with open_bytes(path) as file:
        file.seek(position.offset)
        for number, line in enumerate(file, position.before + 1):
            yield TextRow(received(decode_line(line, path, number)).strip())


def documents_to_sentences(rows: Iterable[TextRow], language: str) -> Iterator[TextRow]:
    """Split each row, a document, into its sentences; the first kept value is the number of the document from 0."""
    for number, row in enumerate(rows):
        if row.words is not None:
            raise InputError("documents are split into sentences, but the column has lists of words. Choose another.")
        for line in row.text.splitlines():
            for sentence in split_sentences(line, language):
                yield TextRow(sentence, None, (number, *row.kept))


def count(rows: Iterable[object], inputs: Sequence[str]) -> int | None:
    """Return the number of rows, which are read to their end, or None if one of the inputs is a stream."""
    return sum(1 for _ in rows) if all(Path(path).is_file() for path in inputs) else None


def kept_types(inputs: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the type of each kept column: a number or bool if all files agree, else "string", also for a stream."""
    if not options.keep or not all(Path(path).is_file() for path in inputs):
        return ["string"] * len(options.keep)
    kinds: list[set[str]] = [set() for _ in options.keep]
    if all(is_plain_parquet(path, options) for path in inputs):
        for path in inputs:
            with open_parquet(path, path) as table:
                for name, seen in zip(options.keep, kinds, strict=True):
                    schema = table.schema_arrow
                    seen.add(str(schema.field(name).type) if name in schema.names else "")
    else:
        for row in read(inputs, options):
            for value, seen in zip(row.kept, kinds, strict=True):
                seen.add(_kind_of(value))
    for seen in kinds:
        seen.discard("null")
        if seen == {"int64", "double"}:
            seen.discard("int64")
    return [next(iter(seen)) if len(seen) == 1 and seen <= set(_KEPT_TYPES) else "string" for seen in kinds]


def _kind_of(value: object) -> str:
    """Return the type in which Parquet stores a value of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "string"
    return "double" if isinstance(value, float) else "string"


# --- bulk jobs -----------------------------------------------------------------------------------------------------


def has_positions(inputs: Sequence[str], options: ReadOptions) -> bool:
    """Return whether a part of a bulk job can begin in the middle of every input."""
    return all(is_plain_parquet(path, options) or is_plain_text(path, options) for path in inputs)


def write_rows(rows: Iterable[TextRow], path: str | Path) -> None:
    """Write rows to a temporary file that `read_written_rows` reads from any position."""
    with open(path, "w", encoding="ascii", newline="\n") as file:
        for row in rows:
            file.write(json.dumps([row.text, row.words, row.kept], default=str) + "\n")


def read_written_rows(path: str | Path, position: InputPosition) -> Iterator[TextRow]:
    with open(path, "rb") as file:
        file.seek(position.offset)
        for line in file:
            text, words, kept = json.loads(line)
            yield TextRow(text, words, tuple(kept))


def scan(inputs: Sequence[str], part_sentences: int, options: ReadOptions | None = None) -> InputScan:
    """Read all files once; return their checksums, and where each part of `part_sentences` sentences begins.

    Without `options`, every line of a file is a sentence.
    """
    hashes: list[str] = []
    positions = [InputPosition()]
    total = 0
    for number, path in enumerate(inputs):
        digest = hashlib.sha256()
        before = 0  # sentences of this file
        parquet = options is not None and is_plain_parquet(path, options)
        for block, ends in _parquet_ends(path) if parquet else _line_ends(path):
            digest.update(block)
            # A part begins after the last sentence of the part before it, even if that is the last one of a file.
            for index in range(-(total + before + 1) % part_sentences, len(ends), part_sentences):
                positions.append(InputPosition(number, int(ends[index]), before + index + 1))
            before += len(ends)
        total += before
        hashes.append(digest.hexdigest())
    return InputScan(hashes, total, positions[: -(-total // part_sentences)])


def _parquet_ends(path: str) -> Iterator[tuple[bytes, Sequence[int]]]:
    """Yield a file in blocks, each with the offsets after the sentences that end in it: all in the first block."""
    with open_parquet(path, path) as table:
        yield b"", range(1, table.metadata.num_rows + 1)
    yield from ((block, ()) for block in _blocks(path))


def _line_ends(path: str) -> Iterator[tuple[bytes, Sequence[int] | Int64Array]]:
    """Yield a file in blocks, each with the offsets after the lines that end in it."""
    offset, last = 0, b"\n"
    for block in _blocks(path):
        yield block, np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + (offset + 1)
        offset, last = offset + len(block), block[-1:]
    if last != b"\n":
        yield b"", (offset,)


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block
