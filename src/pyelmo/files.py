"""Open regular files, write files atomically, lock folders, and compute checksums."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, overload

from pyelmo.errors import FormatError, NotFoundError, OutputError, PyelmoError

if sys.platform != "win32":
    import fcntl

_LOCK = ".lock"
_PART = ".part"  # the end of the names of temporary folders; the random characters before it are 8

_log = logging.getLogger(__name__)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading bytes; a pipe, which would wait for a writer, or a device is refused at once.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The path is a folder, a pipe or a device, or the file cannot be read.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits until another process writes to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"{path}: not found") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"{path}: cannot be read: {reason}") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise FormatError(f"{path}: is {kind}, expected a file")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `open_regular`, for a file that another library opens by its name."""
    open_regular(path).close()


@dataclass(frozen=True)
class FileVersion:
    """What tells whether a file is still the one that was opened: a copy over it or a truncation changes this."""

    path: Path
    facts: tuple[int, ...]  # device, number, bytes, time of the last change

    @classmethod
    def of(cls, path: Path) -> FileVersion:
        """Return the version that a file has now."""
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
        return cls(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))

    def check(self) -> None:
        """Raise a FormatError if the file was changed, replaced or removed."""
        try:
            unchanged = FileVersion.of(self.path) == self
        except PyelmoError:
            unchanged = False
        if not unchanged:
            raise FormatError(
                f"{self.path}: was changed or replaced after it was opened, so its parts may be of two versions. "
                "Load it again."
            )


