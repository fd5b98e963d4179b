"""The biLM: words -> token vectors -> every layer's view of them, forwards and backwards.

U distinct words, C symbols a word, B sentences, T tokens, P size of one direction, N directions, L LSTM layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from pyelmo.config import ModelConfig
from pyelmo.model.char_cnn import CharCNN
from pyelmo.model.lstm import LstmStack, State
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax

# Without gradients every product has a multiple of this many rows. Matrix libraries take other paths, which round
# otherwise, for a few odd rows; with full ones a row's result does not depend on how many others there are.
ROWS = 8


@dataclass(frozen=True)
class Batch:
    """Sentences with their marks, as the distinct words among them and where each stands."""

    chars: Tensor | None  # (U, C) symbol ids, for a model that reads characters
    words: Tensor | None  # (U,) word numbers, for a model that reads words
    index: Tensor  # (B, T) which of the U words
    mask: Tensor  # (B, T) bool, true for the first tokens of each row

    def to(self, device: torch.device | str) -> Batch:
        moved = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **moved)


@dataclass(frozen=True)
class Layers:
    """The token layer and each LSTM layer; a token's vector is [forward, backward], zero where the mask is false."""

    values: Tensor  # (L + 1, B, T, N * P)
    mask: Tensor  # (B, T)
    state: State

    def split(self, directions: int = 2) -> Tensor:
        """The 2L + 1 representations of the paper: the token, then forward and backward of each layer (., B, T, P)."""
        parts = torch.stack(self.values.chunk(directions, -1), 1)  # (L + 1, N, B, T, P)
        return torch.cat([parts[0, :1], parts[1:].flatten(0, 1)])


class BiLM(nn.Module):
    """Token encoder and softmax shared by the directions, LSTMs apart. Building one reads no file."""

    def __init__(self, config: ModelConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        size = config.lstm.dim
        self.chars = CharCNN(config.chars) if config.chars else None
        self.words = nn.Embedding(config.words.size, config.words.dim) if config.words else None
        self.projection = nn.Linear(config.features, size) if config.project else None
        if self.words is not None:
            nn.init.normal_(self.words.weight, std=1 / math.sqrt(self.words.embedding_dim))
        if self.projection is not None:
            nn.init.normal_(self.projection.weight, std=1 / math.sqrt(config.features))
            nn.init.zeros_(self.projection.bias)
        self.lstm = LstmStack(config.lstm, config.directions, dropout)
        self.softmax: Softmax | AdaptiveSoftmax | None = None
        if config.softmax and config.softmax_cutoffs:
            self.softmax = AdaptiveSoftmax(config.softmax, size, config.softmax_cutoffs)
        elif config.softmax:
            self.softmax = Softmax(config.softmax, size)
            self.share_softmax()

    def share_softmax(self) -> None:
        """Where the config says so, the softmax's weights are the word table itself: one parameter."""
        if self.config.softmax_shares_words and isinstance(self.softmax, Softmax) and self.words is not None:
            self.softmax.weight = self.words.weight

    def encode_words(self, chars: Tensor | None, words: Tensor | None) -> Tensor:  # (U, C), (U,) -> (U, P)
        """Words without their context: the token layer."""
        given = chars if words is None else words
        if given is not None and not torch.is_grad_enabled():
            padded = [None if ids is None else pad_rows(ids) for ids in (chars, words)]
            return self._encode_words(*padded)[: len(given)]
        return self._encode_words(chars, words)

    def _encode_words(self, chars: Tensor | None, words: Tensor | None) -> Tensor:
        parts = []
        if self.words is not None:
            assert words is not None, "this model reads words by number"
            parts.append(self.words(words))
        if self.chars is not None:
            assert chars is not None, "this model reads characters"
            parts.append(self.chars(chars))
        features = torch.cat(parts, -1) if len(parts) > 1 else parts[0]
        return features if self.projection is None else self.projection(features)

    def contextualise(self, tokens: Tensor, mask: Tensor, state: State | None = None) -> Layers:
        """Token vectors (B, T, P) -> all layers, each sentence by itself unless `state` is given."""
        rows = len(tokens)
        if rows % ROWS and not torch.is_grad_enabled():
            if state is not None:
                state = State(pad_rows(state.hidden, 2), pad_rows(state.cell, 2))
            padded = self._contextualise(pad_rows(tokens), pad_rows(mask), state)
            kept = State(padded.state.hidden[:, :, :rows], padded.state.cell[:, :, :rows])
            return Layers(padded.values[:, :rows], mask, kept)
        return self._contextualise(tokens, mask, state)

    def _contextualise(self, tokens: Tensor, mask: Tensor, state: State | None) -> Layers:
        reading = tokens.unsqueeze(0)  # (1, B, T, P)
        if self.config.bidirectional:
            back = _reversal(mask)
            reading = torch.stack([tokens, _reorder(tokens, back)])  # (2, B, T, P)
        outputs, state = self.lstm(reading, state, mask)
        layers = [torch.cat([tokens] * self.config.directions, -1)]
        for output in outputs:
            layers.append(
                torch.cat([output[0], _reorder(output[1], back)], -1) if self.config.bidirectional else output[0]
            )
        # where(), not a product: padding may hold anything, and 0 x inf is not 0.
        values = torch.stack([layer.masked_fill(~mask.unsqueeze(-1), 0.0) for layer in layers])
        return Layers(values, mask, state)

    def forward(self, batch: Batch, state: State | None = None) -> Layers:
        vectors = self.encode_words(batch.chars, batch.words)  # (U, P)
        return self.contextualise(nn.functional.embedding(batch.index, vectors), batch.mask, state)


def pad_rows(values: Tensor, axis: int = 0) -> Tensor:
    """Zero rows up to a multiple of ROWS."""
    missing = -values.shape[axis] % ROWS
    return nn.functional.pad(values, (0, 0) * (values.dim() - 1 - axis) + (0, missing)) if missing else values


def _reversal(mask: Tensor) -> Tensor:
    """For each row the places in reverse order, padding left where it is (B, T)."""
    lengths = mask.sum(1, keepdim=True)
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(places < lengths, lengths - 1 - places, places)


def _reorder(values: Tensor, places: Tensor) -> Tensor:  # (B, T, P), (B, T)
    return values.gather(1, places.unsqueeze(-1).expand_as(values))
