"""Chunks -> chunk files, in one process or several, with progress.

Files come back in the order of the chunks. A chunk whose file is there already is not encoded again.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyelmo.corpus.chunks import Chunk, ChunkEncoder, ChunkSettings, save_chunk
from pyelmo.parallel import process_pool


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the reading is; `total_bytes` is None where standard input is read."""

    bytes_read: int
    total_bytes: int | None
    chunks: int


OnProgress = Callable[[Progress], None]
Submit = Callable[[Chunk, Path], Callable[[], None]]


def encode_chunks(
    chunks: Iterable[Chunk],
    folder: Path,
    settings: ChunkSettings,
    *,
    processes: int,
    total_bytes: int | None,
    progress: OnProgress | bool,
) -> list[Path]:
    """Encode all chunks into `folder` and give their files in order."""
    files: list[Path] = []
    with _reporting(progress) as report, _workers(settings, processes) as submit:
        waiting: collections.deque[tuple[Chunk, Callable[[], None]]] = collections.deque()

        def finish_oldest() -> None:
            chunk, wait = waiting.popleft()
            wait()
            report(Progress(bytes_read=chunk.bytes_read, total_bytes=total_bytes, chunks=chunk.index + 1))

        for chunk in chunks:
            path = folder / chunk.file_name(settings)
            files.append(path)
            waiting.append((chunk, _nothing if path.exists() else submit(chunk, path)))
            # A bounded queue: the reader must not run ahead of the workers and fill the memory with text.
            while len(waiting) >= 2 * processes:
                finish_oldest()
        while waiting:
            finish_oldest()
    return files


def _nothing() -> None:
    pass


@contextlib.contextmanager
def _workers(settings: ChunkSettings, processes: int) -> Iterator[Submit]:
    """A function that starts the encoding of one chunk and gives one that waits for its end."""
    if processes == 1:

        def run_here(chunk: Chunk, path: Path) -> Callable[[], None]:
            return functools.partial(_encode, settings, chunk, path)

        yield run_here
        _encoder.cache_clear()
        return
    advice = "Was there too little memory? Finished chunks are kept; run the same command again."
    with process_pool(processes, advice) as pool:

        def run_there(chunk: Chunk, path: Path) -> Callable[[], None]:
            return pool.submit(_encode, settings, chunk, path).result

        yield run_there


def _encode(settings: ChunkSettings, chunk: Chunk, path: Path) -> None:
    save_chunk(path, _encoder(settings).encode(chunk))


@functools.lru_cache(maxsize=1)
def _encoder(settings: ChunkSettings) -> ChunkEncoder:
    return ChunkEncoder(settings)


@contextlib.contextmanager
def _reporting(progress: OnProgress | bool) -> Iterator[OnProgress]:
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _: None
    else:
        from tqdm import tqdm

        with tqdm(unit="B", unit_scale=True, desc="prepare") as bar:

            def draw(state: Progress) -> None:
                bar.total = state.total_bytes
                bar.update(state.bytes_read - bar.n)

            yield draw
