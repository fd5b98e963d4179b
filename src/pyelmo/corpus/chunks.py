"""Chunks of text, and the files that hold them as ids.

    lines --cut_chunks--> Chunk --ChunkEncoder (encoding.py)--> EncodedChunk --save_chunk--> chunk file

A chunk is a span of the text of a fixed size. Its file depends only on the text and the settings, not on the process
that encoded it, and the file's name contains a hash of both: a resumed run knows which chunks are finished. Ids in a
chunk file are local to that file: 0 to 2 are the special tokens, the others are indexes into the file's own word list.
Only a few chunks are in memory at a time.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array, Int64Array, read_npz_member
from pyelmo.corpus.pieces import END_ID
from pyelmo.errors import FormatError
from pyelmo.files import atomic_path, open_regular

RULES_VERSION = 2  # increase it when the same text would be split differently
CHUNK_CHARACTERS = 8_000_000
LAST_LINES = 100  # at most, and a tenth of them: held out of a text of which no document is held out
LONGEST_DOCUMENT = 1000  # lines; a longer document is divided, and each piece is held out or not by itself


@dataclass(frozen=True, kw_only=True)
class ChunkSettings:
    """Every setting that decides how a line is split and to which data set it goes."""

    language: str
    tokenised: bool
    drop_duplicates: bool
    valid_fraction: float


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A span of the text: training lines, validation lines, and the input bytes read up to its end."""

    index: int
    train: list[str]
    valid: list[str]
    bytes_read: int

    def file_name(self, settings: ChunkSettings) -> str:
        digest = hashlib.blake2b(f"{RULES_VERSION} {settings!r}".encode(), digest_size=16)
        for lines in (self.train, self.valid):
            digest.update(b"\0%d\0" % len(lines))
            digest.update("\n".join(lines).encode("utf-8"))
        return f"{self.index:06d}-{digest.hexdigest()}.npz"


@dataclass(frozen=True, kw_only=True)
class EncodedChunk:
    """The content of a chunk file. Word `i` of `words` has the local id `i + 3`, and one count for each data set."""

    train: Int32Array
    valid: Int32Array
    words: list[str]
    train_counts: Int64Array
    valid_counts: Int64Array


# --- lines -> chunks -----------------------------------------------------------------------------------------------


def cut_chunks(
    lines: Iterable[str],
    settings: ChunkSettings,
    *,
    held_out: bool = False,
    first_index: int = 0,
    seen: SeenLines | None = None,
    bytes_read: Callable[[], int] = lambda: 0,
) -> Iterator[Chunk]:
    """Yield chunks of lines. With `held_out` all lines are for validation, otherwise a fraction of the documents is."""
    index = first_index
    for span in _spans(lines, 0.0 if held_out else settings.valid_fraction):
        if seen is not None:
            span = seen.keep_new(span)
        yield Chunk(
            index=index,
            train=[] if held_out else [line for line, valid in span if not valid],
            valid=[line for line, valid in span if valid or held_out],
            bytes_read=bytes_read(),
        )
        index += 1


def _spans(lines: Iterable[str], valid_fraction: float) -> Iterator[list[tuple[str, bool]]]:
    """Yield spans of about CHUNK_CHARACTERS characters as pairs (line, whether it is for validation).

    If a text has so few documents that none of them is held out, its last lines are.
    """
    span: list[tuple[str, bool]] = []
    any_valid = False
    characters = 0
    document = 0
    document_lines = 0
    valid = False
    for line in lines:
        if not line or document_lines == LONGEST_DOCUMENT:
            if document_lines:
                document += 1
            document_lines = 0
            valid = _is_held_out(document, valid_fraction)
        if line:
            span.append((line, valid))
            any_valid = any_valid or valid
            characters += len(line)
            document_lines += 1
        if characters >= CHUNK_CHARACTERS:
            yield span
            span, characters = [], 0
    if valid_fraction > 0 and not any_valid:
        first = len(span) - min(LAST_LINES, len(span) // 10)
        span = [(line, place >= first) for place, (line, _) in enumerate(span)]
    if span:
        yield span


def _is_held_out(document: int, fraction: float) -> bool:
    """Choose by a hash of the document's number. The first is never held out, so the training set is never empty."""
    if document == 0 or fraction <= 0:
        return False
    digest = hashlib.blake2b(document.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") < fraction * 2**64


class SeenLines:
    """The 64-bit hashes of all lines so far, 8 bytes each, in a few sorted runs of growing size."""

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.uint64]] = []

    def keep_new(self, lines: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """Return the lines that occur for the first time, in this list and in all lists before."""
        joined = b"".join(hashlib.blake2b(line.encode("utf-8"), digest_size=8).digest() for line, _ in lines)
        hashes, first = np.unique(np.frombuffer(joined, "<u8"), return_index=True)
        new = np.ones(len(hashes), bool)
        for run in self._runs:
            position = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            new &= run[position] != hashes
        if new.any():
            self._add(hashes[new])
        return [lines[position] for position in np.sort(first[new])]

    def _add(self, run: npt.NDArray[np.uint64]) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


# --- chunks <-> files ----------------------------------------------------------------------------------------------


def save_chunk(path: Path, encoded: EncodedChunk) -> None:
    words = "\n".join(encoded.words).encode("utf-8")
    with atomic_path(path) as part:
        np.savez(
            part,
            train=encoded.train,
            valid=encoded.valid,
            words=np.frombuffer(words, np.uint8),
            train_counts=encoded.train_counts,
            valid_counts=encoded.valid_counts,
        )


def load_chunk(path: Path, *, ids: bool = True) -> EncodedChunk:
    """Read a chunk file (its zip format contains checksums); with `ids=False` only the words and counts."""
    no_ids = np.zeros(0, np.int32)
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as file:
            words = read_npz_member(file, "words").tobytes().decode("utf-8")
            chunk = EncodedChunk(
                train=read_npz_member(file, "train") if ids else no_ids,
                valid=read_npz_member(file, "valid") if ids else no_ids,
                words=words.split("\n") if words else [],
                train_counts=read_npz_member(file, "train_counts"),
                valid_counts=read_npz_member(file, "valid_counts"),
            )
        _check(chunk)
        return chunk
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FormatError(f"{path}: is damaged ({error}). Remove it and run the same command again.") from error


def _check(chunk: EncodedChunk) -> None:
    """Raise a ValueError unless all ids have a word and all words two counts."""
    for ids in (chunk.train, chunk.valid):
        if (
            ids.dtype != np.int32
            or ids.ndim != 1
            or (len(ids) and not 0 <= ids.min() <= ids.max() < len(chunk.words) + 3)
        ):
            raise ValueError(f"ids of the type {ids.dtype} that are not those of {len(chunk.words)} words")
        if len(ids) and ids[-1] != END_ID:
            raise ValueError("the last sentence has no end")
    if len(set(chunk.words)) != len(chunk.words):
        raise ValueError("a word occurs twice")
    for counts in (chunk.train_counts, chunk.valid_counts):
        if counts.dtype != np.int64 or counts.shape != (len(chunk.words),) or (counts < 0).any():
            raise ValueError(f"{counts.shape} counts of the type {counts.dtype} for {len(chunk.words)} words")
