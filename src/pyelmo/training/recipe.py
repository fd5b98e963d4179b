"""A run as a TOML recipe: [model] what to train, [training] how; `--set training.lr=0.1` changes one setting."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pyelmo.config import ModelConfig, from_dict
from pyelmo.errors import ConfigError, NotFoundError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")


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
class Recipe:
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=10))


def read_recipe(source: str | Path, changes: Sequence[str] = ()) -> Recipe:
    """A recipe file, or the name of one that comes with the package, with `a.b=c` changes."""
    return read_settings(Recipe, source, changes)


def read_settings(kind: type[T], source: str | Path, changes: Sequence[str] = (), *, prefix: str = "") -> T:
    """The settings of any kind that a file holds; those of one kind that come with the package share a `prefix`."""
    path = Path(source)
    if not path.is_file():
        path = RECIPES / f"{prefix}{source}.toml"
    if not path.is_file():
        known = ", ".join(names_of_recipes(prefix))
        raise NotFoundError(f"{source}: no such recipe file, and none of that name in the box ({known})")
    values = read_toml(path)
    budgets = BUDGETS if kind is Recipe else frozenset[str]()
    for change in changes:
        _set(values, change, budgets)
    try:
        return from_dict(kind, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error})") from error


def names_of_recipes(prefix: str = "") -> list[str]:
    """Those that come with the package, without the prefix; without one, those that train a biLM."""
    stems = sorted(path.stem for path in RECIPES.glob(f"{prefix}*.toml"))
    return [stem.removeprefix(prefix) for stem in stems if prefix or not stem.startswith((TASK, TABLE))]


TASK = "task-"  # how the names of recipes for downstream tasks begin
TABLE = "table"  # ... and of lists of runs
RECIPES = Path(__file__).parent.parent / "recipes"
BUDGETS = frozenset({"training.epochs", "training.words", "training.minutes"})  # of a pre-training: one of them


def _set(values: dict[str, Any], change: str, budgets: frozenset[str]) -> None:
    name, equals, text = change.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {change}: write it as part.setting=value, for example training.lr=0.1")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a word needs no quotes
    if name.strip() in budgets:  # a new budget takes the place of the recipe's
        for budget in budgets:
            values.get("training", {}).pop(budget.split(".")[1], None)
    table = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change}: {key} is not a table")
    table[keys[-1]] = value
