"""Merge chunk files into shards: one list of all word types, and the text as flat files of type ids.

    chunk files --count_types--> TypeCounts --order_types--> TypeTable --write_shards--> CorpusFile, CorpusFile, ...

The list of types starts with the three special tokens; the others follow by falling count in the training text (ties
by code point). So the first types of the list are the softmax vocabulary. A shard holds whole sentences as
little-endian int32 ids, each followed by </S>. Its index file holds the start of each sentence (int64), and at the end
the length of the shard.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array, Int64Array
from pyelmo.corpus.chunks import load_chunk
from pyelmo.corpus.pieces import END_ID, SPECIAL_TOKENS, UNKNOWN_ID
from pyelmo.errors import OutputError
from pyelmo.text.vocabulary import WordNumbers

ID = np.dtype("<i4")
OFFSET = np.dtype("<i8")
_READ = 1 << 22


@dataclass(frozen=True, kw_only=True)
class CorpusFile:
    """A file of a corpus as the manifest lists it. `tokens` counts words and sentence ends, `words` only words."""

    name: str
    bytes: int
    checksum: str
    tokens: int = 0
    sentences: int = 0
    words: int = 0
    unknown: int = 0  # words outside the vocabulary


@dataclass(frozen=True, kw_only=True)
class TypeTable:
    """All word types in the order of their ids, with their counts in the training text."""

    words: list[str]
    counts: Int64Array
    vocab_size: int


# --- counting ------------------------------------------------------------------------------------------------------


@dataclass
class TypeCounts:
    """Counts of all word types, added chunk by chunk; the rarest types are dropped when there are too many."""

    max_types: int
    numbers: WordNumbers = field(default_factory=WordNumbers)
    train: Int64Array = field(default_factory=lambda: np.zeros(1 << 16, np.int64))
    valid: Int64Array = field(default_factory=lambda: np.zeros(1 << 16, np.int64))

    def add(self, words: Sequence[str], train: Int64Array, valid: Int64Array) -> None:
        numbers = np.fromiter(map(self.numbers.__getitem__, words), np.int64, len(words))
        while len(self.numbers) > len(self.train):
            self.train = np.concatenate([self.train, np.zeros_like(self.train)])
            self.valid = np.concatenate([self.valid, np.zeros_like(self.valid)])
        self.train[numbers] += train
        self.valid[numbers] += valid
        if len(self.numbers) > self.max_types + self.max_types // 4:
            self._drop_rare()

    def _drop_rare(self) -> None:
        """Keep at most `max_types`. Types of the same count go together, so the order of the text has no influence."""
        size = len(self.numbers)
        total = self.train[:size] + self.valid[:size]
        threshold = np.partition(total, size - self.max_types)[size - self.max_types]
        keep = total > threshold if np.count_nonzero(total >= threshold) > self.max_types else total >= threshold
        words = [word for word, is_kept in zip(self.numbers, keep, strict=True) if is_kept]
        self.numbers = WordNumbers((word, number) for number, word in enumerate(words))
        room = np.zeros(max(1 << 16, len(words)), np.int64)
        self.train = np.concatenate([self.train[:size][keep], room])
        self.valid = np.concatenate([self.valid[:size][keep], room])


def count_types(chunk_files: Iterable[Path], max_types: int) -> TypeCounts:
    counts = TypeCounts(max_types)
    for path in chunk_files:
        chunk = load_chunk(path, ids=False)
        counts.add(chunk.words, chunk.train_counts, chunk.valid_counts)
    return counts


def order_types(counts: TypeCounts, *, vocab_size: int, min_count: int, min_type_count: int) -> TypeTable:
    """Sort types by falling count in the training text, ties by code point. Validation-only types come last."""
    words = list(counts.numbers)
    train = counts.train[: len(words)]
    frequent_enough = np.flatnonzero(train + counts.valid[: len(words)] >= min_type_count)
    by_word = np.array(sorted(frequent_enough.tolist(), key=words.__getitem__), np.int64)
    order = by_word[np.argsort(-train[by_word], kind="stable")][: counts.max_types]
    predicted = int(np.count_nonzero(train[order] >= max(min_count, 1)))
    return TypeTable(
        words=[*SPECIAL_TOKENS, *(words[number] for number in order.tolist())],
        counts=np.concatenate([np.zeros(len(SPECIAL_TOKENS), np.int64), train[order]]),
        vocab_size=min(vocab_size, len(SPECIAL_TOKENS) + predicted),
    )


# --- writing -------------------------------------------------------------------------------------------------------


def write_shards(
    chunk_files: Sequence[Path], folder: Path, types: TypeTable, *, shard_words: int
) -> dict[str, tuple[CorpusFile, ...]]:
    """Replace the local ids of every chunk by type ids and write both splits.

    Returns the files of each split: data, index, data, index, ...
    """
    ids = {word: number for number, word in enumerate(types.words)}
    writers = {split: _SplitWriter(folder, split, types.vocab_size, shard_words) for split in ("train", "valid")}
    for path in chunk_files:
        chunk = load_chunk(path)
        word_ids = np.fromiter(map(ids.get, chunk.words, itertools.repeat(UNKNOWN_ID)), ID, len(chunk.words))
        type_ids = np.concatenate([np.arange(len(SPECIAL_TOKENS), dtype=ID), word_ids])
        writers["train"].add(type_ids[chunk.train])
        writers["valid"].add(type_ids[chunk.valid])
    return {split: writer.finish() for split, writer in writers.items()}


class _SplitWriter:
    """Collects ids until a shard is full, and writes the shard up to the end of the sentence that filled it."""

    def __init__(self, folder: Path, split: str, vocab_size: int, shard_words: int) -> None:
        self._folder, self._split, self._vocab_size, self._shard_words = folder, split, vocab_size, shard_words
        self._collected: list[Int32Array] = []
        self._size = 0
        self._files: list[CorpusFile] = []

    def add(self, ids: Int32Array) -> None:
        while self._size + len(ids) >= self._shard_words and len(ids):
            ends = np.flatnonzero(ids == END_ID)
            cut = int(ends[np.searchsorted(ends, self._shard_words - self._size - 1)]) + 1
            self._collect(ids[:cut])
            ids = ids[cut:]
            self._write()
        self._collect(ids)

    def finish(self) -> tuple[CorpusFile, ...]:
        if self._size:
            self._write()
        return tuple(self._files)

    def _collect(self, ids: Int32Array) -> None:
        if len(ids):
            self._collected.append(ids)
            self._size += len(ids)

    def _write(self) -> None:
        ids = np.concatenate(self._collected).astype(ID, copy=False)
        self._collected, self._size = [], 0
        ends = np.flatnonzero(ids == END_ID)
        name = f"{self._split}-{len(self._files) // 2:05d}"
        starts = np.concatenate([[0], ends + 1]).astype(OFFSET)
        words = len(ids) - len(ends)
        unknown = int(np.count_nonzero(ids >= self._vocab_size)) + int(np.count_nonzero(ids == UNKNOWN_ID))
        data = write_file(self._folder / f"{name}.bin", ids.view(np.uint8).data)
        index = write_file(self._folder / f"{name}.index", starts.view(np.uint8).data)
        data = replace(data, tokens=len(ids), sentences=len(ends), words=words, unknown=unknown)
        self._files += [data, index]


def write_file(path: Path, content: bytes | memoryview) -> CorpusFile:
    """Write a file and return its description. A memory map would not do: on a full disk it ends in a signal."""
    try:
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        advice = "Free some space and run the same command again."
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}. {advice}") from error
    return CorpusFile(name=path.name, bytes=len(content), checksum=_hash([content]))


def checksum(path: Path) -> str:
    """Return the BLAKE2b hash of a file, 128 bits as hexadecimal digits."""
    with open(path, "rb") as file:
        return _hash(iter(lambda: file.read(_READ), b""))


def _hash(blocks: Iterable[bytes | memoryview] | Iterator[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def type_file(words: Sequence[str]) -> bytes:
    """Return the content of a vocabulary file: one word per line, the line number is the id."""
    return "".join(f"{word}\n" for word in words).encode("utf-8")


def count_file(counts: npt.NDArray[np.int64]) -> bytes:
    return counts.astype(OFFSET).tobytes()
