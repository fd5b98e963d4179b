"""Functions that compute the layers of sentences for a task network, with a frozen or a trained encoder.

L layers, B batch, T time steps, D encoder vector. `layer_cache.py` has the third kind of source: vectors from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyelmo.embed.embedder import Embedder
from pyelmo.encoders.base import NamedEncoder, encode
from pyelmo.errors import InputError
from pyelmo.model.elmo import drop_boundaries
from pyelmo.tasks.harness.task import Words

LayerSource = Callable[[Sequence[Words]], Tensor]  # B sentences -> (L, B, T, D), zero after the end of a sentence


def live_layers(encoder: NamedEncoder, language: str, precision: str) -> LayerSource:
    """Return a source that runs a frozen encoder. It embeds each distinct sentence once, rounded as in the cache."""

    def layers(sentences: Sequence[Words]) -> Tensor:
        distinct = list(dict.fromkeys(sentences))
        arrays = (round_array(array, precision) for array in encode_words(encoder, language, distinct))
        by_sentence = dict(zip(distinct, arrays, strict=True))
        return pad_arrays([by_sentence[words] for words in sentences])

    return layers


def trainable_layers(embedder: Embedder) -> LayerSource:
    """Return a source that runs a biLM in training, so that gradients flow back into it."""
    bilm = embedder.bilm

    def layers(sentences: Sequence[Words]) -> Tensor:
        output = bilm(embedder.batch(sentences))
        return torch.stack([drop_boundaries(values, output.mask) for values in output.values])

    return layers


def encode_words(
    encoder: NamedEncoder, language: str, sentences: Sequence[Words]
) -> Iterable[npt.NDArray[np.float32]]:  # (L, T, D) each
    """Embed sentences. Words are split further if the encoder's tokenizer differs from that of the text's language."""
    same_tokenizer = encoder.loaded.language == language
    return encode(encoder.embed_own_tokens if same_tokenizer else encoder, [list(words) for words in sentences])


def round_array(array: npt.NDArray[np.float32], precision: str) -> npt.NDArray[Any]:  # (L, T, D) -> (T, L, D)
    """Return an array in another precision and order. torch needs a tenth of the time that numpy needs for it."""
    values = torch.from_numpy(array if array.flags.writeable else array.copy())
    rounded = values.transpose(0, 1).to(getattr(torch, precision), memory_format=torch.contiguous_format)
    # Rounding keeps the order of numbers, so the extremes tell whether all are finite.
    if not torch.stack(torch.aminmax(values)).to(rounded.dtype).isfinite().all():
        raise InputError(
            f"the encoder returned a value that {precision} cannot hold. Use --set elmo.precision=float32."
        )
    result: npt.NDArray[Any] = rounded.contiguous().numpy()
    return result


def pad_arrays(arrays: Sequence[npt.NDArray[Any]]) -> Tensor:  # (T, L, D) each -> (L, B, T, D)
    longest = max(len(array) for array in arrays)
    values = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        values[row, : len(array)] = array
    return torch.from_numpy(values).permute(2, 0, 1, 3)
