"""A run trains one task with one encoder and one recipe for several seeds.

RUN/run.json                      the settings, and the checksums of the data and of the encoder
RUN/layers.svg                    the learnt layer weights, averaged over the seeds
RUN/seed-1/model/                 the model of the best epoch
RUN/seed-1/result.json            its scores and its layer weights
RUN/seed-1/answers-dev.jsonl      gold labels, predictions, counts and unit of each example (and answers-test.jsonl)
RUN/seed-1/log.jsonl              one line for each epoch
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyelmo.config import to_dict
from pyelmo.embed.embedder import Embedder
from pyelmo.encoders.base import NamedEncoder
from pyelmo.encoders.registry import identity, model_language
from pyelmo.errors import InputError
from pyelmo.files import locked, sha256, write_text
from pyelmo.tasks.harness.formats import FORMATS, format_by_name
from pyelmo.tasks.harness.metrics import Score
from pyelmo.tasks.harness.model import TaskModel
from pyelmo.tasks.harness.run_folder import RESULT, layers_picture, open_run_folder, read_run
from pyelmo.tasks.harness.settings import AUTO, TaskRecipe, resolve_data
from pyelmo.tasks.harness.storage import MODEL, describe_encoder, encoder_source, load_model, open_task_encoder
from pyelmo.tasks.harness.task import Example, Task, Vocabularies, all_texts, find_task, read_examples, unit_numbers
from pyelmo.tasks.harness.training_loop import CHECKPOINT, train_model
from pyelmo.tasks.inputs.embedding_table import build_embedding_table
from pyelmo.tasks.inputs.layer_cache import cached_layers
from pyelmo.tasks.inputs.layer_sources import LayerSource
from pyelmo.tasks.inputs.representation import EncoderShape
from pyelmo.text.lines import existing
from pyelmo.training.report import Report, Say
from pyelmo.vectors.static import StaticVectors

PICTURE, CACHE = "layers.svg", "cache"
DATA_SETS = ("train", "dev", "test")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The task, data, recipe and encoder of a run, and its seeds."""

    task: str
    data: Sequence[str | Path]  # train, dev and, if there is one, test
    recipe: TaskRecipe
    encoder: str | None = None
    vectors: str | Path | None = None  # file of static word vectors
    fraction: float = 1.0  # of the training examples
    seeds: int = 1
    first_seed: int = 1

    def __post_init__(self) -> None:
        if not 2 <= len(self.data) <= 3:
            raise InputError(
                f"data: got {len(self.data)} files. Give two files (train, dev) or three (train, dev, test)."
            )
        if not 0 < self.fraction <= 1:
            raise InputError(f"fraction: {self.fraction} must be above 0 and at most 1")
        if min(self.seeds, self.first_seed) < 1:
            raise InputError(f"seeds: {self.seeds} from seed {self.first_seed}; both must be at least 1")


@dataclass(frozen=True)
class _SharedInputs:
    """What all seeds of a run share."""

    task: Task
    settings: RunSettings
    data: dict[str, list[Example]]
    vocabularies: Vocabularies
    encoder: dict[str, Any] | None  # from `describe_encoder`
    layer_source: LayerSource | None
    vectors: StaticVectors | None


