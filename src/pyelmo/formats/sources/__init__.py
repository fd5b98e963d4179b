"""Models that are not yet local folders: archives and addresses, and the cache that their files are kept in.

What recognises them is here; what reads them (`archive`, `download`) is imported when it is needed.
"""

from __future__ import annotations

import re
from pathlib import Path

from pyelmo.files import open_regular

ARCHIVES = (".zip", ".tar.gz", ".tgz")
_MAGIC = (b"PK\x03\x04", b"\x1f\x8b")  # zip, gzip
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(source: object) -> bool:
    """Return whether a source is an address; a letter and a colon begin a path of Windows."""
    return isinstance(source, str) and bool(_URL.match(source))


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip or gzip archive, by its name or its first bytes. Torch's pickles are zips, too."""
    if not path.is_file() or path.suffix in (".pkl", ".pth", ".pt", ".npz"):
        return False
    if path.name.lower().endswith(ARCHIVES):
        return True
    with open_regular(path) as file:
        return file.read(4).startswith(_MAGIC)
