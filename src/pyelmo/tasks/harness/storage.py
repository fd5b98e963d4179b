"""Save and load a task model as a folder.

config.json          the task, its settings, and which encoder it uses: by name and checksum, without its weights
vocab.json           the words of the embedding table, the labels, and the other vocabularies of the task
model.safetensors    the weights of the network, the embedding table and the mixes
encoder/             the biLM in pyelmo's own format, if it was trained with the network
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pyelmo.config import from_dict, to_dict
from pyelmo.encoders.base import NamedEncoder
from pyelmo.encoders.registry import identity, open_encoder
from pyelmo.errors import ConfigError, FormatError, NotFoundError
from pyelmo.files import atomic_path
from pyelmo.formats import bundled
from pyelmo.formats.pretrained import check_finite
from pyelmo.formats.tensor_file import TensorFile
from pyelmo.formats.torch_file import read_safetensors, write_safetensors
from pyelmo.model.building import SkipInit
from pyelmo.parsing import field, read_json
from pyelmo.tasks.harness.metrics import main_score
from pyelmo.tasks.harness.model import TaskModel
from pyelmo.tasks.harness.settings import LARGEST
from pyelmo.tasks.harness.task import find_task
from pyelmo.tasks.inputs.layer_sources import live_layers
from pyelmo.tasks.inputs.representation import EncoderShape

CONFIG, VOCAB, WEIGHTS, ENCODER, MODEL = "config.json", "vocab.json", "model.safetensors", "encoder", "model"
MOST_LAYERS = 1000


def save_model(model: TaskModel, folder: Path, encoder: dict[str, Any] | None) -> None:
    """Write a model folder atomically. `encoder` is what `describe_encoder` returned, if it is frozen."""
    with atomic_path(folder) as part:
        part.mkdir()
        if model.embedder is not None:
            model.embedder.save(part / ENCODER)
            encoder = {"source": ENCODER, "facts": identity(part / ENCODER)}
        config = {
            "format": "pyelmo-task", "version": 1, "task": model.task.name, "recipe": to_dict(model.recipe),
            "dim": model.representation.words.embedding_dim, "encoder": encoder,
            "shape": asdict(model.shape) if model.shape else None,
        }  # fmt: skip
        (part / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", "utf-8")
        (part / VOCAB).write_text(json.dumps(dict(model.vocabularies), ensure_ascii=False) + "\n", "utf-8")
        write_safetensors(part / WEIGHTS, model.own_state())


def load_model(path: str | Path, *, encoder: str | None = None, device: str = "cpu") -> TaskModel:
    """Load a saved model: see `pyelmo.tasks.load`."""
    folder = find_model(Path(path))
    config = read_json(folder / CONFIG)
    if config.get("format") != "pyelmo-task" or config.get("version") != 1:
        raise FormatError(f"{folder / CONFIG}: not the config of a task model of version 1")
    vocabularies = _read_vocabularies(folder / VOCAB)
    if not 0 <= field(config, "dim", int, folder / CONFIG) <= LARGEST:
        raise FormatError(f"{folder / CONFIG}: the size of word vectors is {config['dim']}")
    saved_encoder = field(config, "encoder", (dict, type(None)), folder / CONFIG)
    try:
        task = find_task(field(config, "task", str, folder / CONFIG))
        recipe = from_dict(task.recipe, config["recipe"])
        _check_sizes(recipe.network)  # type: ignore[attr-defined]
        shape = _read_shape(config["shape"], folder / CONFIG)

        def build() -> TaskModel:
            table = torch.empty(len(vocabularies["words"]) + 1, config["dim"])
            with SkipInit():
                return TaskModel(task, recipe, vocabularies, table, shape)

        with torch.device("meta"):  # takes no memory, however large the sizes
            _check_shapes(build(), folder / WEIGHTS)
        model = build()
    except (KeyError, TypeError, IndexError, ZeroDivisionError, RuntimeError, ConfigError) as error:
        raise FormatError(f"{folder}: config.json and vocab.json do not fit together ({error!r})") from error
    read_weights(model, folder / WEIGHTS)
    if saved_encoder is not None:
        opened = _open_saved_encoder(folder, saved_encoder, encoder, device)
        precision = "float32" if recipe.elmo.tune else recipe.elmo.precision
        model.layer_source = live_layers(opened, recipe.data.language, precision)
    return model.to(device).eval()


def _read_shape(shape: Any, path: Path) -> EncoderShape | None:
    if shape is None:
        return None
    layers, dim = (field(shape, name, int, f"{path}: shape") for name in ("layers", "dim"))
    if not 1 <= layers <= MOST_LAYERS or not 1 <= dim <= LARGEST:
        raise FormatError(f"{path}: an encoder cannot have {layers} layers of {dim} values. Copy the model again.")
    return EncoderShape(layers, dim)


def _read_vocabularies(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the words, labels and other names of a model: lists of different strings."""
    vocabularies: dict[str, tuple[str, ...]] = {}
    values = read_json(path)
    for name in values:
        words = field(values, name, list, path)
        for word in words:
            if not isinstance(word, str):
                raise FormatError(f"{path}: {word!r} in {name!r} is no string. Copy the model again.")
        if len(set(words)) < len(words):
            raise FormatError(f"{path}: a string is in {name!r} twice. Copy the model again.")
        if name == "labels" and not words:
            raise FormatError(f"{path}: there are no labels. Copy the model again.")
        vocabularies[name] = tuple(words)
    return vocabularies


