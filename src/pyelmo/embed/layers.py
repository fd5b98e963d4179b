"""Choose or mix layers, and pool the vectors of a sentence.

L layers, B sentences, T tokens, D vector.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig
from pyelmo.embed.engines.build import torch_engine
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.model.scalar_mix import ScalarMix

LayerChoice: TypeAlias = "str | int | Sequence[float] | ScalarMix"
LARGEST_WEIGHT = 1e12  # of a mix: the squares of its vectors are finite in float32
WORDS = "words"  # one vector per word, instead of one per sentence
SENTENCE = "sentence"  # one vector per sentence by the sentence form of the model
POOLINGS = ("mean", "max", "first", "last", WORDS, SENTENCE)


def layer_picker(choice: LayerChoice, config: ModelConfig) -> Callable[[Any], Any]:
    """Return a function from all layers (L, .., T, D) to the chosen ones: the same for "all", else (.., T, D).

    Its argument is an array, or a tensor of a GPU.
    """
    count = config.layers
    if isinstance(choice, str):
        if choice == "all":
            return lambda values: values
        if choice == "top":
            return lambda values: values[-1]
        if choice == "average":
            return lambda values: values.mean(0)
        raise InputError(f"layers {choice!r} is none of 'all', 'top', 'average', an index or the weights of a mix")
    if isinstance(choice, int | np.integer):
        if not -count <= choice < count:
            raise InputError(f"layer {choice} does not exist: the model has layers 0 to {count - 1}")
        return lambda values: values[choice]
    if callable(choice):  # a ScalarMix, which is a torch module
        if choice.layers != count:
            raise InputError(f"the mix is for {choice.layers} layers, but the model has {count}")
        if choice.layer_norm == "batch":
            raise InputError(
                "a mix with layer_norm='batch' makes vectors depend on the other sentences of the batch; "
                "use layer_norm='token'"
            )
        mix: Callable[[Any], Any] = functools.partial(torch_engine("a ScalarMix").mix_layers, choice)
        return mix
    return _mix_picker(choice, config)  # type: ignore[arg-type]


def _mix_picker(choice: Sequence[float], config: ModelConfig) -> Callable[[Any], Any]:
    counts = [config.layers] + ([2 * config.layers - 1] if config.bidirectional else [])
    weights = mix_weights(choice)
    if len(weights) not in counts:
        wanted = " or ".join(map(str, counts))
        raise InputError(f"layers has {len(weights)} weights, but a mix of this model has {wanted}")
    return functools.partial(_weigh, weights)


def _weigh(weights: Sequence[float], values: Any) -> Any:
    """Return the sum of layers (L, .., D) with L weights, or with 2L - 1 as in `ScalarMix(per_direction=True)`."""
    mixed = weights[0] * values[0]
    if len(weights) == len(values):
        for weight, layer in zip(weights[1:], values[1:], strict=True):
            mixed += weight * layer
        return mixed
    half = mixed.shape[-1] // 2
    for forward, backward, layer in zip(weights[1::2], weights[2::2], values[1:], strict=True):
        mixed[..., :half] += forward * layer[..., :half]
        mixed[..., half:] += backward * layer[..., half:]
    return mixed


def mix_weights(choice: Sequence[float]) -> list[float]:
    try:
        weights = [float(weight) for weight in choice]
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"layers {choice!r}: expected the weights of a mix as numbers") from error
    if not all(abs(weight) <= LARGEST_WEIGHT for weight in weights):  # nor NaN
        raise InputError(f"layers {choice!r}: expected weights between -{LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}")
    return weights


def check_pooling(pooling: str | None, *, keep_boundaries: bool = False) -> None:
    if pooling is not None and pooling not in POOLINGS:
        raise InputError(f"pooling {pooling!r} is none of {', '.join(POOLINGS)}")
    if pooling in (WORDS, SENTENCE) and keep_boundaries:
        raise InputError(
            f"pooling {pooling!r} has no boundary tokens. Choose it or keep_boundaries (--keep-boundaries)"
        )


def pool_words(values: Float32Array, groups: Sequence[tuple[int, int]]) -> Float32Array:  # (.., T, D) -> (.., W, D)
    """Return the mean of the tokens of each word; `groups` has their first token and their end. No token gives NaN."""
    pooled = np.full((*values.shape[:-2], len(groups), values.shape[-1]), np.nan, dtype=np.float32)
    for position, (first, end) in enumerate(groups):
        if first < end:
            pooled[..., position, :] = values[..., first:end, :].mean(-2, dtype=np.float32)
    return pooled


def pool(values: Float32Array, pooling: str) -> Float32Array:
    """Reduce (.., T, D) to (.., D). The result of a sentence without tokens is NaN: it has no vector."""
    if values.shape[-2] == 0:
        return np.full((*values.shape[:-2], values.shape[-1]), math.nan, np.float32)
    if pooling == "mean":
        mean: Float32Array = values.mean(-2, dtype=np.float32)
        return mean
    if pooling == "max":
        largest: Float32Array = values.max(-2)
        return largest
    return values[..., 0 if pooling == "first" else -1, :]
