"""The manifest of an index of neighbours: what the folder holds, with the checksum of every file and its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo import __version__
from pyelmo.errors import FormatError, NotFoundError
from pyelmo.files import sha256
from pyelmo.formats.pretrained import read_json
from pyelmo.neighbours.nearest import import_faiss

MANIFEST = "manifest.json"
FORMAT, VERSION = "pyelmo neighbours", 1


def write(folder: Path, facts: dict[str, Any]) -> None:
    faiss = import_faiss()
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    versions = {"pyelmo": __version__, "faiss": faiss.__version__, "numpy": np.__version__}
    manifest = {"format": FORMAT, "version": VERSION, **facts, "versions": versions, "files": files}
    manifest["sha256"] = _own_sha256(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")


def read(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: no such folder. `elmo neighbours build` makes an index.")
    if not (folder / MANIFEST).is_file():
        raise FormatError(f"{folder}: not an index of neighbours: {MANIFEST} is missing")
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise FormatError(
            f"{folder / MANIFEST}: not of an index of neighbours ('format' is {manifest.get('format')!r})"
        )
    if manifest.get("version") != VERSION:
        raise FormatError(f"{folder / MANIFEST}: version {manifest.get('version')}, this pyelmo reads {VERSION}")
    if manifest.get("sha256") != _own_sha256(manifest):
        raise _damaged(folder / MANIFEST, "its checksum is another")
    return manifest


def _own_sha256(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_files(folder: Path, manifest: dict[str, Any], *, verify: bool) -> None:
    """Every file is there with its size and, with `verify`, its checksum."""
    for name, facts in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise _damaged(path, "it is missing")
        if path.stat().st_size != facts["bytes"]:
            raise _damaged(path, f"it has {path.stat().st_size:,} bytes, not {facts['bytes']:,}")
        if verify and sha256(path) != facts["sha256"]:
            raise _damaged(path, "its checksum is another")


def _damaged(path: Path, what: str) -> FormatError:
    return FormatError(f"{path}: the index is damaged: {what}. Copy it anew, or build it again.")