def train_run(
    settings: RunSettings,
    output: str | Path,
    *,
    cache_folder: str | Path | None = None,
    device: str = "cpu",
    threads: int = 1,
    say: Say | None = None,
    progress: bool = False,
    tensorboard: bool = False,
    force: bool = False,
    origin: dict[str, Any] | None = None,
    shared_gpu: bool = False,
) -> list[dict[str, Any]]:
    """Train all seeds of a run, or resume a run that was stopped, and return the results of the seeds.

    Args:
        settings: What to train.
        output: The folder of the run.
        cache_folder: Where the vectors of a frozen encoder are stored (default: `cache` beside the run).
        device: The device for the network and the encoder.
        threads: CPU threads for training. One is fastest for these small networks. A CPU embeds with torch's default.
        say: Called with each line of the log.
        progress: Show progress bars.
        tensorboard: Write TensorBoard files as well.
        force: Delete another run in `output` first.
        origin: What else run.json stores, such as the command.
        shared_gpu: Whether other processes use the same GPU.
    """
    output = Path(output)
    task = find_task(settings.task)
    settings = _decide(settings)
    encoder = open_task_encoder(settings.encoder, device) if settings.encoder else None
    data = _read_data(task, settings)
    open_run_folder(output, _facts(settings, encoder), settings.recipe, origin or {}, force=force)
    cache = Path(cache_folder) if cache_folder else output.parent / CACHE
    with _embedding_threads(device):
        layer_source = _cached_layers(settings, encoder, data, cache, device, progress)
    shared = _SharedInputs(
        task, settings, data,
        vocabularies=task.build_vocabularies(data["train"]),
        encoder=describe_encoder(settings.encoder, encoder) if settings.encoder and encoder else None,
        layer_source=layer_source,
        vectors=StaticVectors.load(settings.vectors) if settings.vectors else None,
    )  # fmt: skip
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    for seed in seeds:
        folder = output / f"seed-{seed}"
        folder.mkdir(exist_ok=True)
        with locked(folder), _torch_threads(threads):
            if (folder / RESULT).is_file():
                continue
            for unfinished in folder.glob(".*.part"):  # left behind by a killed run
                shutil.rmtree(unfinished, ignore_errors=True)
            report = Report(folder, say, tensorboard=tensorboard)
            _train_seed(shared, seed, folder, report, device, progress=progress, shared_gpu=shared_gpu)
    run = read_run(output)
    if picture := layers_picture([run]):
        write_text(output / PICTURE, picture)
    return [result for result in run.results if result["seed"] in seeds]


def fill_cache(settings: RunSettings, cache_folder: str | Path, *, device: str = "cpu", progress: bool = False) -> bool:
    """Embed the texts of a run, unless the cache has them; return False if the run has no frozen encoder."""
    settings = _decide(settings)
    encoder = open_task_encoder(settings.encoder, device) if settings.encoder else None
    data = _read_data(find_task(settings.task), settings)
    with _embedding_threads(device):
        return _cached_layers(settings, encoder, data, Path(cache_folder), "cpu", progress) is not None


def _decide(settings: RunSettings) -> RunSettings:
    """Return the settings with all that depends on the encoder and on the vectors decided, as the run stores them."""
    recipe = settings.recipe
    language = None
    if settings.encoder and recipe.data.language == AUTO:
        language = model_language(encoder_source(settings.encoder))
    form = format_by_name(settings.task, settings.data[0]) if settings.task in FORMATS else None
    recipe = replace(recipe, data=resolve_data(recipe.data, language, form))
    if settings.vectors is None:  # new random vectors are always trained
        recipe = replace(recipe, words=replace(recipe.words, tune=True))
    return replace(settings, recipe=recipe)


@contextlib.contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _embedding_threads(device: str) -> contextlib.AbstractContextManager[None]:
    """Use one thread if a GPU embeds: a CPU only rounds and writes small arrays then, beside other processes."""
    return _torch_threads(1) if torch.device(device).type == "cuda" else contextlib.nullcontext()


def _cached_layers(
    settings: RunSettings,
    encoder: NamedEncoder | None,
    data: dict[str, list[Example]],
    folder: Path,
    device: str,
    progress: bool,
) -> LayerSource | None:
    """Return the layers of all texts from a frozen encoder, or None if the run has none."""
    if encoder is None or settings.recipe.elmo.tune:
        return None
    return cached_layers(
        encoder, [text for examples in data.values() for text in all_texts(examples)], folder, device=device,
        progress=progress, language=settings.recipe.data.language, precision=settings.recipe.elmo.precision,
    )  # fmt: skip


def _read_data(task: Task, settings: RunSettings) -> dict[str, list[Example]]:
    """Read all files. Labels that the training set lacks are found now, before any training."""
    data: dict[str, list[Example]] = {}
    for name, path in zip(DATA_SETS, settings.data, strict=False):
        vocabularies = task.build_vocabularies(data["train"]) if data else None
        data[name] = read_examples(task, path, settings.recipe.data, vocabularies)
    if len(data["train"]) < 2:
        raise InputError(f"{settings.data[0]}: has one example. Training needs at least two.")
    return data


def _facts(settings: RunSettings, encoder: NamedEncoder | None) -> dict[str, Any]:
    """Return what must be equal for two runs to be the same, for run.json."""
    task = find_task(settings.task)
    return {
        "task": settings.task,
        "data": {
            name: {"file": Path(path).name, "sha256": data_checksum(task.data_files(Path(path), settings.recipe.data))}
            for name, path in zip(DATA_SETS, settings.data, strict=False)
        },
        "encoder": encoder.facts if encoder else None,
        "encoder_name": encoder.name if encoder else None,
        "vectors": identity(existing(settings.vectors)) if settings.vectors else None,
        "fraction": settings.fraction,
        "recipe": to_dict(settings.recipe),
    }


