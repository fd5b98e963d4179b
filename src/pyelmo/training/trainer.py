"""One training step: a batch of word types -> losses of both directions -> gradients -> new weights.

N directions, B rows of this process, T time steps, P vector, U distinct word types, M = N * B * T positions, K rows of
the softmax table that a batch uses, S negative samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from pyelmo.corpus.pieces import END_ID
from pyelmo.errors import ConfigError
from pyelmo.kernels import choice
from pyelmo.kernels.gpu.softmax import draw_negatives, sampled_nll, touched
from pyelmo.model.bilm import BiLM
from pyelmo.model.lstm import State
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax
from pyelmo.training.optim import Optimiser, RowGradient, clip_by_median, clip_gradients
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig

# The seed of a step depends on its number, so that a resumed run draws the same random numbers.
SEED_STEP, SEED_RANK = 1_000_003, 7_919


@dataclass(frozen=True)
class TypeTables:
    """The model's inputs and targets for every word type of a corpus, on the training device.

    A batch has ids of word types; these tables turn them into characters, word ids and targets.
    """

    chars: Tensor | None  # (types, C) symbol ids
    words: Tensor | None  # (types,) word ids
    targets: Tensor  # (types,) ids in the vocabulary of the softmax


@dataclass(frozen=True)
class Samples:
    """The negative samples of a step, and the rows of the softmax table that its targets and samples use."""

    number: int  # of the step
    rows: Tensor  # (K,) distinct; those after the first `count` are padding and are not updated
    count: Tensor | None  # (), None if no row is padding
    targets: Tensor  # (M,) index among the K rows
    negatives: Tensor  # (S,) index among the K rows
    target_log_expected: Tensor  # (M,)
    negative_log_expected: Tensor  # (S,)


@dataclass(frozen=True)
class StepBatch:
    """The word types of one step: the distinct ones, and the inputs and targets at each position."""

    types: Tensor  # (U,)
    inputs: Tensor  # (N, B, T) index among the U types
    targets: Tensor  # (N, B, T) type ids
    samples: Samples | None = None  # set if they were drawn before the step


class Trainer:
    """A biLM with its optimiser and the LSTM state that is carried from batch to batch.

    With `only_softmax`, only the softmax is trained.
    """

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
            raise ConfigError(
                "the model has no softmax and cannot be trained as a language model; set its vocabulary size"
            )
        if config.loss == "adaptive" and not isinstance(bilm.softmax, AdaptiveSoftmax):
            raise ConfigError("training.loss: adaptive needs model.softmax_cutoffs, for example [2000, 10000]")
        if config.loss == "sampled" and not isinstance(bilm.softmax, Softmax):
            raise ConfigError("training.loss: sampled needs a model without softmax_cutoffs; use adaptive")
        if config.batch % processes.count:
            raise ConfigError(
                f"training.batch: {config.batch} is not a multiple of the number of processes, {processes.count}"
            )
        self.bilm, self.tables, self.config, self.processes = bilm, tables, config, processes
        self.only_softmax = only_softmax
        bilm.lstm.dropout.p = config.dropout
        trained = {
            name: parameter
            for name, parameter in bilm.named_parameters()
            if not only_softmax or name.startswith("softmax.")
        }
        self.optimiser = Optimiser(trained, config)
        self.state: State | None = None
        self.negatives = torch.Generator(device=processes.device)
        # The first step whose loss or gradient was not finite; it stays on the device so that no step waits for it.
        self.bad_step = torch.zeros((), dtype=torch.long, device=processes.device)
        self.norm = torch.zeros((), device=processes.device)  # of the gradient of the last step, before clipping

    def step(self, batch: StepBatch, lr: float) -> Tensor:
        """Train on one batch and return the mean loss of each direction (N,) over all processes.

        This is the plain reference; `training.graphs` replays the same step faster.
        """
        number = self.seed()
        samples = batch.samples or self.draw(batch.targets, number)
        rates = self.optimiser.rates(lr, number).to(self.processes.device)
        means, self.state = self.compute(replace(batch, samples=samples), self.state, rates)
        self.optimiser.steps = number
        return means

    def seed(self) -> int:
        """Seed the random numbers of the next step and return its number."""
        number = self.optimiser.steps + 1
        torch.manual_seed(self.config.seed * SEED_STEP + number * SEED_RANK + self.processes.rank)
        self.bilm.train()
        return number

    def draw(self, types: Tensor, number: int) -> Samples | None:
        """Draw the samples of a step. They depend only on its targets (N, B, T) and its number, not on the weights."""
        if self.config.loss != "sampled":
            return None
        assert isinstance(self.bilm.softmax, Softmax)
        targets = self.tables.targets[types].flatten()
        words = len(self.bilm.softmax.bias)
        self.negatives.manual_seed(self.config.seed * SEED_STEP + number)
        drawn = draw_negatives(words, min(self.config.samples, words - 1), self.negatives)
        # All processes use the same rows, so that one all-reduce of these rows adds up their gradients.
        used = touched(self.processes.gather(targets), drawn.ids)
        own_targets = used.targets[self.processes.rank * len(targets) : (self.processes.rank + 1) * len(targets)]
        log_expected = drawn.log_expected(targets), drawn.log_expected(drawn.ids)
        return Samples(number, used.ids, None, own_targets, used.negatives, *log_expected)

    def compute(self, batch: StepBatch, state: State | None, rates: Tensor) -> tuple[Tensor, State]:
        """Compute losses, gradients and new weights on the device. Nothing is read back, so a graph can hold it."""
        self.bilm.zero_grad(set_to_none=True)
        bf16 = self.config.precision == "bf16"
        with torch.autocast(self.processes.device.type, torch.bfloat16, enabled=bf16):
            top, state = self._read(batch, state)
            losses, rows = self._losses(top, batch)
        positions = losses.numel() * self.processes.count
        scale = self.config.steps if self.config.sum_steps else 1
        (losses.sum() * (scale / positions)).backward()
        means = losses.detach().sum((1, 2)) * (len(losses) / positions)
        self._update(rows, means, rates)
        return means, state

    def _read(self, batch: StepBatch, state: State | None) -> tuple[Tensor, State]:  # -> (N, B, T, P)
        """Return the output of the top LSTM layer, and the state that the next batch starts from."""
        with torch.set_grad_enabled(not self.only_softmax):
            chars = None if self.tables.chars is None else self.tables.chars[batch.types].int()
            words = None if self.tables.words is None else self.tables.words[batch.types]
            vectors = self.bilm.encode_words(chars, words)  # (U, P)
            tokens = nn.functional.embedding(batch.inputs, vectors)
            outputs, state = self.bilm.lstm(tokens, self._start(batch, state))
        return outputs[-1], state.detach()

    def _start(self, batch: StepBatch, state: State | None) -> State | None:
        """Return the carried state, reset to zero in rows whose window begins with a sentence.

        In embedding, every sentence starts from a zero state, and the model has to learn that case.
        """
        if state is None or not self.config.zero_starts:
            return state
        begins = batch.types[batch.inputs[:, :, 0]] <= END_ID  # (N, B): types 0 and 1 are the boundary tokens
        keep = ~begins[None, :, :, None]
        return State(state.hidden * keep, state.cell * keep)

    def _losses(self, top: Tensor, batch: StepBatch) -> tuple[Tensor, dict[str, RowGradient]]:
        """Return the loss of every position (N, B, T), and the leaf tensors of the rows of the softmax table."""
        softmax, samples, vectors = self.bilm.softmax, batch.samples, top.flatten(0, 2)
        if samples is None:
            assert softmax is not None
            targets = self.tables.targets[batch.targets]
            return softmax.nll(vectors, targets.flatten()).view(targets.shape), {}
        assert isinstance(softmax, Softmax)
        weight = softmax.weight.detach()[samples.rows].requires_grad_()
        bias = softmax.bias.detach()[samples.rows].requires_grad_()
        nll = choice.fast(sampled_nll, vectors)
        losses = nll(
            vectors, samples.targets, weight, bias, samples.negatives, samples.target_log_expected,
            samples.negative_log_expected,
        )  # fmt: skip
        rows = {
            name: RowGradient(name, samples.rows, leaf, samples.count)
            for name, leaf in (("softmax.weight", weight), ("softmax.bias", bias))
        }
        return losses.view(batch.inputs.shape), rows

    def _update(self, leaves: dict[str, RowGradient], means: Tensor, rates: Tensor) -> None:
        """Add up the gradients and mean losses of all processes, clip the gradients and update the weights."""
        rows = {}
        for name, leaf in leaves.items():
            assert leaf.gradient.grad is not None
            shared = "words.weight" if name == "softmax.weight" and self.bilm.config.softmax_shares_words else None
            if shared is None:
                rows[name] = replace(leaf, gradient=leaf.gradient.grad)
            else:  # as the embedding table, it has a dense gradient already
                table = self.optimiser.parameters[shared].grad
                assert table is not None
                table.index_add_(0, leaf.rows, leaf.gradient.grad)
        dense = [p.grad for n, p in self.optimiser.parameters.items() if p.grad is not None and n not in rows]
        gradients = [*dense, *(row.gradient for row in rows.values())]
        self.processes.add([*gradients, means])
        if self.config.clip_median is None:
            norm = clip_gradients(gradients, self.config.clip_norm)
        else:
            norm = clip_by_median(gradients, self.config, self.optimiser.state["norms"], rates[0])
        self.norm.copy_(norm)
        finite = torch.isfinite(norm) & torch.isfinite(means).all()
        self.bad_step.copy_(torch.where(finite | (self.bad_step > 0), self.bad_step, rates[0].long()))
        self.optimiser.apply(rates, rows)
