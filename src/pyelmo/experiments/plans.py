"""Many runs as a TOML file: sets of data, and under each the runs that are compared on it.

    [[set]]
    name = "srl"                      # default: the task
    task = "srl"
    data = ["ewt-train", "ewt-dev", "ewt-test"]
    vectors = "glove.txt"
    [[set.run]]
    name = "glove"                    # the run srl-glove: what the others are compared with
    encoder = "none"
    [[set.run]]
    name = "en"
    [[set.run]]
    name = "en"                       # en-0.01 and en-0.1
    fractions = [0.01, 0.1]
    set = ["training.batch=40"]

What a run can say a set can say for all of its runs. Files lie in the folder of the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from pyelmo.config import from_dict, nearest, to_dict
from pyelmo.errors import ConfigError, InputError, NotFoundError, OutputError
from pyelmo.formats import bundled, resolve
from pyelmo.formats.pretrained import read_json
from pyelmo.recipes import read_settings, read_toml, recipe_path
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import find_task

_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run differs from others of its set: the options of `elmo task train`."""

    name: str
    encoder: str = "en"
    vectors: str | None = None
    recipe: str | None = None  # of a file, its path from the plan's folder
    set: tuple[str, ...] = ()
    elmo: Literal["input", "output", "both"] | None = None
    layers: Literal["mix", "top", "average"] | None = None
    penalty: float | None = None  # in the file: lambda
    dropout: float | None = None
    fraction: float = 1.0
    fractions: tuple[float, ...] = ()  # a run for each
    seeds: int = 3
    row: bool = False  # the row of Table 1, where it is not the first run with an encoder


@dataclass(frozen=True, kw_only=True)
class RunSetInfo:
    """What all runs of a set share."""

    task: str
    data: tuple[str, ...]  # train, dev, perhaps test
    name: str | None = None
    about: str | None = None  # the data, as people call it
    paper: bool = True  # whether the paper's figures for the task stand beside it


