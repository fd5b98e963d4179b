"""Train one model: shuffled batches of similar length until the dev score stops improving; a killed training resumes.

The random numbers of a step depend on the seed and the number of the step, and the order of an epoch on the seed and
the number of the epoch. So a checkpoint needs only the weights, the optimiser state and the position, and a resumed
training ends with the same weights as one that was never stopped.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from pyelmo.config import from_dict
from pyelmo.errors import ConfigError, DivergedError, FormatError
from pyelmo.files import atomic_path
from pyelmo.formats.tensor_file import TensorFile
from pyelmo.formats.torch_file import read_safetensors, write_safetensors
from pyelmo.parallel import stop_requests
from pyelmo.parsing import parse_json
from pyelmo.tasks.harness.batching import epoch_batches
from pyelmo.tasks.harness.model import TaskModel, score_predictions
from pyelmo.tasks.harness.settings import TrainingSettings
from pyelmo.tasks.harness.storage import MODEL, save_model
from pyelmo.tasks.harness.task import Example
from pyelmo.tasks.harness.weight_average import WeightAverage
from pyelmo.training.report import Report
from pyelmo.training.trainer import SEED_RANK, SEED_STEP

CHECKPOINT = "checkpoint.safetensors"
READ_AFTER = 16  # steps whose losses are read together, because reading a loss waits for the GPU
AHEAD = 2  # steps that a process queues on a GPU that it shares
MAX_HALVINGS = 5  # of the learning rate


@dataclass
class TrainingPosition:
    """The position of a training, as a checkpoint stores it."""

    epoch: int = 0
    batch: int = 0  # in the epoch
    step: int = 0  # over all epochs
    loss: float = 0.0  # sum over the batches of the epoch so far
    seconds: float = 0.0
    scores: list[float] = field(default_factory=list)  # dev score of each finished epoch

    @property
    def best(self) -> int:
        """The epoch with the best dev score, the first one of equals."""
        return max(range(len(self.scores)), key=lambda epoch: (self.scores[epoch], -epoch))


def train_model(
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
    """Train a model from its last checkpoint, and save the model of the best epoch in `folder`/model.

    With `shared_gpu` at most two steps are queued: the host prepares a step while the GPU computes the one before. A
    process that queues many steps on a GPU that other processes use as well would keep a CPU core busy while it waits.
    """
    settings = model.recipe.training
    optimiser, average = _optimiser(model, settings), WeightAverage(model, settings.average)
    queue = _StepQueue(AHEAD) if shared_gpu and model.device.type == "cuda" else None
    training = _Training(model, optimiser, average, seed, folder, report, progress, queue)
    position = TrainingPosition()
    if (folder / CHECKPOINT).is_file():
        position = _restore(folder / CHECKPOINT, model, optimiser, average)
        report.note(f"resuming at epoch {position.epoch + 1}, step {position.step:,}", step=position.step)
    began = time.monotonic() - position.seconds
    while not _finished(position, settings):
        _set_learning_rate(optimiser, position, settings)
        mean_loss = training.train_epoch(train, position, began)
        with average.applied():
            training.evaluate_epoch(dev, position, mean_loss, encoder)
        position = replace(position, epoch=position.epoch + 1, batch=0, loss=0.0, seconds=time.monotonic() - began)
        _save(folder / CHECKPOINT, model, optimiser, average, position)
    return position


@dataclass(frozen=True)
class _Training:
    """What all epochs of a training use."""

    model: TaskModel
    optimiser: torch.optim.Optimizer
    average: WeightAverage
    seed: int
    folder: Path
    report: Report
    progress: bool
    queue: _StepQueue | None

    def train_epoch(self, train: Sequence[Example], position: TrainingPosition, began: float) -> float:
        """Train on the remaining batches of an epoch, move `position` forward, and return the mean loss.

        After SIGINT or SIGTERM, the checkpoint is saved before the signal has its usual effect.
        """
        model, settings = self.model, self.model.recipe.training
        size = settings.batch if model.task.texts_per_example else 1
        batches = epoch_batches([example.length for example in train], size, self.seed, position.epoch)
        bar = tqdm(
            total=len(batches), initial=position.batch, desc=f"seed {self.seed}, epoch {position.epoch + 1}",
            leave=False, unit="batch", disable=not self.progress,
        )  # fmt: skip
        losses: list[Tensor] = []  # not yet read
        model.train()
        with bar, stop_requests() as request:
            for indices in batches[position.batch :]:
                examples = [train[index] for index in indices]
                losses.append(_step(model, self.optimiser, examples, self.seed, position.step, settings.clip_norm))
                self.average.update(position.step)
                if self.queue is not None:
                    self.queue.add_step()
                position.batch, position.step = position.batch + 1, position.step + 1
                bar.update()
                save = position.step % settings.checkpoint_every == 0 or request.signal is not None
                if save or len(losses) == READ_AFTER or position.batch == len(batches):
                    _read_losses(losses, position)
                    bar.set_postfix(loss=f"{position.loss / position.batch:.4f}")
                if save:
                    position.seconds = time.monotonic() - began
                    _save(self.folder / CHECKPOINT, model, self.optimiser, self.average, position)
                if request.signal is not None:
                    request.obey()
        return position.loss / len(batches)

    def evaluate_epoch(
        self, dev: Sequence[Example], position: TrainingPosition, mean_loss: float, encoder: dict[str, object] | None
    ) -> None:
        """Score the dev set, save the model if it is the best so far, and report the epoch."""
        model, epoch = self.model, position.epoch + 1
        score = score_predictions(model.task, dev, model.predict_examples(dev, progress=self.progress))
        position.scores.append(score.main)
        improved = position.best == position.epoch
        if improved:  # before the checkpoint: if the process is killed between the two, the epoch is trained again
            save_model(model, self.folder / MODEL, encoder)
        self.report.write(
            f"seed {self.seed} | epoch {epoch} | loss {mean_loss:.4f} | "
            f"dev {model.task.metric.name} {score.main:.2f}{' (best)' if improved else ''}",
            "epoch", epoch=epoch, step=position.step, loss=mean_loss, lr=self.optimiser.param_groups[0]["lr"],
            dev=score.main, layers=model.representation.layer_weights(),
        )  # fmt: skip


class _StepQueue:
    """The steps that a GPU has not finished; a new one waits, without using a CPU core, until there are few of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.ends: deque[torch.cuda.Event] = deque()

    def add_step(self) -> None:
        """Note that a step has been queued."""
        self.ends.append(torch.cuda.Event(blocking=True))
        self.ends[-1].record()
        if len(self.ends) == self.limit:
            self.ends.popleft().synchronize()


