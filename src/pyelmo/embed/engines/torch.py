"""The biLM as torch runs it: with the Triton kernels on a GPU, and as the plain reference on a CPU.

U words, P size of one direction, B sentences, T tokens of the longest sentence, N tokens of all sentences with boundary
tokens, M directions, L layers, D vector.

On a GPU `submit` never waits: the indices of a batch are copied through pinned memory while earlier batches run, and
threads copy the vectors back. Allocating pinned memory is slow (1.2 GB/s on the host of an H200). So each thread has
one small pinned buffer, and copies from there to ordinary memory that belongs to the caller.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding

from pyelmo.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from pyelmo.embed.engines.base import PendingBatch, PickLayers
from pyelmo.embed.engines.word_table import table_words
from pyelmo.errors import InputError
from pyelmo.model.bilm import ROWS, Batch, BiLM, pad_rows
from pyelmo.model.scalar_mix import ScalarMix
from pyelmo.text.lexicon import EncodedWords, Lexicon

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
RESULTS = {"float32": torch.float32, "float16": torch.float16}

# On a GPU a time step computes a multiple of this many rows, because its matrix products use tiles of that size.
STEP_ROWS = 128
# Threads that copy results to the host (one writes 3.5 GB/s to newly allocated memory), and bytes per copy.
DOWNLOAD_THREADS = min(8, os.cpu_count() or 1)
DOWNLOAD_BYTES = 32 * 2**20
# Words whose vectors stay on a GPU: 0.5 GB for the paper's model in bfloat16.
GPU_WORDS = 1 << 19
VERSION_SAMPLES = 16  # numbers of each parameter that show whether it was trained


class TorchEngine:
    """Implements `Engine`. With "bfloat16" only matrix products have that type; sums, cells and results are float32."""

    def __init__(self, bilm: BiLM, device: str | torch.device = "cpu", precision: str = "float32") -> None:
        if precision not in PRECISIONS:
            raise InputError(f"precision {precision!r} is none of {', '.join(PRECISIONS)}")
        self.device, self.precision = torch.device(device), precision
        self.bilm = bilm.to(self.device).eval()
        self.size = bilm.config.lstm.dim
        self._dtype = PRECISIONS[precision]
        self._on_gpu = self.device.type == "cuda"
        # On a GPU each time step of a batch costs the host some 100 us, however many sentences the batch has.
        self.batch_sentences, self.batch_tokens = (4096, 131072) if self._on_gpu else (256, 4096)
        self.max_pending = 3 if self._on_gpu else 1
        self.table_words = GPU_WORDS if self._on_gpu else table_words(self.size)
        self.copy_sentences = not self._on_gpu  # the host copies more slowly than a GPU computes
        self._downloader = _Downloader(self.device) if self._on_gpu else None

    def new_table(self, rows: int) -> Tensor:
        # A table in bfloat16 loses nothing, because the encoder's output already has that type.
        return torch.zeros(rows, self.size, dtype=self._dtype, device=self.device)

    def encode(self, words: EncodedWords) -> Tensor:  # -> (U, P)
        with torch.inference_mode(), self._autocast():
            chars, numbers = (None if ids is None else self._upload(ids) for ids in (words.chars, words.words))
            return self.bilm.encode_words(chars, numbers)

    def download(self, vectors: Tensor) -> Float32Array:
        array: Float32Array = vectors.float().cpu().numpy()
        return array

    def upload(self, vectors: Float32Array) -> Tensor:
        return torch.from_numpy(vectors).to(self.device, self._dtype)

    def submit(
        self, table: Tensor, rows: Int32Array, lengths: npt.NDArray[np.int64], pick: PickLayers, dtype: str
    ) -> PendingBatch:
        """Start to compute a batch, see `Engine`. The resulting array belongs to the caller."""
        padded = _pad(lengths, self.bilm.config.directions)
        with torch.inference_mode():
            words, *positions = self._upload(np.stack([rows, *padded.positions]))  # (N,) each
            index = words.new_zeros(len(positions), padded.sentences * padded.longest)
            for direction, own in zip(index, positions, strict=True):
                direction[own] = words
            mask = torch.zeros_like(index[0], dtype=torch.bool).index_fill_(0, positions[0], True)
            shape = padded.sentences, padded.longest
            with self._autocast():
                inputs = embedding(index.view(len(positions), *shape), table)  # (M, B, T, P)
                outputs, _ = self.bilm.lstm(inputs, None, mask.view(shape), padded.live)
            layers = inputs.new_empty(1 + len(outputs), len(words), len(positions), self.size, dtype=torch.float32)
            layers[0] = embedding(words, table).unsqueeze(1)  # (N, 1, P): the same for both directions
            for layer, output in zip(layers[1:], outputs, strict=True):
                for number, own in enumerate(positions):
                    layer[:, number] = output[number].flatten(0, 1).index_select(0, own)
            # `pick` expects an axis of sentences: all tokens pass as one sentence.
            values = pick(layers.flatten(2).unsqueeze(1)).flatten(-3, -2).to(RESULTS[dtype])
        if self._downloader is not None:
            return self._downloader.start(values)
        done: Future[np.ndarray] = Future()
        done.set_result(values.numpy())
        return done

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self._dtype is torch.bfloat16)

    def _upload(self, ids: npt.NDArray[np.integer]) -> Tensor:
        """Copy to the device, without waiting for the batches that it computes."""
        tensor = torch.from_numpy(ids)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self._on_gpu else tensor


class TorchSoftmax:
    """Implements `WordSoftmax` with the module of a biLM."""

    def __init__(self, bilm: BiLM) -> None:
        assert bilm.softmax is not None
        self._softmax = bilm.softmax
        self._device = next(bilm.parameters()).device

    def log_probabilities(self, vectors: Float32Array) -> Float32Array:
        with torch.inference_mode():
            # With rows of zeros: the reason is at ROWS.
            rows = self._softmax(pad_rows(torch.from_numpy(vectors)).to(self._device))
            scores: Float32Array = rows[: len(vectors)].float().cpu().numpy()
        return scores

    def losses(self, vectors: Float32Array, targets: Int64Array) -> Float64Array:
        inputs, ids = pad_rows(torch.from_numpy(vectors)), pad_rows(torch.from_numpy(targets))
        with torch.inference_mode():
            values = self._softmax.nll(inputs.to(self._device), ids.to(self._device))
            losses: Float64Array = values[: len(vectors)].double().cpu().numpy()
        return losses


def parameter_versions(bilm: BiLM) -> object:
    """Return a value that changes whenever a parameter is replaced, moved or trained.

    A fused optimiser does not count its steps in `_version`, so some numbers of each parameter are part of the value.
    """
    parameters = [parameter.detach() for parameter in bilm.parameters()]
    versions = [(parameter.data_ptr(), parameter._version) for parameter in parameters]
    samples = [parameter.flatten()[:: parameter.numel() // VERSION_SAMPLES + 1].float() for parameter in parameters]
    return versions, torch.cat(samples).tolist()  # one copy from a GPU


def to_tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array)


def tensor_batch(lexicon: Lexicon, sentences: Sequence[list[str]], device: str) -> Batch:
    """Return tokenised sentences as the tensors that `BiLM` and `Elmo` take."""
    distinct, index, lengths = lexicon.batch(sentences)
    words = lexicon.encode(distinct)
    mask = np.arange(index.shape[1]) < lengths[:, None]
    return Batch(
        None if words.chars is None else torch.from_numpy(words.chars),
        None if words.words is None else torch.from_numpy(words.words),
        torch.from_numpy(index),
        torch.from_numpy(mask),
    ).to(device)


def mix_layers(mix: ScalarMix, values: Any) -> Any:
    """Return the mix (.., D) of layers (L, .., D), an array or a tensor, as what they are."""
    with torch.inference_mode():
        tensor = torch.as_tensor(values)
        # A copy is moved to the device, never the caller's own mix.
        own = mix if mix.gamma.device == tensor.device else deepcopy(mix).to(tensor.device)
        mixed: Tensor = own(tensor)
    return mixed if isinstance(values, Tensor) else mixed.numpy()


def usable_device(name: str | torch.device) -> str:
    """Return the name of a device, or raise one clear error if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {str(name)!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return str(device)


def gpu_in_turn(number: int) -> str:
    """Return the GPU for the worker of a number: workers take the GPUs of a machine in turn."""
    return f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.device_count() > 1 else "cuda"


def gpu_name(device: str) -> str:
    return torch.cuda.get_device_name(device)


def peak_bytes(device: str) -> int | None:
    """Return the peak memory of a GPU."""
    return torch.cuda.max_memory_allocated(device) if device.startswith("cuda") else None


def product_speed(device: str, precision: str) -> float:
    """Return the FLOP/s of a large matrix product."""
    size = 8192
    left, right = torch.randn(2, size, size, device=device, dtype=PRECISIONS[precision])
    best = float("inf")
    for _ in range(10):  # the first warms up
        start = time.perf_counter()
        torch.mm(left, right)
        torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


@dataclass(frozen=True)
class _PaddedBatch:
    """How the tokens of sentences are laid out in the padded rectangle (B, T) that the LSTM reads."""

    sentences: int  # B, with empty sentences up to a multiple of ROWS
    longest: int  # T
    positions: list[npt.NDArray[np.int64]]  # (N,) where each token is in the flat rectangle, for each direction
    live: list[int]  # (T,) how many sentences each time step computes


def _pad(lengths: npt.NDArray[np.int64], directions: int) -> _PaddedBatch:
    sentences, longest = len(lengths) - len(lengths) % -ROWS, int(lengths.max(initial=0))
    starts = longest * np.arange(len(lengths))
    forward = np.arange(lengths.sum()) + np.repeat(starts + lengths - lengths.cumsum(), lengths)
    # A sentence at positions b to e - 1 is read backwards from e - 1 on: position p becomes b + e - 1 - p.
    backward = np.repeat(2 * starts + lengths - 1, lengths) - forward
    live = np.searchsorted(-lengths, -np.arange(longest))  # how many sentences are longer than t
    live = np.minimum(live - live % -STEP_ROWS, sentences)
    return _PaddedBatch(sentences, longest, [forward, backward][:directions], live.tolist())


class _Downloader:
    """Copies tensors of a GPU to arrays, on threads beside the computation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = threading.local()  # the stream, the event and the pinned buffer of each thread
        self._pool = ThreadPoolExecutor(DOWNLOAD_THREADS, "pyelmo-download", self._prepare_thread)

    def _prepare_thread(self) -> None:
        self._thread.stream = torch.cuda.Stream(self._device)
        self._thread.copied = torch.cuda.Event(blocking=True)
        self._thread.pinned = torch.empty(DOWNLOAD_BYTES, dtype=torch.uint8, pin_memory=True)

    def start(self, values: Tensor) -> PendingBatch:
        array = np.empty(values.shape, dtype=str(values.dtype).removeprefix("torch."))
        sources, targets = (
            tensor.flatten().view(torch.uint8).split(DOWNLOAD_BYTES) for tensor in (values, torch.from_numpy(array))
        )
        computed = torch.cuda.Event(blocking=True)  # blocking: a waiting thread sleeps and leaves its core to others
        computed.record(torch.cuda.current_stream(self._device))
        copies = [
            self._pool.submit(self._copy, computed, source, target)
            for source, target in zip(sources, targets, strict=True)
        ]
        return _PendingDownload(array, copies)

    def _copy(self, computed: torch.cuda.Event, source: Tensor, target: Tensor) -> None:
        computed.synchronize()
        pinned = self._thread.pinned[: len(source)]
        with torch.inference_mode(), torch.cuda.stream(self._thread.stream):
            pinned.copy_(source, non_blocking=True)
            self._thread.copied.record()
        self._thread.copied.synchronize()
        target.numpy()[:] = pinned.numpy()


@dataclass(frozen=True)
class _PendingDownload:
    array: np.ndarray
    copies: list[Future[None]]

    def result(self) -> np.ndarray:
        for copy in self.copies:
            copy.result()
        return self.array
