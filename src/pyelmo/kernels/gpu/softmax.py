"""Sampled softmax: each target against negative samples that the whole batch shares, and the sampler.

M positions, P size of a vector, V words, S negatives, K rows of the softmax table that a batch uses.

`sampled_nll` is the plain reference, `fast_sampled_nll` the same on a GPU. Both accept the whole table, or only the
rows that the batch uses (`touched`): copy those into a leaf tensor and pass indices into it. The gradient is then a
dense (K, P) for the rows `ids`, and an optimiser has to update only these.
"""

# Triton's decorator has no types, and the constants of its kernels are in upper case.
# mypy: disable-error-code="untyped-decorator, no-untyped-call, no-any-return"
# ruff: noqa: N803

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyelmo.kernels.choice import compute_type

try:
    import triton
    import triton.language as tl
except ImportError:  # the reference and the sampler work without Triton
    triton = None

CHUNK = 16384  # positions whose float32 logits are in memory together: half a gigabyte for 8,192 negatives


@dataclass(frozen=True)
class Negatives:
    """Distinct words drawn from the log-uniform distribution, and the number of draws until all had occurred."""

    ids: Tensor  # (S,)
    tries: Tensor  # ()
    words: int

    def log_expected(self, ids: Tensor) -> Tensor:
        """Return the logarithm of the expected count of each word in that many draws: log(1 - (1 - p)^tries)."""
        p = log_uniform_probability(ids, self.words)
        return torch.log(-torch.expm1(self.tries * torch.log1p(-p))).float()


def log_uniform_probability(ids: Tensor, words: int) -> Tensor:
    """Return P(k) = log((k + 2) / (k + 1)) / log(V + 1): Zipf's law for a vocabulary sorted by falling counts."""
    return torch.log1p(1 / (ids.double() + 1)) / math.log(words + 1)


def draw_negatives(words: int, count: int, generator: torch.Generator) -> Negatives:
    """Draw log-uniform words until `count` distinct ones have occurred, as TensorFlow's sampler does, without a loop.

    Let draws be a Poisson process of rate 1. The first draw of word k is then at a time that is exponential with rate
    p_k, independent of other words. The first `count` distinct words are therefore those with the smallest times, and
    the number of repeated draws until then is Poisson with mean sum p_k (end - time_k). The joint distribution equals
    that of drawing one by one. The host never waits for the device, and `count` may be as large as V.
    """
    if not 0 < count <= words:
        raise ValueError(f"cannot draw {count} distinct negatives from {words} words")
    device = generator.device
    p = log_uniform_probability(torch.arange(words, device=device), words)
    # The times are drawn in double precision, because only the smallest ones of many rare words matter, and sorted in
    # single precision, which is twice as fast.
    times = torch.empty(words, dtype=torch.float64, device=device).exponential_(generator=generator).div_(p).float()
    first, ids = times.topk(count, largest=False)
    repeats = torch.poisson((p[ids] * (first[-1] - first)).sum(), generator=generator)
    return Negatives(ids, count + repeats, words)


@dataclass(frozen=True)
class Touched:
    """The rows of the table that a batch uses, and the indices of its targets and negatives among them."""

    ids: Tensor  # (K,) distinct, sorted
    targets: Tensor  # (M,)
    negatives: Tensor  # (S,)


def touched(targets: Tensor, negatives: Tensor) -> Touched:  # (M,), (S,)
    ids, inverse = torch.unique(torch.cat([targets, negatives]), return_inverse=True)
    return Touched(ids, inverse[: len(targets)], inverse[len(targets) :])


def sampled_nll(
    vectors: Tensor,
    targets: Tensor,
    weight: Tensor,
    bias: Tensor,
    negatives: Tensor,
    target_log_expected: Tensor,
    negative_log_expected: Tensor,
) -> Tensor:
    """(M, P), (M,), (V, P), (V,), (S,), (M,), (S,) -> (M,): the negative log likelihood of each target.

    The logarithm of a word's expected count is subtracted from its logit. A negative that equals the target of a
    position is ignored at that position. `negatives` are distinct.
    """
    true = (vectors * weight[targets]).sum(-1) + bias[targets] - target_log_expected
    logits = torch.addmm(bias[negatives] - negative_log_expected, vectors, weight[negatives].T)  # (M, S)
    logits = logits.masked_fill(negatives == targets.unsqueeze(1), -math.inf)
    return torch.logsumexp(torch.cat([true.unsqueeze(1), logits], 1), 1) - true


