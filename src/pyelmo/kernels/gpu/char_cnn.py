"""The convolutions over the symbols of a word and their maximum over all positions, in one kernel.

U words, C symbols of a word, E symbol embedding, W widest filter, F features (all filters together), K = W * E.

Every filter is padded with zeros to width W, so that all filters are one product of (positions, K) and (K, F); only the
maximum and its position are stored. A word ends in a run of the same padding symbol, and all windows inside this run
are equal, so that only the first of them is computed: a third of all positions for the words of normal text. Words are
sorted by length, so that the words of a program need the same number of positions.

In the backward pass, the gradient of a feature goes to the first window with the maximum. Windows with equal values
contain the same symbols, so the summed gradients equal those of `amax`, which divides them among equal values.
"""

# Triton's decorator has no types, and the constants of its kernels are in upper case.
# mypy: disable-error-code="untyped-decorator, no-untyped-call, no-any-return"
# ruff: noqa: N803

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyelmo.kernels.choice import compute_type

WORDS = 4  # words of a program
SPAN = 16  # positions of each word in a tile, which has WORDS * SPAN = 64 rows for the tensor cores
FEATURES = 64  # features of a tile
SPLITS = 64  # partial sums of the gradients of filters and symbols


@triton.jit
def _spell_kernel(
    chars: tl.tensor, table: tl.tensor, out: tl.tensor,  # (U, C), (symbols, E), (U, C + W, E)
    length: tl.tensor, dim: tl.tensor, taps: tl.tensor, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Look up the vectors of symbols, with zeros after the last one for windows that reach beyond it."""
    word = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    position, e = at // dim, at % dim
    char = tl.load(chars + word * length + position, mask=position < length, other=0)
    value = tl.load(table + char * dim + e, mask=position < length, other=0.0)
    tl.store(out + word * (length + taps) * dim + at, value.to(out.dtype.element_ty), mask=position < length + taps)


@triton.jit
def _windows(
    symbols: tl.tensor, word: tl.tensor, start: tl.tensor, k: tl.tensor,
    length: tl.tensor, dim: tl.tensor, taps: tl.tensor,
    WORDS: tl.constexpr, SPAN: tl.constexpr,
) -> Any:  # fmt: skip
    """Return (WORDS * SPAN, len(k)): the windows that begin at the positions from `start` on, one in each row."""
    position = start + tl.arange(0, WORDS * SPAN) % SPAN
    row = symbols + (word.to(tl.int64) * (length + taps) + position) * dim
    inside = (word >= 0) & (position < length)
    return tl.load(row[:, None] + k[None, :], mask=inside[:, None] & (k < taps * dim)[None, :], other=0.0)


@triton.jit
def _forward_kernel(
    symbols: tl.tensor,  # (U, C + W, E), zero after the word's C symbols
    weight: tl.tensor,  # (F, K)
    bias: tl.tensor,  # (F,)
    widths: tl.tensor,  # (F,)
    order: tl.tensor, positions: tl.tensor,  # (U,), (U,)
    out: tl.tensor, where: tl.tensor,  # (U, F), (U, F)
    words: tl.tensor, length: tl.tensor, dim: tl.tensor, taps: tl.tensor, features: tl.tensor,
    DEPTH: tl.constexpr, PART: tl.constexpr, WORDS: tl.constexpr, SPAN: tl.constexpr, FEATURES: tl.constexpr,
    TYPE: tl.constexpr,
) -> None:  # fmt: skip
    group = tl.program_id(1) * WORDS
    feature = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    known = feature < features
    last = length - tl.load(widths + feature, mask=known, other=1)  # (FEATURES,) the last position of each filter
    at = group + tl.arange(0, WORDS)
    word = tl.load(order + at, mask=at < words, other=-1)  # (WORDS,)
    count = tl.load(positions + word, mask=word >= 0, other=0)
    at = group + tl.arange(0, WORDS * SPAN) // SPAN
    row_word = tl.load(order + at, mask=at < words, other=-1)
    best = tl.full((WORDS, FEATURES), float("-inf"), tl.float32)
    position = tl.zeros((WORDS, FEATURES), tl.int32)
    for start in range(0, tl.max(count), SPAN):
        product = tl.zeros((WORDS * SPAN, FEATURES), tl.float32)
        for part in range(0, DEPTH, PART):
            k = part + tl.arange(0, PART)
            window = _windows(symbols, row_word, start, k, length, dim, taps, WORDS, SPAN).to(TYPE)
            taken = known[None, :] & (k < taps * dim)[:, None]
            filters = tl.load(weight + feature[None, :] * (taps * dim) + k[:, None], mask=taken, other=0.0)
            product = tl.dot(window, filters, product, input_precision="ieee")
        values = tl.reshape(product, (WORDS, SPAN, FEATURES))
        span = start + tl.arange(0, SPAN)
        valid = (span[None, :] < count[:, None])[:, :, None] & (span[:, None] <= last[None, :])[None, :, :]
        values = tl.where(valid, values, float("-inf"))
        most, index = tl.max(values, axis=1, return_indices=True)
        better = most > best
        best = tl.where(better, most, best)
        position = tl.where(better, start + index, position)
    to = word.to(tl.int64)[:, None] * features + feature[None, :]
    inside = (word >= 0)[:, None] & known[None, :]
    best += tl.load(bias + feature, mask=known, other=0.0).to(tl.float32)[None, :]
    tl.store(out + to, best.to(out.dtype.element_ty), mask=inside)
    tl.store(where + to, position.to(where.dtype.element_ty), mask=inside)


@triton.jit
def _spread(
    grad: tl.tensor, where: tl.tensor, word: tl.tensor, feature: tl.tensor, features: tl.tensor, start: tl.tensor,
    WORDS: tl.constexpr, SPAN: tl.constexpr, FEATURES: tl.constexpr, TYPE: tl.constexpr,
) -> Any:  # fmt: skip
    """Return (WORDS * SPAN, FEATURES): the gradient of each feature in the row of its maximum, 0 elsewhere."""
    at = word.to(tl.int64)[:, None] * features + feature[None, :]
    inside = (word >= 0)[:, None] & (feature < features)[None, :]
    value = tl.load(grad + at, mask=inside, other=0.0).to(TYPE)
    position = tl.load(where + at, mask=inside, other=-1).to(tl.int32)
    span = start + tl.arange(0, SPAN)
    spread = tl.where(position[:, None, :] == span[None, :, None], value[:, None, :], 0.0)
    return tl.reshape(spread, (WORDS * SPAN, FEATURES)).to(TYPE)


@triton.jit
def _weight_kernel(
    symbols: tl.tensor, grad: tl.tensor, where: tl.tensor, order: tl.tensor, positions: tl.tensor,
    out: tl.tensor,  # (SPLITS, F, DEPTH) float32
    words: tl.tensor, length: tl.tensor, dim: tl.tensor, taps: tl.tensor, features: tl.tensor,
    DEPTH: tl.constexpr, PART: tl.constexpr, WORDS: tl.constexpr, SPAN: tl.constexpr, FEATURES: tl.constexpr,
    TYPE: tl.constexpr,
) -> None:  # fmt: skip
    feature = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    k = tl.program_id(1) * PART + tl.arange(0, PART)
    split = tl.program_id(2)
    total = tl.zeros((FEATURES, PART), tl.float32)
    for group in range(split * WORDS, words, tl.num_programs(2) * WORDS):
        at = group + tl.arange(0, WORDS)
        word = tl.load(order + at, mask=at < words, other=-1)
        count = tl.load(positions + word, mask=word >= 0, other=0)
        at = group + tl.arange(0, WORDS * SPAN) // SPAN
        row_word = tl.load(order + at, mask=at < words, other=-1)
        for start in range(0, tl.max(count), SPAN):
            spread = _spread(grad, where, word, feature, features, start, WORDS, SPAN, FEATURES, TYPE)
            window = _windows(symbols, row_word, start, k, length, dim, taps, WORDS, SPAN).to(TYPE)
            total = tl.dot(tl.trans(spread), window, total, input_precision="ieee")
    to = out + (split * features + feature[:, None]) * DEPTH + k[None, :]
    tl.store(to, total, mask=(feature < features)[:, None])


@triton.jit
def _window_kernel(
    weight: tl.tensor, grad: tl.tensor, where: tl.tensor, order: tl.tensor, positions: tl.tensor,
    out: tl.tensor,  # (U, C, K) float32: gradient of every window
    words: tl.tensor, length: tl.tensor, dim: tl.tensor, taps: tl.tensor, features: tl.tensor,
    PART: tl.constexpr, WORDS: tl.constexpr, SPAN: tl.constexpr, FEATURES: tl.constexpr, TYPE: tl.constexpr,
) -> None:  # fmt: skip
    group = tl.program_id(0) * WORDS
    k = tl.program_id(1) * PART + tl.arange(0, PART)
    at = group + tl.arange(0, WORDS)
    word = tl.load(order + at, mask=at < words, other=-1)
    count = tl.load(positions + word, mask=word >= 0, other=0)
    at = group + tl.arange(0, WORDS * SPAN) // SPAN
    row_word = tl.load(order + at, mask=at < words, other=-1)
    for start in range(0, tl.max(count), SPAN):
        total = tl.zeros((WORDS * SPAN, PART), tl.float32)
        for block in range(0, features, FEATURES):
            feature = block + tl.arange(0, FEATURES)
            spread = _spread(grad, where, word, feature, features, start, WORDS, SPAN, FEATURES, TYPE)
            taken = (feature < features)[:, None] & (k < taps * dim)[None, :]
            filters = tl.load(weight + feature[:, None] * (taps * dim) + k[None, :], mask=taken, other=0.0)
            total = tl.dot(spread, filters, total, input_precision="ieee")
        position = start + tl.arange(0, WORDS * SPAN) % SPAN
        to = out + (row_word.to(tl.int64) * length + position)[:, None] * (taps * dim) + k[None, :]
        inside = (row_word >= 0) & (position < length)
        tl.store(to, total, mask=inside[:, None] & (k < taps * dim)[None, :])


@triton.jit
def _fold_kernel(
    windows: tl.tensor,  # (U, C, K) float32, written for the first `positions` of each word
    positions: tl.tensor,  # (U,)
    out: tl.tensor,  # (U, C, E) float32
    length: tl.tensor, dim: tl.tensor, taps: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Sum the gradient of each symbol over the windows that contain it."""
    word = tl.program_id(0).to(tl.int64)
    count = tl.load(positions + word)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)  # over (C, E)
    position, e = at // dim, at % dim
    total = tl.zeros((BLOCK,), tl.float32)
    for tap in range(taps):
        begin = position - tap
        inside = (begin >= 0) & (begin < count) & (position < length)
        total += tl.load(windows + ((word * length + begin) * taps + tap) * dim + e, mask=inside, other=0.0)
    tl.store(out + word * length * dim + at, total, mask=position < length)


