"""One step of training: a batch of word types -> losses of both directions -> gradients -> new weights.

N directions, B rows of this process, T steps, P vector, U distinct types, M = N * B * T places, K touched rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from pyelmo import kernels
from pyelmo.errors import ConfigError
from pyelmo.kernels.softmax import draw_negatives, sampled_nll, touched
from pyelmo.model.bilm import BiLM
from pyelmo.model.lstm import State
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax
from pyelmo.text.pieces import END_ID
from pyelmo.training.optim import Optimiser, RowGradient, clip_gradients
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig

# Random numbers of a step come from its number: a resumed run draws the same, with nothing to store.
SEED_STEP, SEED_RANK = 1_000_003, 7_919


@dataclass(frozen=True)
class TypeTables:
    """What the model reads and predicts for every word type of a corpus, on the training device."""

    chars: Tensor | None  # (types, C)
    words: Tensor | None  # (types,)
    targets: Tensor  # (types,) numbers in the softmax's vocabulary


@dataclass(frozen=True)
class Samples:
    """The negatives of a step, and the rows of the softmax that its targets and negatives touch."""

    number: int  # of the step
    rows: Tensor  # (K,) distinct; those after the first `count` only fill the shape and stay as they are
    count: Tensor | None  # (), none where all rows are touched
    targets: Tensor  # (M,) which of the K rows
    negatives: Tensor  # (S,) which of the K rows
    target_log_expected: Tensor  # (M,)
    negative_log_expected: Tensor  # (S,)


@dataclass(frozen=True)
class StepBatch:
    """The types of one step: each distinct one once, and where they stand."""

    types: Tensor  # (U,)
    inputs: Tensor  # (N, B, T) which of the U types
    targets: Tensor  # (N, B, T) type ids
    samples: Samples | None = None  # where they were drawn ahead of the step


class Trainer:
    """A biLM in training: its optimiser, its carried state, and the step."""

    def __init__(
        self,
        bilm: BiLM,
        tables: TypeTables,
        config: TrainingConfig,
        processes: Processes,
        *,
        only_softmax: bool = False,
    ) -> None:
        if bilm.softmax is None:
            raise ConfigError("a model without a softmax cannot be trained as a language model")
        if config.loss == "adaptive" and not isinstance(bilm.softmax, AdaptiveSoftmax):
            raise ConfigError("training.loss: adaptive needs model.softmax_cutoffs, for example [2000, 10000]")
        if config.loss == "sampled" and not isinstance(bilm.softmax, Softmax):
            raise ConfigError("training.loss: sampled needs a softmax without cutoffs")
        if config.batch % processes.count:
            raise ConfigError(f"training.batch: {config.batch} rows cannot be shared by {processes.count} processes")
        self.bilm, self.tables, self.config, self.processes = bilm, tables, config, processes
        self.only_softmax = only_softmax
        bilm.lstm.dropout.p = config.dropout
        named = {
            name: parameter
            for name, parameter in bilm.named_parameters()
            if not only_softmax or name.startswith("softmax.")
        }
        self.optimiser = Optimiser(named, config)
        self.state: State | None = None
        self.negatives = torch.Generator(device=processes.device)
        # The first step whose loss or gradient was not finite; kept on the device so that no step waits for it.
        self.bad_step = torch.zeros((), dtype=torch.long, device=processes.device)
        self.norm = torch.zeros((), device=processes.device)  # of the last step's gradient, before it was clipped

    def step(self, batch: StepBatch, lr: float) -> Tensor:
        """Train on one batch; gives the mean loss of each direction (N,) over all processes.

        This is the plain path; `training.graphs` replays the same step faster.
        """
        number = self.seed()
        samples = batch.samples or self.draw(batch.targets, number)
        rates = self.optimiser.rates(lr, number).to(self.processes.device)
        means, self.state = self.compute(replace(batch, samples=samples), self.state, rates)
        self.optimiser.steps = number
        return means

    def seed(self) -> int:
        """Seed the random numbers of the next step; gives its number."""
        number = self.optimiser.steps + 1
        torch.manual_seed(self.config.seed * SEED_STEP + number * SEED_RANK + self.processes.rank)
        self.bilm.train()
        return number

    def draw(self, types: Tensor, number: int) -> Samples | None:
        """The samples of a step: they depend on its targets (N, B, T) and its number alone, not on the weights."""
        if self.config.loss != "sampled":
            return None
        assert isinstance(self.bilm.softmax, Softmax)
        flat = self.tables.targets[types].flatten()
        words = len(self.bilm.softmax.bias)
        self.negatives.manual_seed(self.config.seed * SEED_STEP + number)
        drawn = draw_negatives(words, min(self.config.samples, words - 1), self.negatives)
        # All processes use the same rows, so that their gradients add up in one message whatever the vocabulary.
        used = touched(self.processes.gather(flat), drawn.ids)
        mine = used.targets[self.processes.rank * len(flat) : (self.processes.rank + 1) * len(flat)]
        expected = drawn.log_expected(flat), drawn.log_expected(drawn.ids)
        return Samples(number, used.ids, None, mine, used.negatives, *expected)

    def compute(self, batch: StepBatch, state: State | None, rates: Tensor) -> tuple[Tensor, State]:
        """The device's part of a step: losses, gradients, new weights. Reads nothing back, so a graph can hold it."""
        self.bilm.zero_grad(set_to_none=True)
        bf16 = self.config.precision == "bf16"
        with torch.autocast(self.processes.device.type, torch.bfloat16, enabled=bf16):
            top, state = self._read(batch, state)
            losses, rows = self._losses(top, batch)
        places = losses.numel() * self.processes.count
        scale = self.config.steps if self.config.sum_steps else 1
        (losses.sum() * (scale / places)).backward()
        means = losses.detach().sum((1, 2)) * (len(losses) / places)
        self._update(rows, means, rates)
        return means, state

    def _read(self, batch: StepBatch, state: State | None) -> tuple[Tensor, State]:  # -> (N, B, T, P)
        with torch.set_grad_enabled(not self.only_softmax):
            chars = None if self.tables.chars is None else self.tables.chars[batch.types].int()
            words = None if self.tables.words is None else self.tables.words[batch.types]
            vectors = self.bilm.encode_words(chars, words)  # (U, P)
            tokens = nn.functional.embedding(batch.inputs, vectors)
            outputs, state = self.bilm.lstm(tokens, self._start(batch, state))
        return outputs[-1], state.detach()

    def _start(self, batch: StepBatch, state: State | None) -> State | None:
        """The carried state; zero in rows whose window begins with a sentence, so that the model meets what embedding
        gives it: a sentence by itself."""
        if state is None or not self.config.zero_starts:
            return state
        begins = batch.types[batch.inputs[:, :, 0]] <= END_ID  # (N, B): types 0 and 1 are the marks
        keep = ~begins[None, :, :, None]
        return State(state.hidden * keep, state.cell * keep)

    def _losses(self, top: Tensor, batch: StepBatch) -> tuple[Tensor, dict[str, RowGradient]]:
        """The loss of every place (N, B, T), and the leaves that stand for rows of the softmax's table."""
        softmax, samples, vectors = self.bilm.softmax, batch.samples, top.flatten(0, 2)
        if samples is None:
            assert softmax is not None
            targets = self.tables.targets[batch.targets]
            return softmax.nll(vectors, targets.flatten()).view(targets.shape), {}
        assert isinstance(softmax, Softmax)
        weight = softmax.weight.detach()[samples.rows].requires_grad_()
        bias = softmax.bias.detach()[samples.rows].requires_grad_()
        nll = kernels.fast(sampled_nll, vectors)
        losses = nll(
            vectors, samples.targets, weight, bias, samples.negatives,
            samples.target_log_expected, samples.negative_log_expected,
        )  # fmt: skip
        rows = {
            name: RowGradient(name, samples.rows, leaf, samples.count)
            for name, leaf in (("softmax.weight", weight), ("softmax.bias", bias))
        }
        return losses.view(batch.inputs.shape), rows

    def _update(self, leaves: dict[str, RowGradient], means: Tensor, rates: Tensor) -> None:
        rows = {}
        for name, leaf in leaves.items():
            assert leaf.gradient.grad is not None
            shared = "words.weight" if name == "softmax.weight" and self.bilm.config.softmax_shares_words else None
            if shared is None:
                rows[name] = replace(leaf, gradient=leaf.gradient.grad)
            else:  # the table's gradient is dense already, as the input's
                table = self.optimiser.parameters[shared].grad
                assert table is not None
                table.index_add_(0, leaf.rows, leaf.gradient.grad)
        dense = [p.grad for n, p in self.optimiser.parameters.items() if p.grad is not None and n not in rows]
        gradients = [*dense, *(part.gradient for part in rows.values())]
        self.processes.add([*gradients, means])
        norm = clip_gradients(gradients, self.config.clip_norm)
        self.norm.copy_(norm)
        fine = torch.isfinite(norm) & torch.isfinite(means).all()
        self.bad_step.copy_(torch.where(fine | (self.bad_step > 0), self.bad_step, rates[0].long()))
        self.optimiser.apply(rates, rows)
