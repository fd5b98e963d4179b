"""Read text files line by line: plain text, JSON lines and Parquet, compressed (gz, xz, bz2, zst) or not, or stdin.

    paths --TextReader--> line, line, "", line, ...        a line is a paragraph, "" ends a document

The compression is recognised by the first bytes of a file, the format by its name. Only one line (or record) is in
memory at a time.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from pyelmo.errors import FormatError, InputError, NotFoundError, PyelmoError, missing_extra

FORMATS = ("auto", "text", "jsonl", "parquet")
LONGEST_LINE = 1 << 22  # bytes; a longer line is cut at a space, so that one line cannot fill the memory

_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_COMPRESSED_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
_PARQUET_MAGIC = b"PAR1"
_INVALID = re.compile("[\0\ud800-\udfff]")


class TextReader:
    """Iterates over the lines of all inputs in order, and reports how many bytes it has read."""

    def __init__(self, inputs: Sequence[str | Path], *, column: str = "text", input_format: str = "auto") -> None:
        if input_format not in FORMATS:
            raise InputError(f"input_format {input_format!r} is unknown. Use one of {', '.join(FORMATS)}.")
        self._inputs = [str(path) for path in inputs]
        self._column = column
        self._format = input_format
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
            name = "standard input" if path == "-" else path
            with contextlib.ExitStack() as stack, _read_errors_explained(name):
                raw = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
                self._raw = raw
                yield from _lines(_decompressed(raw, name), name, self._format_of(path), self._column)
            self._raw = None
            self._finished += size or 0
            yield ""

    def _format_of(self, path: str) -> str:
        if self._format != "auto":
            return self._format
        bare = Path(path)
        if bare.suffix in _COMPRESSED_SUFFIXES:
            bare = bare.with_suffix("")
        return _SUFFIXES.get(bare.suffix, "text")


def _size(path: str) -> int | None:
    if path == "-":
        return None
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder. Name the files in it, for example {path}/*.txt.")
    if not Path(path).exists():
        raise NotFoundError(f"{path}: not found. Check the name, or pass - for standard input.")
    return Path(path).stat().st_size


@contextlib.contextmanager
def _read_errors_explained(name: str) -> Iterator[None]:
    """Turn errors of the file and of the decompression into errors of pyelmo that name the file."""
    advice = "Download or compress the file again."
    try:
        yield
    except PyelmoError:
        raise
    except EOFError as error:
        raise FormatError(f"{name}: the compressed data is incomplete. {advice}") from error
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FormatError(f"{name}: the compressed data is damaged ({error}). {advice}") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from error
    except Exception as error:
        if type(error).__name__ == "ZstdError":  # each package that reads .zst has its own class of this name
            raise FormatError(f"{name}: the compressed data is damaged ({error}). {advice}") from error
        raise


# --- compression ---------------------------------------------------------------------------------------------------


def _open_zst(file: IO[bytes]) -> IO[bytes]:
    """Open a .zst file with the first package that is installed: Python 3.14 itself, zstandard or pyarrow."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return cast("IO[bytes]", zstd.ZstdFile(file))
    with contextlib.suppress(ImportError):
        import zstandard

        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return cast("IO[bytes]", io.BufferedReader(stream))
    with contextlib.suppress(ImportError):
        import pyarrow

        return cast(
            "IO[bytes]", io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd"))
        )
    raise missing_extra("zst", "reading .zst files")


_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file)),
    b"\xfd7zXZ\x00": lambda file: cast("IO[bytes]", lzma.LZMAFile(file)),  # noqa: SIM115
    b"BZh": lambda file: cast("IO[bytes]", bz2.BZ2File(file)),
    b"\x28\xb5\x2f\xfd": _open_zst,
}


def _decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    start = cast(io.BufferedReader, raw).peek(8)
    for magic, decompress in _DECOMPRESSORS.items():
        if start.startswith(magic):
            return decompress(raw)
    if name.endswith(_COMPRESSED_SUFFIXES) and start:
        problem = f"not compressed as the name says (it begins with {start[:4]!r})"
        raise FormatError(f"{name}: {problem}. Rename or compress the file.")
    return raw


