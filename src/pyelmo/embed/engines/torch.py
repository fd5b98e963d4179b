"""The biLM as torch runs it: with the Triton kernels on a GPU, and as the plain reference on a CPU.

U words, P size of one direction, B sentences, T tokens of the longest sentence, N tokens of all sentences with boundary
tokens, M directions, L layers, D vector.

On a GPU `submit` never waits: the indices of a batch are copied through page-locked memory while earlier batches run,
and a `Downloader` copies the vectors back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding

from pyelmo.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from pyelmo.embed.engines.base import PendingBatch, PickLayers
from pyelmo.embed.engines.download import Downloader
from pyelmo.embed.engines.word_table import table_words
from pyelmo.errors import InputError
from pyelmo.model.bilm import ROWS, Batch, BiLM, pad_rows
from pyelmo.model.scalar_mix import ScalarMix
from pyelmo.text.lexicon import EncodedWords, Lexicon

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
RESULTS = {"float32": torch.float32, "float16": torch.float16}

# On a GPU a time step computes a multiple of this many rows, because its matrix products use tiles of that size.
STEP_ROWS = 128
# Words whose vectors stay on a GPU: 0.5 GB for the paper's model in bfloat16.
GPU_WORDS = 1 << 19
# The limits of a batch on a GPU: a share of the GPU's memory, bytes, tokens, and a sentence for so many tokens. Larger
# batches would gain nothing: a step of theirs computes long enough to hide the launches of the next one.
GPU_SHARE, GPU_BATCH_BYTES, GPU_BATCH_TOKENS, SENTENCE_TOKENS = 0.2, 8 * 2**30, 1 << 19, 32
TOKEN_BYTES = {"float32": 48, "bfloat16": 32}  # measured, of a token of a batch for each number of its vector
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
        self.batch_sentences, self.batch_tokens = self._gpu_batch() if self._on_gpu else (256, 4096)
        # On a GPU not two batches as on a CPU, because the results of a window are kept until all of them are there.
        self.window_tokens = self.batch_tokens if self._on_gpu else 2 * self.batch_tokens
        self.max_pending = 6 if self._on_gpu else 1
        self.table_words = GPU_WORDS if self._on_gpu else table_words(self.size)
        self.copy_sentences = not self._on_gpu  # the host copies more slowly than a GPU computes
        self._downloader = Downloader(self.device) if self._on_gpu else None

    def _gpu_batch(self) -> tuple[int, int]:
        """Return the most sentences and tokens of a batch.

        Each time step of a batch costs the host some 100 us, however many sentences the batch has.
        """
        memory = torch.cuda.get_device_properties(self.device).total_memory
        token_bytes = TOKEN_BYTES[self.precision] * self.size * self.bilm.config.directions
        tokens = min(int(min(GPU_SHARE * memory, GPU_BATCH_BYTES)) // token_bytes, GPU_BATCH_TOKENS)
        return max(1, tokens // SENTENCE_TOKENS), tokens

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
        shape, live = _shape(lengths), _live(lengths)
        with torch.inference_mode():
            numbers = self._upload(np.concatenate([rows, lengths.astype(np.int32)]))
            words, sizes = numbers.split([len(rows), len(lengths)])
            positions = _positions(sizes.long(), len(rows), shape[1], self.bilm.config.directions)  # (N,) each
            index = words.new_zeros(len(positions), shape[0] * shape[1])
            for direction, own in zip(index, positions, strict=True):
                direction[own] = words
            mask = torch.zeros_like(index[0], dtype=torch.bool).index_fill_(0, positions[0], True)
            with self._autocast():
                inputs = embedding(index.view(len(positions), *shape), table)  # (M, B, T, P)
                outputs, _ = self.bilm.lstm(inputs, None, mask.view(shape), live)
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


def _shape(lengths: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return the padded rectangle (B, T) that the LSTM reads, with empty sentences up to a multiple of ROWS."""
    return len(lengths) - len(lengths) % -ROWS, int(lengths.max(initial=0))


def _live(lengths: npt.NDArray[np.int64]) -> list[int]:
    """Return how many sentences each of the T time steps computes; `lengths` fall."""
    sentences, longest = _shape(lengths)
    live = np.searchsorted(-lengths, -np.arange(longest))  # how many sentences are longer than t
    steps: list[int] = np.minimum(live - live % -STEP_ROWS, sentences).tolist()
    return steps


def _positions(lengths: Tensor, tokens: int, longest: int, directions: int) -> list[Tensor]:
    """Return where each token is in the flat rectangle (B, T), for each direction (N,)."""
    starts = longest * torch.arange(len(lengths), device=lengths.device)
    both = torch.stack([starts + lengths - lengths.cumsum(0), 2 * starts + lengths - 1])
    both = both.repeat_interleave(lengths, 1, output_size=tokens)
    forward = both[0] + torch.arange(tokens, device=lengths.device)
    # A sentence at positions b to e - 1 is read backwards from e - 1 on: position p becomes b + e - 1 - p.
    return [forward, both[1] - forward][:directions]
