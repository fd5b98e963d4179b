"""Choose or mix layers, and pool the vectors of a sentence.

L layers, B sentences, T tokens, D vector.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig
from pyelmo.errors import InputError
from pyelmo.model.scalar_mix import ScalarMix, weigh

LayerChoice = str | int | Sequence[float] | ScalarMix
WORDS = "words"  # one vector per word, instead of one per sentence
SENTENCE = "sentence"  # one vector per sentence by the sentence form of the model
POOLINGS = ("mean", "max", "first", "last", WORDS, SENTENCE)


def layer_picker(choice: LayerChoice, config: ModelConfig) -> Callable[[Tensor], Tensor]:
    """Return a function from all layers (L, B, T, D) to the chosen ones: the same for "all", else (B, T, D)."""
    count = config.layers
    if isinstance(choice, ScalarMix):
        if choice.layers != count:
            raise InputError(f"the mix is for {choice.layers} layers, but the model has {count}")
        if choice.layer_norm == "batch":
            raise InputError(
                "a mix with layer_norm='batch' makes vectors depend on the other sentences of the batch; "
                "use layer_norm='token'"
            )
        return lambda values: _on(choice, values.device)(values)
    if isinstance(choice, str):
        if choice == "all":
            return lambda values: values
        if choice == "top":
            return lambda values: values[-1]
        if choice == "average":
            return lambda values: values.mean(0)
        raise InputError(f"layers {choice!r} is none of 'all', 'top', 'average', an index or the weights of a mix")
    if isinstance(choice, int):
        if not -count <= choice < count:
            raise InputError(f"layer {choice} does not exist: the model has layers 0 to {count - 1}")
        return lambda values: values[choice]
    return _mix_picker(choice, config)


def _mix_picker(choice: Sequence[float], config: ModelConfig) -> Callable[[Tensor], Tensor]:
    counts = [config.layers] + ([2 * config.layers - 1] if config.bidirectional else [])
    weights = torch.tensor(mix_weights(choice))
    if len(weights) not in counts:
        wanted = " or ".join(map(str, counts))
        raise InputError(f"layers has {len(weights)} weights, but a mix of this model has {wanted}")
    return lambda values: weigh(weights.to(values, non_blocking=True), values)


def mix_weights(choice: Sequence[float]) -> list[float]:
    try:
        return [float(weight) for weight in choice]
    except (TypeError, ValueError) as error:
        raise InputError(f"layers {choice!r}: expected the weights of a mix as numbers") from error


def _on(mix: ScalarMix, device: torch.device) -> ScalarMix:
    """Return the mix on a device. A copy is moved, never the caller's own mix."""
    return mix if next(mix.parameters()).device == device else copy.deepcopy(mix).to(device)


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


def pool(values: Tensor, pooling: str | None) -> Tensor:
    """Reduce (.., T, D) to (.., D). The result of a sentence without tokens is NaN: it has no vector."""
    if pooling is None:
        return values
    if values.shape[-2] == 0:
        return values.new_full((*values.shape[:-2], values.shape[-1]), math.nan)
    if pooling == "mean":
        return values.mean(-2)
    if pooling == "max":
        return values.amax(-2)
    return values[..., 0 if pooling == "first" else -1, :]
