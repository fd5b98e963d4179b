"""The .bin format of fastText: vectors of words, and vectors of n-grams for out-of-vocabulary words.

    magic, version            int32 each
    12 settings, t            int32 each, float64
    dictionary                entries, words, labels (int32), tokens, pruned n-grams (int64); then for each entry its
                              bytes, a zero byte, its count (int64) and its type (int8)
    input matrix              quantised (1 byte); rows, columns (int64); float32: words first, then n-grams by hash
    output matrix             the same layout; only training needs it, and it is not read

N words, B n-grams (buckets), D vector.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError
from pyelmo.files import FileVersion

MAGIC = struct.pack("<i", 793712314)
_END = "</s>"  # the line end is a word without n-grams
_SETTINGS = struct.Struct("<2i12id")
_COUNTS = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<?2q")
_LONGEST_NGRAM = 32  # characters; fastText's own default is 6


@dataclass(frozen=True, eq=False)
class Subwords:
    """The vectors of n-grams; the row of an n-gram is its hash."""

    ngrams: Float32Array  # (B, D), perhaps memory-mapped: two million n-grams take 2.4 GB
    shortest: int  # characters of an n-gram
    longest: int
    file: FileVersion | None = None  # of the mapped file

    def vector(self, word: str) -> Float32Array | None:
        """Return the mean vector of the n-grams of a word, or None if the word is too short."""
        rows = ngram_rows(word, self.shortest, self.longest, len(self.ngrams))
        if not rows:
            return None
        if self.file is not None:
            self.file.check()
        mean: Float32Array = self.ngrams[rows].mean(0, dtype=np.float32)
        if not np.isfinite(mean).all():
            raise FormatError(f"the vectors of the n-grams of {word!r} contain NaN or infinity. Is their file damaged?")
        return mean

    def compose(self, words: Sequence[str], own: Float32Array) -> Float32Array:  # (N, D)
        """Return the vectors of known words: the mean over a word's own vector and those of its n-grams."""
        vectors = np.empty(own.shape, dtype=np.float32)
        for row, word in enumerate(words):
            ngrams = [] if word == _END else ngram_rows(word, self.shortest, self.longest, len(self.ngrams))
            vectors[row] = (own[row] + self.ngrams[ngrams].sum(0, dtype=np.float32)) / (1 + len(ngrams))
        return vectors


def ngram_rows(word: str, shortest: int, longest: int, buckets: int) -> list[int]:
    """Return the hashes of the n-grams of "<word>": FNV-1a with signed bytes, as in fastText."""
    if not buckets:
        return []
    characters, rows = [character.encode("utf-8", "surrogatepass") for character in f"<{word}>"], []
    last = len(characters) - 1
    for start in range(len(characters)):
        value = 2166136261
        for end in range(start, min(start + longest, len(characters))):
            for byte in characters[end]:
                value = (value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 & 0xFFFFFFFF
            if end - start + 1 < shortest or (end == start and start in (0, last)):
                continue  # "<" or ">" alone
            rows.append(value % buckets)
    return rows


def read(path: Path) -> tuple[list[str], Float32Array, Subwords | None]:
    """Read the words, their vectors, and the n-grams."""
    file = FileVersion.of(path)
    data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    raw = data.data
    try:
        settings = _SETTINGS.unpack_from(raw)
        dim, buckets, shortest, longest = settings[2], settings[10], settings[11], settings[12]
        check_ngram_lengths(path, shortest, longest)
        words, offset = _read_words(path, raw)
        quantised, rows, columns = _SHAPE.unpack_from(raw, offset)
    except struct.error as error:
        raise FormatError(f"{path}: the fastText file ends before its vectors. Is it complete?") from error
    if quantised:
        raise FormatError(f"{path}: quantised fastText models (.ftz) are not supported. Use the original .bin.")
    offset += _SHAPE.size
    if (rows, columns) != (len(words) + buckets, dim) or dim < 1 or buckets < 0:
        expected = f"{len(words)} words and {buckets} n-grams of {dim} numbers"
        raise FormatError(f"{path}: {rows} x {columns} vectors, expected {expected}. Is the file damaged?")
    if len(data) < (end := offset + 4 * rows * columns):
        raise FormatError(f"{path}: {len(data):,} bytes, but the vectors end at byte {end:,}. Is the file complete?")
    matrix = np.memmap(path, np.dtype("<f4"), "r", offset, (rows, columns))
    subwords = Subwords(matrix[len(words) :], shortest, longest, file)
    vectors = subwords.compose(words, matrix[: len(words)])
    if not np.isfinite(vectors).all():
        raise FormatError(f"{path}: the vectors contain NaN or infinity. Is the file damaged?")
    file.check()
    return words, vectors, subwords if buckets and longest else None


def check_ngram_lengths(path: Path, shortest: int, longest: int) -> None:
    """Refuse lengths of n-grams beyond all use: the time for a word grows with them."""
    if not 0 <= shortest <= _LONGEST_NGRAM or not 0 <= longest <= _LONGEST_NGRAM:
        raise FormatError(
            f"{path}: n-grams of {shortest} to {longest} characters; at most {_LONGEST_NGRAM} are read. Is it damaged?"
        )


def _read_words(path: Path, raw: memoryview) -> tuple[list[str], int]:
    """Return the words and the offset after them."""
    size, count, labels, _, pruned = _COUNTS.unpack_from(raw, _SETTINGS.size)
    if labels > 0 or size != count:
        raise FormatError(f"{path}: a fastText classifier with {labels} labels, expected word vectors.")
    if count < 1 or count > len(raw) or pruned > 0:
        raise FormatError(f"{path}: {count} words, {pruned} pruned n-grams. Is the file damaged?")
    offset, words = _SETTINGS.size + _COUNTS.size, []
    for number in range(1, count + 1):
        window = bytes(raw[offset : offset + 4096])
        end = window.find(b"\0")
        if end < 1:
            raise FormatError(f"{path}, word {number} of {count}: the word has no end. Is the file complete?")
        try:
            words.append(window[:end].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, word {number} of {count}: not UTF-8. Is the file damaged?") from error
        offset += end + 1
        _ENTRY.unpack_from(raw, offset)
        offset += _ENTRY.size
    return words, offset
