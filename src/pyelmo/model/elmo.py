"""ELMo as a module of a task network (section 3.3 of the paper): a biLM and one or more mixes of its layers.

The paper concatenates a mix to the network's input, and for some tasks a second one to its output.

B sentences, T tokens, D vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo.errors import InputError
from pyelmo.model.bilm import Batch, BiLM, Layers
from pyelmo.model.lstm import State
from pyelmo.model.scalar_mix import LayerNorm, ScalarMix


@dataclass(frozen=True)
class ElmoOutput:
    """One tensor (B, T, D) for each mix, their mask (B, T), and the LSTM state after the last token."""

    representations: list[Tensor]
    mask: Tensor
    state: State


class LayerMixes(nn.Module):
    """Scalar mixes of the same layers, by name, each followed by dropout.

    Task networks use it directly on cached layers, and `Elmo` uses it on the layers of its biLM.
    """

    def __init__(self, mixes: Mapping[str, ScalarMix], dropout: float) -> None:
        super().__init__()
        for name, mix in mixes.items():
            self.add_module(name, mix)
        self.dropout = dropout

    def __iter__(self) -> Iterator[ScalarMix]:
        return (mix for mix in self.children() if isinstance(mix, ScalarMix))

    def __getitem__(self, index: int) -> ScalarMix:
        return list(self)[index]

    def __len__(self) -> int:
        return len(self._modules)

    def forward(self, values: Tensor, mask: Tensor, *, remove_boundaries: bool = False) -> list[Tensor]:
        """Return a tensor (B, T, D) for each mix of the layers (L, B, T, D), or (B, T - 2, D) without boundary tokens.

        The mask (B, T) covers the boundary tokens if there are any.
        """
        mixed = [mix(values, mask) for mix in self]
        if remove_boundaries:
            mixed = [drop_boundaries(vectors, mask) for vectors in mixed]
        return [nn.functional.dropout(vectors, self.dropout, self.training) for vectors in mixed]

    def penalty(self) -> Tensor:
        """Return the L2 penalty on the layer weights of all mixes, to be added to the loss of the task."""
        return torch.stack([mix.penalty() for mix in self]).sum()


class Elmo(nn.Module):
    """A biLM with one or more scalar mixes of its layers, each followed by dropout.

    Args:
        bilm: The language model, for example `pyelmo.load("en").bilm`.
        mixes: The number of mixes, each with weights of its own.
        dropout: Dropout on the mixed vectors.
        trainable: Whether the biLM is fine-tuned; by default it is frozen and only the mixes are trained.
        keep_boundaries: Keep the vectors of the boundary tokens `<S>` and `</S>`.
        layer_norm: The normalisation of the layers before they are mixed; see `ScalarMix`.
        per_direction: Learn weights for the forward and backward half of each layer; see `ScalarMix`.
        weights: The weights of the mixes, before the softmax, to start from.
        gamma: The scale of the mixes to start from.
        trainable_mix: Whether the weights and gamma are trained.
        penalty_weight: lambda, the factor of the L2 penalty on the layer weights; see `penalty`.
        batch: Turns sentences into a batch, as `Embedder.batch` does, so that the module can be called with sentences.
            `Embedder.elmo` sets it.

    Raises:
        InputError: `per_direction` with a model of one direction, or an argument of the mixes is wrong.

    Example:
        >>> import pyelmo
        >>> elmo = pyelmo.load("en").elmo(mixes=2, dropout=0.0)
        >>> output = elmo(["A bank account", ["Hello"]])
        >>> [values.shape for values in output.representations]
        [torch.Size([2, 3, 1024]), torch.Size([2, 3, 1024])]
        >>> output.mask
        tensor([[ True,  True,  True],
                [ True, False, False]])
    """

    def __init__(
        self,
        bilm: BiLM,
        *,
        mixes: int = 1,
        dropout: float = 0.5,
        trainable: bool = False,
        keep_boundaries: bool = False,
        layer_norm: LayerNorm | None = None,
        per_direction: bool = False,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable_mix: bool = True,
        penalty_weight: float = 0.0,
        batch: Callable[[Sequence[str | Sequence[str]]], Batch] | None = None,
    ) -> None:
        super().__init__()
        if per_direction and not bilm.config.bidirectional:
            raise InputError("per_direction: needs a bidirectional model, and this one has only the forward direction")
        self.bilm = bilm
        self.trainable = trainable
        self.keep_boundaries = keep_boundaries
        self.batch = batch
        bilm.requires_grad_(trainable)
        self.mixes = LayerMixes({
            str(number): ScalarMix(
                bilm.config.layers, per_direction=per_direction, layer_norm=layer_norm, weights=weights, gamma=gamma,
                trainable=trainable_mix, penalty_weight=penalty_weight,
            )
            for number in range(mixes)
        }, dropout)  # fmt: skip

    @property
    def dim(self) -> int:
        """The size D of a mixed vector."""
        return self.bilm.config.dim

    def forward(self, sentences: Batch | Sequence[str | Sequence[str]], state: State | None = None) -> ElmoOutput:
        """Compute the mixed vectors of sentences.

        Args:
            sentences: Strings, which are split into words, or lists of words; or a batch from `Embedder.batch`.
            state: The LSTM state to start from; by default zero, so that each sentence is computed by itself.

        Returns:
            One tensor (B, T, D) for each mix, 0 after the end of a sentence, and their mask (B, T). T is the length of
            the longest sentence, plus 2 with `keep_boundaries`.

        Raises:
            InputError: A sentence cannot be used, or the module was made without `batch` and gets sentences.
        """
        if not isinstance(sentences, Batch):
            if self.batch is None:
                raise InputError(
                    "Elmo: expected a Batch, because this module was made from a biLM alone and cannot read "
                    f"{type(sentences).__name__}; use Embedder.elmo(...), or pass Embedder.batch(sentences)"
                )
            sentences = self.batch(sentences).to(next(self.bilm.parameters()).device)
        with torch.set_grad_enabled(self.trainable and torch.is_grad_enabled()):
            layers = self.bilm(sentences, state)
        return self.mix(layers)

    def mix(self, layers: Layers) -> ElmoOutput:
        """Mix layers that were computed before, for example cached ones.

        Args:
            layers: The layers of a batch, with the boundary tokens.

        Returns:
            One tensor (B, T, D) for each mix, as from `forward`.

        Example:
            >>> import pyelmo
            >>> embedder = pyelmo.load("en")
            >>> elmo = embedder.elmo(dropout=0.0)
            >>> layers = embedder.bilm(embedder.batch([["A", "bank", "account"]]))
            >>> elmo.mix(layers).representations[0].shape
            torch.Size([1, 3, 1024])
        """
        representations = self.mixes(layers.values, layers.mask, remove_boundaries=not self.keep_boundaries)
        mask = layers.mask if self.keep_boundaries else mask_without_boundaries(layers.mask)
        return ElmoOutput(representations, mask, layers.state)

    def penalty(self) -> Tensor:
        """Return the L2 penalty on the layer weights of all mixes, to be added to the task's loss.

        Returns:
            A scalar tensor.

        Example:
            >>> import pyelmo
            >>> elmo = pyelmo.load("en").elmo(mixes=2, weights=[0.0, 1.0, 2.0], penalty_weight=0.1)
            >>> float(elmo.penalty())  # 2 mixes * 0.1 * (0 + 1 + 4)
            1.0
        """
        return self.mixes.penalty()


def mask_without_boundaries(mask: Tensor) -> Tensor:  # (B, T) -> (B, T - 2)
    """Return the mask of the same sentences without their two boundary tokens."""
    return mask[:, 2:]


def drop_boundaries(values: Tensor, mask: Tensor) -> Tensor:  # (B, T, D), (B, T) -> (B, T - 2, D)
    """Remove the vectors of the boundary tokens; the result is 0 after the end of a sentence."""
    return values[:, 1:-1].masked_fill(~mask_without_boundaries(mask).unsqueeze(-1), 0.0)
