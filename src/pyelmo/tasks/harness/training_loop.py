"""One training: batches of like length until the development score stands still; a killed one goes on as if it had not.

Every random number of a step comes from the seed and the step's number, the order of an epoch from the seed and the
epoch's, so that weights, optimiser and position are all that a checkpoint holds.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from pyelmo.errors import DivergedError, FormatError
from pyelmo.files import atomic_path
from pyelmo.tasks.harness.batching import epoch_batches
from pyelmo.tasks.harness.model import TaskModel, score
from pyelmo.tasks.harness.settings import TrainingSettings
from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.harness.weight_average import WeightAverage
from pyelmo.training.report import Report
from pyelmo.training.trainer import SEED_RANK, SEED_STEP

CHECKPOINT = "checkpoint.safetensors"
READ_AFTER = 16  # steps whose losses are read together: to read one is to wait until a GPU has done all before it
HALVINGS = 5  # of the learning rate, at most


@dataclass
class TrainingPosition:
    """Where a training stands."""

    epoch: int = 0
    batch: int = 0  # of the epoch
    step: int = 0  # of all epochs
    loss: float = 0.0  # of the epoch's batches so far
    seconds: float = 0.0
    scores: list[float] = field(default_factory=list)  # of the epochs that are done

    @property
    def best(self) -> int:
        """The epoch of the best development score, the first of equals."""
        return max(range(len(self.scores)), key=lambda epoch: (self.scores[epoch], -epoch))


def fit(
    model: TaskModel,
    train: Sequence[Example],
    dev: Sequence[Example],
    seed: int,
    folder: Path,
    report: Report,
    *,
    encoder: dict[str, object] | None,
    progress: bool = False,
    shared_gpu: bool = False,
) -> TrainingPosition:
    """Train a model from where its checkpoint stands; the weights of the best epoch are in `folder`/model.

    With `shared_gpu` the loss is read after every step: a process that runs far ahead of a GPU that others use, too,
    would take a core from them while it waits.
    """
    settings = model.recipe.training
    optimiser, average = _optimiser(model, settings), WeightAverage(model, settings.average)
    position = TrainingPosition()
    if (folder / CHECKPOINT).is_file():
        position = _restore(folder / CHECKPOINT, model, optimiser, average)
        report.note(f"going on from epoch {position.epoch + 1}, step {position.step:,}", step=position.step)
    read_after = 1 if shared_gpu else READ_AFTER
    began = time.monotonic() - position.seconds
    while not _finished(position, settings):
        size = settings.batch if model.task.texts_per_example else 1
        batches = epoch_batches([example.length for example in train], size, seed, position.epoch)
        _set_rate(optimiser, position, settings)
        bar = tqdm(
            total=len(batches), initial=position.batch, desc=f"seed {seed}, epoch {position.epoch + 1}", leave=False,
            unit="batch", disable=not progress,
        )  # fmt: skip
        losses: list[Tensor] = []  # not yet read
        model.train()
        with bar:
            for rows in batches[position.batch :]:
                examples = [train[row] for row in rows]
                losses.append(_step(model, optimiser, examples, seed, position.step, settings.clip_norm))
                average.update(position.step)
                position.batch, position.step = position.batch + 1, position.step + 1
                bar.update()
                save = position.step % settings.checkpoint_every == 0
                if save or len(losses) == read_after or position.batch == len(batches):
                    _read(losses, position)
                    bar.set_postfix(loss=f"{position.loss / position.batch:.4f}")
                if save:
                    position.seconds = time.monotonic() - began
                    _save(folder / CHECKPOINT, model, optimiser, average, position)
        with average.used():
            found = score(model.task, dev, model.predict_examples(dev, progress=progress))
            position.scores.append(found.main)
            mean, rate = position.loss / len(batches), optimiser.param_groups[0]["lr"]
            better = position.best == position.epoch
            if better:  # before the checkpoint: a kill between the two makes the same epoch again
                model.save(folder / "model", encoder)
            report.tell(
                f"seed {seed} | epoch {position.epoch + 1} | loss {mean:.4f} | "
                f"dev {model.task.metric.name} {found.main:.2f}{' (best)' if better else ''}",
                "epoch", epoch=position.epoch + 1, step=position.step, loss=mean, lr=rate, dev=found.main,
                layers=model.representation.weights(),
            )  # fmt: skip
        position = replace(position, epoch=position.epoch + 1, batch=0, loss=0.0, seconds=time.monotonic() - began)
        _save(folder / CHECKPOINT, model, optimiser, average, position)
    return position


def _finished(position: TrainingPosition, settings: TrainingSettings) -> bool:
    done = len(position.scores)
    if not done:
        return False
    late = 0 < 60 * settings.minutes <= position.seconds
    return late or done >= settings.epochs or done - 1 - position.best >= settings.patience


def _step(
    model: TaskModel, optimiser: torch.optim.Optimizer, examples: list[Example], seed: int, step: int, limit: float
) -> Tensor:
    """The loss, which may not be there yet: nothing in a step waits for a GPU."""
    torch.manual_seed(seed * SEED_STEP + (step + 1) * SEED_RANK)
    if model.task.crop is not None:
        random = np.random.default_rng([seed, step])
        examples = [model.task.crop(example, model.recipe, random) for example in examples]
    optimiser.zero_grad(set_to_none=True)
    with _tensor_cores(model.device):
        loss = model.loss(examples)
        loss.backward()
    nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], limit)
    optimiser.step()
    return loss.detach()


@contextlib.contextmanager
def _tensor_cores(device: torch.device) -> Iterator[None]:
    """Products of float32 matrices on a GPU by TF32, as cuDNN's LSTMs compute them anyhow. Answers are not made so."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if device.type == "cuda" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _read(losses: list[Tensor], position: TrainingPosition) -> None:
    """Add the losses of the last steps; one that is no number ends the training, before anything of it is saved."""
    first = position.step - len(losses) + 1
    for step, value in enumerate(torch.stack(losses).tolist(), first):
        if not math.isfinite(value):
            raise DivergedError(f"the loss is {value} at step {step}. Try a lower training.lr.")
        position.loss += value
    losses.clear()


