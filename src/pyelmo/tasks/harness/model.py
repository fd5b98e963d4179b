"""A task's network with all that it needs for raw text, as a folder.

config.json          the task, its settings, and which encoder: by name and checksum, not by its weights
vocab.json           words of the static table, labels, and what else the task learnt
model.safetensors    weights
encoder/             the biLM in pyelmo's own format, where it was trained with the network
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from pyelmo.config import from_dict, to_dict
from pyelmo.embed.embedder import Embedder
from pyelmo.encoders.base import NamedEncoder
from pyelmo.encoders.registry import identity, open_encoder
from pyelmo.errors import ConfigError, FormatError, InputError, NotFoundError
from pyelmo.files import atomic_path
from pyelmo.formats import bundled
from pyelmo.formats.pretrained import SkipInit, read_json
from pyelmo.tasks.harness import task as tasks
from pyelmo.tasks.harness.batching import WordIdCache, length_batches, pad_ids
from pyelmo.tasks.harness.layer_cache import LayerSource, live
from pyelmo.tasks.harness.metrics import Score, main_score
from pyelmo.tasks.harness.representation import EncoderShape, Representation, WordIndex, tuned
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import (
    Example,
    NetworkInputs,
    Prediction,
    Task,
    TextOrWords,
    Vocabularies,
    Words,
    split_text,
)

CONFIG, VOCAB, WEIGHTS, ENCODER, MODEL = "config.json", "vocab.json", "model.safetensors", "encoder", "model"
BATCH = 256  # examples answered at once


class TaskModel(nn.Module):
    """Words, mixes and network; `layers` gives an encoder's layers: from a cache, live, or in training."""

    def __init__(
        self, task: Task, recipe: TaskRecipe, vocabularies: Vocabularies, table: Tensor, shape: EncoderShape | None
    ) -> None:
        super().__init__()
        self.task, self.recipe, self.vocabularies, self.shape = task, recipe, vocabularies, shape
        self.representation = Representation(table, recipe.words, shape, recipe.elmo)
        self.network = task.build_network(recipe, self.representation.sizes, vocabularies)
        self.rows = WordIdCache(WordIndex(vocabularies["words"]).__getitem__)
        self.layers: LayerSource | None = None
        self.bilm: nn.Module | None = None
        self.embedder: Embedder | None = None

    def train_encoder(self, embedder: Embedder) -> None:
        """Make a biLM part of this model."""
        self.embedder, self.bilm, self.layers = embedder, embedder.bilm, tuned(embedder)
        self.bilm.requires_grad_(True)
        if embedder.bilm.softmax is not None:
            embedder.bilm.softmax.requires_grad_(False)

    @property
    def device(self) -> torch.device:
        weight: Tensor = self.representation.words.weight
        return weight.device

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The mean loss of some examples, with the mixes' penalty."""
        found: Tensor = self.network.loss(*self._inputs(examples)) + self.representation.penalty()
        return found

    def predict_examples(self, examples: Sequence[Example], *, progress: bool = False) -> list[Prediction]:
        """The answers to examples, in their order."""
        return self._each(self.network.predict, examples, progress)

    def probabilities(self, examples: Sequence[Example], *, progress: bool = False) -> list[Tensor]:
        """What the answers follow from, where they follow from probabilities: see `task.ProbabilisticNetwork`."""
        return self._each(
            lambda *texts: [each.cpu() for each in self.network.probabilities(*texts)], examples, progress
        )

    def predict(self, questions: Sequence[TextOrWords | Sequence[TextOrWords]]) -> list[list[Example]]:
        """What is asked about each sentence, raw or in words, with the labels given to it.

        Where a task asks about several texts (`task.input_names`), each question is as many.
        """
        if isinstance(questions, str):
            raise InputError("sentences is one string; give a list of them: predict([sentence])")
        names, data = self.task.input_names, self.recipe.data
        asked = []
        for number, question in enumerate(questions):
            texts: Any = (question,) if len(names) == 1 else question
            if isinstance(texts, str) or len(texts) != len(names):
                raise InputError(
                    f"question {number}: {self.task.name} asks about {len(names)} texts: {', '.join(names)}"
                )
            for name, text in zip(names, texts, strict=True):
                if not split_text(text, data.language):
                    raise InputError(f"{name} {number} has no words")
            asked.append(self.task.make_examples(texts, data, self.vocabularies))
        labels = iter(self.predict_examples([example for examples in asked for example in examples]))
        return [[replace(example, labels=next(labels)) for example in examples] for examples in asked]

    def evaluate(self, path: str | Path, *, progress: bool = False) -> Score:
        """How good the answers to a labelled file are; `main` is the task's metric."""
        examples = tasks.read_examples(self.task, path, self.recipe.data, self.vocabularies)
        return score(self.task, examples, self.predict_examples(examples, progress=progress))

    def _each(self, answer: Callable[..., list[Any]], examples: Sequence[Example], progress: bool) -> list[Any]:
        """What a function of the network gives for each example, by batches of like length."""
        found: dict[int, Any] = {}
        batches = length_batches([example.length for example in examples], BATCH if self.task.texts_per_example else 1)
        self.eval()
        with torch.no_grad():
            for places in tqdm(batches, desc="labelling", leave=False, disable=not progress):
                inputs = self._inputs([examples[place] for place in places])
                found.update(zip(places, answer(*inputs), strict=True))
        return [found[place] for place in range(len(examples))]

    def _inputs(self, examples: Sequence[Example]) -> list[NetworkInputs]:
        """For each text that examples have; or one for all texts of an example."""
        if not self.task.texts_per_example:
            (example,) = examples
            return [self._embed(examples, example.texts)]
        return [
            self._embed(examples, [example.texts[place] for example in examples])
            for place in range(self.task.texts_per_example)
        ]

    def _embed(self, examples: Sequence[Example], texts: Sequence[Words]) -> NetworkInputs:
        lengths = [len(text) for text in texts]
        ids = pad_ids(self.rows(texts), lengths, self.device, -1)
        mask = ids >= 0
        layers = None
        if self.layers is not None:
            layers = self.layers(texts).to(self.device, non_blocking=True).float()
        found: NetworkInputs = self.representation(examples, ids.clamp_(min=0), mask, layers, lengths)
        return found

    def weights(self) -> dict[str, Tensor]:
        """What is saved: all but a biLM, which has a folder of its own."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("bilm.")}

    def save(self, folder: Path, encoder: dict[str, Any] | None) -> None:
        """Write the folder in one step. `encoder` says which one it was: see `describe_encoder`."""
        from safetensors.torch import save_file

        with atomic_path(folder) as part:
            part.mkdir()
            if self.embedder is not None:
                self.embedder.save(part / ENCODER)
                encoder = {"source": ENCODER, "facts": identity(part / ENCODER)}
            config = {
                "format": "pyelmo-task", "version": 1, "task": self.task.name, "recipe": to_dict(self.recipe),
                "dim": self.representation.words.embedding_dim, "encoder": encoder,
                "shape": asdict(self.shape) if self.shape else None,
            }  # fmt: skip
            (part / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", "utf-8")
            (part / VOCAB).write_text(json.dumps(dict(self.vocabularies), ensure_ascii=False) + "\n", "utf-8")
            save_file({name: tensor.cpu().contiguous() for name, tensor in self.weights().items()}, part / WEIGHTS)


def score(task: Task, examples: Sequence[Example], answers: Sequence[Prediction]) -> Score:
    return task.metric.score([task.count(*pair) for pair in zip(examples, answers, strict=True)])


def open_task_encoder(text: str, device: str) -> NamedEncoder:
    """An encoder. A name in the box is that model, whatever else has the name here: a run may be called `en` too."""
    return open_encoder(str(bundled.BUNDLED / text) if text in bundled.bundled_names() else text, device=device)


def describe_encoder(text: str, encoder: NamedEncoder) -> dict[str, Any]:
    """What a saved model says of its encoder: where to find it, and what it must be."""
    here = text not in bundled.bundled_names() and Path(text).exists()
    return {"source": str(Path(text).resolve()) if here else text, "facts": encoder.facts}


def load(path: str | Path, *, encoder: str | None = None, device: str = "cpu") -> TaskModel:
    """A saved model, or the best of a run's; `encoder` says where its encoder lies now."""
    folder = find_model(Path(path))
    config = read_json(folder / CONFIG)
    if config.get("format") != "pyelmo-task" or config.get("version") != 1:
        raise FormatError(f"{folder / CONFIG}: not the config of a task model of version 1")
    vocabularies = read_json(folder / VOCAB)
    try:
        task = tasks.find_task(config["task"])
        recipe = from_dict(task.recipe, config["recipe"])
        shape = None if config["shape"] is None else EncoderShape(**config["shape"])
        table = torch.empty(len(vocabularies["words"]) + 1, config["dim"])
        known = {name: tuple(words) for name, words in vocabularies.items()}
        with SkipInit():
            model = TaskModel(task, recipe, known, table, shape)
        about = config["encoder"]
    except (KeyError, TypeError, ConfigError) as error:
        raise FormatError(f"{folder}: config.json and vocab.json do not fit together ({error!r})") from error
    read_weights(model, folder / WEIGHTS)
    if about is not None:
        here = folder / about["source"] if about["source"] == ENCODER else about["source"]
        found = open_task_encoder(str(encoder or here), device)
        if _content(found.facts) != _content(about["facts"]):
            raise FormatError(
                f"{folder}: was trained with another encoder than {encoder or here}: its files differ. Name the right "
                f"one ({about['facts'].get('model')}) with --encoder (encoder=)."
            )
        precision = "float32" if recipe.elmo.tune else recipe.elmo.precision
        model.layers = live(found, recipe.data.language, precision)
    return model.to(device).eval()


