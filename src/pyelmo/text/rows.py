"""Text files of every kind -> texts, one for each line or row. All commands read text through this module.

    text               one text per line
    csv, tsv, jsonl    one text per row, in a named column (csv and tsv: the first line names the columns)
    parquet            one text per row, in a column of strings or of lists of words
    fasta              one protein per record, with its residues as words

The format is recognised by the name of a file, else by its first lines; any file may be compressed. What looks like a
table is never read as plain text: without the name of a column it is an error that lists the columns.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.text import fasta
from pyelmo.text.encodings import BLOCK, as_utf8, check_encoding, decode_line
from pyelmo.text.parquet import open_parquet, records_from
from pyelmo.text.streams import Opened, bare_suffix, input_name, is_compressed, open_bytes

FORMATS = ("auto", "text", "csv", "tsv", "jsonl", "parquet", "fasta")
# Columns of a Parquet file that may hold its texts; the first that exists is read. Lists of words come first, because
# they need no splitting.
PARQUET_COLUMNS = ("tokens", "sentence", "text")
LONGEST_LINE = 1 << 22  # bytes; a longer line of a paragraph is cut at a space, so that it cannot fill the memory

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", **dict.fromkeys(fasta.SUFFIXES, "fasta"),
}  # fmt: skip
_PARQUET_MAGIC = b"PAR1"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character, which JSON can express
_COLUMN_NAME = re.compile(r'"?[^\W\d][\w.-]{0,40}"?')


Records = Iterator[tuple[str, dict[str, Any]]]  # where a row is, for errors, and its values by column


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How files of text are read.

    Args:
        column: The column with the text of csv, tsv, jsonl and Parquet files (default: none; of Parquet files the first
            of "tokens", "sentence" and "text" that exists).
        keep: Other columns whose values every row carries.
        input_format: One of `FORMATS`; "auto" decides by the name and the first lines of a file.
        encoding: The encoding of the files (default: UTF-8).
    """

    column: str | None = None
    keep: tuple[str, ...] = ()
    input_format: str = "auto"
    encoding: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", tuple(self.keep))
        if self.input_format not in FORMATS:
            raise InputError(f"input_format {self.input_format!r} is unknown. Use one of {', '.join(FORMATS)}.")
        if len(set(self.keep)) < len(self.keep):
            raise InputError(f"keep names a column twice: {', '.join(self.keep)}")
        check_encoding(self.encoding)


class TextRow(NamedTuple):
    """One text of an input. `words` is None unless the input holds a list of words; `kept` are its other columns."""

    text: str
    words: list[str] | None = None
    kept: tuple[Any, ...] = ()


def read_rows(path: str | Path, options: ReadOptions | None = None, *, stripped: bool = True) -> Iterator[TextRow]:
    """Yield the texts of a file, or of stdin for "-": one for each line or row, blank ones too.

    Args:
        path: The file: text, csv, tsv, jsonl, Parquet or FASTA, compressed (gz, xz, bz2, zst) or not.
        options: The column of a table and the encoding (default: plain text in UTF-8).
        stripped: Remove the white space around a text; otherwise offsets count from the start of the line.

    Raises:
        NotFoundError: There is no such file.
        InputError: The file is a table and no column is named, or it has no such column.
        FormatError: The file is damaged or has another encoding.
    """
    options = options or ReadOptions()
    with open_bytes(path) as file:
        kind, file = _opened_kind(file, path, options)
        if kind == "text":
            for line in text_lines(file, input_name(path)):
                yield TextRow(received(line).strip() if stripped else received(line))
            return
        for row in _table_rows(file, kind, input_name(path), options):
            yield row._replace(text=row.text.strip()) if stripped else row


def read_paragraphs(
    path: str | Path, options: ReadOptions | None = None, opened: Opened | None = None, *, tokenised: bool = False
) -> Iterator[str]:
    """Yield the lines of all documents of a file, each document with "" after it.

    A line of plain text is a paragraph and a blank line ends a document; a row of a table is a document, in which blank
    lines are ignored. `opened` is a callback that gets the file on the disk, whose position shows the progress;
    `tokenised` allows columns with lists of words. The other arguments and the errors are those of `read_rows`.
    """
    options = options or ReadOptions()
    with open_bytes(path, opened or (lambda file: None)) as file:
        kind, file = _opened_kind(file, path, options)
        if kind == "text":
            yield from (received(line).strip() for line in text_lines(file, input_name(path), LONGEST_LINE))
            yield ""
            return
        for row in _table_rows(file, kind, input_name(path), options):
            if row.words is not None and not tokenised:
                raise InputError(
                    f"{input_name(path)}: the column has lists of words, expected text. Choose another with --column, "
                    "or pass --tokenised."
                )
            yield from filter(None, map(str.strip, row.text.split("\n")))
            yield ""


def received(text: str) -> str:
    """Return a text as it is used, right after it was decoded: every text that is read from a file passes here."""
    return text.replace("\0", "\ufffd")


