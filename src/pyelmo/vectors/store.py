"""Files of static vectors: detection of the format, reading and writing.

word2vec           text: a line "N D", then lines of a word and its D numbers; the .vec files of fastText are the same
word2vec-binary    a line "N D", then a word, a space and D float32 numbers
glove              text: lines of a word and its numbers, without a first line
fasttext           the .bin files of fastText, with vectors of n-grams
gensim             KeyedVectors or a model, saved by gensim

N words, D vector.
"""

from __future__ import annotations

import codecs
import functools
import logging
import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, InputError, NotFoundError, missing_extra
from pyelmo.files import atomic_path, open_regular
from pyelmo.vectors import fasttext, gensim_file
from pyelmo.vectors.fasttext import Subwords

StoredVectors = tuple[list[str], Float32Array, Subwords | None]
FORMATS = ("word2vec", "word2vec-binary", "glove", "fasttext", "gensim")
_SUFFIXES = {".txt": "word2vec", ".vec": "word2vec", ".bin": "word2vec-binary", ".kv": "gensim"}
_HEADER = re.compile(rb"(\d{1,12}) (\d{1,9})[ \r]*")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_LONGEST_WORD = 4096  # bytes; a longer word means that a binary file is damaged
log = logging.getLogger(__name__)


def read(path: Path) -> StoredVectors:
    """Read the words, their vectors (N, D), and n-grams if the file has them. Of a repeated word, the first counts."""
    if path.is_dir():
        raise FormatError(f"{path}: this is a folder, expected a file of vectors")
    if not path.exists():
        raise NotFoundError(f"{path}: not found")
    words, matrix, subwords = _READERS[kind_of(path)](path)
    first = {word: row for row, word in reversed(list(enumerate(words)))}
    if len(first) < len(words):
        log.warning("%s: %d words are repeated; the first vector of each is used", path, len(words) - len(first))
        rows = sorted(first.values())
        words, matrix = [words[row] for row in rows], matrix[rows]
    return words, matrix, subwords


def kind_of(path: Path) -> str:
    """Detect the format of a file from its first bytes."""
    with open_regular(path) as file:
        head = file.read(1 << 14).removeprefix(codecs.BOM_UTF8)
    if not head:
        raise FormatError(f"{path}: the file is empty")
    for magic, program in _COMPRESSED.items():
        if head.startswith(magic):
            raise FormatError(f"{path}: the file is compressed with {program}. Decompress it first.")
    if head.startswith(fasttext.MAGIC):
        return "fasttext"
    if gensim_file.SIGNATURE.match(head):
        return "gensim"
    if head[0] == 0x80:  # no text begins so, but every pickle
        raise FormatError(f"{path}: not a file of vectors; perhaps a pickle of another program. {gensim_file.EXPORT}")
    line, _, rest = head.partition(b"\n")
    if not _HEADER.fullmatch(line):
        return "glove"
    return "word2vec" if _is_text(rest) else "word2vec-binary"


def _is_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return False
    return not _CONTROL.search(head)


def _read_text(path: Path, *, header: bool) -> StoredVectors:
    words: list[str] = []
    rows = bytearray()
    count = dim = 0
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        if header:
            count, dim = _read_header(path, file, least_bytes=2)
        number, line = 0, b""
        for number, line in enumerate(file, 2 if header else 1):
            where = f"{path}, line {number}"
            if not dim:
                dim = max(line.rstrip().count(b" "), 1)
            word, row = _parse(where, line, dim, spaces=not header)
            words.append(word)
            rows += row.tobytes()
    if header and len(words) != count:
        raise FormatError(f"{path}, line {number}: {len(words)} words, but line 1 says {count}. Is the file complete?")
    if not line.endswith(b"\n") and not header:  # the last number may be truncated
        raise FormatError(f"{path}, line {number}: the line end is missing. Is the file complete? If so, add one.")
    return words, np.frombuffer(rows, dtype=np.float32).reshape(len(words), dim), None


