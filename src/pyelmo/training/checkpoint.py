"""The files of a training run. A checkpoint is one safetensors file, written in one step.

run/checkpoint-000001200.safetensors   weights, optimiser state, LSTM state; position and settings in its header
run/recipe.json                        the settings of the run
run/log.jsonl                          losses, perplexities and notes
run/model/                             the trained model in pyelmo's own format
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyelmo.config import from_dict
from pyelmo.errors import ConfigError, FormatError
from pyelmo.files import atomic_path
from pyelmo.formats.pretrained import check_finite
from pyelmo.formats.tensor_file import TensorFile
from pyelmo.formats.torch_file import read_safetensors, write_safetensors
from pyelmo.model.lstm import State
from pyelmo.parsing import parse_json
from pyelmo.training.trainer import Trainer

PATTERN = "checkpoint-*.safetensors"


@dataclass(frozen=True)
class RunPosition:
    """The progress of a run; `streams` is the position in the corpus."""

    step: int
    words: int
    seconds: float
    streams: dict[str, Any]
    settings: dict[str, Any]


def save(folder: Path, trainer: Trainer, position: RunPosition) -> None:
    """Write a checkpoint and delete older ones. All processes must call this; the first one writes."""
    tensors = {f"model/{name}": parameter.detach() for name, parameter in trainer.bilm.named_parameters()}
    tensors |= {f"optimiser/{name}": tensor for name, tensor in trainer.optimiser.state.items()}
    if trainer.state is not None:  # gathered, because a resumed run may have another number of processes
        tensors["state/hidden"] = trainer.processes.gather(trainer.state.hidden, 2)
        tensors["state/cell"] = trainer.processes.gather(trainer.state.cell, 2)
    if not trainer.processes.first:
        return
    path = folder / f"checkpoint-{position.step:09d}.safetensors"
    with atomic_path(path) as part:
        write_safetensors(part, tensors, {"position": json.dumps(vars(position))})
    for older in sorted(folder.glob(PATTERN))[:-1]:
        older.unlink()


def latest(folder: Path) -> Path | None:
    """Return the path of the newest checkpoint."""
    return max(folder.glob(PATTERN), default=None)


def read_position(path: Path) -> RunPosition:
    """Read the progress of a run from the header of a checkpoint."""
    try:
        position = from_dict(RunPosition, parse_json(TensorFile(path).metadata["position"], "its position"))
        if min(position.step, position.words, position.seconds) < 0:
            raise ConfigError(f"step {position.step}, words {position.words} or seconds {position.seconds} is negative")
        return position
    except (OSError, KeyError, ConfigError, FormatError) as error:
        raise FormatError(f"{path}: not a complete checkpoint ({error}). Delete it to start again.") from error


def restore(path: Path, trainer: Trainer, step: int) -> None:
    """Load weights, optimiser state and LSTM state from a checkpoint into `trainer`."""
    tensors = read_safetensors(path)
    targets: dict[str, Tensor] = {f"model/{name}": p.data for name, p in trainer.bilm.named_parameters()}
    targets |= {f"optimiser/{name}": tensor for name, tensor in trainer.optimiser.state.items()}
    for name, target in targets.items():
        if name not in tensors or tensors[name].shape != target.shape or tensors[name].dtype != target.dtype:
            raise FormatError(
                f"{path}: {name!r} does not fit the model of this run. Use a new folder, or --force to restart."
            )
        check_finite(tensors[name].float().numpy(), path, name)
        target.copy_(tensors[name])
    trainer.optimiser.steps = step
    if {"state/hidden", "state/cell"} & tensors.keys():
        _check_state(path, tensors, trainer)
        trainer.state = State(*(_own_rows(tensors[f"state/{name}"], trainer) for name in ("hidden", "cell")))


def _check_state(path: Path, tensors: dict[str, Tensor], trainer: Trainer) -> None:
    lstm = trainer.bilm.config.lstm
    for name, size in (("hidden", lstm.dim), ("cell", lstm.cells)):
        tensor = tensors.get(f"state/{name}")
        shape = (lstm.layers, trainer.bilm.config.directions, trainer.config.batch, size)
        if tensor is None or tuple(tensor.shape) != shape or not tensor.is_floating_point():
            raise FormatError(f"{path}: the LSTM state does not fit the model of this run. Delete it to start again.")
        check_finite(tensor.float().numpy(), path, f"state/{name}")


def _own_rows(tensor: Tensor, trainer: Trainer) -> Tensor:
    processes = trainer.processes
    rows = tensor.shape[2] // processes.count
    own = tensor[:, :, processes.rank * rows : (processes.rank + 1) * rows]
    return own.to(processes.device, memory_format=torch.contiguous_format)
