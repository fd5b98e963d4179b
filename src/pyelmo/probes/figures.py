"""The results file of probes. Each figure is saved with its origin when it is complete, so a stopped run can resume."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError, InputError
from pyelmo.files import write_text
from pyelmo.parsing import field, read_json


@dataclass(frozen=True)
class Measurement:
    """A figure to compute."""

    key: str  # the name of the figure in the file
    of: dict[str, Any]  # what identifies the model and the data
    find: Callable[[], dict[str, Any]]  # computes the figure


def measure(
    plan: Sequence[Measurement],
    path: Path,
    about: Mapping[str, Any],
    *,
    origin: Mapping[str, Any],
    force: bool = False,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Compute the figures that a results file does not contain yet, and return its contents.

    Args:
        plan: The figures.
        path: The results file. Figures of the same model and data are not computed again.
        about: Facts about the whole file, such as its language.
        origin: Facts about each new figure, such as the command and the machine.
        force: Compute all figures again.
        log: A function that is called with each line of progress.
    """
    results, complete = begin(plan, path, about, force=force)
    figures = results["figures"]
    for measurement in plan:
        if measurement.key in complete:
            log(f"{measurement.key}: already in the file")
            continue
        log(f"{measurement.key}:")
        start, cpu = time.perf_counter(), time.process_time()
        result = measurement.find()
        figures[measurement.key] = {
            "result": result, "of": measurement.of, **origin, "seconds": round(time.perf_counter() - start, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return results


def begin(
    plan: Sequence[Measurement], path: Path, about: Mapping[str, Any], *, force: bool
) -> tuple[dict[str, Any], set[str]]:
    """Read a results file, and return its contents and the keys of the planned figures that it contains.

    A figure of another model or other data is an error here, before any work.
    """
    results = read(path) if path.exists() else {**about, "figures": {}}
    for name, value in about.items():
        if results.get(name) != value:
            raise InputError(
                f"{path}: the file holds figures of the {name} {results.get(name)!r}, expected {value!r}. "
                "Choose another output."
            )
    figures = results["figures"]
    complete = {measurement.key for measurement in plan if not force and measurement.key in figures}
    for measurement in plan:
        if measurement.key in complete and figures[measurement.key]["of"] != measurement.of:
            raise InputError(
                f"{path}: {measurement.key!r} was measured with another model or other data. Replace it with --force, "
                "or choose another output with -o."
            )
    return results, complete


def read(path: Path) -> dict[str, Any]:
    """Read a file that `measure` wrote."""
    results = read_json(path)
    try:
        json.dumps(results, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair, which no report can show
        raise FormatError(f"{path}: a string cannot be written as UTF-8 ({error}). Remove the file.") from error
    if not isinstance(results.get("figures"), dict):
        raise FormatError(f"{path}: the file contains no figures. Choose another output, or remove the file.")
    for key, figure in results["figures"].items():
        for name in ("result", "of"):
            field(figure, name, dict, f"{path}, {key}")
    return results