def _check_sizes(settings: Any) -> None:
    """Raise a ConfigError for a size that no network has: a wrong number of layers would take hours to build."""
    for name, value in vars(settings).items():
        limit = MOST_LAYERS if name in ("layers", "depth") else LARGEST
        numbers = value if isinstance(value, tuple) else (value,)
        if any(type(number) is int and not 0 <= number <= limit for number in numbers):
            raise ConfigError(f"{name} is {value}, expected at least 0 and at most {limit}")


def _check_shapes(model: TaskModel, path: Path) -> None:
    """Compare the shapes of a model's weights with those in a file."""
    stored = TensorFile(path).tensors if path.is_file() else {}
    for name, tensor in model.own_state().items():
        if name in stored and stored[name].shape != tuple(tensor.shape):
            raise FormatError(
                f"{path}: the tensor {name!r} is {stored[name].shape}, expected {tuple(tensor.shape)}. Is it from "
                "another model?"
            )


def open_task_encoder(source: str, device: str) -> NamedEncoder:
    return open_encoder(encoder_source(source), device=device)


def encoder_source(name: str) -> str:
    """Return where an encoder is. A bundled model's name means that model, even if a run here has the same name."""
    return str(bundled.BUNDLED / name) if name in bundled.bundled_names() else name


def describe_encoder(source: str, encoder: NamedEncoder) -> dict[str, Any]:
    """Return what a saved model stores about its frozen encoder: its location and its checksums."""
    local = source not in bundled.bundled_names() and Path(source).exists()
    return {"source": str(Path(source).resolve()) if local else source, "facts": encoder.facts}


def _open_saved_encoder(folder: Path, saved: dict[str, Any], moved_to: str | None, device: str) -> NamedEncoder:
    """Open the encoder of a saved model and check that it is the one of the training."""
    field(saved, "source", str, folder / CONFIG)
    field(saved, "facts", dict, folder / CONFIG)
    source = moved_to or (folder / ENCODER if saved["source"] == ENCODER else saved["source"])
    encoder = open_task_encoder(str(source), device)
    if _content(encoder.facts) != _content(saved["facts"]):
        raise FormatError(
            f"{folder}: was trained with another encoder than {source} (checksum mismatch). Give the right encoder "
            f"({saved['facts'].get('model')}) with --encoder, or encoder= in Python."
        )
    return encoder


def _content(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal for two encoders to be the same. With checksums, the folder may have another name."""
    if "sha256" not in facts:
        return facts
    vectors = facts.get("vectors")
    return {"sha256": facts["sha256"], "vectors": vectors.get("sha256") if isinstance(vectors, dict) else vectors}


def read_weights(model: TaskModel, path: Path) -> None:
    """Copy saved weights into a model, after checking the name and the shape of each."""
    if not path.is_file():
        raise NotFoundError(f"{path}: not found. Is this the folder of a trained task model?")
    tensors = read_safetensors(path)
    own = model.own_state()
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            shape = tuple(tensors[name].shape) if name in tensors else "missing"
            raise FormatError(
                f"{path}: the tensor {name!r} is {shape}, expected {tuple(tensor.shape)}. Is it from another model?"
            )
        check_finite(tensors[name].float().numpy(), path, name)
        tensor.copy_(tensors[name])
    for name in tensors:
        if name not in own:
            raise FormatError(f"{path}: unexpected tensor {name!r}. Is it from another model?")


def find_model(path: Path) -> Path:
    """Return the folder of a model. For a run, that is the model of the seed with the best dev score."""
    if (path / CONFIG).is_file():
        return path
    if (path / MODEL / CONFIG).is_file():
        return path / MODEL
    results = sorted(path.glob("seed-*/result.json"))
    if results:
        best = max(results, key=lambda result: _dev_score(result))
        return best.parent / MODEL
    if not path.exists():
        raise NotFoundError(f"{path}: no such folder. Give a folder that elmo task train wrote.")
    raise NotFoundError(f"{path}: no trained model in this folder. Has its training finished?")


def _dev_score(path: Path) -> float:
    score = field(read_json(path), "dev", dict, path)
    field(score, "score" if "score" in score else "f1", (int, float), path)
    return main_score(score)
