"""Sentences -> arrays: `pyelmo.load("...").embed([...])`.

L layers (the token layer counted in), T tokens of a sentence, D vector.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from pyelmo.config import ModelConfig
from pyelmo.embed.engine import Engine, Pending, WordTable
from pyelmo.embed.engine_cpu import CpuEngine
from pyelmo.embed.engine_torch import TorchEngine
from pyelmo.embed.layers import LayerChoice, check_pooling, layer_picker, pool
from pyelmo.errors import InputError
from pyelmo.formats import source as formats
from pyelmo.formats.native import quantised
from pyelmo.formats.pretrained import Pretrained, Stored, Weights
from pyelmo.kernels import cpu
from pyelmo.kernels.quantise import Quantised
from pyelmo.model.bilm import Batch, BiLM
from pyelmo.model.elmo import Elmo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.tokens import check_language, split_words
from pyelmo.text.vocabulary import Vocabulary

Sentence = str | Sequence[str]
Precision = Literal["float32", "int8", "bfloat16"]

# Bytes of a stream's results that wait until all sentences before them are done: sentences within them are sorted by
# length, so that those of a batch are alike.
WINDOW_BYTES = 64 * 2**20


def load(
    source: str | Path,
    *,
    options: str | Path | None = None,
    vocab: str | Path | Vocabulary | None = None,
    device: str | torch.device = "cpu",
    language: str | None = None,
    precision: Precision = "float32",
    threads: int | None = None,
) -> Embedder:
    """A model from a folder, a file, a name in the box or a Hub id, ready to embed.

    `options` is AllenNLP's or bilm-tf's options.json where it is not beside the weights, `vocab` a list of words for a
    model that reads or predicts words and comes without one, `language` how plain strings are split into words
    (default: as the model's own text was, else by a general rule). `precision` is float32, int8 (a CPU: four times
    smaller, and faster) or bfloat16 (a GPU); `threads` how many a CPU uses (default: as many as torch).
    """
    embedder = Embedder(
        formats.read(source, options=options, vocab=vocab), device=device, language=language, precision=precision,
        threads=threads,
    )  # fmt: skip
    embedder.words  # noqa: B018 -- the weights are packed now, not at the first sentence
    return embedder


class Embedder:
    """A pretrained biLM that turns sentences into vectors: the same sentence, the same vectors, in any company."""

    def __init__(
        self,
        pretrained: Pretrained,
        *,
        device: str | torch.device = "cpu",
        language: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> None:
        if language is None:
            language = pretrained.language or "general"
        check_language(language)  # an error now, not at the first sentence
        if threads is not None and threads < 1:
            raise InputError(f"threads {threads} must be at least 1")
        self.pretrained = pretrained
        self.language = language
        self.precision = precision
        self.threads = threads or torch.get_num_threads()
        self.device = _device(device)
        _check_precision(precision, self.device)
        self._engine: Engine | None = None
        self._words: WordTable | None = None
        self._built_from: list[tuple[int, int]] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process packs its weights itself."""
        kept = {name: getattr(self, name) for name in ("language", "precision", "threads", "device")}
        return {"pretrained": self._unpacked(), **kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _unpacked(self) -> Pretrained:
        """The model as modules, apart from this embedder, which goes on with the packed weights alone."""
        model = self.pretrained.model
        return replace(self.pretrained, model=model.bilm() if isinstance(model, Weights) else model)

    @property
    def bilm(self) -> BiLM:
        """The model as torch modules; built from the packed weights when it is first asked for."""
        new = isinstance(self.pretrained.model, Weights)
        bilm = self.pretrained.bilm.to(self.device)
        if new:
            self._built_from = _stamp(bilm)
        return bilm

    @property
    def lexicon(self) -> Lexicon:
        return self.pretrained.lexicon

    @property
    def config(self) -> ModelConfig:
        return self.pretrained.config

    @property
    def words(self) -> WordTable:
        """The vectors of the words seen so far: `words.clear()` forgets them, `words.add(list)` encodes some ahead."""
        with self._lock:  # threads that come at once find one engine
            if isinstance(self.pretrained.model, BiLM):
                stamp = _stamp(self.pretrained.model)
                if stamp != self._built_from:  # the modules are new to us, or were trained since
                    self._engine, self._built_from = None, stamp
            if self._engine is None or self._words is None:
                self._engine = self._new_engine()
                self._words = WordTable(self._engine, self.lexicon)
            return self._words

    def _new_engine(self) -> Engine:
        pretrained, int8 = self.pretrained, self.precision == "int8"
        # Asked in this order: whoever wants a GPU is not told about the CPU.
        if self.device.type != "cpu" or not (cpu.available() or int8):
            bilm = self.bilm
            engine = TorchEngine(bilm, self.device, self.precision)
            self._built_from = _stamp(bilm)
            return engine
        model = pretrained.model
        parameters = dict(model.named_parameters()) if isinstance(model, BiLM) else {}

        def fetch(name: str) -> Any:
            weight: Stored = model.take(name) if isinstance(model, Weights) else parameters[name]
            if int8:
                weight = quantised(name, weight)
            if isinstance(weight, Quantised):
                return weight if int8 else weight.restore()
            return weight.detach().float().cpu().numpy()

        if int8:
            cpu.tell_about_int8()
        packed = CpuEngine(self.config, fetch, threads=self.threads)
        if isinstance(model, Weights):
            pretrained.model = Weights(self.config, _Packed(packed, model.stored), model.where)
        return packed

    def __repr__(self) -> str:
        return f"Embedder({self.pretrained.source!r}, layers={self.config.layers}, dim={self.config.dim})"

    def tokenise(self, sentence: Sentence, number: int = 0) -> list[str]:
        """A plain string split into words; a list of words as it is, checked."""
        if isinstance(sentence, str):
            return split_words(sentence, self.language)
        if isinstance(sentence, (bytes, dict)) or not isinstance(sentence, Iterable):
            raise InputError(f"sentence {number}: expected a string or a list of words, got {type(sentence).__name__}")
        words = list(sentence)
        if set(map(type, words)) <= {str}:
            return words
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
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        progress: bool = False,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
        dtype: Literal["float32", "float16"] = "float32",
    ) -> list[Any]:
        """One array a sentence, in input order: (L, T, D) for "all", (T, D) for one layer or a mix, (D,) when pooled.

        `layers` is "all", "top", "average", a layer's index, the weights of a mix (one a layer, or one for each of the
        2L + 1 representations) or a ScalarMix. `pooling` is "mean", "max", "first" or "last" over the tokens; of none
        it is zero. `keep_boundaries` keeps the vectors of the two sentence marks. `batch_size` bounds the sentences of
        a batch further than the number of tokens does.
        """
        if isinstance(sentences, str):
            raise InputError("sentences is one string; give a list of them: embed([sentence])")
        given = list(sentences)
        stream = self.stream(
            given, layers=layers, pooling=pooling, batch_size=batch_size, device=device,
            keep_boundaries=keep_boundaries, output=output, dtype=dtype,
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
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        keep_boundaries: bool = False,
        output: Literal["numpy", "torch"] = "numpy",
        dtype: Literal["float32", "float16"] = "float32",
    ) -> Iterator[Any]:
        """`embed` for any amount of text in constant memory: arrays come one by one, in input order."""
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size {batch_size} must be at least 1")
        _check_choice("output", output, ("numpy", "torch"))
        _check_choice("dtype", dtype, ("float32", "float16"))
        check_pooling(pooling)
        pick = layer_picker(layers, self.config)
        if device is not None and _device(device) != self.device:
            self.device, self._engine = _device(device), None
            _check_precision(self.precision, self.device)
        words = self.words
        engine = self._engine
        assert engine is not None

        def finish(batch: _Batch) -> None:
            values = batch.pending.result()
            ends = batch.lengths.cumsum().tolist()
            inner = 0 if keep_boundaries else 1
            for row, start, end in zip(batch.rows.tolist(), [0, *ends[:-1]], ends, strict=True):
                vectors = values[..., start + inner : end - inner, :]
                if pooling is not None:
                    vectors = pool(torch.from_numpy(vectors), pooling).numpy()
                if engine.cuts or vectors.dtype != dtype:
                    vectors = np.array(vectors, dtype=dtype)
                batch.window.results[row] = torch.from_numpy(vectors) if output == "torch" else vectors
            batch.window.left -= len(batch.rows)

        rows_at_most = min(batch_size or engine.batch_rows, engine.batch_rows)
        token_bytes = self.config.dim * (self.config.layers if layers == "all" else 1) * np.dtype(dtype).itemsize
        window_tokens = max(WINDOW_BYTES // token_bytes, 2 * engine.batch_tokens)
        under_way: deque[_Batch] = deque()
        windows: deque[_Window] = deque()
        for tokens in self._windows(sentences, window_tokens):
            windows.append(_Window([None] * len(tokens), len(tokens)))
            lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens)) + 2
            # In the order of the text: the words of sentences sorted by length would lie far apart in memory.
            places, table = words.rows(tokens)
            starts = lengths.cumsum() - lengths
            for rows in _batches(lengths, rows_at_most, engine.batch_tokens):
                widths = lengths[rows]
                own = np.arange(widths.sum()) + np.repeat(starts[rows] + widths - widths.cumsum(), widths)
                pending = engine.submit(table, places[own], widths, pick, "float32" if pooling else dtype)
                under_way.append(_Batch(windows[-1], rows, widths, pending))
                if len(under_way) >= engine.depth:
                    finish(under_way.popleft())
            while windows and not windows[0].left:
                yield from windows.popleft().results
        while under_way:
            finish(under_way.popleft())
        for window in windows:
            yield from window.results

    def _windows(self, sentences: Iterable[Sentence], at_most: int) -> Iterator[list[list[str]]]:
        """Tokenised sentences in groups of about `at_most` tokens."""
        window: list[list[str]] = []
        size = 0
        for number, sentence in enumerate(sentences):
            tokens = self.tokenise(sentence, number)
            window.append(tokens)
            size += len(tokens) + 2
            if size >= at_most:
                yield window
                window, size = [], 0
        if window:
            yield window

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

    def save(
        self,
        path: str | Path,
        *,
        format: formats.Written = "pyelmo",
        precision: Literal["float32", "int8", "int4"] | None = None,
        force: bool = False,
    ) -> None:
        """Write the model as a folder that `load` reads; in int8 by default when this embedder computes in it."""
        if precision is None:
            native = format == "pyelmo" and Path(path).suffix not in formats.HDF5
            precision = "int8" if native and self.precision == "int8" else "float32"
        formats.write(self._unpacked(), path, format=format, precision=precision, force=force)


