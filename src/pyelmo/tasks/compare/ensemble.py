"""Several models as one: the mean of their probabilities decides; a table of the members and of all together.

S members, N examples, C numbers that each adds to the score.
"""

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
from pyelmo.tasks.compare.comparison import RESAMPLES, BootstrapResult, bootstrap
from pyelmo.tasks.harness.metrics import Score
from pyelmo.tasks.harness.model import TaskModel, find_model, load, seed_folders
from pyelmo.tasks.harness.task import read_examples


@dataclass(frozen=True)
class Ensemble:
    """What each member and all together reach on a file."""

    task: str
    metric: str
    data: str
    members: dict[str, Score]
    score: Score
    best: BootstrapResult  # all together against the best member


def member_folders(runs: Iterable[str | Path]) -> list[Path]:
    """The folders of all seeds of runs, or of the seeds or models that are named."""
    folders = [folder for run in runs for folder in seed_folders(run)]
    if len({find_model(folder).resolve() for folder in folders}) < len(folders):
        raise InputError("a model is named twice; each may be a member once")
    if len(folders) < 2:
        raise InputError(f"an ensemble needs two models, got {len(folders)}. Name more runs, or train more seeds.")
    return folders


def evaluate(
    runs: Iterable[str | Path],
    data: str | Path,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    progress: bool = False,
    resamples: int = RESAMPLES,
) -> Ensemble:
    """Score the models of runs on a labelled file, each alone and all by the mean of their probabilities.

    Models are read one after the other. `encoder` says where the encoder of all that have one lies now.
    """
    folders = member_folders(runs)
    first = load(folders[0], encoder=encoder, device=device)
    task = first.task
    if not hasattr(first.network, "probabilities"):
        raise InputError(f"{folders[0]}: {task.name} has no ensembles: its answers have no probabilities to average")
    examples = read_examples(task, data, first.recipe.data, first.vocabularies)
    counts: list[list[Sequence[float]]] = []
    sums: list[Tensor] = []
    for folder in folders:
        model = first if folder is folders[0] else load(folder, encoder=encoder, device=device)
        _check_same(first, model, folders[0], folder)
        found = model.probabilities(examples, progress=progress)
        counts.append([task.count(*pair) for pair in zip(examples, model.network.decide(examples, found), strict=True)])
        sums = [one + more for one, more in zip(sums, found, strict=True)] if sums else found
    decided = first.network.decide(examples, [one / len(folders) for one in sums])
    together = [task.count(*pair) for pair in zip(examples, decided, strict=True)]
    members = {str(folder): task.metric.score(each) for folder, each in zip(folders, counts, strict=True)}
    best = max(range(len(folders)), key=lambda place: list(members.values())[place].main)
    compared = bootstrap(np.array([counts[best]], float), np.array([together], float), task.metric, resamples=resamples)
    return Ensemble(task.name, task.metric.name, Path(data).name, members, task.metric.score(together), compared)


def _check_same(first: TaskModel, other: TaskModel, first_name: Path, name: Path) -> None:
    """Members must answer the same questions with the same labels."""
    for what, one, two in (
        ("task", first.task.name, other.task.name),
        ("data settings", first.recipe.data, other.recipe.data),
        ("labels", first.vocabularies.get("labels"), other.vocabularies.get("labels")),
    ):
        if one != two:
            raise InputError(f"{name}: has another {what} than {first_name}; members of an ensemble must share it")


def markdown(found: Ensemble) -> str:
    """A row for each member, their mean, and all together."""
    names = list(found.score.figures)
    lines = ["| member | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    rows = [(name, score.figures) for name, score in found.members.items()]
    means = {name: statistics.fmean(score.figures[name] for score in found.members.values()) for name in names}
    rows += [("mean of the members", means), (f"ensemble of {len(found.members)}", found.score.figures)]
    for name, figures in rows:
        lines.append(
            f"| {name.replace('|', chr(92) + '|')} | " + " | ".join(f"{figures[each]:.2f}" for each in names) + " |"
        )
    best = f"{found.best.p:.4f} (paired bootstrap; 95 %: {found.best.low:+.2f} to {found.best.high:+.2f})"
    return "\n".join(lines) + f"\n\n{found.task}, {found.data}. Against the best member: p {best}.\n"


def write(found: Ensemble, path: Path) -> list[Path]:
    """The table as Markdown and as JSON beside it."""
    write_text(path.with_suffix(".md"), markdown(found))
    write_text(path.with_suffix(".json"), to_json(found) + "\n")
    return [path.with_suffix(".md"), path.with_suffix(".json")]


def to_json(found: Ensemble) -> str:
    members = {name: score.facts() for name, score in found.members.items()}
    facts = {"task": found.task, "metric": found.metric, "data": found.data, "members": members}
    return json.dumps({**facts, "ensemble": found.score.facts(), "best_member": asdict(found.best)}, indent=1)
