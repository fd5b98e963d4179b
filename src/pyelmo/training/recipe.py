"""A run as a TOML recipe: [model] what to train, [training] how; `--set training.lr=0.1` changes one setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pyelmo.config import ModelConfig
from pyelmo.errors import ConfigError
from pyelmo.recipes import read_settings

BUDGETS = frozenset({"training.epochs", "training.words", "training.minutes"})  # a recipe has one of them


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a biLM is trained. One of `epochs`, `words` and `minutes` is the budget."""

    seed: int = 1
    batch: int = 128  # rows of the whole batch, over all processes
    steps: int = 20  # of truncated back-propagation; the state is carried on
    # Sentences in random order, another for each direction or the same; or as they stand in the text.
    streams: Literal["independent", "same", "ordered"] = "independent"
    zero_starts: bool = True  # a sentence at the start of a window begins with a zero state, as in embedding
    loss: Literal["full", "sampled", "adaptive"] = "sampled"
    samples: int = 8192
    optimiser: Literal["adagrad", "adamw"] = "adagrad"
    lr: float = 0.2
    warmup: int = 0  # steps of linearly rising rate
    decay: Literal["none", "linear", "cosine"] = "none"  # over the whole budget
    weight_decay: float = 0.0
    accumulator: float = 1.0  # Adagrad's start
    beta2: float = 0.99
    sum_steps: bool = False  # bilm-tf: the gradient is that of the loss times `steps`
    clip_norm: float | None = 10.0
    dropout: float = 0.1
    precision: Literal["float32", "bf16"] = "float32"
    epochs: float | None = None
    words: int | None = None
    minutes: float | None = None
    validate_every: int = 2000  # steps
    checkpoint_every: int = 1000
    report_every: int = 50

    def __post_init__(self) -> None:
        budgets = [name for name in ("epochs", "words", "minutes") if getattr(self, name) is not None]
        if len(budgets) != 1:
            raise ConfigError(f"training: give one of epochs, words and minutes as the budget, got {budgets or 'none'}")
        for name in ("batch", "steps", "samples", "lr", "validate_every", "checkpoint_every", "report_every"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"training.{name}: {getattr(self, name)} must be positive")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"training.dropout: {self.dropout} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe:
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=10))


def read_recipe(source: str | Path, changes: Sequence[str] = ()) -> PretrainRecipe:
    """A recipe file, or the name of one that comes with the package, with `a.b=c` changes."""
    return read_settings(PretrainRecipe, source, changes, group="pretrain", exclusive=BUDGETS)