def _content(facts: dict[str, Any]) -> dict[str, Any]:
    """What must be the same. The name of a folder may change where checksums tell what is in it."""
    if "sha256" not in facts:
        return facts
    return {"sha256": facts["sha256"], "vectors": facts.get("vectors", {}).get("sha256")}


def read_weights(model: TaskModel, path: Path) -> None:
    """Put saved weights into a model, each checked."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise NotFoundError(f"{path}: not found. Is this the folder of a trained task model?")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise FormatError(f"{path}: not a whole safetensors file ({error}). Copy or train the model again.") from error
    own = model.weights()
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            got = tuple(tensors[name].shape) if name in tensors else "missing"
            raise FormatError(f"{path}: {name!r} is {got}, expected {tuple(tensor.shape)}. Is it of another model?")
        tensor.copy_(tensors[name])
    for name in tensors:
        if name not in own:
            raise FormatError(f"{path}: {name!r} has no place in this model. Is it of another model?")


def seed_folders(run: str | Path) -> list[Path]:
    """The folders of a run's finished seeds; or the one folder that is named, where it is of a seed or a model."""
    results = sorted(Path(run).glob("seed-*/result.json"), key=lambda path: int(path.parent.name[5:]))
    return [path.parent for path in results] or [Path(run)]


def find_model(path: Path) -> Path:
    """The folder of a model, also where a run or a seed of it is named: that with the best development score."""
    if (path / CONFIG).is_file():
        return path
    if (path / MODEL / CONFIG).is_file():
        return path / MODEL
    results = sorted(path.glob("seed-*/result.json"))
    if results:
        best = max(results, key=lambda result: main_score(read_json(result)["dev"]))
        return best.parent / MODEL
    if not path.exists():
        raise NotFoundError(f"{path}: no such folder; name what elmo task train made")
    raise NotFoundError(f"{path}: no trained model in it. Is its training finished?")
