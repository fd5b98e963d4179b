"""A transformers model as an encoder: in every hidden layer a word's vector is the mean over its subword pieces.

A sentence with more pieces than the model accepts is split in halves until each fits.

L layers, B batch, P pieces, T words, D vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import LoadedEncoder, batches_by_length
from pyelmo.errors import NotFoundError, missing_extra

BATCH = 32
LONGEST = 512  # pieces, for models that do not state their limit


def read(source: str, device: str) -> LoadedEncoder:
    """Read a model from a folder or a Hub id, without running code from it."""
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise missing_extra("transformers", f"{source}: reading a transformers model") from None
    try:
        # Byte-level tokenisers need a space before each word.
        tokeniser = AutoTokenizer.from_pretrained(source, use_fast=True, add_prefix_space=True)
        model = AutoModel.from_pretrained(source).float().to(device).eval()
    except Exception as error:  # what the library raises for a damaged file is of no fixed kind
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise NotFoundError(f"{source}: transformers cannot read this model ({reason})") from error
    positions = getattr(model.config, "max_position_embeddings", LONGEST)
    # A tokeniser without a limit has a huge number here. Padding may use two positions, as in RoBERTa.
    longest = min(tokeniser.model_max_length, positions - 2) if positions > 2 else LONGEST
    count = model.config.num_hidden_layers
    encoder = _TransformerEncoder(tokeniser, model, device, longest)
    return LoadedEncoder(embed=encoder, layers=("embedding", *(f"layer {number}" for number in range(1, count + 1))))


class _TransformerEncoder:
    def __init__(self, tokeniser: Any, model: Any, device: str, longest: int) -> None:
        self.tokeniser, self.model, self.device, self.longest = tokeniser, model, device, longest

    def __call__(self, sentences: Sequence[list[str]], /) -> Iterator[Float32Array]:
        split = [self._fitting(sentence) for sentence in sentences]
        arrays = batches_by_length([words for pieces in split for words in pieces], BATCH, self._run)
        for pieces in split:
            yield np.concatenate([next(arrays) for _ in pieces], axis=1)

    def _fitting(self, words: list[str]) -> list[list[str]]:
        """Halve a sentence until every piece fits the model; a single word that is too long is truncated."""
        # A word has at most as many pieces as bytes, and one for a space: most sentences need no tokenisation here.
        if sum(1 + len(word.encode("utf-8", "replace")) for word in words) + 2 <= self.longest or len(words) < 2:
            return [words]
        if len(self.tokeniser(words, is_split_into_words=True, verbose=False)["input_ids"]) <= self.longest:
            return [words]
        half = len(words) // 2
        return self._fitting(words[:half]) + self._fitting(words[half:])

    def _run(self, batch: list[list[str]]) -> list[Float32Array]:
        inputs = self.tokeniser(
            batch, is_split_into_words=True, padding=True, truncation=True, max_length=self.longest, return_tensors="pt"
        )
        with torch.inference_mode():
            outputs = self.model(**inputs.to(self.device), output_hidden_states=True)
        hidden = torch.stack(outputs.hidden_states).float().cpu()  # (L, B, P, D)
        return [_pool(hidden[:, row], inputs.word_ids(row), len(words)) for row, words in enumerate(batch)]


def _pool(pieces: torch.Tensor, owners: list[int | None], count: int) -> Float32Array:  # (L, P, D) -> (L, T, D)
    """Average the pieces of each word; a word without pieces (control characters) is a zero vector."""
    inside = [position for position, owner in enumerate(owners) if owner is not None]
    index = torch.tensor([owner for owner in owners if owner is not None], dtype=torch.long)
    words = torch.zeros(len(pieces), count, pieces.shape[2])
    words.index_add_(1, index, pieces[:, inside])
    sizes = torch.bincount(index, minlength=count).clamp(min=1)
    vectors: Float32Array = (words / sizes[:, None]).numpy()
    return vectors