@triton.jit
def _table_kernel(
    chars: tl.tensor, grad: tl.tensor,  # (U, C), (U, C, E)
    order: tl.tensor, positions: tl.tensor,
    out: tl.tensor,  # (SPLITS, symbols, E) float32
    words: tl.tensor, length: tl.tensor, dim: tl.tensor, taps: tl.tensor, symbols: tl.tensor,
    DIM: tl.constexpr, WORDS: tl.constexpr, SPAN: tl.constexpr, SYMBOLS: tl.constexpr,
) -> None:  # fmt: skip
    """Sum over the positions of each symbol, as a product with a one-hot matrix, so that the order is fixed."""
    symbol = tl.program_id(0) * SYMBOLS + tl.arange(0, SYMBOLS)
    split = tl.program_id(1)
    e = tl.arange(0, DIM)
    total = tl.zeros((SYMBOLS, DIM), tl.float32)
    for group in range(split * WORDS, words, tl.num_programs(1) * WORDS):
        at = group + tl.arange(0, WORDS)
        word = tl.load(order + at, mask=at < words, other=-1)
        count = tl.load(positions + word, mask=word >= 0, other=0)
        at = group + tl.arange(0, WORDS * SPAN) // SPAN
        row_word = tl.load(order + at, mask=at < words, other=-1).to(tl.int64)
        for start in range(0, tl.minimum(tl.max(count) + taps - 1, length), SPAN):
            position = start + tl.arange(0, WORDS * SPAN) % SPAN
            inside = (row_word >= 0) & (position < length)
            row = row_word * length + position
            char = tl.load(chars + row, mask=inside, other=-1)
            taken = inside[:, None] & (e < dim)[None, :]
            value = tl.load(grad + row[:, None] * dim + e[None, :], mask=taken, other=0.0)
            chosen = (symbol[:, None] == char[None, :]).to(tl.float32)
            total = tl.dot(chosen, value, total, input_precision="ieee")
    to = out + (split * symbols + symbol[:, None]) * dim + e[None, :]
    tl.store(to, total, mask=(symbol < symbols)[:, None] & (e < dim)[None, :])


