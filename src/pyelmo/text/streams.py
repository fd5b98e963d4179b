"""Open a file of text, compressed or not, or stdin, as one stream of bytes.

    path --open_bytes--> decompressed bytes --as_utf8--> UTF-8 without a byte-order mark

The compression (gz, xz, bz2, zst) is recognised by the first bytes.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from pyelmo.errors import FormatError, InputError, NotFoundError, PyelmoError, missing_extra
from pyelmo.text.encodings import BLOCK, as_utf8

COMPRESSED_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
Opened = Callable[[IO[bytes]], object]  # is called with the file on the disk, whose position shows the progress


def input_name(path: str | Path) -> str:
    """Return the name of an input in messages."""
    return "standard input" if str(path) == "-" else str(path)


@contextlib.contextmanager
def open_text(path: str | Path, encoding: str | None = None) -> Iterator[io.BufferedReader]:
    """Open a file, or stdin for "-", as UTF-8 without a byte-order mark.

    Args:
        path: The file, compressed or not.
        encoding: The encoding of the file (default: UTF-8).

    Raises:
        NotFoundError: There is no such file.
        InputError: The file is a folder, stdin is closed, or the encoding is unknown.
        FormatError: The compressed data is damaged, or the text is not UTF-8.
    """
    with open_bytes(path) as file:
        yield as_utf8(file, input_name(path), encoding)


@contextlib.contextmanager
def open_bytes(path: str | Path, opened: Opened = lambda file: None) -> Iterator[io.BufferedReader]:
    """Open a file, or stdin for "-", decompressed; what it raises while it is read is an error of pyelmo."""
    name = input_name(path)
    with contextlib.ExitStack() as stack:
        raw = _standard_input() if str(path) == "-" else stack.enter_context(_open_file(path))
        opened(raw)
        yield _decompressed(raw, name)


def is_compressed(path: str | Path) -> bool:
    """Return whether a file is compressed, by its first bytes."""
    with _open_file(path) as file:
        return any(file.peek(8).startswith(magic) for magic in _DECOMPRESSORS)


def bare_suffix(path: str | Path) -> str:
    """Return the suffix of a file's name in lower case, without that of the compression."""
    bare = Path(path)
    if bare.suffix.lower() in COMPRESSED_SUFFIXES:
        bare = bare.with_suffix("")
    return bare.suffix.lower()


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None or sys.stdin.buffer.closed:
        raise InputError("standard input: is closed. Name a file, or pipe text into the command.")
    buffer = sys.stdin.buffer
    # A program may replace stdin by a stream in memory, which cannot look ahead.
    return buffer if isinstance(buffer, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, buffer))


def _open_file(path: str | Path) -> io.BufferedReader:
    """Open a file. A shell's <(command) is /dev/fd/63, a pipe with a writer; opening another pipe may wait for ever."""
    special = Path(path).is_fifo() or Path(path).is_char_device() or Path(path).is_socket()
    if special and not str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/")):
        raise InputError(f"{path}: is a pipe or a device, expected a file. To read from a pipe, pass - and < {path}.")
    try:
        return cast(io.BufferedReader, open(path, "rb", buffering=BLOCK))
    except FileNotFoundError:
        raise NotFoundError(f"{path}: not found. Check the name, or pass - for standard input.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder. Name the files in it, for example {path}/*.txt.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error


def _decompressed(raw: io.BufferedReader, name: str) -> io.BufferedReader:
    try:
        start = raw.peek(8)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from error
    for magic, decompress in _DECOMPRESSORS.items():
        if start.startswith(magic):
            return io.BufferedReader(_Explained(decompress(raw), name), BLOCK)
    if name.lower().endswith(COMPRESSED_SUFFIXES) and start:
        problem = f"not compressed as the name says (it begins with {start[:4]!r})"
        raise FormatError(f"{name}: {problem}. Rename or compress the file.")
    return raw


def _open_zst(file: IO[bytes]) -> IO[bytes]:
    """Open a .zst file with the first package that is installed: Python 3.14 itself, zstandard or pyarrow."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return cast("IO[bytes]", zstd.ZstdFile(file))
    with contextlib.suppress(ImportError):
        import zstandard

        return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    with contextlib.suppress(ImportError):
        import pyarrow

        return cast("IO[bytes]", pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd"))
    raise missing_extra("zst", "reading .zst files")


_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file)),
    b"\xfd7zXZ\x00": lambda file: cast("IO[bytes]", lzma.LZMAFile(file)),  # noqa: SIM115
    b"BZh": lambda file: cast("IO[bytes]", bz2.BZ2File(file)),
    b"\x28\xb5\x2f\xfd": _open_zst,
}


class _Explained(io.RawIOBase):
    """A decompressed stream, whose errors become errors of pyelmo that name the file."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        advice = "Download or compress the file again."
        try:
            data = self._file.read(len(buffer))
        except PyelmoError:
            raise
        except EOFError as error:
            raise FormatError(f"{self._name}: the compressed data is incomplete. {advice}") from error
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise FormatError(f"{self._name}: the compressed data is damaged ({error}). {advice}") from error
        except Exception as error:  # each package that reads .zst has its own class, bz2 and pyarrow raise OSError
            reason = getattr(error, "strerror", None) or error
            raise FormatError(f"{self._name}: the compressed data cannot be read ({reason}). {advice}") from error
        buffer[: len(data)] = data
        return len(data)
