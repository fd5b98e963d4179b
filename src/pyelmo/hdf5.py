"""Write HDF5 files so that a full disk or Ctrl-C raises an ordinary exception."""

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
    """Writes named data sets to a file; `finish` completes the file, `abandon` closes it after an error."""

    def __init__(self, path: Path) -> None:
        import h5py  # slow to import, and needed only for this format

        self._raw = _DeferredErrorFile(path)
        self._file = h5py.File(self._raw, "w")
        self._string = h5py.string_dtype()

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def write(self, name: str, array: np.ndarray) -> None:
        with _deferred_interrupt():
            self._file.create_dataset(name, data=array)
        self._raw.check()

    def write_text(self, name: str, text: str) -> None:
        """Write one ASCII string with the shape (1,). HDF5 strings allow neither NUL nor lone surrogates."""
        with _deferred_interrupt():
            self._file.create_dataset(name, (1,), dtype=self._string)[0] = text
        self._raw.check()

    def finish(self) -> None:
        with _deferred_interrupt():
            self._file.close()
        self._raw.check()
        self._raw.close()

    def abandon(self) -> None:
        with _deferred_interrupt():
            self._raw.drop()
            self._file.close()
        self._raw.close()


@contextlib.contextmanager
def create_hdf5(path: Path) -> Iterator[Hdf5Writer]:
    """Yield a writer; complete the file at the end of the block, or close it after an error."""
    writer = Hdf5Writer(path)
    try:
        yield writer
        writer.finish()
    except BaseException:
        # Report the first error, not another one from closing the incomplete file.
        with contextlib.suppress(Exception):
            writer.abandon()
        raise


@contextlib.contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the block ends: an exception inside a call from HDF5 into Python would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)


class _DeferredErrorFile(io.FileIO):
    """A file that stores the first write error until `check` raises it.

    HDF5 does not handle write errors: when the disk is full, it loses small data sets without an error and then crashes
    the process (segmentation fault) when the file is closed. So every write appears to succeed.
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
        """Ignore all further writes."""
        self._failure = self._failure or InterruptedError()
