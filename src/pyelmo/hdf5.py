"""Writing HDF5 so that a full disk or Ctrl-C is an error like any other."""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


class Hdf5Writer:
    """Datasets by name, one after another; `finish` makes the file whole, `abandon` lets go of it."""

    def __init__(self, path: Path) -> None:
        import h5py  # here: whoever only reads another format does not wait for it

        self._raw = QuietFile(path)
        self._file = h5py.File(self._raw, "w")
        self._string = h5py.string_dtype()

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def write(self, name: str, array: np.ndarray) -> None:
        with interrupt_later():
            self._file.create_dataset(name, data=array)
        self._raw.check()

    def write_text(self, name: str, text: str) -> None:
        """One string, shape (1,); ASCII, as HDF5's strings take neither NUL nor lone surrogates."""
        with interrupt_later():
            self._file.create_dataset(name, (1,), dtype=self._string)[0] = text
        self._raw.check()

    def finish(self) -> None:
        with interrupt_later():
            self._file.close()
        self._raw.check()
        self._raw.close()

    def abandon(self) -> None:
        with interrupt_later():
            self._raw.drop()
            self._file.close()
        self._raw.close()


@contextlib.contextmanager
def create_hdf5(path: Path) -> Iterator[Hdf5Writer]:
    """A writer that finishes when the block ends well, and lets go of the file when it does not."""
    writer = Hdf5Writer(path)
    try:
        yield writer
        writer.finish()
    except BaseException:
        # The first error is the one to report; what closing a broken file adds to it does not matter.
        with contextlib.suppress(Exception):
            writer.abandon()
        raise


@contextlib.contextmanager
def interrupt_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends: raised inside a call from HDF5 into Python it would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if seen:
        signal.raise_signal(signal.SIGINT)


class QuietFile(io.FileIO):
    """A file that keeps its failures to itself until `check`.

    HDF5 cannot take them: when the disk is full, it drops the data of small datasets without an error and then
    crashes the process (segmentation fault) as the file is closed. So every write succeeds, and we ask afterwards.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self._failure: BaseException | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self._failure is None:
                rest = rest[super().write(rest) :]
        except BaseException as error:
            self._failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            if self._failure is None:
                return super().truncate(size)
        except BaseException as error:
            self._failure = error
        return size or 0

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def drop(self) -> None:
        """Write nothing from here on."""
        self._failure = self._failure or InterruptedError()
