"""Writes that leave the old file or none, never half of one; and one process at a time in a folder."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import overload

from pyelmo.errors import OutputError

_LOCK = ".lock"

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, force: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; move it there when the block ends well, else remove it.

    The block may create a file or a folder. With `force=False` an existing `path` is an error before any work.
    """
    path = Path(path)
    check_output(path, force=force)
    try:
        # Only the start of the name: a file system that takes 255 bytes for `path` takes no longer name for the part.
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from error
    try:
        part = temporary / path.name
        aside = temporary / f"old-{path.name[:40]}"
        yield part
        _sync(part)
        # The name may have been taken while the block ran; never overwrite what the caller did not allow.
        check_output(path, force=force)
        if path.is_dir() and not part.is_dir():
            raise OutputError(f"{path}: is a folder, and a file does not replace it. Choose another name.")
        try:
            if path.is_dir():
                # A folder cannot be replaced in one step: the old one moves aside first and goes with the temporary.
                os.replace(path, aside)
            os.replace(part, path)
        except BaseException:  # also Ctrl-C between the two steps
            if aside.exists() and not path.exists():
                os.replace(aside, path)
            raise
    except OSError as error:
        if isinstance(error, OutputError) or error.strerror is None or _is_about_another_file(error, path, temporary):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_output(path: Path, *, force: bool) -> None:
    if path.name in ("", ".."):
        raise OutputError(f"{path}: is not a name for an output. Name a file or a folder inside it.")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OutputError(f"{path}: is a device or a pipe, which cannot be replaced by a file. Choose another name.")
    if path.exists() and not force:
        raise OutputError(f"{path}: exists already. Pass --force (force=True) to replace it, or choose another name.")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: its folder {path.parent} does not exist. Create it first.")


def write_text(path: str | Path, text: str) -> None:
    """Replace a text file in one step."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process until the block ends or the process dies, however that happens.

    The lock is the file `.lock` inside the folder: the parent may be read-only (the folder is a mounted volume), and
    all paths of the folder lead to the same file. The file is removed at the end of the block. A killed process leaves
    it behind unlocked; use `entries` wherever a folder's content matters.

    Raises:
        OutputError: Another process holds the lock.
    """
    from filelock import FileLock, Timeout

    path = folder / _LOCK
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        advice = "Wait until it has finished, or choose another folder."
        raise OutputError(f"{folder}: is locked by another process. {advice}") from None
    except (OSError, NotImplementedError) as error:  # a file system without locks must not stop the work
        _log.debug("%s: works without a lock (%s)", folder, error)
    try:
        yield
    finally:
        if lock.is_locked:
            # Before the release: whoever opened the old file then sees that it is gone, and does not lock it.
            # Windows cannot remove an open file; there `release` does it.
            with contextlib.suppress(OSError):
                path.unlink()
            lock.release()


def entries(folder: Path) -> list[Path]:
    """Return what a folder contains, except for the file of its lock."""
    return [path for path in folder.iterdir() if path.name != _LOCK]


def _is_about_another_file(error: OSError, path: Path, temporary: Path) -> bool:
    """The block may also read: an input that fails there must not be reported as an output."""
    if not isinstance(error.filename, str):
        return False
    return Path(error.filename) != path and temporary not in Path(error.filename).parents


def _sync(path: Path) -> None:
    """Flush a finished file, or every file of a finished folder, so that a crash after the move loses nothing."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        # Windows flushes only what is open for writing.
        descriptor = os.open(file, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@overload
def absolute(name: str | os.PathLike[str]) -> str: ...


@overload
def absolute(name: None) -> None: ...


def absolute(name: str | os.PathLike[str] | None) -> str | None:
    """Return the full path of a file that exists; other names (a bundled model, a Hub id) as they are."""
    if name is None:
        return None
    return str(Path(name).resolve() if Path(name).exists() else name)


def sha256(path: Path) -> str:
    """The checksum of a file of any size."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
