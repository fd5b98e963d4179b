"""fastText's .bin: vectors of words and of the n-grams that make up a word nobody has seen.

    magic, version            int32 each
    12 settings, t            int32 each, float64
    the words                 their number, how many are words, how many labels (int32), tokens, pruned (int64);
                              then of each its bytes, a 0, its count (int64), its kind (int8)
    the input matrix          1 byte: quantised?; rows, columns (int64); float32: words first, then n-grams by hash
    the output matrix         the same; only training needs it, and it is not read

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

MAGIC = struct.pack("<i", 793712314)
_END = "</s>"  # the end of a line is a word without n-grams
_SETTINGS = struct.Struct("<2i12id")
_COUNTS = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<?2q")


@dataclass(frozen=True, eq=False)
class Subwords:
    """The vectors of n-grams, found by hash."""

    ngrams: Float32Array  # (B, D)
    least: int
    most: int

    def vector(self, word: str) -> Float32Array | None:
        """The mean of its n-grams' vectors; a word too short to have any has none."""
        rows = ngram_rows(word, self.least, self.most, len(self.ngrams))
        if not rows:
            return None
        mean: Float32Array = self.ngrams[rows].mean(0, dtype=np.float32)
        return mean

    def compose(self, words: Sequence[str], own: Float32Array) -> Float32Array:  # (N, D)
        """The vectors of known words: the mean of a word's own row and those of its n-grams."""
        vectors = np.empty(own.shape, dtype=np.float32)
        for row, word in enumerate(words):
            found = [] if word == _END else ngram_rows(word, self.least, self.most, len(self.ngrams))
            vectors[row] = (own[row] + self.ngrams[found].sum(0, dtype=np.float32)) / (1 + len(found))
        return vectors


def ngram_rows(word: str, least: int, most: int, buckets: int) -> list[int]:
    """The hashes (FNV-1a, with fastText's signed bytes) of a word's n-grams; the word's ends count as characters."""
    if not buckets:
        return []
    text, rows = f"<{word}>", []
    for start in range(len(text)):
        for end in range(start + least, min(start + most, len(text)) + 1):
            if end - start == 1 and (start == 0 or end == len(text)):
                continue  # the mark of an end alone
            value = 2166136261
            for byte in text[start:end].encode():
                value = (value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 & 0xFFFFFFFF
            rows.append(value % buckets)
    return rows


def read(path: Path) -> tuple[list[str], Float32Array, Subwords | None]:
    """The words, their vectors, and the n-grams."""
    data: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    raw = data.data
    try:
        settings = _SETTINGS.unpack_from(raw)
        dim, buckets, least, most = settings[2], settings[10], settings[11], settings[12]
        words, place = _read_words(path, raw)
        quantised, rows, columns = _SHAPE.unpack_from(raw, place)
    except struct.error as error:
        raise FormatError(f"{path}: the fastText file ends before its vectors. Is it cut off?") from error
    if quantised:
        raise FormatError(f"{path}: the fastText model is quantised (.ftz). Use the .bin it was made from.")
    place += _SHAPE.size
    if (rows, columns) != (len(words) + buckets, dim) or dim < 1 or buckets < 0:
        want = f"{len(words)} words and {buckets} n-grams of {dim}"
        raise FormatError(f"{path}: {rows} x {columns} vectors for {want}. Is the file damaged?")
    if len(data) < place + 4 * rows * columns:
        raise FormatError(f"{path}: {len(data):,} bytes, but its vectors alone end at {place + 4 * rows * columns:,}.")
    matrix = np.memmap(path, np.dtype("<f4"), "r", place, (rows, columns))
    subwords = Subwords(matrix[len(words) :], least, most)
    vectors = subwords.compose(words, matrix[: len(words)])
    if not np.isfinite(vectors).all():
        raise FormatError(f"{path}: holds numbers that are not finite. Is the file damaged?")
    return words, vectors, subwords if buckets and most else None


def _read_words(path: Path, raw: memoryview) -> tuple[list[str], int]:
    """The words, and where they end."""
    size, count, labels, _, pruned = _COUNTS.unpack_from(raw, _SETTINGS.size)
    if labels > 0 or size != count:
        raise FormatError(f"{path}: a fastText classifier with {labels} labels, not word vectors.")
    if count < 1 or count > len(raw) or pruned > 0:
        raise FormatError(f"{path}: {count} words, {pruned} pruned n-grams. Is the file damaged?")
    place, words = _SETTINGS.size + _COUNTS.size, []
    for number in range(1, count + 1):
        window = bytes(raw[place : place + 4096])
        end = window.find(b"\0")
        if end < 1:
            raise FormatError(f"{path}, word {number} of {count}: has no end. Is the file cut off?")
        try:
            words.append(window[:end].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, word {number} of {count}: not UTF-8. Is the file damaged?") from error
        place += end + 1
        _ENTRY.unpack_from(raw, place)
        place += _ENTRY.size
    return words, place