# --- formats -------------------------------------------------------------------------------------------------------


def _lines(file: IO[bytes], name: str, kind: str, column: str) -> Iterator[str]:
    if kind == "text":
        return _text_lines(file, name)
    records = _json_records(file, name) if kind == "jsonl" else _parquet_records(file, name, column)
    return _record_lines(records, name, column)


def _text_lines(file: IO[bytes], name: str) -> Iterator[str]:
    number = 1
    rest = b""
    while raw := file.readline(LONGEST_LINE):
        if number == 1 and not rest:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
            if raw.startswith(_PARQUET_MAGIC):
                raise InputError(f"{name}: is a Parquet file. Name it .parquet, or set --input-format parquet.")
        is_whole = raw.endswith(b"\n")
        raw, rest = rest + raw, b""
        if not is_whole and len(raw) >= LONGEST_LINE:
            cut = raw.rfind(b" ") + 1
            if not cut:
                raise InputError(f"{name}: line {number} has {len(raw):,} bytes without a space. Is it text?")
            raw, rest = raw[:cut], raw[cut:]
        yield _decoded(raw, name, number).strip()
        if is_whole:
            number += 1
    if rest:
        yield _decoded(rest, name, number).strip()


def _decoded(raw: bytes, name: str, number: int) -> str:
    try:
        return raw.replace(b"\0", b"\xef\xbf\xbd").decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"line {number}: byte {error.start + 1} of the line ({raw[error.start]:#04x}) is not UTF-8"
        raise FormatError(f"{name}: {problem}. Convert the file, for example with iconv -f LATIN1 -t UTF-8.") from error


def _json_records(file: IO[bytes], name: str) -> Iterator[tuple[str, Any]]:
    for number, raw in enumerate(file, 1):
        where = f"{name}: line {number}"
        line = _decoded(raw, name, number).removeprefix("\ufeff").strip()
        if not line:
            continue
        try:
            yield where, json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise FormatError(f"{where} is not JSON ({error}). JSON lines have one object per line.") from error


def _parquet_records(file: IO[bytes], name: str, column: str) -> Iterator[tuple[str, Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise missing_extra("parquet", "reading Parquet files") from error
    with contextlib.ExitStack() as stack:
        if not (file.seekable() and isinstance(file, io.BufferedReader)):
            # Parquet is read from its end, so compressed or piped data is copied to a temporary file first.
            spooled = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, spooled)
            file = spooled
        try:
            table = parquet.ParquetFile(file)
            names = table.schema_arrow.names
            if column not in names:
                problem = f"no column {column!r} (columns: {', '.join(names)})"
                raise InputError(f"{name}: {problem}. Choose one with --column.")
            number = 0
            for batch in table.iter_batches(batch_size=256, columns=[column]):
                for value in batch.column(0).to_pylist():
                    number += 1
                    yield f"{name}: record {number}", {column: value}
        except pyarrow.ArrowException as error:
            raise FormatError(f"{name}: not a readable Parquet file ({error}).") from error


def _record_lines(records: Iterable[tuple[str, Any]], name: str, column: str) -> Iterator[str]:
    """Yield the lines of each record; a record is a document and its lines are paragraphs."""
    for where, record in records:
        if not isinstance(record, dict):
            raise InputError(f"{where} is of type {type(record).__name__}, expected an object with a field {column!r}.")
        if column not in record:
            fields = ", ".join(record) or "none"
            raise InputError(f"{where}: no field {column!r} (fields: {fields}). Choose one with --column.")
        text = record[column]
        if text is None:
            continue
        if not isinstance(text, str):
            raise InputError(f"{where}: field {column!r} is of type {type(text).__name__}, expected text.")
        text = _INVALID.sub("\ufffd", text)  # JSON escapes can contain NUL and lone surrogates
        for line in text.split("\n"):
            # A blank line within a record does not end the document.
            if stripped := line.strip():
                yield stripped
        yield ""
