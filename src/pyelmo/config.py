"""The configuration of a model as frozen dataclasses, and their conversion from and to plain dictionaries."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pyelmo.errors import ConfigError

ALPHABETS = ("bytes", "jamo", "dictionary")
ACTIVATIONS = ("relu", "tanh")

# Far beyond every published model. A file that claims more is damaged, or would take all memory.
MAX_LENGTH = 1_000  # symbols of a word
MAX_LAYERS = 100  # LSTM layers, and highway layers
MAX_FILTERS = 100  # widths of filters, and how wide they are
MAX_SIZE = 1 << 17  # cells, filters of a width, and vectors
MAX_SYMBOLS = 1 << 21  # more than Unicode has
MAX_WORDS = 1 << 27

T = TypeVar("T")


def _shown(value: Any) -> str:
    """Return a value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise ConfigError(message)


def _check_size(name: str, value: int, most: int, *, least: int = 1) -> None:
    _check(least <= value <= most, f"{name} is {_shown(value)}; it must be {least:,} to {most:,}")


@dataclass(frozen=True, kw_only=True)
class CharConfig:
    """The character CNN: symbols -> embedding -> convolutions -> highway layers."""

    alphabet: Literal["bytes", "jamo", "dictionary"] = "bytes"
    symbols: int = 262  # size of the symbol embedding table, including padding (id 0)
    max_length: int = 50  # symbols per word, including begin and end of word
    dim: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    highways: int = 2
    activation: Literal["relu", "tanh"] = "relu"

    def __post_init__(self) -> None:
        _check(self.alphabet in ALPHABETS, f"alphabet {self.alphabet!r} is none of {', '.join(ALPHABETS)}")
        _check(self.activation in ACTIVATIONS, f"activation {self.activation!r} is none of {', '.join(ACTIVATIONS)}")
        _check_size("symbols", self.symbols, MAX_SYMBOLS)
        _check_size("dim", self.dim, MAX_SIZE)
        _check_size("max_length", self.max_length, MAX_LENGTH, least=3)
        _check_size("highways", self.highways, MAX_LAYERS, least=0)
        _check_size("the number of filter widths", len(self.filters), MAX_FILTERS)
        for width, count in self.filters:
            _check_size("filter width", width, MAX_FILTERS)
            _check_size(f"the number of filters of width {width}", count, MAX_SIZE)
            _check(width <= self.max_length, f"filter width {width} is wider than max_length {self.max_length}")

    @property
    def features(self) -> int:
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, kw_only=True)
class WordConfig:
    """The embedding table, with one vector for each word of the vocabulary."""

    size: int
    dim: int

    def __post_init__(self) -> None:
        _check_size("words: size", self.size, MAX_WORDS)
        _check_size("words: dim", self.dim, MAX_SIZE)