def _parse(where: str, line: bytes, dim: int, *, spaces: bool) -> tuple[str, Float32Array]:
    """Return a word and its numbers. A word of GloVe may contain spaces, but not a number after a space."""
    try:
        word, *fields = line.decode("utf-8").rstrip(" \r\n").rsplit(" ", dim)
        row = np.array([float(field) for field in fields], dtype=np.float32)
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: not UTF-8 at byte {error.start}. Is this a file of word vectors?") from error
    except ValueError:
        start = line[:60].decode("utf-8", "replace")
        raise FormatError(f"{where}: expected a word and {dim} numbers, got {start!r}") from None
    if len(row) != dim or not word or (" " in word and (not spaces or _is_number(word.split(" ")[-1]))):
        got = len(line.split()) - 1
        raise FormatError(f"{where}: expected a word and {dim} numbers, got {got}. Is the file damaged?")
    if not np.isfinite(row).all():
        raise FormatError(f"{where}: the vector of {word!r} contains NaN or infinity")
    return word, row


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_binary(path: Path) -> StoredVectors:
    with path.open("rb") as file:
        count, dim = _read_header(path, file, least_bytes=4)
        offset = file.tell()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            words: list[str] = []
            matrix = np.empty((count, dim), dtype=np.float32)
            for row in range(count):
                where = f"{path}, word {row + 1} of {count}"
                end = data.find(b" ", offset, offset + _LONGEST_WORD)
                if end < 0 or end + 1 + 4 * dim > len(data):
                    raise FormatError(f"{where}: the file ends here, or is damaged before. Is it complete?")
                try:
                    words.append(data[offset:end].lstrip(b"\n").decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise FormatError(f"{where}: not UTF-8. Is the file damaged?") from error
                offset = end + 1 + 4 * dim
                matrix[row] = np.frombuffer(data[end + 1 : offset], dtype="<f4")
                if not words[-1] or not np.isfinite(matrix[row]).all():
                    raise FormatError(f"{where}: no word, or a vector with NaN or infinity. Is the file damaged?")
            if data[offset:].strip(b"\n"):
                raise FormatError(f"{path}: {len(data) - offset} bytes after the last of {count} words. Is it damaged?")
    return words, matrix, None


def _read_header(path: Path, file: BinaryIO, *, least_bytes: int) -> tuple[int, int]:
    """Return N and D, after checking that the file is large enough for them."""
    match = _HEADER.fullmatch(file.readline().rstrip(b"\n"))
    assert match
    count, dim = int(match[1]), int(match[2])
    if count < 1 or dim < 1 or count * dim * least_bytes > path.stat().st_size:
        raise FormatError(f"{path}, line 1: {count} words of {dim} numbers do not fit the file size. Is it complete?")
    return count, dim


_READERS: dict[str, Callable[[Path], StoredVectors]] = {
    "word2vec": functools.partial(_read_text, header=True),
    "word2vec-binary": _read_binary,
    "glove": functools.partial(_read_text, header=False),
    "fasttext": fasttext.read,
    "gensim": gensim_file.read,
}


def format_of(path: Path, format: str | None, *, subwords: bool) -> str:
    """Return the format to write: the one given, else by the ending; .bin means fastText for vectors with n-grams."""
    chosen = format or ("fasttext" if subwords and path.suffix == ".bin" else _SUFFIXES.get(path.suffix))
    if chosen is None:
        ends = ", ".join(_SUFFIXES)
        raise InputError(f"{path}: the ending does not name a format. Use one of {ends}, or set --format.")
    if chosen not in FORMATS:
        raise InputError(f"format {chosen!r} is unknown. Use one of {', '.join(FORMATS)}.")
    if chosen == "fasttext" and not subwords:
        raise InputError(f"{path}: these vectors have no n-grams, which the fastText format needs. Use another format.")
    return chosen


def write(path: Path, format: str, words: Sequence[str], matrix: Float32Array, trained: Any, *, force: bool) -> None:
    """Write a file atomically. Only the fastText format needs `trained`, the gensim model."""
    if format == "fasttext" and trained is None:
        raise InputError(
            f"{path}: a .bin of fastText holds the whole model, which vectors from a file lack. Copy the .bin."
        )
    if format not in ("fasttext", "gensim"):
        invalid = next((word for word in words if not word or re.search(r"[ \n\r]", word)), None)
        if invalid is not None:
            raise InputError(
                f"{path}: the word {invalid!r} is empty or contains white space, which {format} cannot store. "
                "Use the gensim format."
            )
    with atomic_path(path, force=force) as part:
        if format == "fasttext":
            _write_fasttext(part, trained)
        elif format == "gensim":
            gensim_file.write(part, words, matrix)
        else:
            with part.open("wb") as file:
                file.writelines(_lines(format, words, matrix))


def _lines(format: str, words: Sequence[str], matrix: Float32Array) -> Iterator[bytes]:
    if format != "glove":
        yield f"{len(words)} {matrix.shape[1]}\n".encode()
    numbers = " %.9g" * matrix.shape[1] + "\n"  # nine digits are exact for float32
    for word, row in zip(words, matrix, strict=True):
        if format == "word2vec-binary":
            yield word.encode() + b" " + row.astype("<f4").tobytes() + b"\n"
        else:
            yield (word + numbers % tuple(row.tolist())).encode()


def _write_fasttext(path: Path, trained: Any) -> None:
    try:
        from gensim.models.fasttext import save_facebook_model
    except ImportError:
        raise missing_extra("vectors", "writing the .bin format of fastText") from None
    save_facebook_model(trained, str(path))