def text_lines(file: io.BufferedReader, name: str, longest: int | None = None) -> Iterator[str]:
    """Yield lines of UTF-8 without their line ends; a line of more than `longest` bytes is cut at a space."""
    number, rest = 1, b""
    while raw := file.readline(longest or -1):
        is_whole = raw.endswith(b"\n")
        raw, rest = rest + raw, b""
        if longest and not is_whole and len(raw) >= longest:
            cut = raw.rfind(b" ") + 1
            if not cut:
                raise InputError(f"{name}, line {number}: has {len(raw):,} bytes without a space. Is it text?")
            raw, rest = raw[:cut], raw[cut:]
        yield decode_line(raw, name, number).rstrip("\r\n")
        number += is_whole
    if rest:
        yield decode_line(rest, name, number)


# --- the kind of a file --------------------------------------------------------------------------------------------


def is_plain_text(path: str | Path, options: ReadOptions) -> bool:
    """Return whether a file is uncompressed text in UTF-8, whose lines begin at bytes that can be looked up."""
    if not Path(path).is_file() or is_compressed(path):
        return False
    with open_bytes(path) as file:
        return options.encoding is None and _opened_kind(file, path, options)[0] == "text"


def is_plain_parquet(path: str | Path, options: ReadOptions) -> bool:
    """Return whether a file is Parquet and not compressed as a whole, so that its rows can be looked up."""
    if not Path(path).is_file() or is_compressed(path):
        return False
    with open_bytes(path) as file:
        return _opened_kind(file, path, options)[0] == "parquet"