def data_checksum(files: Sequence[Path]) -> str:
    """Return the checksum of one file, or of the names and checksums of several."""
    if len(files) == 1:
        return sha256(files[0])
    return hashlib.sha256("".join(f"{file.name} {sha256(file)}\n" for file in files).encode()).hexdigest()


def _train_seed(
    shared: _SharedInputs, seed: int, folder: Path, report: Report, device: str, *, progress: bool, shared_gpu: bool
) -> None:
    train = sample_examples(shared.data["train"], shared.settings.fraction, seed)
    model = _new_model(shared, train, seed, device)
    position = train_model(
        model, train, shared.data["dev"], seed, folder, report, encoder=shared.encoder, progress=progress,
        shared_gpu=shared_gpu,
    )  # fmt: skip
    model = load_model(folder / MODEL, device=device)
    model.layer_source = shared.layer_source or model.layer_source
    result: dict[str, Any] = {
        "seed": seed, "examples": len(train), "epochs": len(position.scores), "best_epoch": position.best + 1,
        "steps": position.step, "seconds": round(position.seconds, 1), "layers": model.representation.layer_weights(),
    }  # fmt: skip
    for name in DATA_SETS[1:]:
        if name in shared.data:
            score = _write_predictions(model, shared.data[name], folder / f"answers-{name}.jsonl", progress)
            result[name] = score.facts()
            line = f"seed {seed} | {name} {model.task.metric.name} {score.main:.2f}"
            report.write(line, name, seed=seed, **score.figures)
    write_text(folder / RESULT, json.dumps(result, indent=1) + "\n")
    (folder / CHECKPOINT).unlink(missing_ok=True)


def _new_model(shared: _SharedInputs, train: Sequence[Example], seed: int, device: str) -> TaskModel:
    settings, recipe, layer_source = shared.settings, shared.settings.recipe, shared.layer_source
    others = [text for examples in shared.data.values() for text in all_texts(examples)] if shared.vectors else []
    words, table = build_embedding_table(shared.vectors, dict.fromkeys(all_texts(train)), others, recipe.words, seed)
    embedder = None
    if settings.encoder and recipe.elmo.tune:
        embedder = _open_trainable_encoder(settings.encoder, recipe.data.language, device)
    shape = None
    if embedder is not None:
        shape = EncoderShape(embedder.config.layers, embedder.config.dim)
    elif layer_source is not None:
        count, _, _, dim = layer_source([train[0].words]).shape
        shape = EncoderShape(count, dim)
    torch.manual_seed(seed)
    model = TaskModel(shared.task, recipe, {**shared.vocabularies, "words": words}, table, shape)
    model.layer_source = layer_source
    if embedder is not None:
        model.train_encoder(embedder)
    return model.to(device)


def _open_trainable_encoder(source: str, language: str, device: str) -> Embedder:
    """Open a biLM to be trained with the network. Each seed starts from a fresh copy."""
    loaded = open_task_encoder(source, device).loaded
    if loaded.embedder is None:
        raise InputError(f"{source}: is not an ELMo model. Only a biLM can be trained with the network.")
    if loaded.language == "ko-morph" and language != "ko-morph":
        raise InputError(
            f"{source}: reads morphemes, but the data is split into words. To train this model, split the data into "
            "morphemes as well: --set data.language=ko-morph"
        )
    return loaded.embedder


def sample_examples(examples: Sequence[Example], fraction: float, seed: int) -> list[Example]:
    """Return a random fraction of the examples in their order, but at least two.

    With the same seed, a larger fraction contains every smaller one.
    """
    if fraction == 1:
        return list(examples)
    count = max(2, round(fraction * len(examples)))
    return [examples[index] for index in sorted(np.random.default_rng(seed).permutation(len(examples))[:count])]


def _write_predictions(model: TaskModel, examples: Sequence[Example], path: Path, progress: bool) -> Score:
    counts, lines = [], []
    predictions = model.predict_examples(examples, progress=progress)
    for example, prediction, unit in zip(examples, predictions, unit_numbers(examples), strict=True):
        counts.append(model.task.count(example, prediction))
        line = {"wanted": example.labels, "given": prediction, "counts": counts[-1], "unit": unit}
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    write_text(path, "".join(lines))
    return model.task.metric.score(counts)
