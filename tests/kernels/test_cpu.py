"""The compiled functions against the plain ones, on every instruction set of this processor and of emulated ones."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest
import torch
from emulated import EMULATED, NATIVE, PROCESSORS, chosen
from support import TOLERANCE, worst

from pyelmo.errors import InputError, PyelmoError
from pyelmo.kernels.cpu import compiled as compiled_functions
from pyelmo.kernels.cpu import plain as plain_functions
from pyelmo.kernels.cpu.quantise import Quantised, quantise
from pyelmo.model.char_cnn import conv_max
from pyelmo.model.lstm import projected_lstm

FLOAT = TOLERANCE[torch.float32]


def random(*shape, scale=1.0, seed=0):
    return (np.random.default_rng((seed, *shape)).normal(size=shape) * scale).astype(np.float32)


PRECISIONS = ["float32", "int8", "fine"]  # fine: int8 with inputs of 16 bits


def packed(kernels, weights, precision, *, gates=False):
    given = weights if precision == "float32" else quantise(weights)
    return kernels.Matrix(given, gates=gates, fine=precision == "fine")


def lstm(kernels, precision, cells, inputs, projection, clips):
    size = projection or cells
    weights = [random(4 * cells, inputs, scale=inputs**-0.5), random(4 * cells, size, scale=size**-0.5)]
    matrices = [packed(kernels, weight, precision, gates=True) for weight in weights]
    projected = random(projection, cells, scale=2 * cells**-0.5) if projection else None
    matrix = packed(kernels, projected, precision) if projection else None
    return kernels.Lstm(*matrices, random(4 * cells), matrix, *clips), (*weights, random(4 * cells), projected)


def live_rows(lengths):
    return (np.arange(lengths.max())[:, None] < np.sort(lengths)[::-1]).sum(1)


LSTMS = [
    # cells, inputs, projection, clips, sentences, longest
    (40, 10, 24, (3.0, 0.5), 7, 5),
    (17, 9, 5, (None, None), 1, 150),  # more tokens than are computed ahead at once
    (96, 24, 24, (0.3, 3.0), 70, 6),  # more rows than are few, then few of them
    (20, 20, None, (0.5, None), 40, 9),
    (1, 1, 1, (None, None), 3, 4),
]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("cells", "inputs", "projection", "clips", "sentences", "longest"), LSTMS)
def test_an_lstm_equals_the_plain_one(compiled, precision, cells, inputs, projection, clips, sentences, longest):
    live = live_rows(np.random.default_rng(1).integers(1, longest + 1, sentences))
    rows = random(live.sum(), inputs, scale=2.0)
    fast = lstm(compiled, precision, cells, inputs, projection, clips)[0].run(rows, live)
    plain = lstm(plain_functions, precision, cells, inputs, projection, clips)[0].run(rows, live)
    # In int8 the last bit of a float may decide between two of 255 levels, here and there.
    difference = np.abs(fast - plain)
    assert difference.max() <= {"float32": FLOAT, "int8": 0.03, "fine": 2e-4}[precision]
    assert difference.mean() <= {"float32": FLOAT, "int8": 5e-4, "fine": FLOAT}[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("cells", "inputs", "projection", "clips", "sentences", "longest"), LSTMS)
def test_a_state_carries_an_lstm_on(compiled, precision, cells, inputs, projection, clips, sentences, longest):
    live = live_rows(np.random.default_rng(1).integers(1, longest + 1, sentences))
    rows = random(live.sum(), inputs, scale=2.0)
    for kernels in (compiled, plain_functions):
        layer, _ = lstm(kernels, precision, cells, inputs, projection, clips)
        state, parts = layer.zero_state(sentences), []
        for steps in np.array_split(np.arange(len(live)), 3):
            first = live[: steps[0] if len(steps) else 0].sum()
            parts.append(layer.run(rows[first : first + live[steps].sum()], live[steps], state))
        assert np.array_equal(np.concatenate(parts), layer.run(rows, live))
        assert len(state.hidden) == len(state.cell) == live[-1]


def test_the_plain_lstm_equals_the_model_s():
    sentences, time, cells, inputs, projection, clips = 6, 7, 12, 8, 8, (0.5, 0.4)
    layer, weights = lstm(plain_functions, "float32", cells, inputs, projection, clips)
    values = random(sentences, time, inputs, scale=2.0)
    live = np.full(time, sentences)
    got = layer.run(np.ascontiguousarray(values.swapaxes(0, 1)).reshape(-1, inputs), live)
    tensors = [torch.from_numpy(array)[None] for array in (values, *weights)]
    zeros = torch.zeros(1, sentences, projection), torch.zeros(1, sentences, cells)
    want = projected_lstm(tensors[0], *zeros, None, *tensors[1:], *clips)[0][0]
    assert worst(got.reshape(time, sentences, -1).swapaxes(0, 1), want) <= FLOAT


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["compiled", "plain"])
def test_a_row_does_not_depend_on_the_others(compiled, precision, kind):
    compiled = compiled if kind == "compiled" else plain_functions
    layer, _ = lstm(compiled, precision, 33, 10, 12, (3.0, 3.0))
    matrix, bias = packed(compiled, random(70, 10), precision), random(70)
    time = 9
    sentences = random(50, time, 10)

    def run(some):
        rows = np.ascontiguousarray(some.swapaxes(0, 1)).reshape(-1, 10)
        return layer.run(rows, np.full(time, len(some))).reshape(time, len(some), -1)

    together = run(sentences)
    for count in (1, 2, 5, 6, 7, 32, 33):
        assert np.array_equal(run(sentences[:count]), together[:, :count])
        rows = np.ascontiguousarray(sentences[:count, 0])
        whole = compiled.linear(matrix, bias, np.ascontiguousarray(sentences[:, 0]))
        assert np.array_equal(compiled.linear(matrix, bias, rows), whole[:count])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 1, 1), (3, 7, 5), (100, 600, 65), (13, 64, 200)])
def test_a_product_equals_the_plain_one(compiled, precision, rows, inputs, outputs):
    weights, values = random(outputs, inputs, scale=inputs**-0.5), random(rows, inputs)
    values[0] = 0.0
    for bias in (None, random(outputs)):
        fast, plain = (k.linear(packed(k, weights, precision), bias, values) for k in (compiled, plain_functions))
        # With 16 bits, the last bit of a float decides between two levels in one of 1,000 inputs.
        assert worst(fast, plain) <= (1e-4 if precision == "fine" else FLOAT)


def test_int8_products_are_within_a_percent_of_float32(compiled):
    weights, values = random(64, 512, scale=512**-0.5), random(20, 512)
    rounded = compiled.linear(compiled.Matrix(quantise(weights)), None, values)
    exact = values @ weights.T
    assert np.linalg.norm(rounded - exact) / np.linalg.norm(exact) < 0.015


def test_fine_inputs_keep_small_values_beside_large_ones(compiled):
    weights, values = quantise(random(64, 512, scale=512**-0.5)), random(20, 512, scale=0.01)
    values[:, :2] = 1.0, -1.0
    exact = values @ weights.restore().T
    errors = []
    for fine in (False, True):
        got = compiled.linear(compiled.Matrix(weights, fine=fine), None, values)
        errors.append(np.linalg.norm(got - exact) / np.linalg.norm(exact))
    assert errors[0] > 0.02
    assert errors[1] < 1e-3


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_packed_matrix_gives_its_weights_back(compiled, precision, gates):
    weights = random(4 * 19, 21)
    restored = packed(compiled, weights, precision, gates=gates).restore()
    assert np.array_equal(restored, weights if precision == "float32" else quantise(weights).restore())


@pytest.mark.parametrize("count", [1, 15, 16, 100])
def test_a_highway_equals_the_plain_one(compiled, count):
    transform, gate, fast = random(count, seed=1), random(count, seed=2, scale=8.0), random(count, seed=3)
    plain = fast.copy()
    compiled.highway(transform, gate, fast)
    plain_functions.highway(transform, gate, plain)
    assert worst(fast, plain) <= FLOAT


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_character_features_equal_the_plain_ones(compiled, activation):
    size, length, banks = 5, 12, ((1, 3), (2, 70), (5, 64), (12, 9))
    generator = np.random.default_rng(0)
    chars = generator.integers(0, 30, (40, length), dtype=np.int32)
    for word, end in enumerate(generator.integers(1, length + 1, 40)):
        chars[word, end:] = 29  # padding of every length
    table = random(30, size)
    filters = [random(count, width * size, scale=0.4) for width, count in banks]
    biases = [random(count) for _, count in banks]
    fast = compiled.CharFeatures(table, filters, biases, activation).run(chars)
    assert worst(fast, plain_functions.CharFeatures(table, filters, biases, activation).run(chars)) <= FLOAT
    weights = [torch.from_numpy(bank.reshape(len(bank), -1, size)).transpose(1, 2) for bank in filters]
    maxima = conv_max(
        torch.from_numpy(chars), torch.from_numpy(table), weights, list(map(torch.from_numpy, biases)), None
    )
    assert worst(fast, maxima.relu() if activation == "relu" else maxima.tanh()) <= FLOAT


@pytest.mark.parametrize("axes", [1, 2])
def test_quantising_twice_is_quantising_once(axes):
    weights = random(7, 3, 50) * np.float32(10.0) ** np.arange(-3, 4, dtype=np.float32)[:, None, None]
    weights[2] = 0.0
    once = quantise(weights, axes)
    twice = quantise(once.restore(), axes)
    assert np.array_equal(once.values, twice.values)
    assert np.array_equal(once.scales, twice.scales)
    assert np.array_equal(Quantised(once.values[2], once.scales[2]).restore(), np.zeros_like(weights[2]))
    wide = once.scales.reshape(once.scales.shape + (1,) * axes)
    assert (np.abs(once.restore() - weights) <= 0.501 * wide).all()


def same(fast, plain):
    """NaN at the same positions, and the same values elsewhere."""
    assert np.array_equal(np.isnan(fast), np.isnan(plain))
    assert worst(np.nan_to_num(fast), np.nan_to_num(plain)) <= 0.03


POISONS = [np.nan, -np.nan, np.inf, -np.inf, 1e-44]


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_product_keeps_nan_as_the_plain_one(compiled, precision, poison):
    weights, values, bias = random(70, 37, scale=0.2), random(9, 37), random(70)
    values[2, 3], values[4, 36] = poison, poison
    if not np.isinf(poison):
        values[5] = poison
        weights[68, 5] = poison
    else:  # infinity times a weight is infinity or NaN in float32, and all NaN in int8
        bias[5] = poison
    fast = compiled.linear(packed(compiled, weights, precision), bias, values)
    with np.errstate(all="ignore"):
        plain = plain_functions.linear(packed(plain_functions, weights, precision), bias, values)
    same(fast, plain)
    if np.isnan(poison):
        assert np.isnan(fast[[2, 4, 5]]).all()
        assert np.isnan(fast[:, 68]).all()
        assert not np.isnan(fast[[0, 1, 3]][:, :68]).any()


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("projection", [12, None])
@pytest.mark.parametrize("place", ["inputs", "bias", "weights"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_an_lstm_keeps_nan_as_the_plain_one(compiled, precision, projection, poison, place):
    cells, inputs, clips = 20, 9, (0.5, 0.4 if projection else None)
    live = live_rows(np.array([6, 4, 4, 2]))
    rows = random(live.sum(), inputs)
    weights = [random(4 * cells, inputs), random(4 * cells, projection or cells, scale=0.2)]
    bias, projected = random(4 * cells), random(projection, cells) if projection else None
    {"inputs": rows, "bias": bias[None], "weights": weights[1]}[place][0, 3 % len(rows)] = poison
    results = []
    for kernels in (compiled, plain_functions):
        matrices = [packed(kernels, weight, precision, gates=True) for weight in weights]
        last = packed(kernels, projected, precision) if projection else None
        with np.errstate(all="ignore"):
            results.append(kernels.Lstm(*matrices, bias, last, *clips).run(rows, live))
    same(*results)
    assert np.isnan(results[0]).any() or not np.isnan(poison)


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("count", [5, 40])
def test_a_highway_keeps_nan_as_the_plain_one(compiled, count, poison):
    for place in range(3):
        arrays = [random(count, seed=seed) for seed in range(3)]
        arrays[place][[0, -1]] = poison
        transform, gate, fast = arrays
        plain = fast.copy()
        compiled.highway(transform, gate, fast)
        with np.errstate(all="ignore"):
            plain_functions.highway(transform, gate, plain)
        same(fast, plain)
        assert np.isnan(fast[[0, -1]]).all() or not np.isnan(poison)


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_character_features_keep_nan_as_the_plain_ones(compiled, activation, poison):
    size, chars = 5, np.random.default_rng(0).integers(0, 30, (40, 12), dtype=np.int32)
    for place in range(3):
        table, filters, bias = random(30, size), random(70, 2 * size, scale=0.4), random(70)
        (table[7:8], filters[69:], bias[-1:][None])[place][0, 0] = poison
        results = []
        for kernels in (compiled, plain_functions):
            with np.errstate(all="ignore"):
                results.append(kernels.CharFeatures(table, [filters], [bias], activation).run(chars))
        same(*results)
        if np.isnan(poison):
            assert np.isnan(results[0]).any()


def refused(message, call, *arguments):
    with pytest.raises(InputError, match=message):
        call(*arguments)


def test_arrays_that_c_cannot_read_are_refused(compiled):
    matrix, values = compiled.Matrix(random(8, 4)), random(3, 4)
    refused(
        r"inputs: expected an array \(any, 4\) of float32, got \(3, 5\)", compiled.linear, matrix, None, random(3, 5)
    )
    refused("got .* of float64", compiled.linear, matrix, None, values.astype(np.float64))
    refused("not contiguous", compiled.linear, matrix, None, random(4, 3).T)
    refused(r"bias: expected an array \(8\)", compiled.linear, matrix, random(7), values)
    refused("gate: expected an array", compiled.highway, values, random(3, 3), values)
    refused("scales: expected an array", compiled.Matrix, Quantised(np.ones((8, 4), np.int8), random(7)))
    refused("10 rows are not four gates", lambda: compiled.Matrix(random(10, 4), gates=True))
    refused("weights: expected an array", compiled.Matrix, random(8))


def test_symbols_and_rows_beyond_an_array_are_refused_in_c(compiled):
    features = compiled.CharFeatures(random(30, 5), [random(8, 10)], [random(8)], "relu")
    for bad in (30, -1, 2**31 - 1):
        refused("symbols, rows or sizes that do not fit", features.run, np.array([[1, 2, bad]], np.int32))
    refused("do not fit", features.run, np.zeros((1, 1), np.int32))  # shorter than the filter
    refused("symbols: expected an array", features.run, np.zeros((1, 4), np.int64))
    layer = lstm(compiled, "float32", 8, 4, 4, (None, None))[0]
    for live in ([2, 3], [-1, 4], [3, -1, 1]):
        refused("do not fit|expected", layer.run, random(sum(live), 4), np.array(live))
    refused("inputs: expected an array", layer.run, random(4, 4), np.array([3, 2]))
    gates = [compiled.Matrix(random(32, 4), gates=True), compiled.Matrix(random(32, 4), gates=True)]
    refused("do not fit together", compiled.Lstm, *gates, random(32), compiled.Matrix(random(4, 9)), None, None)
    refused("do not fit together", compiled.Lstm, *gates, random(32), None, None, None)
    refused("bias: expected", compiled.Lstm, *gates, random(31), compiled.Matrix(random(4, 8)), None, None)


def test_a_library_of_another_version_is_one_clear_error(monkeypatch):
    class Older:
        def elmo_layer_size(self):
            return 8

    monkeypatch.setattr(compiled_functions.ctypes, "CDLL", lambda path: Older())
    if compiled_functions.library() is None:
        pytest.skip("installed without a compiler")
    with pytest.raises(PyelmoError, match="compiled from another version of pyelmo"):
        compiled_functions.library.__wrapped__()


def test_the_checks_do_not_vanish_with_optimised_python():
    tree = ast.parse(inspect.getsource(compiled_functions))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]


ON_ARM = pytest.mark.parametrize("processor", [pytest.param(name, marks=EMULATED) for name in PROCESSORS])


@ON_ARM
def test_an_arm_processor_runs_its_best_instruction_set(emulated, processor):
    supported = emulated(processor).elmo_supported
    names = [name for number, name in enumerate(compiled_functions.INSTRUCTION_SETS) if supported(number)]
    best = list(PROCESSORS.values())
    assert names == [*best[best.index(PROCESSORS[processor]) :: -1], "base"]


def all_results():
    """Results of all functions in all precisions."""
    results = []
    for precision in PRECISIONS:
        matrix, rows = packed(compiled_functions, random(50, 40), precision), random(22, 40)
        results.append(compiled_functions.linear(matrix, random(50), rows))
        layer, _ = lstm(compiled_functions, precision, 37, 40, 12, (3.0, 0.8))
        results.append(layer.run(rows, np.array([8, 8, 4, 2])))
    results.append(random(100))
    compiled_functions.highway(random(100, seed=1), random(100, seed=2), results[-1])
    chars = np.random.default_rng(0).integers(0, 30, (6, 12), dtype=np.int32)
    features = compiled_functions.CharFeatures(random(30, 5), [random(70, 10)], [random(70)], "tanh")
    return [*results, features.run(chars)]


@ON_ARM
@pytest.mark.skipif("avx2" not in NATIVE, reason="this processor has no AVX2")
def test_arm_gives_the_bits_of_x86(emulated, processor):
    """Both round once after a product and a sum, and sum in the same order."""
    with chosen("avx2", None):
        expected = all_results()
    with chosen(PROCESSORS[processor], emulated(processor)):
        results = all_results()
    assert all(map(np.array_equal, results, expected))
