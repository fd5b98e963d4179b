"""Writes that leave the old file or none, never half of one."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyelmo.errors import OutputError


@contextlib.contextmanager
def atomic_path(path: str | Path, *, force: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; move it there when the block ends well, else remove it.

    The block may create a file or a folder. With `force=False` an existing `path` is an error before any work.
    """
    path = Path(path)
    check_output(path, force=force)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        part = temporary / path.name
        yield part
        _sync(part)
        # The name may have been taken while the block ran; never overwrite what the caller did not allow.
        check_output(path, force=force)
        if path.is_dir():
            # A folder cannot be replaced in one step: the old one moves aside first and goes with the temporary.
            os.replace(path, temporary / "old")
        try:
            os.replace(part, path)
        except OSError:
            if (temporary / "old").exists():
                os.replace(temporary / "old", path)
            raise
    except OSError as error:
        if isinstance(error, OutputError) or error.strerror is None:
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}. Nothing was changed.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_output(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise OutputError(f"{path}: exists already. Pass --force (force=True) to replace it, or choose another name.")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: its folder {path.parent} does not exist. Create it first.")


def write_text(path: str | Path, text: str) -> None:
    """Replace a text file in one step."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    """Flush a finished file, or every file of a finished folder, so that a crash after the move loses nothing."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