@dataclass
class _Window:
    """Sentences whose results come out together."""

    results: list[Any]
    left: int


@dataclass(frozen=True)
class _Batch:
    window: _Window
    rows: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    pending: Pending


class _Packed(Mapping[str, Stored]):
    """A model's weights while an engine holds most of them: those are unpacked on demand, the rest is as it was."""

    def __init__(self, engine: CpuEngine, stored: Mapping[str, Stored]) -> None:
        self._engine = engine
        self._rest = {name: stored[name] for name in stored if name not in engine.names}

    def __getitem__(self, name: str) -> Stored:
        if name in self._rest:
            return self._rest[name]
        weight = self._engine.weight(name)
        return weight if isinstance(weight, Quantised) else torch.from_numpy(weight)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._rest, *self._engine.names])

    def __len__(self) -> int:
        return len(self._rest) + len(self._engine.names)


def _stamp(bilm: BiLM) -> list[tuple[int, int]]:
    """Changes when a parameter is replaced, moved or trained."""
    return [(parameter.data_ptr(), parameter._version) for parameter in bilm.parameters()]


def _check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")


def _check_precision(precision: str, device: torch.device) -> None:
    _check_choice("precision", precision, ("float32", "int8", "bfloat16"))
    if (precision == "int8") > (device.type == "cpu") or (precision == "bfloat16") > (device.type == "cuda"):
        raise InputError(
            f"precision {precision!r} does not go with device {str(device)!r}: a CPU computes in float32 or int8, "
            "a GPU in float32 or bfloat16"
        )


def _device(device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {str(device)!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return found


def _batches(lengths: npt.NDArray[np.int64], rows_at_most: int, tokens_at_most: int) -> Iterator[npt.NDArray[np.int64]]:
    """Rows grouped by falling length; a sentence longer than `tokens_at_most` runs alone."""
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        count = min(rows_at_most, max(1, tokens_at_most // int(lengths[order[start]])))
        yield order[start : start + count]
        start += count
