"""The biLM as torch runs it: with the Triton kernels on a GPU, as the plain reference on a CPU.

U words, P size of one direction, B sentences, T tokens of the longest, N all their tokens, M directions, L layers,
D vector.

On a GPU nothing that is submitted waits for it: a batch's places go there by pinned memory while earlier batches run,
and threads bring its vectors back. Pinned memory is slow to get (1.2 GB/s on an H200's host), so a thread has only a
small piece of it, and what arrives there goes on into an ordinary array, which is the caller's own.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding

from pyelmo.arrays import Int32Array
from pyelmo.embed.engines.base import Pending, Pick, table_rows
from pyelmo.errors import InputError
from pyelmo.model.bilm import ROWS, BiLM
from pyelmo.text.lexicon import EncodedWords

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
RESULTS = {"float32": torch.float32, "float16": torch.float16}

# On a GPU a step runs a multiple of this many rows: the tiles of its products are no smaller.
STEP_ROWS = 128
# Threads that bring results to the host (one fills 3.5 GB/s of new, ordinary memory), and the bytes of a piece.
THREADS = min(8, os.cpu_count() or 1)
PIECE = 32 * 2**20
# Words whose vectors stay on a GPU: 0.5 GB at the paper's size in bfloat16.
GPU_WORDS = 1 << 19


class TorchEngine:
    """Implements `Engine`. With "bfloat16" products are of that type; sums, cells and results are not."""

    def __init__(self, bilm: BiLM, device: str | torch.device = "cpu", precision: str = "float32") -> None:
        if precision not in PRECISIONS:
            raise InputError(f"precision {precision!r} is none of {', '.join(PRECISIONS)}")
        self.device, self.precision = torch.device(device), precision
        self.bilm = bilm.to(self.device).eval()
        self.size = bilm.config.lstm.dim
        self._type = PRECISIONS[precision]
        self._on_gpu = self.device.type == "cuda"
        # A GPU's host pays for every step of a batch, some 100 us, however many rows it has.
        self.batch_rows, self.batch_tokens = (4096, 131072) if self._on_gpu else (256, 4096)
        self.depth = 3 if self._on_gpu else 1
        self.table_rows = GPU_WORDS if self._on_gpu else table_rows(self.size)
        self.cuts = not self._on_gpu  # a GPU is faster than its host copies
        self._downloads = _Downloads(self.device) if self._on_gpu else None

    def table(self, rows: int) -> Tensor:
        """With bfloat16 a word's vector leaves the encoder in that type, so a table of it loses nothing."""
        return torch.zeros(rows, self.size, dtype=self._type, device=self.device)

    def encode(self, words: EncodedWords) -> Tensor:  # -> (U, P)
        with torch.inference_mode(), self._autocast():
            chars, numbers = (None if ids is None else self._upload(ids) for ids in (words.chars, words.words))
            return self.bilm.encode_words(chars, numbers)

    def submit(
        self, table: Tensor, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: Pick, dtype: str
    ) -> Pending:
        """See `Engine`. The array of the result is the caller's own."""
        places = _places(lengths, self.bilm.config.directions)
        with torch.inference_mode():
            words, *orders = self._upload(np.stack([rows, *places.orders]))  # (N,) each
            index = words.new_zeros(len(orders), places.rows * places.longest)
            for direction, order in zip(index, orders, strict=True):
                direction[order] = words
            mask = torch.zeros_like(index[0], dtype=torch.bool).index_fill_(0, orders[0], True)
            shape = places.rows, places.longest
            with self._autocast():
                reading = embedding(index.view(len(orders), *shape), table)  # (M, B, T, P)
                outputs, _ = self.bilm.lstm(reading, None, mask.view(shape), places.counts)
            layers = reading.new_empty(1 + len(outputs), len(words), len(orders), self.size, dtype=torch.float32)
            layers[0] = embedding(words, table).unsqueeze(1)  # (N, 1, P): the same for both directions
            for layer, output in zip(layers[1:], outputs, strict=True):
                for number, order in enumerate(orders):
                    layer[:, number] = output[number].flatten(0, 1).index_select(0, order)
            # Whoever picks expects sentences: one that holds all tokens.
            values = pick(layers.flatten(2).unsqueeze(1)).flatten(-3, -2).to(RESULTS[dtype])
        if self._downloads is not None:
            return self._downloads.start(values)
        done: Future[np.ndarray] = Future()
        done.set_result(values.numpy())
        return done

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._type is torch.bfloat16)

    def _upload(self, ids: npt.NDArray[np.integer]) -> Tensor:
        """To the device, without waiting for what is under way there."""
        tensor = torch.from_numpy(ids)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self._on_gpu else tensor


@dataclass(frozen=True)
class _Places:
    """Where the tokens of sentences stand in the rectangle (B, T) that the LSTM reads."""

    rows: int  # B, with empty sentences up to a multiple of ROWS
    longest: int  # T
    orders: list[npt.NDArray[np.int64]]  # (N,) a token's place in the flat rectangle, for each direction
    counts: list[int]  # (T,) rows that a step needs


def _places(lengths: npt.NDArray[np.int64], directions: int) -> _Places:
    rows, longest = len(lengths) - len(lengths) % -ROWS, int(lengths.max(initial=0))
    begins = longest * np.arange(len(lengths))
    forward = np.arange(lengths.sum()) + np.repeat(begins + lengths - lengths.cumsum(), lengths)
    # A sentence that begins at b and ends before e is read backwards from e - 1: place p becomes b + e - 1 - p.
    backward = np.repeat(2 * begins + lengths - 1, lengths) - forward
    counts = np.searchsorted(-lengths, -np.arange(longest))  # how many are longer than t
    counts = np.minimum(counts - counts % -STEP_ROWS, rows)
    return _Places(rows, longest, [forward, backward][:directions], counts.tolist())


class _Downloads:
    """Tensors of a GPU -> arrays, by threads beside its other work."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._own = threading.local()  # a thread's stream, event and pinned memory
        self._threads = ThreadPoolExecutor(THREADS, "pyelmo-download", self._prepare)

    def _prepare(self) -> None:
        self._own.stream = torch.cuda.Stream(self._device)
        self._own.arrived = torch.cuda.Event(blocking=True)
        self._own.pinned = torch.empty(PIECE, dtype=torch.uint8, pin_memory=True)

    def start(self, values: Tensor) -> Pending:
        array = np.empty(values.shape, dtype=str(values.dtype).removeprefix("torch."))
        both = [tensor.flatten().view(torch.uint8).split(PIECE) for tensor in (values, torch.from_numpy(array))]
        pieces = zip(*both, strict=True)
        ready = torch.cuda.Event(blocking=True)  # to sleep, not to spin: the processors have other work
        ready.record(torch.cuda.current_stream(self._device))
        return _Arriving(array, [self._threads.submit(self._bring, ready, *piece) for piece in pieces])

    def _bring(self, ready: torch.cuda.Event, source: Tensor, target: Tensor) -> None:
        ready.synchronize()
        pinned = self._own.pinned[: len(source)]
        with torch.inference_mode(), torch.cuda.stream(self._own.stream):
            pinned.copy_(source, non_blocking=True)
            self._own.arrived.record()
        self._own.arrived.synchronize()
        target.numpy()[:] = pinned.numpy()


@dataclass(frozen=True)
class _Arriving:
    array: np.ndarray
    pieces: list[Future[None]]

    def result(self) -> np.ndarray:
        for piece in self.pieces:
            piece.result()
        return self.array
