"""A pretrained model with what it needs to read text, and the checks that all formats share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyelmo.config import ModelConfig
from pyelmo.errors import FormatError
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.model.bilm import BiLM
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

StoredWeight = Tensor | Quantised
# What a folder of a model may contain, in pyelmo's format or in AllenNLP's: either replaces the other.
MODEL_FILES = (
    "config.json", "model.safetensors", "vocab.txt", "characters.json", "options.json", "weights.hdf5",
)  # fmt: skip
_RANDOM_FILLS = (Tensor.uniform_, Tensor.normal_)


class Weights:
    """The weights of a model before modules are built: names and shapes are checked, values on access."""

    def __init__(
        self, config: ModelConfig, stored: Mapping[str, StoredWeight], where: str | Path, *, quantised: bool = False
    ) -> None:
        """`stored` may read its values on access. If it is a dict, `take` removes each weight from it.

        `quantised` says whether the LSTMs have int8 weights.
        """
        self.config, self.stored, self.where, self.quantised = config, stored, where, quantised

    def __getstate__(self) -> dict[str, Any]:
        """Return arrays: torch would send a tensor to another process as a file that closes when the tensor dies."""
        stored: dict[str, Any] = {}
        for name, value in self.stored.items():
            if isinstance(value, Quantised):
                stored[name] = value
            else:  # numpy has no bfloat16
                stored[name] = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        return {"config": self.config, "stored": stored, "where": self.where, "quantised": self.quantised}

    def __setstate__(self, state: dict[str, Any]) -> None:
        stored = {
            name: value if isinstance(value, Quantised) else torch.from_numpy(value)
            for name, value in state["stored"].items()
        }
        self.__init__(state["config"], stored, state["where"], quantised=state["quantised"])  # type: ignore[misc]

    def __getitem__(self, name: str) -> StoredWeight:
        value = self.stored[name]
        check_finite(torch.from_numpy(value.scales) if isinstance(value, Quantised) else value, self.where, name)
        return value

    def take(self, name: str) -> StoredWeight:
        """Return a weight and release it here, so that it is not in memory twice."""
        value = self[name]
        if isinstance(self.stored, dict):
            del self.stored[name]
        return value

    def bilm(self) -> BiLM:
        """Build the modules with these weights, in evaluation mode."""
        bilm = empty_bilm(self.config)
        names = [name for name, _ in bilm.named_parameters()]
        bilm.load_state_dict({name: _dense(self[name]) for name in names}, strict=False, assign=True)
        bilm.share_softmax()
        return bilm.eval()


def _dense(value: StoredWeight) -> Tensor:
    return torch.from_numpy(value.restore()) if isinstance(value, Quantised) else value.float()


@dataclass(eq=False, repr=False)
class Pretrained:
    """A model as read from any format: its weights or modules, its lexicon, and the source it was read from.

    If `model` is `Weights`, the modules are built on the first access to `bilm`. `language` names the tokeniser rules
    of the training text, if they are known.
    """

    model: BiLM | Weights
    lexicon: Lexicon
    format: str
    source: str
    language: str | None = None

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def bilm(self) -> BiLM:
        if isinstance(self.model, Weights):
            self.model = self.model.bilm()
        return self.model


def checksum(pretrained: Pretrained) -> str:
    """Return a SHA-256 of every weight and, if the model reads words, of its vocabulary; copies have the same one."""
    digest = hashlib.sha256()
    if pretrained.lexicon.reads_words and pretrained.lexicon.vocab is not None:
        digest.update("\n".join(pretrained.lexicon.vocab).encode("utf-8", "surrogatepass"))
    model = pretrained.model
    weights: Mapping[str, StoredWeight] = model.stored if isinstance(model, Weights) else dict(model.named_parameters())
    for name in sorted(weights):
        weight = weights[name]
        digest.update(name.encode())
        if isinstance(weight, Quantised):
            digest.update(weight.values.tobytes() + weight.scales.tobytes())
        else:
            digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


class SkipInit(TorchFunctionMode):
    """Skip the random initialisation of modules whose weights are all read from a file afterwards.

    Random initialisation takes longer than reading the file; on meta tensors it also costs two seconds of imports.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _RANDOM_FILLS or getattr(function, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        if function is torch.linalg.qr:  # nn.init.orthogonal_ calls it
            return args[0], args[0]
        return function(*args, **(kwargs or {}))


def empty_bilm(config: ModelConfig) -> BiLM:
    """Return a biLM on the meta device: shapes without values, to be filled with weights."""
    with SkipInit(), torch.device("meta"):
        return BiLM(config)


def check_shapes(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], where: str | Path) -> None:
    """Raise an error that names the first weight that does not fit the config."""
    wanted = {name: tuple(parameter.shape) for name, parameter in empty_bilm(config).named_parameters()}
    for name, shape in wanted.items():
        if name not in shapes:
            raise FormatError(f"{where}: {name!r} is missing. Is the config from another model?")
        if tuple(shapes[name]) != shape:
            raise mismatch(where, name, shapes[name], shape)
    for name in shapes:
        if name not in wanted:
            raise FormatError(f"{where}: {name!r} is not a weight of this model. Is the config from another model?")


def build(config: ModelConfig, tensors: dict[str, Tensor], where: str | Path) -> Weights:
    """Check the names, shapes and values of `tensors`, and return them as `Weights` (not copied)."""
    check_shapes(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()}, where)
    for name, tensor in tensors.items():
        check_finite(tensor, where, name)
    return Weights(config, tensors, where)


def mismatch(where: str | Path, name: str, got: Any, want: Any) -> FormatError:
    return FormatError(
        f"{where}: {name!r} is {tuple(got)}, expected {tuple(want)}. Is the options or config file from another model?"
    )


def check_finite(tensor: Tensor, where: str | Path, name: str) -> None:
    # One sum is faster than a check of each value: it is finite only if all values are. The sum of finite values may
    # overflow, too, so a sum that is not finite is checked again value by value.
    if not torch.isfinite(tensor.sum()):
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
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
