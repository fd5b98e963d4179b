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
from pyelmo.parsing import field, read_json

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
        raise damaged(path, "checksum mismatch")
    _check_fields(path, manifest)
    return manifest


def _check_fields(path: Path, manifest: dict[str, Any]) -> None:
    """Check what reading the index relies on, so that a wrong value is an error here."""
    for name, facts in field(manifest, "files", dict, path).items():
        field(facts, "bytes", int, path)
        field(facts, "sha256", str, path)
        if Path(name).name != name or "\0" in name:
            raise damaged(path, f"it lists a file outside its folder, {name!r}")
    if not 0 < field(manifest, "dim", int, path) < 2**20 or not 0 < field(manifest, "occurrences", int, path) < 2**31:
        raise damaged(path, f"{manifest['occurrences']} vectors of {manifest['dim']} numbers")
    if not all(isinstance(name, str) for name in field(manifest, "inputs", list, path)):
        raise damaged(path, "an input has no name")
    field(manifest, "kind", str, path)
    text: tuple[type, ...] = (str, type(None))
    kinds = {"layer": (str, int, list), "language": text, "precision": (str,), "tokenised": (bool,), "model": (dict,)}
    for name, kind in kinds.items():
        if name in manifest:
            field(manifest, name, kind, path)
    for name in ("name", "options", "vocab", "sha256") if "model" in manifest else ():
        field(manifest["model"], name, str if name in ("name", "sha256") else text, path)
    if isinstance(layer := manifest.get("layer"), list) and not all(isinstance(x, (int, float)) for x in layer):
        raise damaged(path, "the weights of its layers are no numbers")


def _manifest_sha256(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_files(folder: Path, manifest: dict[str, Any], *, verify: bool) -> None:
    """Check the size of every file and, with `verify`, its checksum."""
    names = {TEXT, SENTENCES, OCCURRENCES} - manifest["files"].keys()
    if names:
        raise damaged(folder / MANIFEST, f"it does not list {', '.join(sorted(names))}")
    for name, facts in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise damaged(path, "the file is missing")
        if path.stat().st_size != facts["bytes"]:
            raise damaged(path, f"the file has {path.stat().st_size:,} bytes, expected {facts['bytes']:,}")
        if verify and sha256(path) != facts["sha256"]:
            raise damaged(path, "checksum mismatch")


def damaged(path: Path, reason: str) -> FormatError:
    """Return the error about a file that does not fit its index."""
    return FormatError(f"{path}: the index is damaged: {reason}. Copy it again, or build it again.")
