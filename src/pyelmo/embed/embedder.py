"""Sentences -> arrays: `pyelmo.load("...").embed([...])`.

L layers (the token layer counted in), T tokens of a sentence, D vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pyelmo.config import ModelConfig
from pyelmo.embed.layers import LayerChoice, check_pooling, layer_picker, pool
from pyelmo.errors import InputError
from pyelmo.formats import source as formats
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import Batch, BiLM
from pyelmo.model.elmo import Elmo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.tokens import check_language, split_words
from pyelmo.text.vocabulary import Vocabulary

Sentence = str | Sequence[str]

# Sentences of a stream that are sorted by length together, in batches: enough to fill batches with equal lengths.
WINDOW = 64
# Padded tokens of one batch at most (a longer sentence runs alone): bounds memory whatever the lengths.
BATCH_TOKENS = 4096


def load(
    source: str | Path,
    *,
    options: str | Path | None = None,
    vocab: str | Path | Vocabulary | None = None,
    device: str | torch.device = "cpu",
    language: str = "general",
) -> Embedder:
    """A model from a folder, a file, a name in the box or a Hub id, ready to embed.

    `options` is AllenNLP's or bilm-tf's options.json where it is not beside the weights, `vocab` a list of words for a
    model that reads or predicts words and comes without one, `language` how plain strings are split into words.
    """
    return Embedder(formats.read(source, options=options, vocab=vocab), device=device, language=language)


class Embedder:
    """A pretrained biLM that turns sentences into vectors: the same sentence, the same vectors, in any company."""

    def __init__(
        self, pretrained: Pretrained, *, device: str | torch.device = "cpu", language: str = "general"
    ) -> None:
        check_language(language)  # an error now, not at the first sentence
        self.pretrained = pretrained
        self.language = language
        self.bilm.to(_device(device)).eval()

    @property
    def bilm(self) -> BiLM:
        return self.pretrained.bilm

    @property
    def lexicon(self) -> Lexicon:
        return self.pretrained.lexicon

    @property
    def config(self) -> ModelConfig:
        return self.bilm.config

    @property
    def device(self) -> torch.device:
        return next(self.bilm.parameters()).device

    def __repr__(self) -> str:
        return f"Embedder({self.pretrained.source!r}, layers={self.config.layers}, dim={self.config.dim})"

    def tokenise(self, sentence: Sentence, number: int = 0) -> list[str]:
        """A plain string split into words; a list of words as it is, checked."""
        if isinstance(sentence, str):
            return split_words(sentence, self.language)
        if isinstance(sentence, (bytes, dict)) or not isinstance(sentence, Iterable):
            raise InputError(f"sentence {number}: expected a string or a list of words, got {type(sentence).__name__}")
        words = list(sentence)
        for place, word in enumerate(words):
            if not isinstance(word, str):
                raise InputError(
                    f"sentence {number}, word {place}: expected a string, got {type(word).__name__} {word!r}"
                )
        return words

    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: LayerChoice = "all",
        pooling: str | None = None,
        batch_size: int = 32,
        device: str | torch.device | None = None,
        progress: bool = False,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
    ) -> list[Any]:
        """One array a sentence, in input order: (L, T, D) for "all", (T, D) for one layer or a mix, (D,) when pooled.

        `layers` is "all", "top", "average", a layer's index, the weights of a mix (one a layer, or one for each of the
        2L + 1 representations) or a ScalarMix. `pooling` is "mean", "max", "first" or "last" over the tokens; of none
        it is zero. `keep_boundaries` keeps the vectors of the two sentence marks.
        """
        if isinstance(sentences, str):
            raise InputError("sentences is one string; give a list of them: embed([sentence])")
        given = list(sentences)
        stream = self.stream(
            given, layers=layers, pooling=pooling, batch_size=batch_size, device=device,
            keep_boundaries=keep_boundaries, output=output, window=max(1, len(given)),
        )  # fmt: skip
        if progress:
            from tqdm import tqdm

            stream = tqdm(stream, total=len(given), unit=" sentences")
        return list(stream)

    def stream(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: LayerChoice = "all",
        pooling: str | None = None,
        batch_size: int = 32,
        device: str | torch.device | None = None,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
        window: int | None = None,
    ) -> Iterator[Any]:
        """`embed` for any amount of text in constant memory: arrays come one by one, in input order."""
        if batch_size < 1:
            raise InputError(f"batch_size {batch_size} must be at least 1")
        if output not in ("numpy", "torch"):
            raise InputError(f"output {output!r} is none of 'numpy', 'torch'")
        check_pooling(pooling)
        pick = layer_picker(layers, self.config)
        if device is not None:
            self.bilm.to(_device(device))
        numbered = enumerate(sentences)
        while group := list(itertools.islice(numbered, window or batch_size * WINDOW)):
            tokens = [self.tokenise(sentence, number) for number, sentence in group]
            results: list[Any] = [None] * len(tokens)
            for rows in _batches([len(words) for words in tokens], batch_size):
                values, lengths = self._run([tokens[row] for row in rows], pick)
                for row, length, vectors in zip(rows, lengths, values.unbind(-3), strict=True):
                    real = vectors[..., :length, :] if keep_boundaries else vectors[..., 1 : length - 1, :]
                    result = pool(real, pooling)
                    results[row] = result.clone() if output == "torch" else np.array(result.numpy())
            yield from results

    def _run(self, sentences: list[list[str]], pick: Any) -> tuple[Tensor, list[int]]:
        """The chosen layers of one batch, (.., B, T, D) on the CPU, and the lengths with the marks."""
        batch = self.batch(sentences)
        with torch.inference_mode():
            values = pick(self.bilm(batch).values).float().cpu()
        return values, batch.mask.sum(1).tolist()

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Tokenised sentences as the tensors that the biLM and `Elmo` take, on the model's device."""
        distinct, index, lengths = self.lexicon.batch(sentences)
        words = self.lexicon.encode(distinct)
        mask = np.arange(index.shape[1]) < lengths[:, None]
        return Batch(
            None if words.chars is None else torch.from_numpy(words.chars),
            None if words.words is None else torch.from_numpy(words.words),
            torch.from_numpy(index),
            torch.from_numpy(mask),
        ).to(self.device)

    def elmo(self, **options: Any) -> Elmo:
        """The module for a task network, around this model: see `pyelmo.Elmo` for the options."""
        return Elmo(self.bilm, **options)

    def save(self, path: str | Path, *, format: formats.Written = "pyelmo", force: bool = False) -> None:
        """Write the model as a folder that `load` reads."""
        formats.write(self.pretrained, path, format=format, force=force)


def _device(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {str(device)!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return found


def _batches(lengths: list[int], batch_size: int) -> Iterator[list[int]]:
    """Rows grouped by falling length: at most `batch_size` of them and BATCH_TOKENS places with the padding."""
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        widest = lengths[group[0]] + 2 if group else 0
        if group and (len(group) == batch_size or widest * (len(group) + 1) > BATCH_TOKENS):
            yield group
            group = []
        group.append(row)
    if group:
        yield group
