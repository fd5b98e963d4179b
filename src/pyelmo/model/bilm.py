"""The bidirectional language model (section 3.1 of the paper): words -> token vectors -> the layers of each token.

It maximises the log likelihood of both directions, which share the token encoder and the softmax:

    sum_k  log p(t_k | t_1, ..., t_k-1) + log p(t_k | t_k+1, ..., t_K)

Each token k has 2L + 1 representations R_k = {x_k, h_forward_k,j, h_backward_k,j | j = 1, ..., L}, here as L + 1 layers
h_k,j = [h_forward_k,j, h_backward_k,j] with h_k,0 = [x_k, x_k].

U distinct words, C symbols of a word, B sentences, T tokens, P size of one direction, N directions, L LSTM layers.
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

# Without gradients, every matrix product has a multiple of this many rows. Matrix libraries round differently for
# other row counts; with this multiple, the result of a row does not depend on the size of the batch.
ROWS = 8


@dataclass(frozen=True)
class Batch:
    """Sentences with boundary tokens: the distinct words, and the index of the word at each position."""

    chars: Tensor | None  # (U, C) symbol ids, if the model reads characters
    words: Tensor | None  # (U,) word ids, if the model reads words
    index: Tensor  # (B, T) index among the U words
    mask: Tensor  # (B, T) bool, true for the tokens and false for the padding after them

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **moved)


@dataclass(frozen=True)
class Layers:
    """The token layer and each LSTM layer; a vector is [forward, backward], and 0 where the mask is false."""

    values: Tensor  # (L + 1, B, T, N * P)
    mask: Tensor  # (B, T)
    state: State

    def split(self, directions: int = 2) -> Tensor:
        """Return the 2L + 1 representations R_k (2L + 1, B, T, P): the token, then each layer's two directions."""
        halves = torch.stack(self.values.chunk(directions, -1), 1)  # (L + 1, N, B, T, P)
        return torch.cat([halves[0, :1], halves[1:].flatten(0, 1)])


