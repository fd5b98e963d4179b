"""The recipe of a pre-training run, a TOML file: [model] has the sizes of the model, [training] the settings.

`--set training.lr=0.1` changes one setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pyelmo.config import ModelConfig
from pyelmo.errors import ConfigError
from pyelmo.recipes import read_settings

BUDGETS = frozenset({"training.epochs", "training.words", "training.minutes"})  # setting one removes the others


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The settings of a training run. Set exactly one of the budgets `epochs`, `words` and `minutes`."""

    seed: int = 1
    batch: int = 128  # sequences in a batch, over all processes
    steps: int = 20  # time steps of truncated backpropagation through time; the LSTM state is carried to the next batch
    # Order of sentences: shuffled differently for each direction, shuffled alike for both, or as in the text.
    streams: Literal["independent", "same", "ordered"] = "independent"
    zero_starts: bool = True  # reset the LSTM state of a sequence whose window begins with a sentence, as in embedding
    loss: Literal["full", "sampled", "adaptive"] = "sampled"  # the softmax of the loss
    samples: int = 8192  # negative samples of the sampled softmax, shared by a batch
    optimiser: Literal["adagrad", "adamw"] = "adagrad"
    lr: float = 0.2  # learning rate
    warmup: int = 0  # steps of linear warm-up of the learning rate
    decay: Literal["none", "linear", "cosine"] = "none"  # learning rate schedule over the whole budget
    weight_decay: float = 0.0  # AdamW, on matrices only
    accumulator: float = 1.0  # initial accumulator value of Adagrad
    beta2: float = 0.99  # AdamW; beta1 is 0.9
    sum_steps: bool = False  # multiply the mean loss by `steps`, as bilm-tf does
    clip_norm: float | None = 10.0  # maximum total norm of the gradients
    # From step 200 on: maximum norm as a multiple of the median of the last 200. Above twice that, a step is left out.
    clip_median: float | None = None
    dropout: float = 0.1  # on the input of each LSTM layer and on the output of the last
    precision: Literal["float32", "bf16"] = "float32"  # bf16 uses autocast
    epochs: float | None = None  # budget: passes over the training text
    words: int | None = None  # budget: trained words, including the end of each sentence
    minutes: float | None = None  # budget: wall-clock time
    validate_every: int = 2000  # steps between evaluations on the held-out set
    checkpoint_every: int = 1000  # steps
    report_every: int = 50  # steps

    def __post_init__(self) -> None:
        budgets = [name for name in ("epochs", "words", "minutes") if getattr(self, name) is not None]
        if len(budgets) != 1:
            raise ConfigError(
                f"training: set exactly one of epochs, words and minutes as the budget, got {budgets or 'none'}"
            )
        for name in ("batch", "steps", "samples", "lr", "validate_every", "checkpoint_every", "report_every"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"training.{name}: {getattr(self, name)} must be positive")
        if self.clip_median is not None and self.clip_median < 1:
            raise ConfigError(f"training.clip_median: {self.clip_median} must be at least 1, or none")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"training.dropout: {self.dropout} must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe:
    """The model and the settings of a pre-training run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=10))


def read_recipe(source: str | Path, changes: Sequence[str] = ()) -> PretrainRecipe:
    """Read a recipe file, or a bundled recipe by its name, and apply changes of the form `training.lr=0.1`."""
    return read_settings(PretrainRecipe, source, changes, group="pretrain", exclusive=BUDGETS)
