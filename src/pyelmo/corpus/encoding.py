"""Encode chunks: lines -> words -> ids, in one process or several.

    Chunk --ChunkEncoder--> EncodedChunk --save_chunk--> chunk file

The files are returned in the order of the chunks. A chunk whose file exists already is not encoded again.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.arrays import Int32Array
from pyelmo.corpus.chunks import Chunk, ChunkSettings, EncodedChunk, save_chunk
from pyelmo.corpus.pieces import END_PIECE, SPECIAL_TOKENS, PieceTable
from pyelmo.parallel import process_pool
from pyelmo.text.normalisation import normalise_words
from pyelmo.text.tokens import normal_sentences, piece_splitter, split_words

_BLOCK_CHARACTERS = 1 << 17
_SENTENCE_END = f" {END_PIECE} "
_MAX_PIECES = 1 << 20  # a piece table with more pieces is replaced by an empty one, to bound the memory


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of the work so far; `total_bytes` is None if standard input is read."""

    bytes_read: int
    total_bytes: int | None
    chunks: int


OnProgress = Callable[[Progress], None]
_Submit = Callable[[Chunk, Path], Callable[[], None]]


def encode_chunks(
    chunks: Iterable[Chunk],
    folder: Path,
    settings: ChunkSettings,
    *,
    workers: int,
    total_bytes: int | None,
    progress: OnProgress | bool,
) -> list[Path]:
    """Encode all chunks into `folder` and return their files in order."""
    files: list[Path] = []
    with _progress_callback(progress, total_bytes) as report, _submitter(settings, workers) as submit:
        waiting: collections.deque[tuple[Chunk, Callable[[], None]]] = collections.deque()

        def finish_oldest() -> None:
            chunk, wait = waiting.popleft()
            wait()
            report(Progress(bytes_read=chunk.bytes_read, total_bytes=total_bytes, chunks=chunk.index + 1))

        for chunk in chunks:
            path = folder / chunk.file_name(settings)
            files.append(path)
            waiting.append((chunk, _do_nothing if path.exists() else submit(chunk, path)))
            # The queue is bounded, so that the reader cannot fill the memory with text.
            while len(waiting) >= 2 * workers:
                finish_oldest()
        while waiting:
            finish_oldest()
    return files


class ChunkEncoder:
    """Splits lines into words and replaces words by ids. The pieces it remembers save time and change no result."""

    def __init__(self, settings: ChunkSettings) -> None:
        self._settings = settings
        self._split_line = _line_splitter(settings)
        self._table = _piece_table(settings)

    def encode(self, chunk: Chunk) -> EncodedChunk:
        if len(self._table) > _MAX_PIECES:
            self._table = _piece_table(self._settings)
        train, valid = self._ids(chunk.train), self._ids(chunk.valid)
        all_words = self._table.words
        train_counts, valid_counts = (np.bincount(ids, minlength=len(all_words)) for ids in (train, valid))
        used = (train_counts + valid_counts) > 0
        used[: len(SPECIAL_TOKENS)] = True
        local_ids = np.cumsum(used, dtype=np.int32) - 1
        words = np.flatnonzero(used)[len(SPECIAL_TOKENS) :]
        return EncodedChunk(
            train=local_ids[train],
            valid=local_ids[valid],
            words=[all_words[word] for word in words.tolist()],
            train_counts=train_counts[words],
            valid_counts=valid_counts[words],
        )

    def _ids(self, lines: list[str]) -> Int32Array:
        blocks = [np.zeros(0, np.int32)]
        sentences: list[str] = []
        size = 0
        for line in lines:
            sentences += self._split_line(line)
            size += len(line)
            if size > _BLOCK_CHARACTERS:
                blocks.append(self._table.ids(_SENTENCE_END.join([*sentences, ""])))
                sentences, size = [], 0
        blocks.append(self._table.ids(_SENTENCE_END.join([*sentences, ""])))
        return np.concatenate(blocks)


def _line_splitter(settings: ChunkSettings) -> Callable[[str], list[str]]:
    """Return the function that normalises a line and splits it into sentences."""
    language = settings.language
    if settings.tokenised:
        return lambda line: [line if line.isascii() else " ".join(normalise_words(line.split(), language))]
    if language == "ko-morph":
        # A sentence becomes morphemes separated by spaces, which the piece table does not split further.
        return lambda line: [" ".join(split_words(sentence, language)) for sentence in normal_sentences(line, language)]
    return lambda line: normal_sentences(line, language)


def _piece_table(settings: ChunkSettings) -> PieceTable:
    if settings.tokenised or settings.language == "ko-morph":
        return PieceTable(lambda piece: [piece], cuts_punctuation=False)
    return PieceTable(piece_splitter(settings.language), cuts_punctuation=True)


# --- processes and progress ----------------------------------------------------------------------------------------


def _do_nothing() -> None:
    pass


@contextlib.contextmanager
def _submitter(settings: ChunkSettings, workers: int) -> Iterator[_Submit]:
    """Yield a function that starts to encode a chunk and returns a function that waits for the result."""
    if workers == 1:
        yield lambda chunk, path: functools.partial(_encode, settings, chunk, path)
        _encoder.cache_clear()
        return
    advice = "Was there too little memory? Finished chunks are kept; run the same command again."
    with process_pool(workers, advice) as pool:
        yield lambda chunk, path: pool.submit(_encode, settings, chunk, path).result


def _encode(settings: ChunkSettings, chunk: Chunk, path: Path) -> None:
    save_chunk(path, _encoder(settings).encode(chunk))


@functools.lru_cache(maxsize=1)
def _encoder(settings: ChunkSettings) -> ChunkEncoder:
    return ChunkEncoder(settings)


@contextlib.contextmanager
def _progress_callback(progress: OnProgress | bool, total_bytes: int | None) -> Iterator[OnProgress]:
    """Yield the callback to use: the given one, one that draws a bar, or one that does nothing."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _: None
    else:
        from tqdm import tqdm

        with tqdm(total=total_bytes, unit="B", unit_scale=True, desc="prepare") as bar:
            yield lambda state: bar.update(state.bytes_read - bar.n)