class BiLM(nn.Module):
    """The bidirectional language model, with random weights; `pyelmo.load` reads a trained one.

    The directions share the token encoder and the softmax, and have LSTMs of their own.

    Args:
        config: Sizes and kinds of all modules.
        dropout: Dropout on the input of each LSTM layer and on the output of the last one, in training mode.

    Example:
        >>> import torch
        >>> from pyelmo import BiLM, ModelConfig
        >>> from pyelmo.config import LstmConfig
        >>> from pyelmo.model.bilm import Batch
        >>> bilm = BiLM(ModelConfig(lstm=LstmConfig(cells=16, projection=8, layers=2)))
        >>> chars = torch.randint(262, (3, 50))  # three distinct words
        >>> index = torch.tensor([[0, 1, 2, 1]])  # a sentence of four tokens
        >>> layers = bilm(Batch(chars, None, index, torch.ones(1, 4, dtype=torch.bool)))
        >>> layers.values.shape  # layers, sentences, tokens, both directions
        torch.Size([3, 1, 4, 16])
    """

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
        """Make the weights of the softmax and the word embedding one parameter, if the config says so.

        Example:
            >>> from pyelmo import BiLM, ModelConfig
            >>> from pyelmo.config import LstmConfig, WordConfig
            >>> sizes = LstmConfig(cells=16, projection=8)
            >>> words = WordConfig(size=100, dim=8)
            >>> bilm = BiLM(ModelConfig(words=words, chars=None, lstm=sizes, softmax=100, softmax_shares_words=True))
            >>> bilm.share_softmax()  # the constructor has called it before
            >>> bilm.softmax.weight is bilm.words.weight
            True
        """
        if self.config.softmax_shares_words and isinstance(self.softmax, Softmax) and self.words is not None:
            self.softmax.weight = self.words.weight

    def encode_words(self, chars: Tensor | None, words: Tensor | None) -> Tensor:  # (U, C), (U,) -> (U, P)
        """Return the token layer x_k: the vectors of words without their context.

        Args:
            chars: Symbol ids (U, C), for a model that reads characters.
            words: Word ids (U,), for a model that reads words.

        Returns:
            The word vectors (U, P).

        Example:
            >>> import pyelmo
            >>> model = pyelmo.load("en")
            >>> batch = model.batch([["A", "bank"]])  # 4 distinct words with the boundary tokens
            >>> model.bilm.encode_words(batch.chars, batch.words).shape
            torch.Size([4, 512])
        """
        ids = chars if words is None else words
        if ids is not None and not torch.is_grad_enabled():
            return self._encode_words(*(None if rows is None else pad_rows(rows) for rows in (chars, words)))[
                : len(ids)
            ]
        return self._encode_words(chars, words)

    def _encode_words(self, chars: Tensor | None, words: Tensor | None) -> Tensor:
        inputs = []
        if self.words is not None:
            assert words is not None, "this model reads word ids"
            inputs.append(self.words(words))
        if self.chars is not None:
            assert chars is not None, "this model reads characters"
            inputs.append(self.chars(chars))
        features = torch.cat(inputs, -1) if len(inputs) > 1 else inputs[0]
        return features if self.projection is None else self.projection(features)

    def contextualise(self, tokens: Tensor, mask: Tensor, state: State | None = None) -> Layers:
        """Return all layers of token vectors.

        Args:
            tokens: Token vectors (B, T, P), with boundary tokens.
            mask: True for tokens (B, T), which come before the padding.
            state: The LSTM state to start from; by default zero.

        Returns:
            The layers (L + 1, B, T, N * P), their mask (B, T) and the LSTM state after the last token.

        Example:
            >>> import pyelmo, torch
            >>> bilm = pyelmo.load("en").bilm
            >>> layers = bilm.contextualise(torch.zeros(2, 5, 512), torch.ones(2, 5, dtype=torch.bool))
            >>> layers.values.shape
            torch.Size([3, 2, 5, 1024])
        """
        rows = len(tokens)
        if rows % ROWS and not torch.is_grad_enabled():
            if state is not None:
                state = State(pad_rows(state.hidden, 2), pad_rows(state.cell, 2))
            padded = self._contextualise(pad_rows(tokens), pad_rows(mask), state)
            last = State(padded.state.hidden[:, :, :rows], padded.state.cell[:, :, :rows])
            return Layers(padded.values[:, :rows], mask, last)
        return self._contextualise(tokens, mask, state)

    def _contextualise(self, tokens: Tensor, mask: Tensor, state: State | None) -> Layers:
        inputs = tokens.unsqueeze(0)  # (1, B, T, P)
        if self.config.bidirectional:
            back = _reversal(mask)
            inputs = torch.stack([tokens, _reorder(tokens, back)])  # (2, B, T, P)
        outputs, state = self.lstm(inputs, state, mask)
        layers = [torch.cat([tokens] * self.config.directions, -1)]
        for output in outputs:
            layers.append(
                torch.cat([output[0], _reorder(output[1], back)], -1) if self.config.bidirectional else output[0]
            )
        # Not a product with the mask: padding may contain inf, and 0 * inf is not 0.
        values = torch.stack([layer.masked_fill(~mask.unsqueeze(-1), 0.0) for layer in layers])
        return Layers(values, mask, state)

    def forward(self, batch: Batch, state: State | None = None) -> Layers:
        """Compute all layers of a batch.

        Args:
            batch: Sentences with boundary tokens, for example from `Embedder.batch`.
            state: The LSTM state to start from; by default zero, so that a sentence's layers do not depend on others.

        Returns:
            The layers (L + 1, B, T, N * P), their mask (B, T) and the LSTM state after the last token.
        """
        vectors = self.encode_words(batch.chars, batch.words)  # (U, P)
        return self.contextualise(nn.functional.embedding(batch.index, vectors), batch.mask, state)


def pad_rows(values: Tensor, axis: int = 0) -> Tensor:
    """Append zero rows up to a multiple of ROWS."""
    missing = -values.shape[axis] % ROWS
    return nn.functional.pad(values, (0, 0) * (values.dim() - 1 - axis) + (0, missing)) if missing else values


def _reversal(mask: Tensor) -> Tensor:
    """Return the positions of each row in reverse order, with padding unchanged (B, T)."""
    lengths = mask.sum(1, keepdim=True)
    positions = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(positions < lengths, lengths - 1 - positions, positions)


def _reorder(values: Tensor, positions: Tensor) -> Tensor:  # (B, T, P), (B, T)
    return values.gather(1, positions.unsqueeze(-1).expand_as(values))