@dataclass(frozen=True)
class _Sizes:
    words: int
    length: int
    dim: int
    taps: int
    features: int

    @property
    def scalars(self) -> tuple[int, int, int, int, int]:
        return self.words, self.length, self.dim, self.taps, self.features

    @property
    def depth(self) -> int:
        return max(16, int(triton.next_power_of_2(self.taps * self.dim)))


def fast_conv_max(
    chars: Tensor, table: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], padding: int | None
) -> Tensor:
    """Compute `conv_max` on a GPU, in the dtype of `table` or of autocast."""
    dtype = compute_type(table)
    result: Tensor = _ConvMax.apply(chars, table, padding, dtype, len(weights), *weights, *biases)
    return result


class _ConvMax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, chars: Tensor, table: Tensor, padding: int | None, dtype: torch.dtype, filters: int, *rest: Tensor
    ) -> Tensor:
        weights, biases = rest[:filters], rest[filters:]
        words, length = chars.shape
        dim, taps = table.shape[1], max(weight.shape[2] for weight in weights)
        sizes = _Sizes(words, length, dim, taps, sum(len(weight) for weight in weights))
        padded = [torch.nn.functional.pad(weight, (0, taps - weight.shape[2])) for weight in weights]
        weight = torch.cat(padded).transpose(1, 2).reshape(sizes.features, taps * dim).to(dtype)  # (F, K)
        widths = _widths(tuple((len(weight), weight.shape[2]) for weight in weights), chars.device)
        chars, positions = chars.contiguous(), _positions(chars)
        order = positions.argsort().to(torch.int32)
        symbols = weight.new_empty(words, length + taps, dim)
        out = weight.new_empty(words, sizes.features)
        where = torch.empty_like(out, dtype=torch.uint8 if length <= 256 else torch.int32)
        if words:
            with torch.cuda.device_of(chars):
                block = _block((length + taps) * dim)
                _spell_kernel[words, -(-(length + taps) * dim // block)](
                    chars, table.contiguous(), symbols, length, dim, taps, BLOCK=block
                )
                _forward_kernel[-(-sizes.features // FEATURES), -(-words // WORDS)](
                    symbols, weight, torch.cat(biases), widths, order, positions, out, where, *sizes.scalars,
                    DEPTH=sizes.depth, **_tile(sizes, dtype),
                )  # fmt: skip
        ctx.save_for_backward(chars, symbols, weight, where, order, positions)
        ctx.sizes, ctx.padding = sizes, padding
        ctx.table = len(table), table.dtype
        ctx.weights = [(len(tensor), tensor.shape[2], tensor.dtype) for tensor in weights]
        ctx.biases = [tensor.dtype for tensor in biases]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _, _, weight, *_ = ctx.saved_tensors
        grad = grad.to(weight.dtype).contiguous()
        with torch.cuda.device_of(grad):
            total = _grad_weight(grad, ctx.saved_tensors, ctx.sizes)
            grad_table = None
            if ctx.needs_input_grad[1]:
                symbols, dtype = ctx.table
                grad_table = _grad_table(grad, ctx.saved_tensors, ctx.sizes, symbols)
                if ctx.padding is not None:
                    grad_table[ctx.padding] = 0.0
                grad_table = grad_table.to(dtype)
        counts = [count for count, _, _ in ctx.weights]
        parts = zip(torch.split(total, counts), ctx.weights, strict=True)
        grad_weights = [part[:, :, :width].to(dtype) for part, (_, width, dtype) in parts]
        sums = zip(torch.split(grad.sum(0, dtype=torch.float32), counts), ctx.biases, strict=True)
        return None, grad_table, None, None, None, *grad_weights, *(part.to(dtype) for part, dtype in sums)


def _grad_weight(grad: Tensor, saved: tuple[Tensor, ...], sizes: _Sizes) -> Tensor:
    """Return the gradient of all filters, padded to the widest one (F, E, W)."""
    _, symbols, _, where, order, positions = saved
    tile = _tile(sizes, grad.dtype)
    totals = grad.new_zeros(SPLITS, sizes.features, sizes.depth, dtype=torch.float32)
    if sizes.words:
        _weight_kernel[-(-sizes.features // FEATURES), sizes.depth // tile["PART"], SPLITS](
            symbols, grad, where, order, positions, totals, *sizes.scalars, DEPTH=sizes.depth, **tile
        )
    total = totals.sum(0)[:, : sizes.taps * sizes.dim]
    return total.reshape(sizes.features, sizes.taps, sizes.dim).transpose(1, 2)


def _grad_table(grad: Tensor, saved: tuple[Tensor, ...], sizes: _Sizes, symbols: int) -> Tensor:  # (symbols, E)
    chars, _, weight, where, order, positions = saved
    words, length, dim, taps, _ = sizes.scalars
    totals = grad.new_zeros(SPLITS, symbols, dim, dtype=torch.float32)
    if words:
        tile = _tile(sizes, grad.dtype)
        windows = grad.new_empty(words, length, taps * dim, dtype=torch.float32)
        _window_kernel[-(-words // WORDS), sizes.depth // tile["PART"]](
            weight, grad, where, order, positions, windows, *sizes.scalars, **tile
        )
        folded = grad.new_empty(words, length, dim, dtype=torch.float32)
        block = _block(length * dim)
        _fold_kernel[words, -(-length * dim // block)](windows, positions, folded, length, dim, taps, BLOCK=block)
        _table_kernel[-(-symbols // 64), SPLITS](
            chars, folded, order, positions, totals, words, length, dim, taps, symbols,
            DIM=max(16, int(triton.next_power_of_2(dim))), WORDS=WORDS, SPAN=SPAN, SYMBOLS=64,
        )  # fmt: skip
    return totals.sum(0)


@functools.cache
def _widths(filters: tuple[tuple[int, int], ...], device: torch.device) -> Tensor:  # (F,)
    return torch.tensor([width for count, width in filters for _ in range(count)], dtype=torch.int32, device=device)


def _block(size: int) -> int:
    return min(1024, int(triton.next_power_of_2(size)))


def _positions(chars: Tensor) -> Tensor:  # (U, C) -> (U,)
    """Return how many positions of a word are needed: all before the run of its last symbol, and one inside it."""
    length = chars.shape[1]
    positions = torch.arange(1, length + 1, device=chars.device, dtype=torch.int32)
    return ((chars != chars[:, -1:]) * positions).amax(1).add(1).clamp(max=length).to(torch.int32)


def _tile(sizes: _Sizes, dtype: torch.dtype) -> dict[str, Any]:
    kind = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16}[dtype]
    part = min(sizes.depth, 32 if dtype is torch.float32 else 128)  # columns of K at once, limited by the shared memory
    return {
        "PART": part, "WORDS": WORDS, "SPAN": SPAN, "FEATURES": FEATURES, "TYPE": kind,
        "num_stages": 1,
    }  # fmt: skip
