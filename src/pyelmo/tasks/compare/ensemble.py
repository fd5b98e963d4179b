"""An ensemble of trained models: predict from the mean of their probabilities, and compare it with its members."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from pyelmo.errors import InputError
from pyelmo.files import write_text
from pyelmo.tasks.compare.bootstrap import RESAMPLES, BootstrapResult, paired_bootstrap
from pyelmo.tasks.harness.metrics import Score
from pyelmo.tasks.harness.model import TaskModel
from pyelmo.tasks.harness.run_folder import seed_folders
from pyelmo.tasks.harness.storage import find_model, load_model
from pyelmo.tasks.harness.task import find_task, read_examples, unit_numbers


@dataclass(frozen=True)
class EnsembleResult:
    """The scores of each member and of the ensemble on a file."""

    task: str
    metric: str
    data: str
    members: dict[str, Score]
    score: Score
    best: BootstrapResult  # the ensemble compared with its best member


def member_folders(runs: Iterable[str | Path]) -> list[Path]:
    """Return the folders of all seeds of runs, or of single seeds or models."""
    folders = [folder for run in runs for folder in seed_folders(run)]
    if len({find_model(folder).resolve() for folder in folders}) < len(folders):
        raise InputError("a model is given twice. Give each member of the ensemble once.")
    if len(folders) < 2:
        raise InputError(f"an ensemble needs two models, got {len(folders)}. Give more runs, or train more seeds.")
    return folders


def evaluate(
    runs: Iterable[str | Path],
    data: str | Path,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    progress: bool = False,
    resamples: int = RESAMPLES,
) -> EnsembleResult:
    """Score the models of runs on a labelled file, each alone and all as an ensemble.

    One model is in memory at a time, beside the first. `encoder` is where the encoder of the models is now.
    """
    folders = member_folders(runs)
    first = load_model(folders[0], encoder=encoder, device=device)
    task = first.task
    if not hasattr(first.network, "probabilities"):
        raise InputError(f"{folders[0]}: a {task.name} model has no probabilities to average. Ensembles need them.")
    examples = read_examples(task, data, first.recipe.data, first.vocabularies)
    counts: list[list[Sequence[float]]] = []
    sums: list[Tensor] = []
    for folder in folders:
        model = first if folder is folders[0] else load_model(folder, encoder=encoder, device=device)
        _check_same(first, model, folders[0], folder)
        probabilities = model.probabilities(examples, progress=progress)
        predictions = model.network.decide(examples, probabilities)
        counts.append([task.count(*pair) for pair in zip(examples, predictions, strict=True)])
        sums = [total + more for total, more in zip(sums, probabilities, strict=True)] if sums else probabilities
    predictions = first.network.decide(examples, [total / len(folders) for total in sums])
    ensemble_counts = [task.count(*pair) for pair in zip(examples, predictions, strict=True)]
    scores = [task.metric.score(member_counts) for member_counts in counts]
    best = max(range(len(folders)), key=lambda index: scores[index].main)
    compared = paired_bootstrap(
        np.array([counts[best]], float), np.array([ensemble_counts], float), task.metric,
        units=np.array(unit_numbers(examples)), resamples=resamples,
    )  # fmt: skip
    members = dict(zip(map(str, folders), scores, strict=True))
    score = task.metric.score(ensemble_counts)
    return EnsembleResult(task.name, task.metric.name, Path(data).name, members, score, compared)


def _check_same(first: TaskModel, other: TaskModel, first_folder: Path, folder: Path) -> None:
    """Check that two members have the same task, data settings and labels."""
    for what, expected, value in (
        ("task", first.task.name, other.task.name),
        ("data settings", first.recipe.data, other.recipe.data),
        ("labels", first.vocabularies.get("labels"), other.vocabularies.get("labels")),
    ):
        if value != expected:
            raise InputError(
                f"{folder}: not the same {what} as {first_folder}. Members of an ensemble must have the same {what}."
            )


def markdown(result: EnsembleResult) -> str:
    """Return a table with a row for each member, their mean, and the ensemble."""
    names = list(result.score.figures)
    lines = ["| member | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    means = {name: statistics.fmean(score.figures[name] for score in result.members.values()) for name in names}
    rows = [(member, score.figures) for member, score in result.members.items()]
    rows += [("mean of the members", means), (f"ensemble of {len(result.members)}", result.score.figures)]
    for member, figures in rows:
        cells = [member.replace("|", "\\|"), *(f"{figures[name]:.2f}" for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    drawn = f"paired bootstrap over {result.best.units:,} {find_task(result.task).unit}s"
    best = f"{result.best.p:.4f} ({drawn}; 95 %: {result.best.low:+.2f} to {result.best.high:+.2f})"
    return "\n".join(lines) + f"\n\n{result.task}, {result.data}. Against the best member: p {best}.\n"


def write(result: EnsembleResult, path: Path) -> list[Path]:
    """Write the table as Markdown, and as JSON beside it."""
    write_text(path.with_suffix(".md"), markdown(result))
    write_text(path.with_suffix(".json"), to_json(result) + "\n")
    return [path.with_suffix(".md"), path.with_suffix(".json")]


def to_json(result: EnsembleResult) -> str:
    members = {name: score.facts() for name, score in result.members.items()}
    facts = {"task": result.task, "metric": result.metric, "data": result.data, "members": members}
    return json.dumps({**facts, "ensemble": result.score.facts(), "best_member": asdict(result.best)}, indent=1)