def check_input(path: str | Path) -> None:
    """Raise an error if an input does not exist or is a folder."""
    if str(path) == "-":
        return
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder. Name the files in it, for example {path}/*.txt.")
    if not Path(path).exists():
        raise NotFoundError(f"{path}: not found. Check the name, or pass - for standard input.")


def _opened_kind(file: io.BufferedReader, path: str | Path, options: ReadOptions) -> tuple[str, io.BufferedReader]:
    """Return the format of a decompressed file, and the file as UTF-8 unless it is Parquet."""
    name = input_name(path)
    kind = options.input_format
    if kind == "auto":
        kind = "parquet" if file.peek(4).startswith(_PARQUET_MAGIC) else _SUFFIXES.get(bare_suffix(path), "auto")
    if kind == "parquet":
        return kind, file
    if file.peek(4).startswith(_PARQUET_MAGIC):
        raise InputError(f"{name}: is a Parquet file, not {kind}. Set --input-format parquet (input_format=).")
    file = as_utf8(file, name, options.encoding)
    start = file.peek(BLOCK)[:BLOCK].decode("utf-8", "replace")
    if kind == "auto":
        kind = _looks_like(start)
    if kind == "text" and (options.column is not None or options.keep):
        option = f"--column {options.column}" if options.column is not None else f"--keep {','.join(options.keep)}"
        advice = "Leave the option out, or name the format with --input-format (input_format=)."
        raise InputError(f"{name}: is plain text, which has no columns, but {option} is set. {advice}")
    if kind not in ("text", "fasta") and options.column is None:
        columns = ", ".join(_columns(start, kind)) or "none was found"
        advice = "Choose one with --column (column=), or read plain text with --input-format text (input_format=)."
        raise InputError(f"{name}: is {kind} with columns, and none is named. Columns: {columns}. {advice}")
    return kind, file


def _looks_like(start: str) -> str:
    """Return the format of a file, for which the name says nothing, from its beginning."""
    lines = start.split("\n")[:-1] if "\n" in start else [start]  # the last line may be cut
    lines = [line.rstrip("\r") for line in lines if line.strip()]
    if not lines:
        return "text"
    if lines[0].strip() in ("{", "[", "[{") or _is_json(lines[0].strip()):
        return "jsonl"
    for kind, separator in (("tsv", "\t"), ("csv", ","), ("csv", ";")):
        names = lines[0].split(separator)
        if len(names) > 1 and all(map(_COLUMN_NAME.fullmatch, names)):
            counts = [len(row) for row in itertools.islice(csv.reader(lines, delimiter=separator), 3)]
            if len(counts) > 1 and set(counts) == {len(names)}:
                return kind
    return "text"


def _is_json(line: str) -> bool:
    if not line.startswith(("{", "[")):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], (dict, list, str))
    )


def _columns(start: str, kind: str) -> list[str]:
    """Return the columns that the first lines of a table name, as far as they can be read."""
    first = next((line for line in start.splitlines() if line.strip()), "")
    if kind == "jsonl":
        try:
            value = json.loads(first)
        except (ValueError, RecursionError):
            return []
        return list(value) if isinstance(value, dict) else []
    return next(csv.reader([first], delimiter=_separator(first, kind)), [])


def _separator(header: str, kind: str) -> str:
    return "\t" if kind == "tsv" else max(",;\t", key=header.count)


# --- tables --------------------------------------------------------------------------------------------------------


def _table_rows(file: io.BufferedReader, kind: str, name: str, options: ReadOptions) -> Iterator[TextRow]:
    return _rows_of(_READERS[kind](file, name, options), options)


def parquet_rows(path: str | Path, options: ReadOptions, first: int) -> Iterator[TextRow]:
    """Yield the texts of a Parquet file from row `first` on, without reading the row groups before it."""
    with open_bytes(path) as file:
        for row in _rows_of(_parquet_records(file, str(path), options, first), options):
            yield row._replace(text=row.text.strip())


def _rows_of(records: Records, options: ReadOptions) -> Iterator[TextRow]:
    column = options.column
    for where, record in records:
        column = column or next(iter(record))  # of Parquet, whose reader has chosen it, and of FASTA: the residues
        for wanted in (column, *options.keep):
            if wanted not in record:
                raise _missing_column(where, wanted, record)
        yield _row(record[column], tuple(record[kept] for kept in options.keep), f"{where}, column {column!r}")


def _missing_column(where: str, column: str, columns: Iterable[str]) -> InputError:
    known = ", ".join(map(str, columns)) or "none"
    return InputError(
        f"{where}: no column {column!r} (columns: {known}). Choose with --column (column=), and with --keep or --label."
    )


def _row(value: Any, kept: tuple[Any, ...], where: str) -> TextRow:
    if value is None:
        return TextRow("", None, kept)
    if isinstance(value, str):
        return TextRow(received(_LONE_SURROGATE.sub("\ufffd", value)), None, kept)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        words = [received(_LONE_SURROGATE.sub("\ufffd", word)) for word in value]
        return TextRow(" ".join(words), words, kept)
    raise InputError(
        f"{where}: expected text or a list of words, got {type(value).__name__} {str(value)[:40]}. "
        "Choose another column with --column (column=)."
    )


def _json_records(file: io.BufferedReader, name: str, options: ReadOptions) -> Records:
    for number, line in enumerate(text_lines(file, name), 1):
        where = f"{name}, line {number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # ValueError: also for a number of thousands of digits
            advice = "JSON Lines have one whole object per line; jq -c '.[]' converts a JSON list."
            raise FormatError(f"{where}: is not JSON ({error}). {advice}") from error
        if not isinstance(record, dict):
            kind = type(record).__name__
            raise FormatError(f"{where}: expected an object with a field {options.column!r}, got a {kind}.")
        yield where, record


def _csv_records(file: io.BufferedReader, name: str, options: ReadOptions) -> Records:
    """Yield the rows of a csv file. A field between quotes may hold separators and line ends."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    lines = (f"{line}\n" for line in text_lines(file, name))
    first = next(lines, "")
    rows = csv.reader(itertools.chain([first], lines), delimiter=_separator(first, "csv"), strict=True)
    header: list[str] | None = None
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"is not csv ({error})"
            raise FormatError(f"{name}, line {line}: {problem}. Is a quote missing? Write a quote as two.") from error
        if header is None:
            header = _checked_header(row, name, options)
        elif row:
            yield f"{name}, line {line}", _record(header, row, f"{name}, line {line}")


def _tsv_records(file: io.BufferedReader, name: str, options: ReadOptions) -> Records:
    """Yield the rows of a tsv file, in which a quote is an ordinary character."""
    lines = text_lines(file, name)
    header = _checked_header(next(lines, "").split("\t"), name, options)
    for number, line in enumerate(lines, 2):
        if line:
            yield f"{name}, line {number}", _record(header, line.split("\t"), f"{name}, line {number}")


def _checked_header(header: list[str], name: str, options: ReadOptions) -> list[str]:
    for column in (options.column, *options.keep):
        if column not in header:
            raise _missing_column(f"{name}, line 1", str(column), header)
        if header.count(column) > 1:
            raise InputError(f"{name}, line 1: the column {column!r} exists twice. Rename one of them.")
    return header


def _record(header: Sequence[str], row: Sequence[str], where: str) -> dict[str, Any]:
    if len(row) != len(header):
        raise FormatError(
            f"{where}: {len(row)} fields, expected {len(header)} as in the first line. "
            "In csv, a field with a separator or a line end needs quotes; tsv cannot hold a tab or a line end."
        )
    return dict(zip(header, row, strict=True))


def _parquet_records(file: io.BufferedReader, name: str, options: ReadOptions, first: int = 0) -> Records:
    """Yield the rows from row `first` on, each with its text first."""
    with open_parquet(file, name) as table:
        names = table.schema_arrow.names
        columns = [options.column] if options.column is not None else PARQUET_COLUMNS
        column = next((column for column in columns if column in names), " or ".join(columns))
        for wanted in (column, *options.keep):
            if wanted not in names:
                raise _missing_column(name, wanted, names)
        for number, record in enumerate(records_from(table, [column, *options.keep], first), first):
            yield f"{name}, row {number}", record


def _fasta_records(file: io.BufferedReader, name: str, options: ReadOptions) -> Records:
    return fasta.fasta_records(text_lines(file, name), name)


_READERS: dict[str, Callable[[io.BufferedReader, str, ReadOptions], Records]] = {
    "csv": _csv_records,
    "tsv": _tsv_records,
    "jsonl": _json_records,
    "parquet": _parquet_records,
    "fasta": _fasta_records,
}
