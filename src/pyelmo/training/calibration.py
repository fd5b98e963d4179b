"""Calibrated rounding to int4: run a model over text, and round each matrix for the inputs that it gets there.

A matrix W and its bias b turn inputs z into W z + b. If W is rounded to V, the bias can take over the mean of the
error, (W - V) E[z]; what is left depends on the covariance of z, which `pack_calibrated` takes into account.

U distinct words, N directions, B sentences, T tokens, D input, P output, C cells, M tokens of a batch, n inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained, StoredWeight
from pyelmo.kernels.cpu.quantise4 import Packed, fits, pack_calibrated
from pyelmo.model.bilm import BiLM
from pyelmo.model.lstm import ProjectedLSTM
from pyelmo.model.softmax import Softmax

BATCH = 64  # sentences
LONGEST = 256  # words of a sentence that are read, which bounds the memory


class Moments:
    """The number, the sum (n,) and the sum of products (n, n) of the inputs of a matrix."""

    def __init__(self) -> None:
        self.count = 0
        self.sum: Float64Array = np.zeros(0)
        self.products: Float64Array = np.zeros((0, 0))

    def add(self, inputs: Tensor) -> None:  # (M, n)
        total, products = inputs.sum(0).double().numpy(), (inputs.T @ inputs).double().numpy()
        first = self.count == 0
        self.sum, self.products = (total, products) if first else (self.sum + total, self.products + products)
        self.count += len(inputs)

    @property
    def mean(self) -> Float64Array:  # (n,)
        return self.sum / self.count

    @property
    def second(self) -> Float64Array:  # (n, n)
        return self.products / self.count

    @property
    def covariance(self) -> Float64Array:  # (n, n)
        return self.second - np.outer(self.mean, self.mean)


def calibrated(model: Pretrained, sentences: Iterable[Sequence[str]]) -> dict[str, StoredWeight]:
    """Return the weights of a model that change when it is rounded to int4 for text like `sentences`.

    These are the matrices of the character CNN's highways and projection, of the LSTMs and of the softmax, packed, and
    their biases. Matrices that int4 cannot store, and those that are not multiplied with anything, are left out.
    """
    moments = collect(model, sentences)
    weights = {name: parameter.detach().float().cpu() for name, parameter in model.bilm.named_parameters()}
    result: dict[str, StoredWeight] = {}
    for key, matrices, bias in _products(model.bilm):
        if not all(fits(tuple(weights[name].shape)) for name in matrices):
            continue
        joint = torch.cat([weights[name] for name in matrices], -1).numpy()  # (R, n) or (N, R, n)
        offset = None if bias is None else weights[bias].numpy()
        if joint.ndim == 2:
            packed, offset = _round(joint, offset, moments[key])
        else:
            sides = [
                _round(rows, None if offset is None else offset[side], moments[f"{key}.{side}"])
                for side, rows in enumerate(joint)
            ]
            packed = Packed(np.stack([side.codes for side, _ in sides]), np.stack([side.scales for side, _ in sides]))
            offset = None if bias is None else np.stack([side for _, side in sides if side is not None])
        parts = len(matrices)  # of equal width: the inputs and the states of an LSTM
        for number, name in enumerate(matrices):
            codes, scales = (np.split(values, parts, -1)[number] for values in (packed.codes, packed.scales))
            result[name] = Packed(np.ascontiguousarray(codes), np.ascontiguousarray(scales))
        if bias is not None and offset is not None:
            result[bias] = offset
    return result


def _round(
    weights: Float32Array, bias: Float32Array | None, moments: Moments
) -> tuple[Packed, Float32Array | None]:  # (R, n), (R,)
    if bias is None:
        return pack_calibrated(weights, moments.second), None
    packed = pack_calibrated(weights, moments.covariance)
    moved = (weights - packed.restore()).astype(np.float64) @ moments.mean
    return packed, (bias + moved).astype(np.float32)


def _products(bilm: BiLM) -> list[tuple[str, tuple[str, ...], str | None]]:
    """Return each product of the model: the name of its moments, of its matrices side by side, and of its bias."""
    products: list[tuple[str, tuple[str, ...], str | None]] = []
    for number in range(len(bilm.chars.highways) if bilm.chars is not None else 0):
        key = f"chars.highways.{number}"
        products += [(key, (f"{key}.{part}.weight",), f"{key}.{part}.bias") for part in ("transform", "gate")]
    if bilm.projection is not None:
        products.append(("projection", ("projection.weight",), "projection.bias"))
    for number in range(len(bilm.lstm.layers)):
        key = f"lstm.layers.{number}"
        products.append((key, (f"{key}.input", f"{key}.recurrent"), f"{key}.bias"))
        if bilm.config.lstm.projection is not None:
            products.append((f"{key}.projection", (f"{key}.projection",), None))
    if isinstance(bilm.softmax, Softmax) and not bilm.config.softmax_shares_words:
        products.append(("softmax", ("softmax.weight",), "softmax.bias"))
    return products


def collect(model: Pretrained, sentences: Iterable[Sequence[str]]) -> dict[str, Moments]:
    """Return the moments of the inputs of each product over text; a word of a batch is encoded, and counts, once."""
    moments: dict[str, Moments] = defaultdict(Moments)
    bilm = model.bilm
    texts = sorted((list(sentence[:LONGEST]) for sentence in sentences if sentence), key=len)
    if not texts:
        raise InputError("there is no text to calibrate with: the input has no words")
    with torch.inference_mode():
        for start in range(0, len(texts), BATCH):
            words, index, lengths = model.lexicon.batch(texts[start : start + BATCH])
            mask = np.arange(index.shape[1]) < lengths[:, None]
            vectors = _encode(model, words, moments)  # (U, P)
            orders = [index]
            if bilm.config.bidirectional:
                orders.append(_reversed(index, lengths))
            inputs = torch.nn.functional.embedding(torch.from_numpy(np.stack(orders)), vectors)  # (N, B, T, P)
            top = _run_lstms(bilm, inputs, torch.from_numpy(mask), moments)
            moments["softmax"].add(top.flatten(0, 1))
    return moments


def _encode(model: Pretrained, words: Sequence[str], moments: dict[str, Moments]) -> Tensor:
    """Return the vectors (U, P) of distinct words; add the inputs of the highways and of the projection."""
    seen: dict[str, list[Tensor]] = defaultdict(list)
    modules = {name: module for name, module in model.bilm.named_modules() if name in _encoder_products(model.bilm)}
    hooks = [
        module.register_forward_pre_hook(lambda _, inputs, name=name: seen[name].append(inputs[0]))
        for name, module in modules.items()
    ]
    ids = model.lexicon.encode(words)
    vectors = model.bilm.encode_words(
        None if ids.chars is None else torch.from_numpy(ids.chars),
        None if ids.words is None else torch.from_numpy(ids.words),
    )
    for hook in hooks:
        hook.remove()
    for name, parts in seen.items():
        moments[name].add(torch.cat(parts)[: len(words)])  # without the rows that `encode_words` pads
    return vectors


def _encoder_products(bilm: BiLM) -> set[str]:
    return {key for key, _, _ in _products(bilm) if key.startswith(("chars.", "projection"))}


def _reversed(index: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return each sentence of an index (B, T) from its end; padding stays after it."""
    result = index.copy()
    for row, length in enumerate(lengths):
        result[row, :length] = index[row, :length][::-1]
    return result


