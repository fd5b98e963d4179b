"""A run: one task, one encoder, one recipe, several seeds -> a folder with a model, scores and answers for each.

RUN/run.json                      what was trained on what: settings, and checksums of data and encoder
RUN/layers.svg                    the learnt weights of the layers, mean over the seeds
RUN/seed-1/model/                 the model of the best epoch
RUN/seed-1/result.json            its scores, and the weights of the layers
RUN/seed-1/answers-dev.jsonl      labels wanted and given, with what they add to the score (and answers-test.jsonl)
RUN/seed-1/log.jsonl              every epoch
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyelmo.config import to_dict
from pyelmo.embed.embedder import Embedder
from pyelmo.encoders.base import NamedEncoder
from pyelmo.encoders.registry import identity
from pyelmo.errors import InputError, OutputError
from pyelmo.files import entries, locked, sha256, write_text
from pyelmo.provenance import versions
from pyelmo.tasks.compare.comparison import layers_picture, read_run
from pyelmo.tasks.harness import layer_cache
from pyelmo.tasks.harness.metrics import Score
from pyelmo.tasks.harness.model import MODEL, TaskModel, describe_encoder, load, open_task_encoder
from pyelmo.tasks.harness.representation import EncoderShape, build_embedding_table
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import Example, Task, Vocabularies, all_texts, find_task, read_examples
from pyelmo.tasks.harness.training_loop import CHECKPOINT, fit
from pyelmo.text.lines import existing
from pyelmo.training.report import Report, Say
from pyelmo.vectors.static import StaticVectors

RUN, RESULT, PICTURE, CACHE = "run.json", "result.json", "layers.svg", "cache"
PARTS = ("train", "dev", "test")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What is to be trained on what."""

    task: str
    data: Sequence[str | Path]  # train, dev, perhaps test
    recipe: TaskRecipe
    encoder: str | None = None
    vectors: str | Path | None = None
    fraction: float = 1.0  # of the training examples
    seeds: int = 1
    first_seed: int = 1

    def __post_init__(self) -> None:
        if not 2 <= len(self.data) <= 3:
            raise InputError(f"data: give two files or three (train, dev, test), got {len(self.data)}")
        if not 0 < self.fraction <= 1 or min(self.seeds, self.first_seed) < 1:
            raise InputError(f"fraction {self.fraction} is not above 0 and at most 1, or seeds {self.seeds} below 1")


@dataclass(frozen=True)
class _RunInputs:
    """All that the seeds of a run share."""

    task: Task
    plan: RunSettings
    parts: dict[str, list[Example]]
    learnt: Vocabularies
    about: dict[str, Any] | None  # the encoder, as a saved model names it
    layers: layer_cache.LayerSource | None
    vectors: StaticVectors | None


def train(
    plan: RunSettings,
    output: str | Path,
    *,
    cache_folder: str | Path | None = None,
    device: str = "cpu",
    say: Say | None = None,
    progress: bool = False,
    tensorboard: bool = False,
    force: bool = False,
    origin: dict[str, Any] | None = None,
    shared_gpu: bool = False,
) -> list[dict[str, Any]]:
    """Train each seed, or go on where a killed run was; gives the seeds' results.

    Vectors of a frozen encoder are kept in `cache_folder` (default: `cache` beside the run). `origin` (a command) is
    written down with the run. `shared_gpu` says that other processes use the same GPU.
    """
    output, place = Path(output), cache_folder
    task = find_task(plan.task)
    if plan.vectors is None:  # there is nothing yet that could be left as it is
        plan = replace(plan, recipe=replace(plan.recipe, words=replace(plan.recipe.words, tune=True)))
    encoder = open_task_encoder(plan.encoder, device) if plan.encoder else None
    parts = _read_parts(task, plan)
    _open_folder(output, _facts(plan, encoder), origin or {}, force=force)
    layers = _layers(plan, encoder, parts, Path(place) if place else output.parent / CACHE, device, progress)
    about = describe_encoder(plan.encoder, encoder) if plan.encoder and encoder else None
    vectors = StaticVectors.load(plan.vectors) if plan.vectors else None
    material = _RunInputs(task, plan, parts, task.build_vocabularies(parts["train"]), about, layers, vectors)
    seeds = range(plan.first_seed, plan.first_seed + plan.seeds)
    for seed in seeds:
        folder = output / f"seed-{seed}"
        folder.mkdir(exist_ok=True)
        with locked(folder):
            if (folder / RESULT).is_file():
                continue
            for unfinished in folder.glob(".*.part"):  # what a killed run was writing
                shutil.rmtree(unfinished, ignore_errors=True)
            report = Report(folder, say, tensorboard=tensorboard)
            _train_seed(material, seed, folder, report, device, progress=progress, shared_gpu=shared_gpu)
    run = read_run(output)
    if picture := layers_picture([run]):
        write_text(output / PICTURE, picture)
    return [result for result in run.results if result["seed"] in seeds]


