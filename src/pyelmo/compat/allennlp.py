"""The ELMo classes of AllenNLP with their arguments and shapes: a program has to change only its import.

    from pyelmo.compat.allennlp import Elmo, ElmoEmbedder, batch_to_ids

One difference is on purpose: the LSTM state is not carried from batch to batch unless `stateful=True`.

B sentences, T tokens, C = 50 symbols of a word, D vector, L layers (including the token layer).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError
from pyelmo.files import atomic_path
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import Pretrained
from pyelmo.formats.sources import is_url
from pyelmo.hdf5 import create_hdf5
from pyelmo.model import elmo as model
from pyelmo.model.bilm import BiLM, Layers
from pyelmo.model.lstm import State
from pyelmo.text.characters import Bytes, encode_rows

__all__ = ["Elmo", "ElmoEmbedder", "batch_to_ids"]

PADDING_WORD, UNKNOWN_WORD = "@@PADDING@@", "@@UNKNOWN@@"


def batch_to_ids(batch: list[list[str]]) -> Tensor:
    """Convert tokenised sentences to character ids.

    Args:
        batch: Sentences as lists of words.

    Returns:
        The ids (B, T, 50), without boundary tokens, and 0 after the end of a sentence.

    Example:
        >>> from pyelmo.compat.allennlp import batch_to_ids
        >>> batch_to_ids([["A", "bank", "account"], ["Hello"]]).shape
        torch.Size([2, 3, 50])
    """
    alphabet = Bytes()
    ids = torch.zeros(len(batch), max(map(len, batch), default=0), alphabet.max_length, dtype=torch.long)
    for row, sentence in enumerate(batch):
        ids[row, : len(sentence)] = torch.from_numpy(encode_rows(alphabet, sentence)).long()
    return ids


class Elmo(nn.Module):
    """AllenNLP's `Elmo` module: character ids -> one or more mixes of the layers.

    Args:
        options_file: The path of options.json; by default it is looked for beside the weights.
        weight_file: The path of the HDF5 weights. A model folder or the name of a bundled model works, too.
        num_output_representations: The number of mixes.
        requires_grad: Whether the biLM is fine-tuned.
        do_layer_norm: Normalise each layer over the tokens of the batch before it is mixed.
        dropout: Dropout on the mixed vectors.
        vocab_to_cache: Words whose token vectors are computed once; `word_inputs` refers to them.
        keep_sentence_boundaries: Keep the vectors of the boundary tokens.
        scalar_mix_parameters: Fixed weights of the layers, before the softmax; by default they are trained.
        module: A biLM to use instead of the two files.
        stateful: Carry the LSTM state from batch to batch, as AllenNLP always did.

    Raises:
        InputError: The arguments contradict each other, or the model reads words instead of characters.

    Example:
        >>> from pyelmo.compat.allennlp import Elmo, batch_to_ids
        >>> elmo = Elmo(weight_file="en", num_output_representations=2, dropout=0.0)
        >>> output = elmo(batch_to_ids([["A", "bank", "account"], ["Hello"]]))
        >>> [values.shape for values in output["elmo_representations"]]
        [torch.Size([2, 3, 1024]), torch.Size([2, 3, 1024])]
        >>> elmo.get_output_dim()
        1024
        >>> elmo.reset_states()  # with stateful=True: the next batch starts from a zero state
    """

    def __init__(
        self,
        options_file: str | os.PathLike[str] | None = None,
        weight_file: str | os.PathLike[str] | None = None,
        num_output_representations: int = 1,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: list[float] | None = None,
        module: nn.Module | None = None,
        *,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if module is not None:
            if options_file is not None or weight_file is not None:
                raise InputError("give either module or options_file and weight_file, not both")
            if not isinstance(module, BiLM):
                raise InputError(f"module: must be a pyelmo BiLM, got {type(module).__name__}")
            bilm = module
        else:
            bilm = _pretrained(options_file, weight_file).bilm
        if bilm.chars is None:
            raise InputError("this model reads words, not characters; load it with pyelmo.load")
        self._elmo = model.Elmo(
            bilm, mixes=num_output_representations, dropout=dropout, trainable=requires_grad,
            keep_boundaries=keep_sentence_boundaries, layer_norm="batch" if do_layer_norm else None,
            weights=scalar_mix_parameters, trainable_mix=scalar_mix_parameters is None,
        )  # fmt: skip
        self._stateful = stateful
        self._state: State | None = None
        self._cache: Tensor | None
        self._in_cache: Tensor | None
        self.register_buffer("_cache", None, persistent=False)
        self.register_buffer("_in_cache", None, persistent=False)
        if vocab_to_cache:
            self._fill_cache(vocab_to_cache)

    def get_output_dim(self) -> int:
        """Return the size of a vector.

        Returns:
            The number D of values in a mixed vector.
        """
        return self._elmo.dim

    def reset_states(self) -> None:
        """Reset the carried LSTM state to zero; needed only with `stateful=True`."""
        self._state = None

    def _fill_cache(self, words: list[str]) -> None:
        """Compute the token vectors of words; the position in the list is the id in `word_inputs`."""
        with torch.no_grad():
            vectors = _encode(self._elmo.bilm, batch_to_ids([words])[0])
        placeholder = [word in (PADDING_WORD, UNKNOWN_WORD) for word in words]
        self._cache, self._in_cache = vectors, ~torch.tensor(placeholder)

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Compute the mixed vectors.

        Args:
            inputs: Character ids (B, T, C) from `batch_to_ids`, or (B, ..., T, C).
            word_inputs: Ids of words in `vocab_to_cache` (B, T), or (B, ..., T).

        Returns:
            A dict of `elmo_representations`, a list of tensors (B, T, D), and `mask` (B, T).

        Raises:
            InputError: `inputs` has fewer than three axes.
        """
        if inputs.dim() < 3:
            raise InputError(f"inputs: expected the shape (batch, time, characters), got {tuple(inputs.shape)}")
        leading, (time, width) = inputs.shape[:-2], inputs.shape[-2:]
        rows = math.prod(leading)
        flat = inputs.reshape(rows, time, width)
        words = None if word_inputs is None else word_inputs.reshape(rows, time)
        with torch.set_grad_enabled(self._elmo.trainable and torch.is_grad_enabled()):
            layers = self._layers(flat, words)
        output = self._elmo.mix(layers)
        shape = (*leading, output.mask.shape[1])
        return {
            "elmo_representations": [values.view(*shape, self._elmo.dim) for values in output.representations],
            "mask": output.mask.view(shape),
        }

    def _layers(self, ids: Tensor, words: Tensor | None) -> Layers:
        bilm = self._elmo.bilm
        if self._cache is not None and words is not None:
            tokens, mask = self._cached_tokens(ids, words), words > 0
        else:
            tokens, mask = _encode(bilm, ids), (ids > 0).any(-1)
        alphabet = Bytes(ids.shape[-1])
        boundaries = torch.tensor([alphabet.row("<S>"), alphabet.row("</S>")], device=ids.device)
        tokens, mask = _add_boundaries(tokens, mask, *_encode(bilm, boundaries))
        if not self._stateful:
            return bilm.contextualise(tokens, mask)
        layers = bilm.contextualise(tokens, mask, _first_rows(bilm, self._state, len(ids)))
        self._state = _replace_rows(self._state, layers.state.detach())
        return layers

    def _cached_tokens(self, ids: Tensor, words: Tensor) -> Tensor:
        """Return the cached vectors; words that are not in the cache go through the character CNN."""
        assert self._cache is not None
        assert self._in_cache is not None
        inside = (words < len(self._cache)) & self._in_cache[words.clamp(max=len(self._cache) - 1)]
        tokens = self._cache[words.clamp(max=len(self._cache) - 1)]
        missing = ~inside & (words > 0)
        if missing.any():
            tokens = tokens.clone()
            tokens[missing] = _encode(self._elmo.bilm, ids[missing])
        return tokens


