"""Read HDF5 files of any origin without following them elsewhere; write them so that a full disk or Ctrl-C raises an
ordinary exception.

An HDF5 file may take its data from any other file of the user (external storage, external links, virtual data sets),
load a program (a filter that is not built in), and claim arrays of any size.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.errors import FormatError, PyelmoError
from pyelmo.files import check_regular

# deflate, shuffle, fletcher32, szip, nbit, scaleoffset, and lzf, which h5py brings along
BUILT_IN_FILTERS = {1, 2, 3, 4, 5, 6, 32000}
MAX_DATASETS = 10_000
MAX_GROUP_DEPTH = 16
# Weights hardly compress; a file that claims more than this many times its size lies, or has no data.
MAX_EXPANSION = 16
SMALL = 1 << 26  # bytes that any file may claim


@contextlib.contextmanager
def read_hdf5(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the data sets of a file by name, after checking that their data are in the file.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The file is damaged, or a part of it is in another file or needs a filter that is not built in.
    """
    import h5py  # slow to import, and needed only for this format

    check_regular(path)
    try:
        with h5py.File(path, "r") as file:
            yield _datasets(file, path)
    except (PyelmoError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise any error
        reason = str(error).encode("utf-8", "backslashreplace").decode("utf-8")[:200]
        raise FormatError(f"{path}: not a complete HDF5 file ({reason}). Was the download cut short?") from error


def check_dataset(dataset: Any, where: str | Path) -> None:
    """Raise a FormatError if the data are in another file, or need a filter that is not built in."""
    import h5py

    settings = dataset.id.get_create_plist()
    name = ascii(dataset.name)
    if settings.get_external_count() or settings.get_layout() == h5py.h5d.VIRTUAL:
        raise FormatError(f"{where}: the data of {name} are in another file, which pyelmo does not open")
    filters = {settings.get_filter(number)[0] for number in range(settings.get_nfilters())}
    if not filters <= BUILT_IN_FILTERS:
        raise FormatError(
            f"{where}: {name} needs the HDF5 filter {min(filters - BUILT_IN_FILTERS)}, not a built-in one"
        )


def check_claims(sizes: int, path: Path) -> None:
    """Raise a FormatError if arrays are said to have far more bytes than their file."""
    actual = path.stat().st_size
    if sizes > max(SMALL, MAX_EXPANSION * actual):
        raise FormatError(f"{path}: {actual:,} bytes, but its arrays claim {sizes:,}. Is the file damaged?")


def _datasets(file: Any, where: Path) -> dict[str, Any]:
    import h5py

    datasets: dict[str, Any] = {}
    groups = [("", file, 0)]
    count = 0
    while groups:
        prefix, group, depth = groups.pop()
        for name in group:
            count += 1
            if count > MAX_DATASETS or depth > MAX_GROUP_DEPTH:
                raise FormatError(f"{where}: more than {MAX_DATASETS:,} arrays or {MAX_GROUP_DEPTH} levels of groups")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise FormatError(f"{where}: {prefix + name!a} is a link, perhaps to another file. Copy what it names")
            item = group[name]
            if isinstance(item, h5py.Group):
                groups.append((f"{prefix}{name}/", item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                check_dataset(item, where)
                datasets[prefix + name] = item
    return datasets


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