def fast_sampled_nll(
    vectors: Tensor,
    targets: Tensor,
    weight: Tensor,
    bias: Tensor,
    negatives: Tensor,
    target_log_expected: Tensor,
    negative_log_expected: Tensor,
) -> Tensor:
    """Compute `sampled_nll` on a GPU, in the dtype of `vectors` or of autocast; logits are float32."""
    dtype = compute_type(vectors)
    result: Tensor = _SampledNll.apply(
        vectors, targets, weight, bias, negatives, target_log_expected, negative_log_expected, dtype
    )
    return result


if triton is not None:

    @triton.jit
    def _row_kernel(
        logits: tl.tensor,  # (m, S): products of the chunk's vectors with the negatives
        offset: tl.tensor,  # (S,): bias minus the logarithm of the expected count
        vectors: tl.tensor, weight: tl.tensor,  # (m, P), (K, P)
        targets: tl.tensor, target_offset: tl.tensor,  # (m,), (m,)
        column: tl.tensor,  # (K,): the index of a row among the negatives, or -1
        nll: tl.tensor,  # (m,)
        shares: tl.tensor,  # (m, S): gradient of nll by the logits
        target_share: tl.tensor,  # (m,): gradient of nll by the target's logit, 0 if it is in `shares`
        count: tl.tensor, size: tl.tensor,
        BLOCK: tl.constexpr, SIZE: tl.constexpr,
    ) -> None:  # fmt: skip
        row = tl.program_id(0).to(tl.int64)
        target = tl.load(targets + row).to(tl.int64)
        dim = tl.arange(0, SIZE)
        vector = tl.load(vectors + row * size + dim, mask=dim < size, other=0.0).to(tl.float32)
        other = tl.load(weight + target * size + dim, mask=dim < size, other=0.0).to(tl.float32)
        true = tl.sum(vector * other) + tl.load(target_offset + row)
        hit = tl.load(column + target)
        at = tl.arange(0, BLOCK)
        values = tl.load(logits + row * count + at, mask=at < count, other=float("-inf")).to(tl.float32)
        values += tl.load(offset + at, mask=at < count, other=0.0)
        values = tl.where(at == hit, float("-inf"), values)
        most = tl.maximum(tl.max(values), true)
        values = tl.exp(values - most)
        first = tl.exp(true - most)
        total = tl.sum(values) + first
        tl.store(nll + row, tl.log(total) + most - true)
        # If the target is also a negative, its column is free here: its gradient goes through the large product.
        grad = first / total - 1.0
        values = tl.where(at == hit, grad, values / total)
        tl.store(shares + row * count + at, values.to(shares.dtype.element_ty), mask=at < count)
        tl.store(target_share + row, tl.where(hit >= 0, 0.0, grad))

    @triton.jit
    def _vector_kernel(
        product: tl.tensor,  # (M, P), read: shares times the negatives' vectors; written: the gradient of the vectors
        vectors: tl.tensor, weight: tl.tensor,  # (M, P), (K, P)
        targets: tl.tensor, target_share: tl.tensor, scales: tl.tensor,  # (M,), (M,), (M,)
        scaled: tl.tensor,  # (M, P): each vector times the gradient of its nll
        size: tl.tensor,
        SIZE: tl.constexpr,
    ) -> None:  # fmt: skip
        row = tl.program_id(0).to(tl.int64)
        dim = tl.arange(0, SIZE)
        inside = dim < size
        scale, share = tl.load(scales + row), tl.load(target_share + row)
        vector = tl.load(vectors + row * size + dim, mask=inside, other=0.0).to(tl.float32)
        tl.store(scaled + row * size + dim, (scale * vector).to(scaled.dtype.element_ty), mask=inside)
        grad = tl.load(product + row * size + dim, mask=inside, other=0.0).to(tl.float32)
        if share != 0.0:
            target = tl.load(targets + row).to(tl.int64)
            grad += share * tl.load(weight + target * size + dim, mask=inside, other=0.0).to(tl.float32)
        tl.store(product + row * size + dim, (scale * grad).to(product.dtype.element_ty), mask=inside)

    @triton.jit
    def _table_kernel(
        vectors: tl.tensor,  # (M, P), each times the gradient of its nll
        scales: tl.tensor, share: tl.tensor,  # (M,), (M,): that gradient, and the target's share
        order: tl.tensor, starts: tl.tensor,  # (M,), (K + 1,): positions sorted by target, and the first of each row
        column: tl.tensor,  # (K,)
        dense: tl.tensor, dense_bias: tl.tensor,  # (S, P), (S,): gradients of the negatives
        out: tl.tensor, out_bias: tl.tensor,  # (K, P), (K,)
        size: tl.tensor,
        SIZE: tl.constexpr,
    ) -> None:  # fmt: skip
        """Write one row of the table's gradient: from the product for a negative, else the sum over its positions."""
        row = tl.program_id(0).to(tl.int64)
        dim = tl.arange(0, SIZE)
        number = tl.load(column + row).to(tl.int64)
        if number >= 0:
            total = tl.load(dense + number * size + dim, mask=dim < size, other=0.0).to(tl.float32)
            total_bias = tl.load(dense_bias + number).to(tl.float32)
        else:
            total = tl.zeros((SIZE,), tl.float32)
            total_bias = 0.0
            for at in range(tl.load(starts + row), tl.load(starts + row + 1)):
                position = tl.load(order + at)
                part = tl.load(share + position)
                total += part * tl.load(vectors + position * size + dim, mask=dim < size, other=0.0).to(tl.float32)
                total_bias += part * tl.load(scales + position)
        tl.store(out + row * size + dim, total.to(out.dtype.element_ty), mask=dim < size)
        tl.store(out_bias + row, total_bias.to(out_bias.dtype.element_ty))


