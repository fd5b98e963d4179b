"""The cache: files that were downloaded and archives that were unpacked, each complete or absent.

Environment:
    PYELMO_CACHE: The folder of the cache (default: .cache/pyelmo in the home folder). It may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from pyelmo.errors import OutputError


def cache_folder(kind: str, name: str, *identity: object) -> Path:
    """Return the folder for what `identity` describes, and create the folders above it; `name` is for people."""
    root = Path(os.environ.get("PYELMO_CACHE") or Path.home() / ".cache" / "pyelmo")
    digest = hashlib.sha256("\0".join(map(str, identity)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    readable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:60].strip(".")
    folder = root / kind / f"{readable}-{digest}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder.parent}: the cache cannot be written ({error.strerror}). Set PYELMO_CACHE to another folder."
        ) from error
    return folder


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process writes `path`, and let none begin until the block ends."""
    from filelock import FileLock

    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with contextlib.suppress(OSError, NotImplementedError):  # a file system without locks must not stop the work
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
