"""Chunks -> shards: one numbering of all word types, and the text as flat files of their ids.

    chunk files --count_types--> TypeCounts --order_types--> TypeTable --write_shards--> ShardFile, ShardFile, ...

Types stand by falling count in the training text (ties by code point) after the three marks, so the softmax vocabulary
is simply the first rows. A shard holds whole sentences of little-endian int32 ids, each closed by the end mark; its
index holds where each sentence begins (int64), and last where the shard ends.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array, Int64Array
from pyelmo.corpus.chunks import load_chunk
from pyelmo.corpus.pieces import END_ID, MARKS, UNKNOWN_ID
from pyelmo.errors import OutputError
from pyelmo.text.vocabulary import WordNumbers

ID = np.dtype("<i4")
OFFSET = np.dtype("<i8")
_READ = 1 << 22


@dataclass(frozen=True, kw_only=True)
class ShardFile:
    """A file of a corpus as the manifest lists it. `words` counts neither marks nor ends of sentences."""

    name: str
    bytes: int
    checksum: str
    tokens: int = 0
    sentences: int = 0
    words: int = 0
    unknown: int = 0  # words outside the vocabulary


@dataclass(frozen=True, kw_only=True)
class TypeTable:
    """All word types in their order, the marks first, with their counts in the training text."""

    words: list[str]
    counts: Int64Array
    vocab_size: int


# --- counting ------------------------------------------------------------------------------------------------------


@dataclass
class TypeCounts:
    """Counts of all words, merged chunk by chunk in their order; rare words go when there are too many."""

    max_types: int
    rows: WordNumbers = field(default_factory=WordNumbers)
    train: Int64Array = field(default_factory=lambda: np.zeros(1 << 16, np.int64))
    valid: Int64Array = field(default_factory=lambda: np.zeros(1 << 16, np.int64))

    def add(self, words: Sequence[str], train: Int64Array, valid: Int64Array) -> None:
        rows = np.fromiter(map(self.rows.__getitem__, words), np.int64, len(words))
        while len(self.rows) > len(self.train):
            self.train = np.concatenate([self.train, np.zeros_like(self.train)])
            self.valid = np.concatenate([self.valid, np.zeros_like(self.valid)])
        self.train[rows] += train
        self.valid[rows] += valid
        if len(self.rows) > self.max_types + self.max_types // 4:
            self._drop_rare()

    def _drop_rare(self) -> None:
        """Keep at most `max_types`: the least frequent go, all of one count together, so that order plays no part."""
        size = len(self.rows)
        total = self.train[:size] + self.valid[:size]
        threshold = np.partition(total, size - self.max_types)[size - self.max_types]
        keep = total > threshold if np.count_nonzero(total >= threshold) > self.max_types else total >= threshold
        words = [word for word, kept in zip(self.rows, keep, strict=True) if kept]
        self.rows = WordNumbers((word, row) for row, word in enumerate(words))
        for name in ("train", "valid"):
            counts = getattr(self, name)
            kept_counts = counts[:size][keep]
            setattr(self, name, np.concatenate([kept_counts, np.zeros(max(1 << 16, len(words)), np.int64)]))


def count_types(chunk_files: Iterable[Path], max_types: int) -> TypeCounts:
    counts = TypeCounts(max_types)
    for path in chunk_files:
        chunk = load_chunk(path, ids=False)
        counts.add(chunk.words, chunk.train_counts, chunk.valid_counts)
    return counts


def order_types(found: TypeCounts, *, vocab_size: int, min_count: int, min_type_count: int) -> TypeTable:
    """By falling count in the training text, ties by code point; words of validation text alone come last."""
    words = list(found.rows)
    train = found.train[: len(words)]
    kept = np.flatnonzero(train + found.valid[: len(words)] >= min_type_count)
    by_word = np.array(sorted(kept.tolist(), key=words.__getitem__), np.int64)
    order = by_word[np.argsort(-train[by_word], kind="stable")][: found.max_types]
    frequent = int(np.count_nonzero(train[order] >= max(min_count, 1)))
    return TypeTable(
        words=[*MARKS, *(words[row] for row in order.tolist())],
        counts=np.concatenate([np.zeros(len(MARKS), np.int64), train[order]]),
        vocab_size=min(vocab_size, len(MARKS) + frequent),
    )


# --- writing -------------------------------------------------------------------------------------------------------


def write_shards(
    chunk_files: Sequence[Path], folder: Path, types: TypeTable, *, shard_words: int
) -> dict[str, tuple[ShardFile, ...]]:
    """Renumber every chunk and write both splits; give each split's files, data and index in turn."""
    numbers = {word: number for number, word in enumerate(types.words)}
    writers = {split: _SplitWriter(folder, split, types.vocab_size, shard_words) for split in ("train", "valid")}
    for path in chunk_files:
        chunk = load_chunk(path)
        found = map(numbers.get, chunk.words, itertools.repeat(UNKNOWN_ID))
        renumber = np.concatenate([np.arange(len(MARKS), dtype=ID), np.fromiter(found, ID, len(chunk.words))])
        writers["train"].add(renumber[chunk.train])
        writers["valid"].add(renumber[chunk.valid])
    return {split: writer.finish() for split, writer in writers.items()}