class _SampledNll(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        targets: Tensor,
        weight: Tensor,
        bias: Tensor,
        negatives: Tensor,
        target_log_expected: Tensor,
        negative_log_expected: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        positions, size = vectors.shape
        count = len(negatives)
        dtypes = vectors.dtype, weight.dtype, bias.dtype
        vectors, rows = vectors.to(dtype).contiguous(), weight.to(dtype).contiguous()
        column = targets.new_full((len(weight),), -1, dtype=torch.int32)
        column[negatives] = torch.arange(count, device=column.device, dtype=torch.int32)
        offset = (bias[negatives] - negative_log_expected).float()
        target_offset = (bias[targets] - target_log_expected).float()
        chosen = rows[negatives]  # (S, P)
        nll = offset.new_empty(positions)
        target_share = offset.new_empty(positions)
        shares = vectors.new_empty(positions, count)
        with torch.cuda.device_of(vectors):
            for start in range(0, positions, CHUNK):
                part = slice(start, start + CHUNK)
                logits = _product(vectors[part], chosen.T)
                _row_kernel[(len(logits),)](
                    logits, offset, vectors[part], rows, targets[part], target_offset[part], column,
                    nll[part], shares[part], target_share[part], count, size,
                    BLOCK=int(triton.next_power_of_2(count)), SIZE=int(triton.next_power_of_2(size)),
                    num_warps=16 if count > 4096 else 8,
                )  # fmt: skip
        ctx.save_for_backward(vectors, targets, rows, negatives, column, shares, target_share)
        ctx.dtypes = dtypes
        return nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        vectors, targets, rows, negatives, column, shares, target_share = ctx.saved_tensors
        dtype_vectors, dtype_weight, dtype_bias = ctx.dtypes
        scales = grad.float().contiguous()  # (M,)
        product = torch.mm(shares, rows[negatives])  # (M, P)
        scaled = torch.empty_like(vectors)
        tile = {"SIZE": int(triton.next_power_of_2(rows.shape[1]))}
        grad_weight = grad_bias = None
        with torch.cuda.device_of(vectors):
            _vector_kernel[len(vectors),](
                product, vectors, rows, targets, target_share, scales, scaled, rows.shape[1], **tile
            )
            if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
                dense = torch.mm(shares.T, scaled)  # (S, P)
                dense_bias = torch.mv(shares.T, scales.to(shares.dtype))
                ordered, order = targets.sort(stable=True)
                starts = torch.searchsorted(ordered, torch.arange(len(rows) + 1, device=ordered.device))
                grad_weight = torch.empty_like(rows, dtype=dtype_weight)
                grad_bias = rows.new_empty(len(rows), dtype=dtype_bias)
                _table_kernel[len(rows),](
                    scaled, scales, target_share, order, starts, column, dense, dense_bias, grad_weight, grad_bias,
                    rows.shape[1], **tile,
                )  # fmt: skip
        grad_vectors = product.to(dtype_vectors) if ctx.needs_input_grad[0] else None
        return grad_vectors, None, grad_weight, grad_bias, None, None, None, None


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Return a matrix product in float32: in bfloat16, logits near 20 would have an error of 5 %."""
    if left.is_cuda and left.dtype is not torch.float32 and "dtype" in torch.ops.aten.mm.overloads():  # torch 2.8
        return torch.mm(left, right, out_dtype=torch.float32)
    return torch.mm(left.float(), right.float())
