"""The character CNN (section 3.4 of the paper; Kim et al. 2016): the symbols of a word -> its features.

    f_n = activation(max_i (w_n . [e_i, ..., e_i+width-1] + b_n))       for each filter n, over all positions i
    y = g relu(W f + b) + (1 - g) f,   g = sigmoid(W_g f + b_g)         for each highway layer

U words, C symbols of a word, E symbol embedding, F features (all filters together).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.config import CharConfig
from pyelmo.kernels import choice

# Words in one convolution if no gradient is needed. This bounds memory (the widest filters of the paper's model need
# 44 x 1024 floats for a word) and costs no speed.
CHUNK = 256


class CharCNN(nn.Module):
    """Symbol embedding, convolutions, maximum over all positions (padding, too), activation, highway layers."""

    def __init__(self, config: CharConfig) -> None:
        super().__init__()
        self.config = config
        # Symbol 0 is the padding of the byte and jamo alphabets; a dictionary has a padding symbol with a vector.
        padding = None if config.alphabet == "dictionary" else 0
        self.embedding = nn.Embedding(config.symbols, config.dim, padding_idx=padding)
        self.convolutions = nn.ModuleList(_convolution(config, width, count) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.features) for _ in range(config.highways))
        self.activation = torch.relu if config.activation == "relu" else torch.tanh
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0)
        if padding is not None:
            nn.init.zeros_(self.embedding.weight[padding])

    def forward(self, chars: Tensor) -> Tensor:  # (U, C) -> (U, F)
        if torch.is_grad_enabled() or len(chars) <= CHUNK or choice.available(chars.device):
            return self._features(chars)
        return torch.cat([self._features(words) for words in chars.split(CHUNK)])

    def _features(self, chars: Tensor) -> Tensor:
        table, convolutions = self.embedding.weight, self.convolutions
        weights: list[Tensor] = [convolution.weight for convolution in convolutions]  # type: ignore[misc]
        biases: list[Tensor] = [convolution.bias for convolution in convolutions]  # type: ignore[misc]
        run = choice.fast(conv_max, table)
        features = self.activation(run(chars, table, weights, biases, self.embedding.padding_idx))
        for highway in self.highways:
            features = highway(features)
        return features


def conv_max(
    chars: Tensor, table: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], padding: int | None
) -> Tensor:
    """(U, C), (symbols, E), filters (count, E, width), (count,) -> each filter's maximum over the word (U, F).

    The row `padding` of the table has no gradient.
    """
    size = table.shape[1]
    embedded = nn.functional.embedding(chars, table, padding).flatten(1)  # (U, C * E)
    maxima = []
    for weight, bias in zip(weights, biases, strict=True):
        # A product with all windows, not conv1d, which rounds differently for few words.
        windows = embedded.unfold(1, weight.shape[-1] * size, size)  # (U, positions, width * E)
        responses = nn.functional.linear(windows, weight.transpose(1, 2).flatten(1), bias)
        maxima.append(responses.amax(1))
    return torch.cat(maxima, -1)


def _convolution(config: CharConfig, width: int, count: int) -> nn.Conv1d:
    convolution = nn.Conv1d(config.dim, count, width)
    if config.activation == "relu":
        nn.init.uniform_(convolution.weight, -0.05, 0.05)
    else:
        nn.init.normal_(convolution.weight, std=1 / math.sqrt(width * config.dim))
    if convolution.bias is not None:
        nn.init.zeros_(convolution.bias)
    return convolution


class Highway(nn.Module):
    """y = g relu(W x + b) + (1 - g) x, with g = sigmoid(W_g x + b_g): `transform` is W, `gate` is W_g."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)
        for linear in (self.transform, self.gate):
            nn.init.normal_(linear.weight, std=1 / math.sqrt(size))
            nn.init.zeros_(linear.bias)
        nn.init.constant_(self.gate.bias, -2.0)  # at first, most of the input is carried through

    def forward(self, features: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(features))
        return gate * torch.relu(self.transform(features)) + (1 - gate) * features