def _finished(position: TrainingPosition, settings: TrainingSettings) -> bool:
    done = len(position.scores)
    if not done:
        return False
    out_of_time = settings.minutes > 0 and position.seconds >= 60 * settings.minutes
    return out_of_time or done >= settings.epochs or done - 1 - position.best >= settings.patience


def _step(
    model: TaskModel, optimiser: torch.optim.Optimizer, examples: list[Example], seed: int, step: int, limit: float
) -> Tensor:
    """Train on one batch and return its loss. Nothing here waits for a GPU, so the loss may not be computed yet."""
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
    """Let a GPU multiply float32 matrices in TF32 in training, as cuDNN's LSTMs do anyway. Predictions use float32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if device.type == "cuda" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _read_losses(losses: list[Tensor], position: TrainingPosition) -> None:
    """Add the losses of the last steps. A loss that is not finite stops the training before anything is saved."""
    first = position.step - len(losses) + 1
    for step, value in enumerate(torch.stack(losses).tolist(), first):
        if not math.isfinite(value):
            raise DivergedError(f"the loss is {value} at step {step}. Try a lower training.lr.")
        position.loss += value
    losses.clear()


def _optimiser(model: TaskModel, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return the optimiser, with separate learning rates for the network and for a biLM that is trained with it."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    own = [parameter for name, parameter in named if not name.startswith("bilm.")]
    bilm = [parameter for name, parameter in named if name.startswith("bilm.")]
    groups = [{"params": own, "first": settings.lr, "lr": settings.lr}]
    groups += [{"params": bilm, "first": settings.encoder_lr, "lr": settings.encoder_lr}] if bilm else []
    if settings.optimiser == "adadelta":
        return torch.optim.Adadelta(groups, rho=0.95, eps=1e-6, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=model.device.type == "cuda")


def _set_learning_rate(
    optimiser: torch.optim.Optimizer, position: TrainingPosition, settings: TrainingSettings
) -> None:
    """Halve the learning rates each time `halve_after` epochs in a row had no better dev score.

    The result depends on the dev scores alone, so a resumed training has the same rates.
    """
    halvings, best, since = 0, -math.inf, 0
    for score in position.scores:
        best, since = (score, 0) if score > best else (best, since + 1)
        if settings.halve_after and since == settings.halve_after:
            halvings, since = min(halvings + 1, MAX_HALVINGS), 0
    for group in optimiser.param_groups:
        group["lr"] = group["first"] * 0.5**halvings


def _trainable(model: TaskModel) -> dict[str, Tensor]:
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}


def _save(
    path: Path, model: TaskModel, optimiser: torch.optim.Optimizer, average: WeightAverage, position: TrainingPosition
) -> None:
    tensors = {f"model/{name}": tensor for name, tensor in _trainable(model).items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{number}/{name}": tensor for name, tensor in state.items()}
    tensors |= {f"average/{name}": tensor for name, tensor in average.means.items()}
    with atomic_path(path) as part:
        write_safetensors(part, tensors, {"position": json.dumps(asdict(position))})


def _restore(
    path: Path, model: TaskModel, optimiser: torch.optim.Optimizer, average: WeightAverage
) -> TrainingPosition:
    """Restore weights, optimiser state and weight averages, and return the position."""
    try:
        tensors = read_safetensors(path)
        position = from_dict(TrainingPosition, parse_json(TensorFile(path).metadata["position"], path))
        state = _optimiser_state(tensors, optimiser)
        for name, target in _trainable(model).items():
            target.copy_(tensors[f"model/{name}"])
        for name, target in average.means.items():
            target.copy_(tensors[f"average/{name}"])
    except (ConfigError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FormatError(
            f"{path}: not a complete checkpoint of this run ({error}). Use --force to start again."
        ) from error
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return position


def _optimiser_state(tensors: Mapping[str, Tensor], optimiser: torch.optim.Optimizer) -> dict[int, dict[str, Tensor]]:
    """Return the stored values by the number of their parameter, or raise a ValueError if they do not fit."""
    shapes = [parameter.shape for group in optimiser.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if not name.startswith("optimiser/"):
            continue
        match = re.fullmatch(r"optimiser/([0-9]{1,6})/(\w+)", name)
        if not match or int(match[1]) >= len(shapes) or tensor.shape not in ((), shapes[int(match[1])]):
            raise ValueError(f"{name[:60]!r} does not fit the network")
        state.setdefault(int(match[1]), {})[match[2]] = tensor
    if len({frozenset(values) for values in state.values()}) > 1:
        raise ValueError("a value of the optimiser is missing")
    return state
