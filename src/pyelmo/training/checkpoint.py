"""A run on disk: one safetensors file that holds everything, written in one step.

run/checkpoint-000001200.safetensors   weights, optimiser, carried state; position and settings in its header
run/recipe.json                        the resolved settings
run/log.jsonl                          what was reported
run/model/                             the model in pyelmo's own format
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyelmo.errors import FormatError, OutputError
from pyelmo.files import atomic_path
from pyelmo.model.lstm import State
from pyelmo.training.trainer import Trainer

PATTERN = "checkpoint-*.safetensors"


@dataclass(frozen=True)
class RunPosition:
    """Where a run stands."""

    step: int
    words: int
    seconds: float
    streams: dict[str, Any]
    settings: dict[str, Any]


def save(folder: Path, trainer: Trainer, position: RunPosition) -> None:
    """Write a checkpoint and drop older ones. All processes call it; the first one writes."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {f"model/{name}": parameter.detach() for name, parameter in trainer.bilm.named_parameters()}
    tensors |= {f"optimiser/{name}": tensor for name, tensor in trainer.optimiser.state.items()}
    if trainer.state is not None:  # rows are shared out over the processes, and a later run may have another number
        tensors["state/hidden"] = trainer.processes.gather(trainer.state.hidden, 2)
        tensors["state/cell"] = trainer.processes.gather(trainer.state.cell, 2)
    if not trainer.processes.first:
        return
    path = folder / f"checkpoint-{position.step:09d}.safetensors"
    try:
        with atomic_path(path) as part:
            contiguous = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
            save_file(contiguous, part, metadata={"position": json.dumps(vars(position))})
    except SafetensorError as error:
        raise OutputError(f"{path}: cannot be written ({error}). The checkpoint before it is still there.") from error
    for older in sorted(folder.glob(PATTERN))[:-1]:
        older.unlink()


def latest(folder: Path) -> Path | None:
    return max(folder.glob(PATTERN), default=None)


def read_position(path: Path) -> RunPosition:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return RunPosition(**json.loads((file.metadata() or {})["position"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: not a whole checkpoint ({error}). Remove it to start again.") from error


def restore(path: Path, trainer: Trainer, step: int) -> None:
    """Put weights, optimiser and carried state back as they were."""
    from safetensors.torch import load_file

    tensors = load_file(path)
    targets: dict[str, Tensor] = {f"model/{name}": p.data for name, p in trainer.bilm.named_parameters()}
    targets |= {f"optimiser/{name}": tensor for name, tensor in trainer.optimiser.state.items()}
    for name, target in targets.items():
        if name not in tensors or tensors[name].shape != target.shape:
            raise FormatError(f"{path}: {name!r} does not fit the model of this run")
        target.copy_(tensors[name])
    trainer.optimiser.steps = step
    if "state/hidden" in tensors:
        trainer.state = State(*(_own_rows(tensors[f"state/{part}"], trainer) for part in ("hidden", "cell")))


def _own_rows(tensor: Tensor, trainer: Trainer) -> Tensor:
    processes = trainer.processes
    rows = tensor.shape[2] // processes.count
    own = tensor[:, :, processes.rank * rows : (processes.rank + 1) * rows]
    return own.to(processes.device, memory_format=torch.contiguous_format)
