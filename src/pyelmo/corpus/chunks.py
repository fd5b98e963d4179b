"""Lines -> chunks: spans of the text of a fixed size, each split into words and written as one file.

    lines --cut_chunks--> Chunk --Encoder--> EncodedChunk --save_chunk--> file of ids

A chunk depends on the text and the settings alone, never on the process that encoded it or on what that process did
before, and the name of its file holds a hash of both: a restarted run knows which of its chunks are done. Ids within a
file are local to it: 0 to 2 are the marks, the others rows of the file's own list of words. Memory holds a few chunks.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array, Int64Array
from pyelmo.corpus.pieces import END_PIECE, MARKS, PieceTable
from pyelmo.errors import FormatError
from pyelmo.files import atomic_path
from pyelmo.text.tokens import piece_splitter, split_sentences, split_words

RULES_VERSION = 1  # raise it when the same text would be split in another way
CHUNK_CHARACTERS = 8_000_000
LONGEST_DOCUMENT = 1000  # lines; a longer document is held out, or not, in parts of this size
_BLOCK_CHARACTERS = 1 << 17
_SENTENCE_END = f" {END_PIECE} "
_PIECES_REMEMBERED = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ChunkSettings:
    """All that decides what becomes of a line."""

    language: str
    tokenised: bool
    drop_duplicates: bool
    valid_fraction: float


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A span of the text: lines to train on and lines held out, and how much of the input had been read by its end."""

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
    """What a chunk's file holds. Word `i` of `words` has the local id `i + 3` and counts in both parts."""

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
    """Gather lines into chunks. With `held_out` all of the text is for validation, else a fraction of its documents."""
    index = first_index
    for gathered in _spans(lines, 0.0 if held_out else settings.valid_fraction):
        if seen is not None:
            gathered = seen.keep_new(gathered)
        yield Chunk(
            index=index,
            train=[] if held_out else [line for line, valid in gathered if not valid],
            valid=[line for line, valid in gathered if valid or held_out],
            bytes_read=bytes_read(),
        )
        index += 1


def _spans(lines: Iterable[str], valid_fraction: float) -> Iterator[list[tuple[str, bool]]]:
    """Spans of (line, whether it is held out) of about CHUNK_CHARACTERS each."""
    gathered: list[tuple[str, bool]] = []
    characters = 0
    document = 0
    in_document = 0  # lines so far
    valid = False
    for line in lines:
        if not line or in_document == LONGEST_DOCUMENT:
            document += in_document > 0
            in_document = 0
            valid = _is_held_out(document, valid_fraction)
        if line:
            gathered.append((line, valid))
            characters += len(line)
            in_document += 1
        if characters >= CHUNK_CHARACTERS:
            yield gathered
            gathered, characters = [], 0
    if gathered:
        yield gathered


def _is_held_out(document: int, fraction: float) -> bool:
    """Chosen by a hash of the document's number. The first is always trained on: training text is never empty."""
    if document == 0 or fraction <= 0:
        return False
    digest = hashlib.blake2b(document.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") < fraction * 2**64


class SeenLines:
    """The 64-bit hashes of all lines so far, 8 bytes each, in a few sorted runs of growing size."""

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.uint64]] = []

    def keep_new(self, lines: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """Those lines that neither came before nor repeat an earlier one of this list."""
        joined = b"".join(hashlib.blake2b(line.encode("utf-8"), digest_size=8).digest() for line, _ in lines)
        hashes, first = np.unique(np.frombuffer(joined, "<u8"), return_index=True)
        new = np.ones(len(hashes), bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            new &= run[place] != hashes
        if new.any():
            self._remember(hashes[new])
        return [lines[position] for position in np.sort(first[new])]

    def _remember(self, run: npt.NDArray[np.uint64]) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


# --- chunks -> files -----------------------------------------------------------------------------------------------


class ChunkEncoder:
    """Splits lines into words and numbers them. What it remembers makes it quick, and changes no result."""

    def __init__(self, settings: ChunkSettings) -> None:
        self._settings = settings
        self._split_line = _line_splitter(settings)
        self._table = _piece_table(settings)

    def encode(self, chunk: Chunk) -> EncodedChunk:
        if len(self._table) > _PIECES_REMEMBERED:
            self._table = _piece_table(self._settings)
        parts = [self._ids(lines) for lines in (chunk.train, chunk.valid)]
        names = self._table.words
        counts = [np.bincount(ids, minlength=len(names)) for ids in parts]
        used = (counts[0] + counts[1]) > 0
        used[: len(MARKS)] = True
        local = np.cumsum(used, dtype=np.int32) - 1
        words = np.flatnonzero(used)[len(MARKS) :]
        return EncodedChunk(
            train=local[parts[0]],
            valid=local[parts[1]],
            words=[names[word] for word in words.tolist()],
            train_counts=counts[0][words],
            valid_counts=counts[1][words],
        )

    def _ids(self, lines: list[str]) -> Int32Array:
        found = [np.zeros(0, np.int32)]
        sentences: list[str] = []
        size = 0
        for line in lines:
            sentences += self._split_line(line)
            size += len(line)
            if size > _BLOCK_CHARACTERS:
                found.append(self._table.ids(_SENTENCE_END.join([*sentences, ""])))
                sentences, size = [], 0
        found.append(self._table.ids(_SENTENCE_END.join([*sentences, ""])))
        return np.concatenate(found)


def _line_splitter(settings: ChunkSettings) -> Callable[[str], list[str]]:
    """A function that gives the sentences of a line."""
    if settings.tokenised:
        return lambda line: [line]
    language = settings.language
    if language == "ko-morph":
        # A sentence of morphemes with spaces between them: they pass through the table as they are.
        return lambda line: [" ".join(split_words(sentence, language)) for sentence in split_sentences(line, language)]
    return lambda line: split_sentences(line, language)


def _piece_table(settings: ChunkSettings) -> PieceTable:
    if settings.tokenised or settings.language == "ko-morph":
        return PieceTable(lambda piece: [piece], cuts_marks=False)
    return PieceTable(piece_splitter(settings.language), cuts_marks=True)


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
    """Read a chunk's file (its zip container checks the bytes); with `ids=False` only its words and counts."""
    nothing = np.zeros(0, np.int32)
    try:
        with np.load(path, allow_pickle=False) as file:
            words = file["words"].tobytes().decode("utf-8")
            return EncodedChunk(
                train=file["train"] if ids else nothing,
                valid=file["valid"] if ids else nothing,
                words=words.split("\n") if words else [],
                train_counts=file["train_counts"],
                valid_counts=file["valid_counts"],
            )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise FormatError(f"{path}: is damaged ({error}). Remove it and run the same command again.") from error
