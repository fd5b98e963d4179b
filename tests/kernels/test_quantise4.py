"""Weights in four bits: what comes back, what it costs, and what files with them say when they are damaged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import pyelmo
from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.errors import FormatError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.kernels.cpu.quantise4 import CODES, DAMPING, EDGES, GROUP, fits, pack, pack_calibrated
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

MODEL = ModelConfig(
    chars=CharConfig(dim=4, filters=((1, 32), (2, 32)), highways=1), lstm=LstmConfig(cells=64, projection=32)
)


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    model = pyelmo.Embedder(Pretrained(BiLM(MODEL).eval(), Lexicon(Bytes()), "test", "test"))
    model.save(tmp_path / "int4", precision="int4")
    model.save(tmp_path / "int8", precision="int8")
    model.save(tmp_path / "float32")
    return tmp_path


def test_normal_weights_lose_less_than_a_tenth():
    weights = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    error = np.linalg.norm(pack(weights).restore() - weights) / np.linalg.norm(weights)
    assert error < 0.1


def test_codes_times_a_scale_come_back_exactly():
    rng = np.random.default_rng(1)
    weights = CODES[rng.integers(0, 16, (4, 3 * GROUP))]
    weights[:, ::GROUP] = -1.0  # every group reaches its outermost code
    assert np.array_equal(pack(weights).restore(), weights)


def test_zeros_stay_zero_and_shapes_stay():
    packed = pack(np.zeros((2, 5, 64), np.float32))
    assert packed.codes.shape == (2, 5, 32)
    assert packed.scales.shape == (2, 5, 2)
    assert not packed.restore().any()


def test_rows_of_broken_groups_are_refused():
    assert not fits((8, 40))
    assert not fits((64,))
    with pytest.raises(ValueError, match="whole groups of 32"):
        pack(np.zeros((8, 40), np.float32))


def correlated_moments(size, seed=2):
    inputs = np.random.default_rng(seed).normal(size=(500, size // 4)) @ np.random.default_rng(seed).normal(
        size=(size // 4, size)
    )
    inputs += np.random.default_rng(seed).normal(size=(500, size))
    return inputs.T @ inputs / len(inputs)


def test_calibrated_rounding_solves_for_the_columns_that_are_left():
    size = 3 * GROUP
    weights = np.random.default_rng(0).normal(size=(8, size)).astype(np.float32)
    moments = correlated_moments(size)
    packed = pack_calibrated(weights, moments)
    damped = moments + DAMPING * np.trace(moments) / size * np.eye(size)
    scales = packed.scales.astype(np.float64).repeat(GROUP, 1)
    rest, rounded = weights.astype(np.float64), np.zeros(weights.shape)
    sizes = np.diag(moments).reshape(-1, GROUP)
    groups = np.argsort(-sizes.mean(1))
    left = [group * GROUP + column for group in groups for column in np.argsort(-sizes[group])]
    while left:  # the least squares solution, without a factor that is shared by all columns
        column = left.pop(0)
        rounded[:, column] = CODES[np.searchsorted(EDGES, rest[:, column] / scales[:, column])] * scales[:, column]
        error = rest[:, column] - rounded[:, column]
        if left:
            rest[:, left] += np.outer(error, np.linalg.solve(damped[np.ix_(left, left)], damped[left, column]))
    np.testing.assert_allclose(packed.restore(), rounded, atol=1e-6)


def test_calibrated_rounding_lowers_the_error_of_products_and_is_deterministic():
    weights = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    moments = correlated_moments(128)
    calibrated = pack_calibrated(weights, moments)
    plain, better = (
        np.einsum("ri,ij,rj", *((change, moments, change)))
        for change in (packed.restore() - weights for packed in (pack(weights), calibrated))
    )
    assert better < 0.5 * plain
    assert np.array_equal(calibrated.codes, pack_calibrated(weights, moments).codes)


def test_without_correlations_calibrated_rounding_is_plain_rounding():
    weights = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    for moments in (np.eye(64), np.zeros((64, 64))):
        assert np.array_equal(pack_calibrated(weights, moments).restore(), pack(weights).restore())


def test_a_file_in_int4_is_smaller_than_one_in_int8(saved):
    four, eight = ((saved / name / "model.safetensors").stat().st_size for name in ("int4", "int8"))
    assert four < 0.75 * eight


def test_a_model_in_int4_computes_with_the_rounded_weights(saved):
    four, full = (pyelmo.load(saved / name) for name in ("int4", "float32"))
    for name, weight in full.bilm.named_parameters():
        rounded = dict(four.bilm.named_parameters())[name]
        expected = weight.detach().numpy()
        if name.endswith("bias"):  # those of an LSTM have two axes
            assert np.array_equal(rounded.detach().numpy(), expected)
        elif fits(expected.shape) and not name.startswith("chars.convolutions."):
            assert np.array_equal(rounded.detach().numpy(), pack(expected).restore())
    one, other = (model.embed(["in the bank"])[0] for model in (four, full))
    assert np.abs(one - other).max() < 0.2 * np.abs(other).max()


def test_a_model_in_int4_also_computes_in_int8(saved):
    one, other = (pyelmo.load(saved / "int4", precision=name).embed(["in the bank"])[0] for name in ("int8", "float32"))
    assert np.abs(one - other).max() < 0.05 * np.abs(other).max()


def test_missing_and_wrong_scales_are_named(saved):
    path = saved / "int4" / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name, tensor in tensors.items() if tensor.dtype == torch.uint8)
    save_file({key: value for key, value in tensors.items() if key != f"{name}.scale"}, path)
    with pytest.raises(FormatError, match="is int4, but"):
        pyelmo.load(saved / "int4").embed(["bank"])
    save_file({**tensors, f"{name}.scale": tensors[f"{name}.scale"].float()}, path)
    with pytest.raises(FormatError, match=r"expected \(64, 2\) float16"):
        pyelmo.load(saved / "int4").embed(["bank"])
