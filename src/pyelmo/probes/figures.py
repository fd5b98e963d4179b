"""A file of figures that a stopped run goes on with: each is written as soon as it is known, with what gave it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError, InputError
from pyelmo.files import write_text


@dataclass(frozen=True)
class Measurement:
    """A figure to find: its place in the file, what it is measured on, and how."""

    key: str
    of: dict[str, Any]
    find: Callable[[], dict[str, Any]]


def measure(
    plan: Sequence[Measurement],
    path: Path,
    about: Mapping[str, Any],
    *,
    origin: Mapping[str, Any],
    force: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The file with all that was asked for; what it has already, of the same model and data, is kept.

    `about` holds for the whole file (its language), `origin` stands beside every new figure (command, machine).
    """
    results, kept = begin(plan, path, about, force=force)
    figures = results["figures"]
    for wanted in plan:
        if wanted.key in kept:
            tell(f"{wanted.key}: known already, kept")
            continue
        tell(f"{wanted.key}:")
        start, cpu = time.perf_counter(), time.process_time()
        found = wanted.find()
        figures[wanted.key] = {
            "result": found, "of": wanted.of, **origin, "seconds": round(time.perf_counter() - start, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return results


def begin(
    plan: Sequence[Measurement], path: Path, about: Mapping[str, Any], *, force: bool
) -> tuple[dict[str, Any], set[str]]:
    """What a file has, and which of the figures asked for; those of another model are an error before any work."""
    results = read(path) if path.exists() else {**about, "figures": {}}
    for name, value in about.items():
        if results.get(name) != value:
            raise InputError(f"{path}: holds figures of the {name} {results.get(name)!r}, not {value!r}; name another")
    figures = results["figures"]
    kept = {wanted.key for wanted in plan if not force and wanted.key in figures}
    for wanted in plan:
        if wanted.key in kept and figures[wanted.key]["of"] != wanted.of:
            raise InputError(
                f"{path}: has {wanted.key!r} of another model or other data; --force replaces it, -o names another"
            )
    return results, kept


def read(path: Path) -> dict[str, Any]:
    """A file that `measure` wrote."""
    try:
        results = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: not JSON ({error})") from error
    if not isinstance(results, dict) or not isinstance(results.get("figures"), dict):
        raise FormatError(f"{path}: holds no figures. Name another place, or remove it.")
    return results
