"""Plan files: TOML files that describe many runs. A set has data, and the runs that are compared on it.

    [[set]]
    name = "srl"                      # default: the task
    task = "srl"
    data = ["ewt-train", "ewt-dev", "ewt-test"]
    vectors = "glove.txt"
    [[set.run]]
    name = "glove"                    # the run srl-glove, the baseline of the set
    encoder = "none"
    [[set.run]]
    name = "en"
    [[set.run]]
    name = "en"                       # the runs srl-en-0.01 and srl-en-0.1
    fractions = [0.01, 0.1]
    set = ["training.batch=40"]

A set may have the options of a run, too: they apply to all of its runs. Data files are relative to the folder `--data`.
With `folds = 10`, each run is ten runs, one for each fold: `{fold}` in the names of data files is its number, from 0.
Their test sets are scored together.
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
from pyelmo.parsing import read_json, read_toml
from pyelmo.recipes import read_settings, recipe_path
from pyelmo.tasks.harness.settings import TaskRecipe, same_recipe
from pyelmo.tasks.harness.task import find_task

FOLD = "{fold}"  # in the names of data files
_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run in a plan file, which are options of `elmo task train`."""

    name: str
    encoder: str = "en"
    vectors: str | None = None
    recipe: str | None = None  # a bundled recipe, or a file relative to the folder of the plan
    set: tuple[str, ...] = ()
    elmo: Literal["input", "output", "both"] | None = None
    layers: Literal["mix", "top", "average"] | None = None
    penalty: float | None = None  # `lambda` in the file
    dropout: float | None = None
    fraction: float = 1.0
    fractions: tuple[float, ...] = ()  # one run for each
    seeds: int = 3
    row: bool = False  # use this run in Table 1 instead of the first run with an encoder


@dataclass(frozen=True, kw_only=True)
class RunSetInfo:
    """The settings of a set that are not options of a run."""

    task: str
    data: tuple[str, ...]  # train, dev and, if there is one, test
    name: str | None = None
    about: str | None = None  # a name of the data for readers
    paper: bool = True  # show the paper's scores for the task beside ours
    folds: int = 0  # of a cross-validation; 0: none


@dataclass(frozen=True)
class PlannedRun:
    """A run of a plan."""

    name: str  # of its folder
    task: str
    data: tuple[str, ...]
    options: RunOptions
    recipe: TaskRecipe
    recipe_source: str | None
    fold: int | None = None
    pattern: tuple[str, ...] = ()  # of a fold: the data files with {fold} in their names

    @property
    def row_name(self) -> str:
        """The name of the row that shows this run in tables: the folds of a run share one."""
        return self.name if self.fold is None else self.name.removesuffix(fold_suffix(self.fold))

    @property
    def encoder(self) -> str | None:
        return None if self.options.encoder == "none" else self.options.encoder

    @property
    def vectors_key(self) -> str | None:
        """Equal for runs that use the same vectors of a frozen encoder; None if there is no frozen encoder.

        Folds divide the same texts.
        """
        if self.encoder is None or self.recipe.elmo.tune:
            return None
        key = [
            self.task,
            self.pattern or self.data,
            self.encoder,
            to_dict(self.recipe.data),
            self.recipe.elmo.precision,
        ]
        return json.dumps(key, sort_keys=True)

    def arguments(self, output: Path) -> list[str]:
        """Return the arguments of `elmo` for this run, but for the seeds; data files are relative to `--data`."""
        options = self.options
        arguments = ["task", "train", self.task, "--data", *self.data, "--encoder", options.encoder]
        values = {
            "vectors": options.vectors, "elmo": options.elmo, "layers": options.layers, "lambda": options.penalty,
            "dropout": options.dropout, "recipe": self.recipe_source,
            "fraction": None if options.fraction == 1 else options.fraction,
        }  # fmt: skip
        for name, value in values.items():
            arguments += [] if value is None else [f"--{name}", str(value)]
        for change in options.set:
            arguments += ["--set", change]
        return [*arguments, "-o", str(output / self.name)]


