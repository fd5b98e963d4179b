"""The folder of a run: create it or check that it belongs to the same run, and read settings, results and answers.

S seeds, N examples, C counts of a metric.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float64Array
from pyelmo.errors import FormatError, NotFoundError, OutputError
from pyelmo.files import entries, locked, write_text
from pyelmo.parsing import field, parse_json, read_json
from pyelmo.plots import Shares, share_grid
from pyelmo.provenance import versions
from pyelmo.tasks.harness.metrics import main_score
from pyelmo.tasks.harness.settings import TaskRecipe, same_recipe
from pyelmo.tasks.harness.task import find_task
from pyelmo.text.lines import numbered_lines

RUN, RESULT = "run.json", "result.json"


@dataclass(frozen=True)
class SavedAnswers:
    """What the answers of a run's seeds add to the metric."""

    counts: Float64Array  # (S, N, C)
    units: npt.NDArray[np.int64] | None  # (N,) the unit of each example; None in runs that did not save it


@dataclass(frozen=True)
class TaskRun:
    """A run of `elmo task train` with the results of its finished seeds."""

    folder: Path
    facts: dict[str, Any]  # run.json
    results: list[dict[str, Any]]  # result.json of each seed
    folds: tuple[TaskRun, ...] = ()  # of a cross-validation, with the same seeds

    @property
    def part(self) -> str:
        """The data set whose score counts: the test set, or the dev set if there is no test set."""
        return "test" if "test" in self.facts["data"] else "dev"

    def scores(self, part: str) -> list[float]:
        return [main_score(result[part]) for result in self.results]

    def answers(self) -> SavedAnswers:
        """Return the counts that each example adds to the metric, and its unit; those of folds follow each other.

        Old runs of tasks with accuracy have a third count, which is not used, and old runs of all tasks have no units.
        """
        if self.folds:
            return _join_answers([fold.answers() for fold in self.folds])
        paths = [self.folder / f"seed-{result['seed']}" / f"answers-{self.part}.jsonl" for result in self.results]
        used = len(find_task(self.facts["task"]).metric.counts)
        counts, units = zip(*(_read_answers(path, used) for path in paths), strict=True)
        if len({len(each) for each in counts}) > 1:
            raise FormatError(f"{self.folder}: its seeds have predictions for different numbers of examples")
        saved = [each for each in units if each is not None]
        if any(not np.array_equal(saved[0], each) for each in saved):
            raise FormatError(f"{self.folder}: its seeds have examples of different units. Are they of one run?")
        return SavedAnswers(np.stack(counts), saved[0] if saved else None)

    @property
    def group(self) -> tuple[Any, ...]:
        """What two runs must share to be compared."""
        return self.facts["task"], self.facts["fraction"], json.dumps(self.facts["data"][self.part])

    @property
    def elmo(self) -> str:
        """A short description of how the network used the encoder."""
        if self.facts["encoder"] is None:
            return ""
        elmo = self.facts["recipe"]["elmo"]
        layers = f"mix, lambda {elmo['penalty']:g}" if elmo["layers"] == "mix" else elmo["layers"]
        return f"{elmo['where']}; {layers}{'; tuned' if elmo['tune'] else ''}"


def read_run(folder: str | Path) -> TaskRun:
    """Read a run that has at least one finished seed."""
    folder = Path(folder)
    if not (folder / RUN).is_file():
        raise NotFoundError(f"{folder}: no run.json in this folder. Give the folder of a run of elmo task train.")
    facts = read_json(folder / RUN)
    paths = list(folder.glob(f"seed-*/{RESULT}"))
    if not paths:
        raise FormatError(f"{folder}: no seed of this run has finished. Run its command again.")
    _check_facts(folder / RUN, facts)
    results = [_read_result(path, list(facts["data"])) for path in paths]
    if len({frozenset(result["layers"]) for result in results}) > 1:
        raise FormatError(f"{folder}: its seeds have mixes of different names. Are they of one run?")
    return TaskRun(folder, facts, sorted(results, key=lambda result: int(result["seed"])))


def join_folds(folds: Sequence[TaskRun], folder: Path) -> TaskRun | None:
    """Return the folds of a cross-validation as one run, or None if they have no seed in common.

    Its scores are those of all examples together, each predicted by the network of its fold.
    """
    seeds = sorted(set.intersection(*({int(result["seed"]) for result in fold.results} for fold in folds)))
    if not seeds:
        return None
    folds = [replace(fold, results=[one for one in fold.results if one["seed"] in seeds]) for fold in folds]
    data = {
        part: {"file": f"{facts['file']} and {len(folds) - 1} other folds", "folds": [f.facts["data"] for f in folds]}
        for part, facts in folds[0].facts["data"].items()
    }
    results = [_join_results([fold.results[row] for fold in folds], folds[0]) for row in range(len(seeds))]
    return TaskRun(folder, {**folds[0].facts, "data": data}, results, tuple(folds))


def _join_results(results: Sequence[dict[str, Any]], run: TaskRun) -> dict[str, Any]:
    """Return the result of a seed over all folds: scores from the sums of their counts, and mean layer weights."""
    metric = find_task(run.facts["task"]).metric
    joined: dict[str, Any] = {"seed": results[0]["seed"], "layers": {}}
    for part in run.facts["data"]:
        if part != "train":
            sums = [[field(one[part], name, (int, float), run.folder) for name in metric.counts] for one in results]
            joined[part] = metric.score(sums).facts()
    for name in results[0]["layers"]:
        weights = np.mean([one["layers"][name]["weights"] for one in results], 0)
        joined["layers"][name] = {"weights": weights.tolist()}
    return joined