class _SplitWriter:
    """Gathers ids until a shard is full, then writes it, cut after the sentence that filled it."""

    def __init__(self, folder: Path, split: str, vocab_size: int, shard_words: int) -> None:
        self._folder, self._split, self._vocab_size, self._shard_words = folder, split, vocab_size, shard_words
        self._gathered: list[Int32Array] = []
        self._size = 0
        self._files: list[ShardFile] = []

    def add(self, ids: Int32Array) -> None:
        while self._size + len(ids) >= self._shard_words and len(ids):
            ends = np.flatnonzero(ids == END_ID)
            cut = int(ends[np.searchsorted(ends, self._shard_words - self._size - 1)]) + 1
            self._gather(ids[:cut])
            ids = ids[cut:]
            self._write()
        self._gather(ids)

    def finish(self) -> tuple[ShardFile, ...]:
        if self._size:
            self._write()
        return tuple(self._files)

    def _gather(self, ids: Int32Array) -> None:
        if len(ids):
            self._gathered.append(ids)
            self._size += len(ids)

    def _write(self) -> None:
        ids = np.concatenate(self._gathered).astype(ID, copy=False)
        self._gathered, self._size = [], 0
        ends = np.flatnonzero(ids == END_ID)
        name = f"{self._split}-{len(self._files) // 2:05d}"
        starts = np.concatenate([[0], ends + 1]).astype(OFFSET)
        words = len(ids) - len(ends)
        unknown = int(np.count_nonzero(ids >= self._vocab_size)) + int(np.count_nonzero(ids == UNKNOWN_ID))
        data = write_file(self._folder / f"{name}.bin", ids.view(np.uint8).data)
        index = write_file(self._folder / f"{name}.index", starts.view(np.uint8).data)
        facts = {"tokens": len(ids), "sentences": len(ends), "words": words, "unknown": unknown}
        self._files += [ShardFile(name=data.name, bytes=data.bytes, checksum=data.checksum, **facts), index]


def write_file(path: Path, content: bytes | memoryview) -> ShardFile:
    """Write a file (straight, not through a memory map: a full disk must be an error, not a signal) and describe it."""
    try:
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path}: cannot be written: {reason}. Make room and run the same command again.") from error
    return ShardFile(name=path.name, bytes=len(content), checksum=_hash([content]))


def checksum(path: Path) -> str:
    """The BLAKE2b hash of a file, 128 bits as hexadecimal digits."""
    with open(path, "rb") as file:
        return _hash(iter(lambda: file.read(_READ), b""))


def _hash(blocks: Iterable[bytes | memoryview] | Iterator[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def type_file(words: Sequence[str]) -> bytes:
    """One word a line; the line number is the id (the form that Vocabulary.load reads)."""
    return "".join(f"{word}\n" for word in words).encode("utf-8")


def count_file(counts: npt.NDArray[np.int64]) -> bytes:
    return counts.astype(OFFSET).tobytes()
