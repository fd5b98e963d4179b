"""The settings of a task run, which recipes hold and `--set` changes; no torch is needed to read them."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal, TypeVar

from pyelmo.config import from_dict
from pyelmo.errors import ConfigError

CHOOSE_FORMAT = "Choose the format with --set data.format=..."  # the advice of readers
AUTO = "auto"  # a setting of the data that the run decides by its encoder or its files, and stores
LARGEST = 20_000  # of the sizes of vectors; more is a mistake, or a file that was made to fill the memory
# The smallest and the largest value of the sizes of networks.
_SIZES = {
    "hidden": (1, LARGEST), "scorer": (1, LARGEST), "feature": (1, LARGEST), "flag": (1, LARGEST),
    "characters": (0, LARGEST), "layers": (1, 100), "depth": (1, 100), "width": (1, 1000),
}  # fmt: skip
NO_MODEL = "en"  # whose rules split raw text if no encoder says otherwise


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

    def __post_init__(self) -> None:
        _check(0 <= self.dim <= LARGEST, f"words.dim: {self.dim} is not between 0 and {LARGEST:,}")


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
        check_positive(
            "training", self, "lr", "encoder_lr", "clip_norm", "batch", "epochs", "patience", "checkpoint_every"
        )
        for name in ("weight_decay", "halve_after", "minutes"):
            _check(getattr(self, name) >= 0, f"training.{name}: {getattr(self, name)} is negative")
        _check(0 <= self.average < 1, f"training.average: {self.average} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """How labelled files are read. A task may add its own settings."""

    language: str = AUTO  # whose rules split raw text; auto: those that split the training text of the encoder, else en
    unseen: Literal["error", "miss"] = "error"  # a label that the training set lacks: an error, or a wrong prediction

    def __post_init__(self) -> None:
        from pyelmo.text.tokens import check_language

        if self.language != AUTO:
            check_language(self.language)

    @property
    def words_given(self) -> bool:
        """Whether the files hold words as people write them, with a label each, and not raw text."""
        return False


@dataclass(frozen=True, kw_only=True)
class TaskRecipe:
    """All settings of a run. The recipe of a task adds its `network` and may have its own `data`."""

    data: DataSettings = field(default_factory=DataSettings)
    words: WordSettings = field(default_factory=WordSettings)
    elmo: ElmoSettings = field(default_factory=ElmoSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __post_init__(self) -> None:
        network = getattr(self, "network", None)
        for name, value in vars(network).items() if is_dataclass(network) else ():
            if "dropout" in name:
                _check(0 <= value < 1, f"network.{name}: {value} is not between 0 and 1")
            elif name in _SIZES:
                least, most = _SIZES[name]
                for size in value if isinstance(value, tuple) else (value,):
                    _check(least <= size <= most, f"network.{name}: {size} is not between {least} and {most:,}")


Data = TypeVar("Data", bound=DataSettings)


def resolve_data(data: Data, model_language: str | None, format: str | None = None) -> Data:
    """Replace `auto` by what a run decides, given the language of its encoder's model and the format of its files.

    Text is split as the encoder's training text was. Files of words are an exception for a model of morphemes: raw text
    is then split into words as well, and the encoder pools their morphemes.
    """
    if format is not None and getattr(data, "format", None) == AUTO:
        decided: Any = {"format": format}
        data = replace(data, **decided)
    if data.language != AUTO:
        return data
    language = model_language or NO_MODEL
    return replace(data, language="ko" if language == "ko-morph" and data.words_given else language)


def same_recipe(stored: Any, recipe: TaskRecipe) -> bool:
    """Return whether the recipe of a run.json is this one; what is `auto` here may have any value there.

    A setting that did not exist when the run was made has its default.
    """
    try:
        before = from_dict(type(recipe), stored)
    except ConfigError:
        return False
    data = recipe.data
    decided = {name: getattr(before.data, name) for name, value in vars(data).items() if value == AUTO}
    return before == replace(recipe, data=replace(data, **decided))


def only_for(data: Any, names: tuple[str, ...], formats: tuple[str, ...]) -> None:
    """Raise a ConfigError if one of these settings of the data is set and the format is one that does not read it."""
    if data.format not in (AUTO, *formats):
        for name in names:
            value = getattr(data, name)
            _check(
                value is None,
                f"data.{name}: {value!r} is set, but only files in the format {' or '.join(formats)} have it, and the "
                f"format is {data.format}. Leave it out, or set data.format",
            )


def check_positive(group: str, settings: object, *names: str) -> None:
    """Raise a ConfigError if one of these settings is not above 0; `group` is its table in a recipe."""
    for name in names:
        _check(getattr(settings, name) > 0, f"{group}.{name}: {getattr(settings, name)} must be positive")


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise ConfigError(message)