def _join_answers(folds: Sequence[SavedAnswers]) -> SavedAnswers:
    """Return the answers of all folds. A unit is in one fold alone, so each fold has its own numbers."""
    counts = np.concatenate([fold.counts for fold in folds], 1)
    units: list[npt.NDArray[np.int64]] = []
    for fold in folds:
        if fold.units is None:
            return SavedAnswers(counts, None)
        units.append(np.unique(fold.units, return_inverse=True)[1] + (units[-1].max() + 1 if units else 0))
    return SavedAnswers(counts, np.concatenate(units))


def _check_facts(path: Path, facts: dict[str, Any]) -> None:
    """Check the fields of run.json that comparisons use."""
    find_task(field(facts, "task", str, path))
    for name, data in field(facts, "data", dict, path).items():
        field(data, "file", str, f"{path}: data.{name}")
    field(facts, "fraction", (int, float), path)
    field(facts, "encoder_name", (str, type(None)), path)
    elmo = field(field(facts, "recipe", dict, path), "elmo", dict, path)
    if field(facts, "encoder", (dict, type(None)), path) is not None:
        for name in ("where", "layers"):
            field(elmo, name, str, path)
        field(elmo, "penalty", (int, float), path)
        field(elmo, "tune", bool, path)


def _read_result(path: Path, data: Sequence[str]) -> dict[str, Any]:
    """Read the result of a seed; `data` are the names of the data sets of the run."""
    result = read_json(path)
    if not 0 <= field(result, "seed", int, path) < 10**9:
        raise FormatError(f"{path}: {result['seed']} is not the number of a seed")
    for name in data:
        if name != "train":
            score = field(result, name, dict, path)
            field(score, "score" if "score" in score else "f1", (int, float), path)
    for name, mix in field(result, "layers", dict, path).items():
        weights = field(mix, "weights", list, f"{path}: layers.{name}")
        if not weights or not all(isinstance(weight, (int, float)) for weight in weights):
            raise FormatError(f"{path}: the layer weights of {name!r} are no numbers")
    return result


def open_run_folder(
    output: Path, facts: dict[str, Any], recipe: TaskRecipe, origin: dict[str, Any], *, force: bool
) -> None:
    """Create the folder of a run, or check that the folder belongs to a run with the same facts and this recipe."""
    path = output / RUN
    if path.is_file() and force:
        _delete_seeds(output)
        path.unlink()
    # Listed before run.json is read: if several seeds of a run start at once, one of them may write it in between.
    has_files = output.is_dir() and any(not entry.name.startswith(f".{RUN}.") for entry in output.iterdir())
    if path.is_file():
        before = read_json(path)
        changed = [name for name, value in facts.items() if before.get(name) != value]
        if "recipe" in changed and same_recipe(before.get("recipe"), recipe):
            changed.remove("recipe")
        if changed:
            raise OutputError(
                f"{output}: holds a run with another {' and '.join(changed)}. Choose another folder, or pass --force "
                "to start again."
            )
        return
    if output.is_file() or has_files:
        raise OutputError(f"{output}: exists, but is not a run of a task. Choose another folder.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{output}: cannot create this folder: {error.strerror}. Choose another folder.") from error
    write_text(path, json.dumps({**facts, "made": versions(), **origin}, indent=1, ensure_ascii=False) + "\n")


def _delete_seeds(output: Path) -> None:
    for folder in output.glob("seed-*"):
        with locked(folder):
            for path in entries(folder):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        with contextlib.suppress(OSError):  # another process may have locked it again
            folder.rmdir()


def seed_folders(run: str | Path) -> list[Path]:
    """Return the folders of a run's finished seeds; for the folder of a seed or a model, that folder."""
    results = sorted(Path(run).glob(f"seed-*/{RESULT}"), key=lambda path: int(path.parent.name[5:]))
    return [path.parent for path in results] or [Path(run)]


def layers_picture(runs: Sequence[TaskRun]) -> str | None:
    """Draw the weight of each layer in each learnt mix, averaged over the seeds (Figure 2 of the paper)."""
    mixes = []
    for run in runs:
        for name in run.results[0]["layers"]:
            weights = [result["layers"][name]["weights"] for result in run.results]
            if len({len(each) for each in weights}) > 1:
                raise FormatError(f"{run.folder}: the seeds mix different numbers of layers. Are they of one run?")
            if len(weights[0]) > 1:
                means = np.mean(weights, axis=0).tolist()
                mixes.append(Shares(f"{run.folder.name}: {name} of {run.facts['task']}", means))
    return share_grid(mixes) if mixes else None


def _read_answers(path: Path, used: int) -> tuple[Float64Array, npt.NDArray[np.int64] | None]:  # (N, C), (N,)
    if not path.exists():
        raise NotFoundError(f"{path}: not found. Run the command of this run again.")
    places = ((f"{path}, line {number}", line) for number, line in numbered_lines(path))
    try:
        answers = [(where, parse_json(line, where)) for where, line in places]
        counts = np.array([field(answer, "counts", list, where) for where, answer in answers], np.float64)
        units = None
        if any("unit" in answer for _, answer in answers):
            units = np.array([field(answer, "unit", int, where) for where, answer in answers], np.int64)
        if counts.ndim != 2 or counts.shape[1] < used or not np.isfinite(counts).all():
            raise ValueError(f"expected {used} counts for each example")
    except (ValueError, TypeError, OverflowError) as error:  # a FormatError is a ValueError
        raise FormatError(f"{path}: not the predictions of a run ({error})") from error
    return counts[:, :used], units