def read_regular(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: It is not a regular file, cannot be read, or has more than `limit` bytes.
    """
    with open_regular(path) as file:
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise FormatError(f"{path}: has more than {limit:,} bytes, the most that is read of such a file")
    return data


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, force: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` at the end of the block, or remove it after an error.

    A killed process leaves the old file or no file, never an incomplete one, and a temporary folder, which the next
    write to the same path removes. The block may create a file or a folder.

    Args:
        path: The file or folder to write.
        force: Whether an existing `path` is replaced; otherwise it is an error before the block runs.

    Raises:
        OutputError: The path cannot be written, or exists and `force` is False.
    """
    path = Path(path)
    remove_leftovers(path)
    check_output(path, force=force)
    try:
        temporary, held = _new_temporary(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from error
    try:
        part = temporary / path.name
        backup = temporary / _backup_name(path)
        yield part
        _sync(part)
        # Check again, because `path` may have been created while the block ran.
        check_output(path, force=force)
        if path.is_dir() and not part.is_dir():
            raise OutputError(f"{path}: is a folder, and cannot be replaced by a file. Choose another name.")
        try:
            if path.is_dir():
                # A folder cannot be replaced in one step: the old one is moved into the temporary folder first.
                os.replace(path, backup)
            os.replace(part, path)
        except BaseException:  # also Ctrl-C between the two steps
            if backup.exists() and not path.exists():
                os.replace(backup, path)
            raise
    except OSError as error:
        if isinstance(error, OutputError) or error.strerror is None or _is_about_another_file(error, path, temporary):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if held is not None:
            os.close(held)


def _prefix(path: Path) -> str:
    """Return how the names of temporary folders begin: a longer name could exceed 255 bytes, a file system's limit."""
    return f".{path.name[:40]}."


def _backup_name(path: Path) -> str:
    return f"old-{path.name[:40]}"


def _new_temporary(path: Path) -> tuple[Path, int | None]:
    """Create a temporary folder beside `path` and lock it; return it with the open descriptor of the lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=_PART, dir=path.parent))
        try:
            return folder, _hold(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # between the two calls, another process took it for a leftover


def _hold(folder: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed or the process dies; None where folders have no locks.

    Raises:
        BlockingIOError: Another process holds the lock.
        FileNotFoundError: The folder does not exist, or no longer.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(folder)
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        raise
    except OSError as error:  # a file system without locks must not stop the work
        _log.debug("%s: works without a lock (%s)", folder, error)
        os.close(descriptor)
        return None
    return descriptor


def remove_leftovers(path: Path) -> None:
    """Remove the temporary folders of processes that were killed while they wrote `path`.

    A folder that a living process holds stays. An old folder that a killed process had already moved away, and not yet
    replaced, is moved back.
    """
    if not path.parent.is_dir():
        return
    prefix = _prefix(path)
    with os.scandir(path.parent) as scan:
        names = [entry.name for entry in scan if entry.name.startswith(prefix) and entry.name.endswith(_PART)]
    for folder in [path.parent / name for name in names if len(name) == len(prefix) + 8 + len(_PART)]:
        try:
            held = _hold(folder)
        except OSError:
            continue
        if held is None:
            continue
        try:
            if {entry.name for entry in folder.iterdir()} <= {path.name, _backup_name(path)}:
                backup = folder / _backup_name(path)
                if backup.exists() and not path.exists():
                    os.replace(backup, path)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            _log.debug("%s: is left (%s)", folder, error)
        finally:
            os.close(held)


def allocate(file: BinaryIO, size: int) -> None:
    """Reserve the space of a file that is about to be written, so that a full disk is an error before the work.

    Raises:
        OSError: There is not enough space.
    """
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):  # a file system that cannot reserve
                raise


def check_output(path: Path, *, force: bool) -> None:
    """Raise an OutputError if `path` cannot be an output."""
    if path.name in ("", ".."):
        raise OutputError(f"{path}: cannot be the name of an output. Choose a file or a folder inside it.")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OutputError(f"{path}: is a device or a pipe, and cannot be replaced by a file. Choose another name.")
    if path.exists() and not force:
        raise OutputError(f"{path}: exists already. Pass --force (force=True) to replace it, or choose another name.")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: the parent folder {path.parent} does not exist. Create it first.")


def check_replaceable(folder: Path, names: Sequence[str]) -> None:
    """Refuse to replace a folder that has files of another origin.

    Args:
        folder: The folder that is about to be replaced; it may be missing.
        names: The names of the files that pyelmo writes there, with wildcards.

    Raises:
        OutputError: The folder has another file.
    """
    for path in entries(folder) if folder.is_dir() else ():
        if not any(fnmatch.fnmatch(path.name, name) for name in names):
            raise OutputError(
                f"{folder}: contains {path.name}, which pyelmo did not write there, so --force does not replace the "
                "folder. Choose another name, or move that file."
            )


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def locked(folder: Path, *, beside: bool = False) -> Iterator[None]:
    """Lock a folder for this process until the block ends or the process dies, however that happens.

    The lock is the file `.lock` inside the folder: the parent may be read-only (the folder is a mounted volume), and
    all paths of the folder lead to the same file. The file is removed at the end of the block. A killed process leaves
    it behind unlocked; use `entries` wherever a folder's content matters.

    Args:
        folder: The folder.
        beside: Whether the file is beside the folder, for a folder that does not exist yet or is replaced as a whole.

    Raises:
        OutputError: Another process holds the lock.
    """
    from filelock import FileLock, Timeout

    path = folder.with_name(f".{folder.name}{_LOCK}") if beside else folder / _LOCK
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
            # The file is removed before the release, so that a process that has opened it already notices the removal
            # and does not lock it. Windows cannot remove an open file; on Windows `release` removes it.
            with contextlib.suppress(OSError):
                path.unlink()
            lock.release()


def entries(folder: Path) -> list[Path]:
    """Return what a folder contains, except for the file of its lock."""
    return [path for path in folder.iterdir() if path.name != _LOCK]


def _is_about_another_file(error: OSError, path: Path, temporary: Path) -> bool:
    """Tell whether an error is about a file that the block reads, which must not be reported as an output."""
    if not isinstance(error.filename, str):
        return False
    return Path(error.filename) != path and temporary not in Path(error.filename).parents


def _sync(path: Path) -> None:
    """Flush a file, or every file of a folder, to the disk, so that a crash after the rename loses nothing."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        # Windows can flush only files that are open for writing.
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
    """Return the absolute path of an existing file; other names (a bundled model, a Hub id) are returned unchanged."""
    if name is None:
        return None
    return str(Path(name).resolve() if Path(name).exists() else name)


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