def _optimiser(model: TaskModel, settings: TrainingSettings) -> torch.optim.Optimizer:
    """The network's parameters at one rate; those of a biLM at another."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    own = [parameter for name, parameter in named if not name.startswith("bilm.")]
    bilm = [parameter for name, parameter in named if name.startswith("bilm.")]
    groups = [{"params": own, "first": settings.lr, "lr": settings.lr}]
    groups += [{"params": bilm, "first": settings.encoder_lr, "lr": settings.encoder_lr}] if bilm else []
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta(groups, rho=0.95, eps=1e-6, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=model.device.type == "cuda")


def _set_rate(optimiser: torch.optim.Optimizer, position: TrainingPosition, settings: TrainingSettings) -> None:
    """Halve the rates each time `halve_after` epochs have brought no better score: a function of the scores alone."""
    halvings, best, since = 0, -math.inf, 0
    for found in position.scores:
        best, since = (found, 0) if found > best else (best, since + 1)
        if settings.halve_after and since == settings.halve_after:
            halvings, since = min(halvings + 1, HALVINGS), 0
    for group in optimiser.param_groups:
        group["lr"] = group["first"] * 0.5**halvings


def _trained(model: TaskModel) -> dict[str, Tensor]:
    """What changes in training."""
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}


def _save(
    path: Path, model: TaskModel, optimiser: torch.optim.Optimizer, average: WeightAverage, position: TrainingPosition
) -> None:
    from safetensors.torch import save_file

    tensors = {f"model/{name}": tensor for name, tensor in _trained(model).items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{number}/{name}": tensor for name, tensor in state.items()}
    tensors |= {f"average/{name}": tensor for name, tensor in average.means.items()}
    with atomic_path(path) as part:
        contiguous = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, part, metadata={"position": json.dumps(asdict(position))})


def _restore(
    path: Path, model: TaskModel, optimiser: torch.optim.Optimizer, average: WeightAverage
) -> TrainingPosition:
    """Put weights, optimiser and means back as they were."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            position = TrainingPosition(**json.loads((file.metadata() or {})["position"]))
        for name, target in _trained(model).items():
            target.copy_(tensors[f"model/{name}"])
        for name, target in average.means.items():
            target.copy_(tensors[f"average/{name}"])
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{path}: not a whole checkpoint of this run ({error}). --force starts again.") from error
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser/"):
            _, number, part = name.split("/")
            state.setdefault(int(number), {})[part] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return position