@dataclass(frozen=True)
class PlannedRun:
    """A run to be made."""

    name: str  # of its folder
    task: str
    data: tuple[str, ...]
    options: RunOptions
    recipe: TaskRecipe
    recipe_source: str | None

    @property
    def encoder(self) -> str | None:
        return None if self.options.encoder == "none" else self.options.encoder

    @property
    def vectors_key(self) -> str | None:
        """The same for runs that read the same vectors of a frozen encoder; nothing where there is none."""
        if self.encoder is None or self.recipe.elmo.tune:
            return None
        read = [self.task, self.data, self.encoder, to_dict(self.recipe.data), self.recipe.elmo.precision]
        return json.dumps(read, sort_keys=True)

    def words(self, output: Path) -> list[str]:
        """The arguments of `elmo` that make it, but for the seeds; files are named from the folder of the data."""
        options = self.options
        words = ["task", "train", self.task, "--data", *self.data, "--encoder", options.encoder]
        given = {
            "vectors": options.vectors, "elmo": options.elmo, "layers": options.layers, "lambda": options.penalty,
            "dropout": options.dropout, "recipe": self.recipe_source,
            "fraction": None if options.fraction == 1 else options.fraction,
        }  # fmt: skip
        words += [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        words += [word for change in options.set for word in ("--set", change)]
        return [*words, "-o", str(output / self.name)]


@dataclass(frozen=True)
class RunSet:
    """Runs on the same data; the first is the baseline."""

    name: str
    head: RunSetInfo
    runs: tuple[PlannedRun, ...]

    @property
    def row(self) -> PlannedRun | None:
        """The run beside the baseline in Table 1: that which is marked, or the first with an encoder."""
        marked = [run for run in self.runs[1:] if run.options.row]
        plain = [run for run in self.runs[1:] if run.encoder and run.options.fraction == 1]
        return next(iter(marked + plain), None)


def read_plan(path: str | Path) -> list[RunSet]:
    """A plan file, or the name of one that comes with the package."""
    path = recipe_path(path, "experiment")
    values = read_toml(path)
    try:
        sets = _tables(values, "set", "the file")
        if set(values) - {"set"} or not sets:
            raise ConfigError(f"expected tables [[set]] and nothing else, got {', '.join(values) or 'nothing'}")
        found = [_read_set(each, number, path.parent) for number, each in enumerate(sets, 1)]
        names = [run.name for each in found for run in each.runs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"two runs are called {name!r}; give one, or its set, another name")
    except (ConfigError, InputError, NotFoundError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return found


def _tables(values: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    found = values.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ConfigError(f"{where}: {name} must be tables, each under [[...{name}]]")
    return found


def _read_set(values: dict[str, Any], number: int, folder: Path) -> RunSet:
    where = f"set {values.get('name') or values.get('task') or number}"
    own = {field.name for field in fields(RunSetInfo)}
    shared = {field.name for field in fields(RunOptions)} - {"name", "penalty", "row"} | {"lambda"}
    for key in values:
        if key not in own | shared | {"run"}:
            raise ConfigError(f"{where}: {key}: no such setting. {nearest(key, own | shared | {'run'})}")
    head = from_dict(RunSetInfo, {key: value for key, value in values.items() if key in own}, f"{where}: ")
    if not 2 <= len(head.data) <= 3:
        raise ConfigError(f"{where}: data: give two files or three (train, dev, test), got {len(head.data)}")
    find_task(head.task)
    defaults = {key: value for key, value in values.items() if key in shared}
    runs = [
        planned
        for each in _tables(values, "run", where)
        for planned in _read_runs(head, defaults, each, f"{where}, run {each.get('name', '')}", folder)
    ]
    if not runs:
        raise ConfigError(f"{where}: has no runs; write each under [[set.run]]")
    return RunSet(head.name or head.task, head, tuple(runs))


def _read_runs(
    head: RunSetInfo, defaults: dict[str, Any], values: dict[str, Any], where: str, folder: Path
) -> list[PlannedRun]:
    shared, own = (each.get("set", []) for each in (defaults, values))
    if not (isinstance(shared, list) and isinstance(own, list)):
        raise ConfigError(f"{where}: set: expected a list of changes such as training.batch=40")
    merged = {**defaults, **values, "set": [*shared, *own]}
    if "penalty" in merged:
        raise ConfigError(f"{where}: penalty: no such setting. Did you mean 'lambda'?")
    if "lambda" in merged:
        merged["penalty"] = merged.pop("lambda")
    options = from_dict(RunOptions, merged, f"{where}: ")
    shares = options.fractions or (options.fraction,)
    if options.seeds < 1 or not all(0 < share <= 1 for share in shares):
        raise ConfigError(f"{where}: seeds must be 1 or more and fractions above 0 and at most 1")
    beside = options.recipe and (folder / options.recipe).is_file()
    recipe_source = str((folder / str(options.recipe)).resolve()) if beside else options.recipe
    given = {"where": options.elmo, "layers": options.layers, "penalty": options.penalty, "dropout": options.dropout}
    settings = [f"elmo.{name}={value}" for name, value in given.items() if value is not None]
    try:
        recipe = read_settings(
            find_task(head.task).recipe, recipe_source or head.task, [*settings, *options.set], group="task"
        )
    except (ConfigError, NotFoundError) as error:
        raise ConfigError(f"{where}: {error}") from error
    if options.vectors is None:  # as experiment.train has it: new vectors are trained
        recipe = replace(recipe, words=replace(recipe.words, tune=True))
    runs = []
    for share in shares:
        name = "-".join([head.name or head.task, options.name, *([f"{share:g}"] if options.fractions else [])])
        if not _NAME.fullmatch(name) or name in ("logs", "cache"):
            raise ConfigError(f"{where}: {name!r} cannot name a folder; use letters, digits, '.', '_', '+' and '-'")
        runs.append(PlannedRun(name, head.task, head.data, replace(options, fraction=share), recipe, recipe_source))
    return runs


def choose(sets: Sequence[RunSet], only: Sequence[str]) -> list[RunSet]:
    """The runs of these names, and all runs of sets of these names; all where there is none."""
    known = [name for each in sets for name in (each.name, *(run.name for run in each.runs))]
    for name in only:
        if name not in known:
            raise InputError(f"--only {name}: no run and no set of that name. {nearest(name, known)}")
    chosen = []
    for each in sets:
        runs = tuple(run for run in each.runs if not only or {each.name, run.name} & {*only})
        chosen += [replace(each, runs=runs)] if runs else []
    return chosen


def check_files(runs: Sequence[PlannedRun], data: Path) -> None:
    """One error for all files that are missing."""
    missing: dict[str, None] = {}
    for run in runs:
        named = [*run.data, run.options.vectors, getattr(run.recipe.data, "folder", None)]
        if run.encoder and not re.search("[:=]", run.encoder) and run.encoder not in bundled.bundled_names():
            named.append(run.encoder)
        missing |= {name: None for name in named if name is not None and not _exists(data / name)}
    if missing:
        raise NotFoundError(f"{data}: lacks {', '.join(missing)}, which the plan names. Is --data the right folder?")


def _exists(path: Path) -> bool:
    return path.exists() or resolve.is_checkpoint_prefix(path)


def check_made(run: PlannedRun, output: Path) -> None:
    """A folder that is there already must be of the same run: its finished seeds are not trained again."""
    if not (output / run.name / "run.json").is_file():
        return
    facts = read_json(output / run.name / "run.json")
    same = {
        "task": facts.get("task") == run.task,
        "data": [part.get("file") for part in facts.get("data", {}).values()] == [Path(name).name for name in run.data],
        "encoder": (facts.get("encoder") is None) == (run.encoder is None),
        "fraction": facts.get("fraction") == run.options.fraction,
        "recipe": facts.get("recipe") == to_dict(run.recipe),
    }
    if other := [name for name, ok in same.items() if not ok]:
        raise OutputError(
            f"{output / run.name}: holds a run with another {' and '.join(other)}. Name the run or the output "
            "differently, or remove that folder."
        )
