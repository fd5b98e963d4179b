"""A transformers model as an encoder: a word's vector is the mean of those of its pieces, in every hidden layer.

A sentence of more pieces than the model takes is read in parts, each as long as may be.

L layers, B batch, P pieces, T words, D vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Loaded, by_length
from pyelmo.errors import NotFoundError, missing_extra

BATCH = 32
LONGEST = 512  # pieces, where neither the model nor its tokeniser says how many it takes


def read(place: str, device: str) -> Loaded:
    """A folder or a Hub id; nothing of it is run but the weights."""
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise missing_extra("transformers", f"{place}: reading a transformers model") from None
    try:
        # A space before a word: byte-level tokenisers need to be told.
        tokeniser = AutoTokenizer.from_pretrained(place, use_fast=True, add_prefix_space=True)
        model = AutoModel.from_pretrained(place).float().to(device).eval()
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise NotFoundError(f"{place}: transformers could not read it ({reason})") from error
    positions = getattr(model.config, "max_position_embeddings", LONGEST)
    # Where the tokeniser does not say (a huge number), two positions may be taken by padding, as in RoBERTa.
    longest = min(tokeniser.model_max_length, positions - 2) if positions > 2 else LONGEST
    count = model.config.num_hidden_layers
    encoder = _TransformerEncoder(tokeniser, model, device, longest)
    return Loaded(embed=encoder, layers=("embedding", *(f"layer {number}" for number in range(1, count + 1))))


class _TransformerEncoder:
    def __init__(self, tokeniser: Any, model: Any, device: str, longest: int) -> None:
        self.tokeniser, self.model, self.device, self.longest = tokeniser, model, device, longest

    def __call__(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        parts = [self._parts(sentence) for sentence in sentences]
        arrays = by_length([words for sentence in parts for words in sentence], BATCH, self._run)
        for sentence in parts:
            yield np.concatenate([next(arrays) for _ in sentence], axis=1)

    def _parts(self, words: list[str]) -> list[list[str]]:
        """A sentence, halved until the model takes it; a single word too long for it is cut."""
        # No word has more pieces than bytes and a space, so most sentences need not be counted.
        if sum(1 + len(word.encode("utf-8", "replace")) for word in words) + 2 <= self.longest or len(words) < 2:
            return [words]
        if len(self.tokeniser(words, is_split_into_words=True, verbose=False)["input_ids"]) <= self.longest:
            return [words]
        half = len(words) // 2
        return self._parts(words[:half]) + self._parts(words[half:])

    def _run(self, batch: list[list[str]]) -> list[Float32Array]:
        inputs = self.tokeniser(
            batch, is_split_into_words=True, padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        with torch.inference_mode():
            outputs = self.model(**inputs.to(self.device), output_hidden_states=True)
        hidden = torch.stack(outputs.hidden_states).float().cpu()  # (L, B, P, D)
        return [_pool(hidden[:, row], inputs.word_ids(row), len(words)) for row, words in enumerate(batch)]


def _pool(pieces: torch.Tensor, owners: list[int | None], count: int) -> Float32Array:  # (L, P, D) -> (L, T, D)
    """The mean of each word's pieces; zeros for a word without any, as one of control characters is."""
    kept = [place for place, owner in enumerate(owners) if owner is not None]
    index = torch.tensor([owner for owner in owners if owner is not None], dtype=torch.long)
    words = torch.zeros(len(pieces), count, pieces.shape[2])
    words.index_add_(1, index, pieces[:, kept])
    sizes = torch.bincount(index, minlength=count).clamp(min=1)
    vectors: Float32Array = (words / sizes[:, None]).numpy()
    return vectors