@dataclass(frozen=True, kw_only=True)
class LstmConfig:
    """The LSTMs of one direction. If `projection` is None, the output of the cells is not projected."""

    cells: int = 4096
    projection: int | None = 512
    layers: int = 2
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    skip: bool = True  # add the input of a layer to its output, from the second layer on
    forget_bias: float = 1.0  # added to the forget gate but not stored, as in TensorFlow

    def __post_init__(self) -> None:
        _check_size("lstm: cells", self.cells, MAX_SIZE)
        _check_size("lstm: layers", self.layers, MAX_LAYERS)
        if self.projection is not None:
            _check_size("lstm: projection", self.projection, MAX_SIZE)
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            _check(clip is None or 0 < clip < math.inf, f"lstm: {name} {clip} must be positive and finite, or absent")
        _check(math.isfinite(self.forget_bias), f"lstm: forget_bias {self.forget_bias} must be a finite number")

    @property
    def dim(self) -> int:
        """The size of the output and of the recurrent state of one direction."""
        return self.projection or self.cells


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The sizes of a biLM: token input (characters, words or both), LSTMs in one or two directions, and a softmax.

    The default is the model of the paper, without its softmax.

    Args:
        chars: The character CNN, or None for a model that reads words only.
        words: The word embedding, or None for a model that reads characters only.
        project: Whether a linear layer maps the token features to the size of the LSTM.
        lstm: The LSTM layers.
        bidirectional: Whether there is a backward direction.
        softmax: The number of words that the model predicts; None without a softmax.
        softmax_shares_words: Whether the softmax uses the weights of the word embedding.
        softmax_cutoffs: The cutoffs of an adaptive softmax: words beyond each cutoff have smaller vectors.

    Raises:
        ConfigError: The settings do not fit together.

    Example:
        >>> import pyelmo
        >>> config = pyelmo.ModelConfig()
        >>> config.layers, config.dim
        (3, 1024)
        >>> pyelmo.load("en").config.lstm.cells
        2048
    """

    chars: CharConfig | None = CharConfig()
    words: WordConfig | None = None
    project: bool = True
    lstm: LstmConfig = LstmConfig()
    bidirectional: bool = True
    softmax: int | None = None
    softmax_shares_words: bool = False
    softmax_cutoffs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check(self.chars is not None or self.words is not None, "the model needs chars or words as input")
        if self.softmax is not None:
            _check_size("softmax", self.softmax, MAX_WORDS)
        features = self.features
        _check(
            self.project or features == self.lstm.dim,
            f"without a projection the token features ({features}) must have the size of the LSTM ({self.lstm.dim})",
        )
        if self.softmax_shares_words:
            _check(
                self.words is not None
                and self.softmax in (None, self.words.size)  # None: a recipe is read before the vocabulary
                and self.words.dim == self.lstm.dim,
                "softmax_shares_words needs an embedding table with the shape of the softmax",
            )

        cuts = self.softmax_cutoffs
        if cuts:
            _check_size("the number of softmax_cutoffs", len(cuts), MAX_LAYERS)
            _check(not self.softmax_shares_words, "an adaptive softmax cannot share the embedding table")
            _check(
                list(cuts) == sorted(set(cuts)) and cuts[0] > 0,
                f"softmax_cutoffs {list(cuts)} must be positive and increasing",
            )
            _check(
                self.softmax is None or cuts[-1] < self.softmax,
                f"softmax_cutoffs {list(cuts)} must be smaller than the vocabulary",
            )

    @property
    def features(self) -> int:
        """The size of a token before the projection."""
        return (self.words.dim if self.words else 0) + (self.chars.features if self.chars else 0)

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def dim(self) -> int:
        """The size of the vectors of a layer: forward and backward together."""
        return self.directions * self.lstm.dim

    @property
    def layers(self) -> int:
        """The number of output layers: the token layer and one for each LSTM layer."""
        return 1 + self.lstm.layers


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and the shape of each weight, in the order of `BiLM.named_parameters`."""
    shapes: dict[str, tuple[int, ...]] = {}
    if chars := config.chars:
        shapes["chars.embedding.weight"] = (chars.symbols, chars.dim)
        for number, (width, count) in enumerate(chars.filters):
            shapes[f"chars.convolutions.{number}.weight"] = (count, chars.dim, width)
            shapes[f"chars.convolutions.{number}.bias"] = (count,)
        for number in range(chars.highways):
            for part in ("transform", "gate"):
                shapes[f"chars.highways.{number}.{part}.weight"] = (chars.features, chars.features)
                shapes[f"chars.highways.{number}.{part}.bias"] = (chars.features,)
    if config.words:
        shapes["words.weight"] = (config.words.size, config.words.dim)
    if config.project:
        shapes["projection.weight"] = (config.lstm.dim, config.features)
        shapes["projection.bias"] = (config.lstm.dim,)
    cells, size = config.lstm.cells, config.lstm.dim
    for number in range(config.lstm.layers):
        layer = {"input": (4 * cells, size), "recurrent": (4 * cells, size), "bias": (4 * cells,)}
        if config.lstm.projection:
            layer["projection"] = (size, cells)
        shapes |= {f"lstm.layers.{number}.{name}": (config.directions, *shape) for name, shape in layer.items()}
    if config.softmax:
        shapes |= _softmax_shapes(config, config.softmax)
    return shapes


