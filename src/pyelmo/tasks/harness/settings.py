"""The settings of a task run, which recipes hold and `--set` changes; no torch is needed to read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pyelmo.errors import ConfigError

CHOOSE_FORMAT = "Choose the format with --set data.format=..."  # the advice of readers


@dataclass(frozen=True, kw_only=True)
class ElmoSettings:
    """How the network uses the layers of an encoder."""

    where: Literal["input", "output", "both"] = "input"  # each has its own mix
    layers: Literal["mix", "top", "average"] = "mix"
    penalty: float = 0.001  # L2 penalty on the layer weights, the paper's lambda
    dropout: float = 0.5  # on the mixed vectors
    layer_norm: bool = False
    precision: Literal["float16", "float32"] = "float16"  # of the vectors of a frozen encoder
    tune: bool = False  # train the biLM with the network instead of reading its vectors from a cache

    def __post_init__(self) -> None:
        _check(self.penalty >= 0, f"elmo.penalty: {self.penalty} is negative")
        _check(0 <= self.dropout < 1, f"elmo.dropout: {self.dropout} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """The embedding table of static word vectors: read from a file, or new if no file is given."""

    tune: bool = False  # train the vectors of a file; new vectors are always trained
    dim: int = 100  # of new vectors; 0 for none
    min_count: int = 2  # a word that is rarer in the training set gets no new vector


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a network is trained. Training stops after `patience` epochs without a better dev score."""

    optimiser: Literal["adam", "adadelta"] = "adam"
    lr: float = 0.001
    encoder_lr: float = 0.0001  # of a biLM that is trained with the network
    weight_decay: float = 0.0
    clip_norm: float = 5.0
    batch: int = 32
    epochs: int = 50
    patience: int = 10
    halve_after: int = 0  # epochs without a better dev score before the learning rate is halved; 0: never
    average: float = 0.0  # decay of the moving average of the weights used for evaluation; 0: use the last weights
    minutes: float = 0.0  # time limit: the epoch that passes it is the last; 0: no limit
    checkpoint_every: int = 1000  # steps; there is also a checkpoint after every epoch

    def __post_init__(self) -> None:
        check_positive("training", self, "lr", "clip_norm", "batch", "epochs", "patience", "checkpoint_every")
        _check(0 <= self.average < 1, f"training.average: {self.average} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """How labelled files are read. A task may add its own settings."""

    language: str = "en"  # whose tokenizer splits raw text
    unseen: Literal["error", "miss"] = "error"  # a label that the training set lacks: an error, or a wrong prediction

    def __post_init__(self) -> None:
        from pyelmo.text.tokens import check_language

        check_language(self.language)


@dataclass(frozen=True, kw_only=True)
class TaskRecipe:
    """All settings of a run. The recipe of a task adds its `network` and may have its own `data`."""

    data: DataSettings = field(default_factory=DataSettings)
    words: WordSettings = field(default_factory=WordSettings)
    elmo: ElmoSettings = field(default_factory=ElmoSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def check_positive(group: str, settings: object, *names: str) -> None:
    """Raise a ConfigError if one of these settings is not above 0; `group` is its table in a recipe."""
    for name in names:
        _check(getattr(settings, name) > 0, f"{group}.{name}: {getattr(settings, name)} must be positive")


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise ConfigError(message)