def _run_lstms(bilm: BiLM, inputs: Tensor, mask: Tensor, moments: dict[str, Moments]) -> Tensor:
    """(N, B, T, P), (B, T) -> the output of the last layer (N, M, P); add the inputs of all products."""
    for number, module in enumerate(bilm.lstm.layers):
        assert isinstance(module, ProjectedLSTM)
        joint, hidden, outputs = run_layer(module, inputs, mask)
        for side in range(len(joint)):
            moments[f"lstm.layers.{number}.{side}"].add(joint[side])
            moments[f"lstm.layers.{number}.projection.{side}"].add(hidden[side])
        inputs = outputs + inputs if bilm.config.lstm.skip and number > 0 else outputs
    return inputs[:, mask]


def run_layer(layer: ProjectedLSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return [x_t, h_t-1] (N, M, D + P), o tanh(c_t) (N, M, C) and the outputs (N, B, T, P) of a layer."""
    directions, batch, time, _ = inputs.shape
    cells = layer.config.cells
    state = inputs.new_zeros(directions, batch, layer.config.dim)
    cell = inputs.new_zeros(directions, batch, cells)
    states, all_cells, outputs = [], [], []
    for step in range(time):
        states.append(state)
        now = slice(step, step + 1)
        output, state, cell = layer(inputs[:, :, now], state, cell, mask[:, now])
        all_cells.append(cell)
        outputs.append(output)
    joint = torch.cat([inputs, torch.stack(states, 2)], -1)[:, mask]
    out_rows = torch.cat([layer.input, layer.recurrent], -1)[:, 3 * cells :]  # the gates are i, f, g, o
    out_gate = torch.sigmoid(torch.baddbmm(layer.bias[:, None, 3 * cells :], joint, out_rows.transpose(1, 2)))
    return joint, out_gate * torch.tanh(torch.stack(all_cells, 2)[:, mask]), torch.cat(outputs, 2)