def embed(plan: RunSettings, cache_folder: str | Path, *, device: str = "cpu", progress: bool = False) -> bool:
    """Embed what the runs of a plan will read, unless the cache has it; False where no frozen encoder is in it."""
    encoder = open_task_encoder(plan.encoder, device) if plan.encoder else None
    return (
        _layers(plan, encoder, _read_parts(find_task(plan.task), plan), Path(cache_folder), "cpu", progress) is not None
    )


def _layers(
    plan: RunSettings,
    encoder: NamedEncoder | None,
    parts: dict[str, list[Example]],
    place: Path,
    device: str,
    progress: bool,
) -> layer_cache.LayerSource | None:
    """The layers of all texts by a frozen encoder."""
    if encoder is None or plan.recipe.elmo.tune:
        return None
    return layer_cache.cached(
        encoder, [text for part in parts.values() for text in all_texts(part)], place, device=device, progress=progress,
        language=plan.recipe.data.language, precision=plan.recipe.elmo.precision,
    )  # fmt: skip


def _read_parts(task: Task, plan: RunSettings) -> dict[str, list[Example]]:
    """The examples of each file; labels that training lacks are noticed now."""
    parts: dict[str, list[Example]] = {}
    for part, path in zip(PARTS, plan.data, strict=False):
        learnt = task.build_vocabularies(parts["train"]) if parts else None
        parts[part] = read_examples(task, path, plan.recipe.data, learnt)
    if len(parts["train"]) < 2:
        raise InputError(f"{plan.data[0]}: one example is too little to train on")
    return parts


def _facts(plan: RunSettings, encoder: NamedEncoder | None) -> dict[str, Any]:
    """What makes two runs the same."""
    return {
        "task": plan.task,
        "data": {
            part: {
                "file": Path(path).name,
                "sha256": _checksum(find_task(plan.task).data_files(Path(path), plan.recipe.data)),
            }
            for part, path in zip(PARTS, plan.data, strict=False)
        },
        "encoder": encoder.facts if encoder else None,
        "encoder_name": encoder.name if encoder else None,
        "vectors": identity(existing(plan.vectors)) if plan.vectors else None,
        "fraction": plan.fraction,
        "recipe": to_dict(plan.recipe),
    }


def _checksum(files: Sequence[Path]) -> str:
    """Of a file; or of several by their names and checksums."""
    if len(files) == 1:
        return sha256(files[0])
    return hashlib.sha256("".join(f"{file.name} {sha256(file)}\n" for file in files).encode()).hexdigest()


def _train_seed(
    material: _RunInputs, seed: int, folder: Path, report: Report, device: str, *, progress: bool, shared_gpu: bool
) -> None:
    train = some(material.parts["train"], material.plan.fraction, seed)
    model = _new_model(material, train, seed, device)
    position = fit(
        model, train, material.parts["dev"], seed, folder, report, encoder=material.about, progress=progress,
        shared_gpu=shared_gpu,
    )  # fmt: skip
    model = load(folder / MODEL, device=device)
    model.layers = material.layers or model.layers
    result: dict[str, Any] = {
        "seed": seed, "examples": len(train), "epochs": len(position.scores), "best_epoch": position.best + 1,
        "steps": position.step, "seconds": round(position.seconds, 1), "layers": model.representation.weights(),
    }  # fmt: skip
    for part in PARTS[1:]:
        if part in material.parts:
            found = _answer(model, material.parts[part], folder / f"answers-{part}.jsonl", progress)
            result[part] = found.facts()
            report.tell(
                f"seed {seed} | {part} {model.task.metric.name} {found.main:.2f}", part, seed=seed, **found.figures
            )
    write_text(folder / RESULT, json.dumps(result, indent=1) + "\n")
    (folder / CHECKPOINT).unlink(missing_ok=True)


