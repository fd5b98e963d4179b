"""Chunks -> chunk files, in one process or several, with progress.

Files come back in the order of the chunks. A chunk whose file is there already is not encoded again.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import PyelmoError
from pyelmo.text.chunks import Chunk, ChunkSettings, Encoder, save_chunk


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the reading is; `total_bytes` is None where standard input is read."""

    bytes_read: int
    total_bytes: int | None
    chunks: int


Report = Callable[[Progress], None]
Submit = Callable[[Chunk, Path], Callable[[], None]]


def encode_chunks(
    chunks: Iterable[Chunk],
    folder: Path,
    settings: ChunkSettings,
    *,
    processes: int,
    total_bytes: int | None,
    progress: Report | bool,
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
    # "spawn": a fork of a program with threads (torch, a notebook) may hang.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)

    def run_there(chunk: Chunk, path: Path) -> Callable[[], None]:
        return pool.submit(_encode, settings, chunk, path).result

    try:
        yield run_there
    except BrokenProcessPool as error:
        advice = "Was it killed for want of memory? What is done is kept; run the same command again."
        raise PyelmoError(f"a worker process ended without a word. {advice}") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _encode(settings: ChunkSettings, chunk: Chunk, path: Path) -> None:
    save_chunk(path, _encoder(settings).encode(chunk))


@functools.lru_cache(maxsize=1)
def _encoder(settings: ChunkSettings) -> Encoder:
    return Encoder(settings)


def end_with_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it is killed instead of waiting for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def _reporting(progress: Report | bool) -> Iterator[Report]:
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