def _softmax_shapes(config: ModelConfig, words: int) -> dict[str, tuple[int, ...]]:
    size, cuts = config.lstm.dim, config.softmax_cutoffs
    if not cuts:
        weight = {} if config.softmax_shares_words else {"softmax.weight": (words, size)}
        return {**weight, "softmax.bias": (words,)}
    # The clusters of torch's AdaptiveLogSoftmaxWithLoss; those of rarer words have vectors of a quarter of the size.
    head = cuts[0] + len(cuts)
    shapes: dict[str, tuple[int, ...]] = {
        "softmax.clusters.head.weight": (head, size), "softmax.clusters.head.bias": (head,),
    }  # fmt: skip
    for number, (first, end) in enumerate(itertools.pairwise((*cuts, words))):
        smaller = size // 4 ** (number + 1)
        shapes[f"softmax.clusters.tail.{number}.0.weight"] = (smaller, size)
        shapes[f"softmax.clusters.tail.{number}.1.weight"] = (end - first, smaller)
    return shapes


def to_dict(config: Any) -> dict[str, Any]:
    """Return a dataclass as plain dictionaries and lists, without None values (TOML has no null)."""
    return {
        field.name: _plain(value)
        for field in dataclasses.fields(config)
        if (value := getattr(config, field.name)) is not None or field.default is not None
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_dict(kind: type[T], values: dict[str, Any], where: str = "") -> T:
    """Build a dataclass from a dictionary and check the type of each value.

    Args:
        kind: The dataclass.
        values: The settings; a setting of a nested dataclass is a dictionary.
        where: The path of the settings, for error messages ("training.").

    Returns:
        The dataclass.

    Raises:
        ConfigError: A key is unknown (the message names the most similar one) or missing, or a value is invalid.
    """
    if not isinstance(values, dict):
        raise ConfigError(f"{where or kind.__name__}: expected a table of settings, got {_shown(values)}")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(f"{where}{str(key)[:80]}: no such setting. {nearest(str(key)[:80], fields)}")
    built = {key: _typed(value, hints[key], f"{where}{key}") for key, value in values.items()}
    missing = [
        name
        for name, field in fields.items()
        if name not in built and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{where or kind.__name__}: missing {', '.join(missing)}")
    return kind(**built)


def nearest(key: str, known: typing.Iterable[str]) -> str:
    """Return a hint that names the known key most similar to `key`, or all known keys."""
    known = sorted(known)
    similar = difflib.get_close_matches(key, known, n=1)
    return f"Did you mean {similar[0]!r}?" if similar else f"Known: {', '.join(known)}."


def _typed(value: Any, hint: Any, where: str) -> Any:
    """Check a value against a type hint; convert lists to tuples and integers to floats, as JSON and TOML need it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if (value is None or value == "none") and type(None) in arguments:  # TOML has no null
            return None
        hint = next(argument for argument in arguments if argument is not type(None))
        return _typed(value, hint, where)
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else from_dict(hint, value, f"{where}.")  # type: ignore[arg-type]
    if origin is Literal:
        if any(value == known and type(value) is type(known) for known in arguments):
            return value
        raise ConfigError(f"{where}: {_shown(value)} is none of {', '.join(map(repr, arguments))}")
    if origin in (tuple, list):
        return _typed_items(value, origin, arguments, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a table, got {_shown(value)}")
        return {key: _typed(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return float(value)
    if isinstance(value, bool) is not (hint is bool) or not isinstance(value, hint):
        raise ConfigError(f"{where}: expected {hint.__name__}, got {_shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: {value} is not a finite number")
    return value


def _typed_items(value: Any, origin: type, arguments: tuple[Any, ...], where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"{where}: expected a list, got {_shown(value)}")
    inner = arguments[:1] * len(value) if origin is list or arguments[-1] is Ellipsis else arguments
    if len(inner) != len(value):
        raise ConfigError(f"{where}: expected {len(inner)} values, got {_shown(value)}")
    return origin(_typed(item, kind, where) for item, kind in zip(value, inner, strict=True))
