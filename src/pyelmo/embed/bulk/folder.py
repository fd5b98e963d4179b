"""The output folder of a bulk job: its description in _job.json, resuming, and cleaning up.

A part gets its final name only when it is complete. So every part in the folder is finished, and a job that runs again
writes only the missing ones. The description says whether the parts belong to the same job.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyelmo.embed.bulk.job import RESUME, BulkJob
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.files.inputs import InputScan
from pyelmo.embed.files.store import JOB
from pyelmo.embed.layers import SENTENCE
from pyelmo.errors import OutputError, PyelmoError
from pyelmo.files import check_output, entries, write_text
from pyelmo.formats.pretrained import checksum
from pyelmo.parsing import read_json

VERSION = 1
# Settings that do not change the vectors. The model is compared by its content instead.
_NOT_COMPARED = ("model", "options", "vocab", "device", "batch_size", "threads")


def check_folder(folder: Path) -> None:
    """Raise an error, before any work, if a bulk job must not write to this path."""
    check_output(folder, force=True)
    if folder.is_file():
        raise OutputError(f"{folder}: is a file, and a bulk job writes a folder. Choose another name.")
    if folder.is_dir() and not (folder / JOB).is_file() and any(not _is_leftover(path) for path in entries(folder)):
        raise OutputError(f"{folder}: holds files that no bulk job wrote (no {JOB}). Choose another name.")


def describe(job: BulkJob, embedder: Embedder, scan: InputScan) -> dict[str, Any]:
    """Return the content of _job.json."""
    settings = {key: value for key, value in dataclasses.asdict(job.settings).items() if key not in _NOT_COMPARED}
    return {
        "version": VERSION,
        "inputs": [{"name": name, "sha256": sha} for name, sha in zip(job.inputs, scan.sha256, strict=True)],
        "model": {"name": job.settings.model, "sha256": _model_checksum(embedder, job.settings.pooling)},
        **_reading(job),
        **settings,
        "language": embedder.language,  # also if it was not given, but taken from the model
        "part_sentences": job.part_sentences,
        "parts": len(scan.positions),
        "sentences": scan.sentences,
    }


def _reading(job: BulkJob) -> dict[str, Any]:
    """Return how the input is read; a default is null, as in folders that older versions wrote."""
    values = {"column": job.reading.column, "keep": list(job.reading.keep), "encoding": job.reading.encoding}
    input_format = None if job.reading.input_format == "auto" else job.reading.input_format
    return {**{name: value or None for name, value in values.items()}, "input_format": input_format}


def _model_checksum(embedder: Embedder, pooling: str | None) -> str:
    """Return a checksum of the content: a copy of the model, or another format of it, may resume the job."""
    form = embedder.pretrained.sentence if pooling == SENTENCE else None
    content = repr(embedder.config) + checksum(embedder.pretrained) + (form.to_json() if form else "")
    return hashlib.sha256(content.encode()).hexdigest()


def begin(folder: Path, description: dict[str, Any], *, force: bool) -> None:
    """Prepare the folder: resume the same job, or start a new one if the folder holds no parts of another job."""
    parts = sorted(folder.glob("part-*"))
    differences = _differences(folder / JOB, description) if parts else []
    if differences and not force:
        raise OutputError(
            f"{folder}: holds {len(parts)} parts of another job ({'; '.join(differences)}). "
            "Pass --force (force=True) to delete them, or choose another folder."
        )
    if force:
        for part in parts:  # before the new description is written, so that no old part can be taken for a new one
            part.unlink()
    write_text(folder / JOB, json.dumps(description, ensure_ascii=False, indent=1) + "\n")


def _differences(path: Path, description: dict[str, Any]) -> list[str]:
    """Return how the job that a folder holds differs from this one."""
    try:
        old = read_json(path)
        hashes = [file["sha256"] for file in old["inputs"]]
        model, name = old["model"]["sha256"], old["model"]["name"]
    except (PyelmoError, KeyError, TypeError):
        return [f"{path.name} cannot be read"]
    differences = []
    if hashes != [file["sha256"] for file in description["inputs"]]:
        changed = [file["name"] for file in description["inputs"] if file["sha256"] not in hashes]
        differences.append(f"other input: {', '.join(changed) or 'fewer files, or in another order'}")
    if model != description["model"]["sha256"]:
        differences.append(f"another model: {name} then, {description['model']['name']} now")
    for key, value in description.items():
        if key in ("inputs", "model", "parts", "sentences") or (key not in old and not value):
            continue  # an older version had no such option
        if old.get(key) != value:
            differences.append(f"{key}: {old.get(key)} then, {value} now")
    return differences


def _is_leftover(path: Path) -> bool:
    """Return whether this is a temporary file or folder, which a killed worker leaves behind."""
    return path.name.startswith(".") and path.name.endswith(".part")


@contextlib.contextmanager
def removing_leftovers(folder: Path) -> Iterator[None]:
    """Remove temporary files of killed workers: those of an earlier run, and those of this one."""
    _remove_leftovers(folder)
    try:
        yield
    finally:
        _remove_leftovers(folder)


def _remove_leftovers(folder: Path) -> None:
    for path in list(folder.iterdir()):
        if not _is_leftover(path):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def explaining_resume() -> Iterator[None]:
    """Add to a failed write or an interrupt that the finished parts are kept."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{str(error).removesuffix(' Nothing was changed.')} {RESUME}") from error
    except KeyboardInterrupt as stop:
        stop.args = (RESUME,)
        raise