class ElmoEmbedder:
    """AllenNLP's `ElmoEmbedder`, which was removed after version 0.9: all layers of sentences as numpy arrays.

    Args:
        options_file: The path of options.json; by default it is looked for beside the weights.
        weight_file: The path of the HDF5 weights. A model folder or the name of a bundled model works, too.
        cuda_device: The number of the GPU, or -1 for the CPU.
        stateful: Carry the LSTM state from batch to batch, as AllenNLP always did.

    Raises:
        InputError: `weight_file` is missing.

    Example:
        >>> from pyelmo.compat.allennlp import ElmoEmbedder
        >>> embedder = ElmoEmbedder(weight_file="en")
        >>> embedder.embed_sentence(["A", "bank", "account"]).shape
        (3, 3, 1024)
        >>> [layers.shape for layers in embedder.embed_batch([["A", "bank"], ["Hello"]])]
        [(3, 2, 1024), (3, 1, 1024)]
        >>> [layers.shape for layers in embedder.embed_sentences([["Hello"]], batch_size=32)]
        [(3, 1, 1024)]
        >>> layers, mask = embedder.batch_to_embeddings([["A", "bank"], ["Hello"]])
        >>> layers.shape, mask.tolist()
        (torch.Size([2, 3, 2, 1024]), [[True, True], [True, False]])
        >>> import io, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embedder.embed_file(io.StringIO("A bank account ."), f"{folder}/vectors.hdf5", "top")
    """

    def __init__(
        self,
        options_file: str | os.PathLike[str] | None = None,
        weight_file: str | os.PathLike[str] | None = None,
        cuda_device: int = -1,
        *,
        stateful: bool = False,
    ) -> None:
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
        self._embedder = Embedder(_pretrained(options_file, weight_file), device=device)
        self._stateful = stateful
        self._state: State | None = None

    def batch_to_embeddings(self, batch: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Compute all layers of a batch.

        Args:
            batch: Sentences as lists of words.

        Returns:
            The layers without boundary tokens (B, L, T, D), and the mask (B, T).
        """
        if self._stateful:
            return self._carry(batch)
        config, width = self._embedder.config, max(map(len, batch), default=0)
        values = torch.zeros(len(batch), config.layers, width, config.dim)
        mask = torch.zeros(len(batch), width, dtype=torch.bool)
        for row, vectors in enumerate(self._embedder.embed(batch, output="torch")):
            values[row, :, : vectors.shape[1]] = vectors
            mask[row, : vectors.shape[1]] = True
        return values.to(self._embedder.device), mask.to(self._embedder.device)

    def _carry(self, batch: list[list[str]]) -> tuple[Tensor, Tensor]:
        bilm = self._embedder.bilm
        with torch.inference_mode():
            layers = bilm(self._embedder.batch(batch), _first_rows(bilm, self._state, len(batch)))
            self._state = _replace_rows(self._state, layers.state)
            values = torch.stack([model.drop_boundaries(layer, layers.mask) for layer in layers.values], 1)
        return values, model.mask_without_boundaries(layers.mask)

    def embed_sentence(self, sentence: list[str]) -> npt.NDArray[np.float32]:
        """Compute all layers of a sentence.

        Args:
            sentence: A list of words.

        Returns:
            The layers (L, T, D).
        """
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: list[list[str]]) -> list[npt.NDArray[np.float32]]:
        """Compute all layers of some sentences.

        Args:
            batch: Sentences as lists of words.

        Returns:
            One array (L, T, D) for each sentence; (L, 0, D) for an empty one.
        """
        if not batch:
            return []
        if not self._stateful:
            return self._embedder.embed(batch)
        values, _ = self.batch_to_embeddings(batch)
        pairs = zip(values.cpu().numpy(), batch, strict=True)
        return [np.array(layers[:, : len(sentence)]) for layers, sentence in pairs]

    def embed_sentences(
        self, sentences: Iterable[list[str]], batch_size: int = 64
    ) -> Iterator[npt.NDArray[np.float32]]:
        """Compute all layers of any number of sentences, batch by batch.

        Args:
            sentences: Sentences as lists of words.
            batch_size: The number of sentences in a batch.

        Returns:
            An iterator over one array (L, T, D) for each sentence, in their order.
        """
        group: list[list[str]] = []
        for sentence in sentences:
            group.append(sentence)
            if len(group) == batch_size:
                yield from self.embed_batch(group)
                group = []
        yield from self.embed_batch(group)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | os.PathLike[str],
        output_format: str = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed a file of one tokenised sentence per line, and write the HDF5 file of `allennlp elmo`.

        Args:
            input_file: An open text file; words are separated by spaces.
            output_file_path: The HDF5 file to write. An existing file is an error.
            output_format: "all" layers (L, T, D), the "top" layer (T, D) or the "average" of the layers (T, D).
            batch_size: The number of sentences in a batch.
            forget_sentences: Leave out the dataset `sentence_to_index`, which maps lines to their keys.
            use_sentence_keys: Use the lines themselves as keys instead of their numbers.

        Raises:
            InputError: `output_format` is unknown, a line is blank, or with `use_sentence_keys` a line occurs twice.
        """
        if output_format not in ("all", "top", "average"):
            raise InputError(f"output_format: {output_format!r} is none of 'all', 'top', 'average'")
        lines = [line.strip() for line in input_file]
        blank = [number for number, line in enumerate(lines) if not line]
        if blank:
            raise InputError(f"the input has blank lines at {blank[:10]} (counted from 0); remove them")
        tokens = [line.split() for line in lines]
        index: dict[str, str] = {}
        with atomic_path(output_file_path) as part, create_hdf5(part) as file:
            for number, layers in enumerate(self.embed_sentences(tokens, batch_size)):
                key = lines[number] if use_sentence_keys else str(number)
                if key in file:
                    raise InputError(
                        f"line {number} (counted from 0) occurs twice, and use_sentence_keys needs distinct lines"
                    )
                vectors = {"all": layers, "top": layers[-1], "average": layers.mean(0)}[output_format]
                file.write(key, vectors)
                index[lines[number]] = key
            if not forget_sentences and not use_sentence_keys:
                file.write_text("sentence_to_index", json.dumps(index))


def _pretrained(options: str | os.PathLike[str] | None, weights: str | os.PathLike[str] | None) -> Pretrained:
    if weights is None:
        raise InputError(
            "weight_file is missing; give the path of the weights, because AllenNLP's default download no longer exists"
        )
    sources = [os.fspath(name) for name in (weights, options) if name is not None]
    files = [name if is_url(name) else Path(name) for name in sources]  # a path is never the id of a model on the Hub
    return resolve.read(files[0], options=files[1] if options is not None else None)


def _encode(bilm: BiLM, ids: Tensor) -> Tensor:  # (..., C) -> (..., P), each distinct word once
    if not ids.numel():
        return torch.zeros(*ids.shape[:-1], bilm.config.lstm.dim, device=ids.device)
    distinct, index = torch.unique(ids.reshape(-1, ids.shape[-1]), dim=0, return_inverse=True)
    vectors = bilm.encode_words(distinct, None)
    return nn.functional.embedding(index.view(ids.shape[:-1]), vectors)


def _add_boundaries(tokens: Tensor, mask: Tensor, begin: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Put the boundary tokens around each sentence: (B, T, P), (B, T) -> (B, T + 2, P), (B, T + 2)."""
    lengths = mask.sum(1)
    bounded = nn.functional.pad(tokens, (0, 0, 1, 1))
    bounded[:, 0] = begin
    bounded[torch.arange(len(tokens), device=tokens.device), lengths + 1] = end
    positions = torch.arange(bounded.shape[1], device=tokens.device)
    return bounded, positions < (lengths + 2).unsqueeze(1)


def _first_rows(bilm: BiLM, state: State | None, rows: int) -> State:
    """Return the state for a batch of `rows`; rows that no earlier batch had start from zero, as in AllenNLP."""
    start = bilm.lstm.zero_state(rows)
    if state is not None:
        carried = min(rows, state.hidden.shape[2])
        start.hidden[:, :, :carried] = state.hidden[:, :, :carried]
        start.cell[:, :, :carried] = state.cell[:, :, :carried]
    return start


def _replace_rows(old: State | None, new: State) -> State:
    """Return the new rows, followed by the old ones that the last batch did not have."""
    rows = new.hidden.shape[2]
    if old is None or old.hidden.shape[2] <= rows:
        return new
    return State(torch.cat([new.hidden, old.hidden[:, :, rows:]], 2), torch.cat([new.cell, old.cell[:, :, rows:]], 2))