def _new_model(material: _RunInputs, train: Sequence[Example], seed: int, device: str) -> TaskModel:
    recipe, source, parts = material.plan.recipe, material.plan.encoder, material.parts
    others = [text for part in parts.values() for text in all_texts(part)] if material.vectors else []
    words, table = build_embedding_table(material.vectors, dict.fromkeys(all_texts(train)), others, recipe.words, seed)
    layers = material.layers
    embedder = _open_tuned(source, recipe.data.language, device) if source and recipe.elmo.tune else None
    shape = None
    if embedder is not None:
        shape = EncoderShape(embedder.config.layers, embedder.config.dim)
    elif layers is not None:
        count, _, _, dim = layers([train[0].words]).shape
        shape = EncoderShape(count, dim)
    torch.manual_seed(seed)
    model = TaskModel(material.task, recipe, {**material.learnt, "words": words}, table, shape)
    model.layers = layers
    if embedder is not None:
        model.train_encoder(embedder)
    return model.to(device)


def _open_tuned(source: str, language: str, device: str) -> Embedder:
    """A biLM that is trained with the network: read anew for each seed."""
    loaded = open_task_encoder(source, device).loaded
    if loaded.embedder is None:
        raise InputError(f"{source}: is no ELMo, and no other encoder can be trained with the network")
    if loaded.language == "ko-morph" != language:
        raise InputError(f"{source}: reads morphemes; to train it, read the data so too: --set data.language=ko-morph")
    return loaded.embedder


def some(examples: Sequence[Example], fraction: float, seed: int) -> list[Example]:
    """A random share of examples, two at least, in their order; a larger share of the same seed holds a smaller one."""
    if fraction == 1:
        return list(examples)
    count = max(2, round(fraction * len(examples)))
    return [examples[row] for row in sorted(np.random.default_rng(seed).permutation(len(examples))[:count])]


def _answer(model: TaskModel, examples: Sequence[Example], path: Path, progress: bool) -> Score:
    counts, lines = [], []
    for example, given in zip(examples, model.predict_examples(examples, progress=progress), strict=True):
        counts.append(model.task.count(example, given))
        line = {"wanted": example.labels, "given": given, "counts": counts[-1]}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))
    return model.task.metric.score(counts)


def _open_folder(output: Path, facts: dict[str, Any], origin: dict[str, Any], *, force: bool) -> None:
    """Make the run's folder, or make sure that it belongs to the same run."""
    place = output / RUN
    if place.is_file() and force:
        for folder in output.glob("seed-*"):
            with locked(folder):
                for path in entries(folder):
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink()
            with contextlib.suppress(OSError):  # another process may have locked it again
                folder.rmdir()
        place.unlink()
    # Looked at before run.json is: where seeds of one run begin at once, what another has made follows its run.json.
    other = output.is_dir() and any(not entry.name.startswith(f".{RUN}.") for entry in output.iterdir())
    if place.is_file():
        before = json.loads(place.read_text("utf-8"))
        changed = [name for name, value in facts.items() if before.get(name) != value]
        if changed:
            raise OutputError(
                f"{output}: holds a run with another {' and '.join(changed)}. Choose another folder, or pass --force "
                "to start again."
            )
        return
    if output.is_file() or other:
        raise OutputError(f"{output}: exists and is not a run of a task. Choose another folder.")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{output}: cannot be made: {error.strerror}") from error
    write_text(place, json.dumps({**facts, "made": versions(), **origin}, indent=1, ensure_ascii=False) + "\n")