@dataclass(frozen=True)
class RunSet:
    """Runs on the same data; the first is the baseline."""

    name: str
    info: RunSetInfo
    runs: tuple[PlannedRun, ...]

    @property
    def row(self) -> PlannedRun | None:
        """The run that Table 1 compares with the baseline: one with `row = true`, or the first one with an encoder.

        Of the folds of a run it is the first.
        """
        chosen = [run for run in self.runs[1:] if run.options.row]
        others = [run for run in self.runs[1:] if run.encoder and run.options.fraction == 1]
        return next(iter(chosen + others), None)


def read_plan(path: str | Path) -> list[RunSet]:
    """Read a plan file, or a bundled plan by its name."""
    path = recipe_path(path, "experiment")
    values = read_toml(path)
    try:
        tables = _tables(values, "set", "the file")
        if set(values) - {"set"} or not tables:
            raise ConfigError(f"expected tables [[set]] and nothing else, got {', '.join(values) or 'nothing'}")
        sets = [_read_set(table, number, path.parent) for number, table in enumerate(tables, 1)]
        names = [run.name for run_set in sets for run in run_set.runs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"two runs have the name {name!r}. Give one of them, or its set, another name.")
    except (ConfigError, InputError, NotFoundError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return sets


def _tables(values: dict[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    tables = values.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{where}: {name} must be a list of tables. Begin each with [[...{name}]].")
    return tables


def _read_set(values: dict[str, Any], number: int, folder: Path) -> RunSet:
    where = f"set {values.get('name') or values.get('task') or number}"
    own = {field.name for field in fields(RunSetInfo)}
    shared = {field.name for field in fields(RunOptions)} - {"name", "penalty", "row"} | {"lambda"}
    for key in values:
        if key not in own | shared | {"run"}:
            raise ConfigError(f"{where}: {key}: no such setting. {nearest(key, own | shared | {'run'})}")
    info = from_dict(RunSetInfo, {key: value for key, value in values.items() if key in own}, f"{where}: ")
    if not 2 <= len(info.data) <= 3:
        raise ConfigError(f"{where}: data: give two files or three (train, dev, test), got {len(info.data)}")
    if info.folds < 0 or any((FOLD in name) != (info.folds > 0) for name in info.data):
        raise ConfigError(f"{where}: with folds, the name of each data file must have {FOLD}, and else none of them")
    find_task(info.task)
    defaults = {key: value for key, value in values.items() if key in shared}
    runs = [
        run
        for table in _tables(values, "run", where)
        for run in _read_runs(info, defaults, table, f"{where}, run {table.get('name', '')}", folder)
    ]
    if not runs:
        raise ConfigError(f"{where}: has no runs. Begin each run with [[set.run]].")
    return RunSet(info.name or info.task, info, tuple(runs))


def _read_runs(
    info: RunSetInfo, defaults: dict[str, Any], values: dict[str, Any], where: str, folder: Path
) -> list[PlannedRun]:
    """Return the run of a table [[set.run]], or one run for each of its fractions."""
    shared, own = defaults.get("set", []), values.get("set", [])
    if not (isinstance(shared, list) and isinstance(own, list)):
        raise ConfigError(f"{where}: set: expected a list of settings such as training.batch=40")
    merged = {**defaults, **values, "set": [*shared, *own]}
    if "penalty" in merged:
        raise ConfigError(f"{where}: penalty: no such setting. Did you mean 'lambda'?")
    if "lambda" in merged:
        merged["penalty"] = merged.pop("lambda")
    options = from_dict(RunOptions, merged, f"{where}: ")
    fractions = options.fractions or (options.fraction,)
    if options.seeds < 1 or not all(0 < fraction <= 1 for fraction in fractions):
        raise ConfigError(f"{where}: seeds must be 1 or more, and fractions above 0 and at most 1")
    recipe_source = options.recipe
    if options.recipe and (folder / options.recipe).is_file():
        recipe_source = str((folder / options.recipe).resolve())
    given = {"where": options.elmo, "layers": options.layers, "penalty": options.penalty, "dropout": options.dropout}
    settings = [f"elmo.{name}={value}" for name, value in given.items() if value is not None]
    try:
        recipe = read_settings(
            find_task(info.task).recipe, recipe_source or info.task, [*settings, *options.set], group="task"
        )
    except (ConfigError, NotFoundError) as error:
        raise ConfigError(f"{where}: {error}") from error
    if options.vectors is None:  # new random vectors are always trained, as in `train_run`
        recipe = replace(recipe, words=replace(recipe.words, tune=True))
    runs = []
    for fraction in fractions:
        name = "-".join([info.name or info.task, options.name, *([f"{fraction:g}"] if options.fractions else [])])
        if not _NAME.fullmatch(name) or name in ("logs", "cache"):
            raise ConfigError(
                f"{where}: {name!r} cannot be the name of a folder. Use letters, digits, '.', '_', '+' and '-'."
            )
        options = replace(options, fraction=fraction)
        run = PlannedRun(name, info.task, info.data, options, recipe, recipe_source)
        runs += [_fold(run, fold) for fold in range(info.folds)] if info.folds else [run]
    return runs


def _fold(run: PlannedRun, fold: int) -> PlannedRun:
    data = tuple(name.replace(FOLD, str(fold)) for name in run.data)
    return replace(run, name=run.name + fold_suffix(fold), data=data, fold=fold, pattern=run.data)


def fold_suffix(fold: int) -> str:
    return f"-fold{fold}"


def choose(sets: Sequence[RunSet], only: Sequence[str]) -> list[RunSet]:
    """Return the runs with these names and all runs of the sets with these names; everything if `only` is empty."""
    names = {run.name: {run_set.name, run.name, run.row_name} for run_set in sets for run in run_set.runs}
    known = list(dict.fromkeys(name for own in names.values() for name in sorted(own)))
    for name in only:
        if name not in known:
            raise InputError(f"--only {name}: no run and no set of that name. {nearest(name, known)}")
    if not only:
        return list(sets)
    chosen = []
    for run_set in sets:
        runs = tuple(run for run in run_set.runs if not names[run.name].isdisjoint(only))
        chosen += [replace(run_set, runs=runs)] if runs else []
    return chosen


def check_files(runs: Sequence[PlannedRun], data: Path) -> None:
    """Check that all files of the runs exist; one error names all that are missing."""
    missing: dict[str, None] = {}
    for run in runs:
        names = [*run.data, run.options.vectors, getattr(run.recipe.data, "folder", None)]
        if run.encoder and not re.search("[:=]", run.encoder) and run.encoder not in bundled.bundled_names():
            names.append(run.encoder)
        missing |= {name: None for name in names if name is not None and not _exists(data / name)}
    if missing:
        raise NotFoundError(f"{data}: lacks these files of the plan: {', '.join(missing)}. Is --data the right folder?")


def _exists(path: Path) -> bool:
    return path.exists() or resolve.is_checkpoint_prefix(path)


def check_existing(run: PlannedRun, output: Path) -> None:
    """Check that an existing folder of this name belongs to the same run, so that its finished seeds can be kept."""
    if not (output / run.name / "run.json").is_file():
        return
    facts = read_json(output / run.name / "run.json")
    same = {
        "task": facts.get("task") == run.task,
        "data": [part.get("file") for part in facts.get("data", {}).values()] == [Path(name).name for name in run.data],
        "encoder": (facts.get("encoder") is None) == (run.encoder is None),
        "fraction": facts.get("fraction") == run.options.fraction,
        "recipe": same_recipe(facts.get("recipe"), run.recipe),
    }
    if different := [name for name, equal in same.items() if not equal]:
        raise OutputError(
            f"{output / run.name}: holds a run with another {' and '.join(different)}. Give the run another name, "
            "choose another output folder, or delete this folder."
        )
