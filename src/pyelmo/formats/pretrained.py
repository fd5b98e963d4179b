"""A model with what it needs to read text, and the checks that every format shares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyelmo.config import ModelConfig
from pyelmo.errors import FormatError, NotFoundError
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.model.bilm import BiLM
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

Stored = Tensor | Quantised
_DRAWS = (Tensor.uniform_, Tensor.normal_)


class Weights:
    """A model's weights before they are in modules: names and shapes are checked, values when they are asked for."""

    def __init__(self, config: ModelConfig, stored: Mapping[str, Stored], where: str | Path) -> None:
        """`stored` may read its values on demand; a dict is emptied as `take` is called."""
        self.config, self.stored, self.where = config, stored, where

    def __getitem__(self, name: str) -> Stored:
        value = self.stored[name]
        check_finite(torch.from_numpy(value.scales) if isinstance(value, Quantised) else value, self.where, name)
        return value

    def take(self, name: str) -> Stored:
        """A weight that the caller keeps from now on."""
        value = self[name]
        if isinstance(self.stored, dict):
            del self.stored[name]
        return value

    @property
    def quantised(self) -> bool:
        return any(isinstance(self.stored[name], Quantised) for name in self.stored if name.startswith("lstm."))

    def bilm(self) -> BiLM:
        bilm = empty_bilm(self.config)
        names = [name for name, _ in bilm.named_parameters()]
        bilm.load_state_dict({name: _dense(self[name]) for name in names}, strict=False, assign=True)
        bilm.share_softmax()
        return bilm.eval()


def _dense(value: Stored) -> Tensor:
    return torch.from_numpy(value.restore()) if isinstance(value, Quantised) else value.float()


@dataclass(eq=False, repr=False)
class Pretrained:
    """What any format gives: the biLM, how it reads words, and where it came from.

    Given weights alone, the modules are built when they are first asked for. `language` is the one whose rules split
    the text it was trained on, where that is known.
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
    """A model by its content: every weight, and the words of one that reads words. Copies have the same."""
    digest = hashlib.sha256()
    if pretrained.lexicon.reads_words and pretrained.lexicon.vocab is not None:
        digest.update("\n".join(pretrained.lexicon.vocab).encode("utf-8", "surrogatepass"))
    model = pretrained.model
    weights: Mapping[str, Stored] = model.stored if isinstance(model, Weights) else dict(model.named_parameters())
    for name in sorted(weights):
        weight = weights[name]
        digest.update(name.encode())
        if isinstance(weight, Quantised):
            digest.update(weight.values.tobytes() + weight.scales.tobytes())
        else:
            digest.update(weight.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


class NoRandomFill(TorchFunctionMode):
    """Skip initial values, for modules whose weights are all read from a file afterwards.

    Drawing them takes longer than reading the file; on meta tensors it also imports for two seconds.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _DRAWS or getattr(function, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        if function is torch.linalg.qr:  # of an orthonormal matrix
            return args[0], args[0]
        return function(*args, **(kwargs or {}))


def empty_bilm(config: ModelConfig) -> BiLM:
    """A biLM with shapes and no values, to be filled: no memory, no random numbers."""
    with NoRandomFill(), torch.device("meta"):
        return BiLM(config)


def check_shapes(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], where: str | Path) -> None:
    """One error that names the first weight that does not fit the config."""
    wanted = {name: tuple(parameter.shape) for name, parameter in empty_bilm(config).named_parameters()}
    for name, shape in wanted.items():
        if name not in shapes:
            raise FormatError(f"{where}: {name!r} is missing. Is the config from another model?")
        if tuple(shapes[name]) != shape:
            raise mismatch(where, name, shapes[name], shape)
    for name in shapes:
        if name not in wanted:
            raise FormatError(f"{where}: {name!r} has no place in this model. Is the config from another model?")


def build(config: ModelConfig, tensors: dict[str, Tensor], where: str | Path) -> Weights:
    """Weights around these tensors (not copied), all of them checked."""
    check_shapes(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()}, where)
    for name, tensor in tensors.items():
        check_finite(tensor, where, name)
    return Weights(config, tensors, where)


def mismatch(where: str | Path, name: str, got: Any, want: Any) -> FormatError:
    return FormatError(
        f"{where}: {name!r} is {tuple(got)}, expected {tuple(want)}. Is the options or config file from another model?"
    )


def check_finite(tensor: Tensor, where: str | Path, name: str) -> None:
    # A sum is finite only if every part is; the exact count is taken for the message alone. Overflow of the sum of
    # finite values is possible in principle, so a bad sum is checked again element by element.
    if not torch.isfinite(tensor.sum()):
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
            raise FormatError(
                f"{where}: {name!r} holds {bad} values that are NaN or infinite. The file is damaged, or its training "
                "diverged: use another checkpoint."
            )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or one clear error."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: not found") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FormatError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(values, dict):
        raise FormatError(f"{path}: expected a JSON object, got {type(values).__name__}")
    return values


def find_vocabulary(
    folder: Path, given: Vocabulary | None, config: ModelConfig, marks: Mapping[str, str] | None = None
) -> Vocabulary | None:
    """The vocabulary given, or vocab.txt beside the weights, for a model that knows words by number."""
    words = config.softmax or (config.words.size if config.words else None)
    if words is None:
        return None
    vocab, where = given, "the vocabulary given"
    if vocab is None and (folder / "vocab.txt").is_file():
        vocab, where = Vocabulary.load(folder / "vocab.txt", **(marks or {})), str(folder / "vocab.txt")
    if vocab is not None and len(vocab) != words:
        raise FormatError(f"{where} has {len(vocab)} words, the model {words}. Is it from another model?")
    return vocab
