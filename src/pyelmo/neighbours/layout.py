"""The files of an index of neighbours: their names, their records, and the manifest.

INDEX/manifest.json     the contents of the index, its model, and the checksum of every file
INDEX/sentences.txt     the sentences with an indexed word, one on each line
INDEX/sentences.bin     for each sentence: its offset and size in bytes, and its file and line in the text
INDEX/occurrences.bin   for each indexed word: its sentence, its characters there, and a hash of the word
vectors                 see vector_index.py
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo import __version__
from pyelmo.errors import FormatError, NotFoundError
from pyelmo.files import sha256
from pyelmo.neighbours.vector_index import INDEX, OWNERS, VECTORS, import_faiss
from pyelmo.parsing import read_json

MANIFEST, TEXT, SENTENCES, OCCURRENCES = "manifest.json", "sentences.txt", "sentences.bin", "occurrences.bin"
FORMAT, VERSION = "pyelmo neighbours", 1
# What a folder of an index may contain.
FILES = (MANIFEST, TEXT, SENTENCES, OCCURRENCES, VECTORS, INDEX, OWNERS, "lists-*.faiss")
SENTENCE = np.dtype([("start", "<i8"), ("bytes", "<i4"), ("file", "<i4"), ("line", "<i8")])
OCCURRENCE = np.dtype([("sentence", "<i4"), ("start", "<i4"), ("end", "<i4"), ("word", "<u8")])


def word_hash(word: str) -> int:
    """Return 64 bits for a word, ignoring case: a dictionary of all words would grow with the text."""
    return int.from_bytes(hashlib.blake2b(word.casefold().encode("utf-8", "replace"), digest_size=8).digest(), "little")


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    faiss = import_faiss()
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    versions = {"pyelmo": __version__, "faiss": faiss.__version__, "numpy": np.__version__}
    manifest = {"format": FORMAT, "version": VERSION, **facts, "versions": versions, "files": files}
    manifest["sha256"] = _manifest_sha256(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: no such folder. Build an index with `elmo neighbours build`.")
    path = folder / MANIFEST
    if not path.is_file():
        raise FormatError(f"{folder}: not an index of neighbours: {MANIFEST} is missing")
    manifest = read_json(path)
    if manifest.get("format") != FORMAT:
        raise FormatError(
            f"{path}: not the manifest of an index of neighbours: 'format' is {manifest.get('format')!r}, "
            f"expected {FORMAT!r}"
        )
    if manifest.get("version") != VERSION:
        raise FormatError(f"{path}: version {manifest.get('version')}, but this pyelmo reads version {VERSION}")
    if manifest.get("sha256") != _manifest_sha256(manifest):
        raise _damaged(path, "checksum mismatch")
    return manifest


def _manifest_sha256(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_files(folder: Path, manifest: dict[str, Any], *, verify: bool) -> None:
    """Check the size of every file and, with `verify`, its checksum."""
    for name, facts in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise _damaged(path, "the file is missing")
        if path.stat().st_size != facts["bytes"]:
            raise _damaged(path, f"the file has {path.stat().st_size:,} bytes, expected {facts['bytes']:,}")
        if verify and sha256(path) != facts["sha256"]:
            raise _damaged(path, "checksum mismatch")


def _damaged(path: Path, reason: str) -> FormatError:
    return FormatError(f"{path}: the index is damaged: {reason}. Copy it again, or build it again.")
