"""A pretrained model with what it needs to read text, and the checks that all formats share.

The weights of a model are arrays by name, from which an engine or the torch modules are built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig, weight_shapes
from pyelmo.errors import FormatError, InputError
from pyelmo.formats.sentence import SENTENCE, SentenceForm
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.kernels.cpu.quantise4 import Packed
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyelmo.model.bilm import BiLM

StoredWeight = Float32Array | Quantised | Packed
StoredPrecision = Literal["float32", "int8", "int4"]
# What a folder of a model may contain, in pyelmo's format or in AllenNLP's: either replaces the other.
MODEL_FILES = (
    "config.json", "model.safetensors", "vocab.txt", "characters.json", SENTENCE, "options.json", "weights.hdf5",
)  # fmt: skip


def floats(weight: StoredWeight) -> Float32Array:
    """Return a weight as float32."""
    return weight.restore() if isinstance(weight, (Quantised, Packed)) else weight


class Weights(Mapping[str, StoredWeight]):
    """The weights of a model by name: names and shapes are checked, values on access."""

    def __init__(
        self,
        config: ModelConfig,
        stored: Mapping[str, StoredWeight],
        where: str | Path,
        *,
        precision: StoredPrecision = "float32",
    ) -> None:
        """`stored` may read its values on access. If it can be changed, as a dict, `take` removes weights from it.

        `precision` is that of the LSTMs' weights in the file.
        """
        self.config, self.stored, self.where, self.precision = config, stored, where, precision

    def __getstate__(self) -> dict[str, Any]:
        """Return all values: another process may not have the file, or another file of its name."""
        return {**vars(self), "stored": dict(self.stored)}

    def __getitem__(self, name: str) -> StoredWeight:
        value = self.stored[name]
        check_finite(value.scales if isinstance(value, (Quantised, Packed)) else value, self.where, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def take(self, name: str) -> StoredWeight:
        """Return a weight and release it here, so that it is not in memory twice."""
        value = self[name]
        if isinstance(self.stored, MutableMapping):
            del self.stored[name]
        return value

    def bilm(self) -> BiLM:
        """Build the torch modules with these weights, in evaluation mode."""
        from pyelmo.model.building import build_bilm

        return build_bilm(self.config, lambda name: floats(self[name]))


@dataclass(eq=False, repr=False)
class Pretrained:
    """A model as read from any format: its weights or modules, its lexicon, and the source it was read from.

    If `model` is `Weights`, the modules are built on the first access to `bilm`. `language` names the tokeniser rules
    of the training text, if they are known. `sentence` is how the model makes one vector of a sentence. `alignment`
    (D, D) maps vectors into the space of another language's model.
    """

    model: BiLM | Weights
    lexicon: Lexicon
    format: str
    source: str
    language: str | None = None
    sentence: SentenceForm | None = None
    alignment: Float32Array | None = None

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def bilm(self) -> BiLM:
        if isinstance(self.model, Weights):
            self.model = self.model.bilm()
        return self.model

    @property
    def weights(self) -> Mapping[str, StoredWeight]:
        """The weights by name; those of modules are not copied if they are on a CPU."""
        if isinstance(self.model, Weights):
            return self.model
        # named_parameters(), not state_dict(): it has a table shared with the softmax only once.
        return {name: weight.detach().float().cpu().numpy() for name, weight in self.model.named_parameters()}


def predicted_words(model: Pretrained) -> Vocabulary:
    """Return the words of the softmax, or raise an error that says what the model lacks to predict words."""
    if model.config.softmax is None:
        raise InputError(f"{model.source}: has no softmax, so it cannot predict words. Train one with elmo finetune.")
    if model.lexicon.vocab is None:
        raise InputError(f"{model.source}: the words of its softmax are unknown. Give its vocabulary (--vocab FILE).")
    return model.lexicon.vocab


def checksum(pretrained: Pretrained) -> str:
    """Return a SHA-256 of every weight and, if the model reads words, of its vocabulary; copies have the same one."""
    digest = hashlib.sha256()
    if pretrained.lexicon.reads_words and pretrained.lexicon.vocab is not None:
        digest.update("\n".join(pretrained.lexicon.vocab).encode("utf-8", "surrogatepass"))
    weights = pretrained.weights
    for name in sorted(weights):
        weight = weights[name]
        digest.update(name.encode())
        if isinstance(weight, Quantised):
            digest.update(weight.values.tobytes() + weight.scales.tobytes())
        else:
            digest.update(floats(weight).tobytes())
    return digest.hexdigest()


def check_shapes(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], where: str | Path) -> None:
    """Raise an error that names the first weight that does not fit the config."""
    wanted = weight_shapes(config)
    for name, shape in wanted.items():
        if name not in shapes:
            raise FormatError(f"{where}: {name!r} is missing. Is the config from another model?")
        if tuple(shapes[name]) != shape:
            raise mismatch(where, name, shapes[name], shape)
    for name in shapes:
        if name not in wanted:
            raise FormatError(f"{where}: {name!r} is not a weight of this model. Is the config from another model?")


def build(config: ModelConfig, arrays: dict[str, Float32Array], where: str | Path) -> Weights:
    """Check the names, shapes and values of `arrays`, and return them as `Weights` (not copied)."""
    check_shapes(config, {name: array.shape for name, array in arrays.items()}, where)
    for name, array in arrays.items():
        check_finite(array, where, name)
    return Weights(config, dict[str, StoredWeight](arrays), where)


def mismatch(where: str | Path, name: str, got: Any, want: Any) -> FormatError:
    return FormatError(
        f"{where}: {name!r} is {tuple(got)}, expected {tuple(want)}. Is the options or config file from another model?"
    )


def check_finite(array: np.ndarray, where: str | Path, name: str) -> None:
    # One sum is faster than a check of each value: it is finite only if all values are. The sum of finite values may
    # overflow, too, so a sum that is not finite is checked again value by value.
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):
            return
    if bad := int((~np.isfinite(array)).sum()):
        raise FormatError(
            f"{where}: {name!r} holds {bad} values that are NaN or infinite. The file is damaged, or its training "
            "diverged: use another checkpoint."
        )


def find_vocabulary(
    folder: Path, vocab: Vocabulary | None, config: ModelConfig, special: Mapping[str, str] | None = None
) -> Vocabulary | None:
    """Return `vocab`, or else vocab.txt beside the weights; None for a model without words or without that file.

    `special` has the spelling of the begin, end and unknown tokens in that file.
    """
    sizes = {config.softmax, config.words.size if config.words else None} - {None}
    if not sizes:
        return None
    where = "the given vocabulary"
    if vocab is None and (folder / "vocab.txt").is_file():
        vocab, where = Vocabulary.load(folder / "vocab.txt", **(special or {})), str(folder / "vocab.txt")
    if vocab is not None and sizes != {len(vocab)}:
        words = " and ".join(map(str, sizes))
        raise FormatError(f"{where}: {len(vocab)} words, the model has {words}. Is it the vocabulary of another model?")
    return vocab
