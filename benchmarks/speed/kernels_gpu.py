"""How fast are the kernels, against the plain reference, against torch.nn.LSTM and against the machine?

    python benchmarks/speed/kernels_gpu.py --json results.json

Forward and backward of the LSTM stack (two layers, two directions), of the token encoder and of the sampled softmax, at
the sizes of the paper and of the small model. Words a second count each of the batch's B x T tokens once, both
directions trained. torch.nn.LSTM has a projection but no clipping and no residual, so it is no ELMo: a yardstick.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pyelmo.config import CharConfig
from pyelmo.kernels import choice
from pyelmo.kernels.gpu.softmax import draw_negatives, fast_sampled_nll, sampled_nll, touched
from pyelmo.model.char_cnn import CharCNN
from pyelmo.model.lstm import projected_lstm
from pyelmo.provenance import machine

STEPS = 20
SIZES = {"paper": (4096, 512), "small": (1024, 128)}  # cells, projection
CLIP = 3.0
VOCABULARY = 793_471
NEGATIVES = 8192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--batches", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--only", choices=["lstm", "chars", "softmax"], nargs="+", default=["lstm", "chars", "softmax"])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this benchmark needs a CUDA device")
    assert choice.available("cuda"), "Triton does not work here; the log says why"
    rows: list[dict[str, Any]] = []
    ceiling = matmul_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: 8192^3 bfloat16 at {ceiling / 1e12:.0f} TFLOP/s")
    print(f"{'what':12} {'size':>6} {'path':18} {'type':9} {'ms':>9} {'peak GB':>8} {'words/s':>12} {'of ceiling':>10}")
    if "lstm" in options.only:
        for name, (cells, size) in SIZES.items():
            for batch in options.batches:
                rows += lstm_rows(name, cells, size, batch, ceiling)
    if "chars" in options.only:
        rows += char_rows(words=8192)
    if "softmax" in options.only:
        rows += softmax_rows(places=2 * 2048 * STEPS, size=512)
    if options.json:
        result = {"machine": machine(), "matmul_tflops": ceiling / 1e12, "rows": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


def seconds(run: Callable[[], object], least: float = 0.5) -> tuple[float, float]:
    """Median time of a call, and the peak memory in bytes."""
    run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    times: list[float] = []
    begin = time.monotonic()
    while len(times) < 5 or (time.monotonic() - begin < least and len(times) < 50):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2], float(torch.cuda.max_memory_allocated())


def matmul_rate() -> float:
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / seconds(lambda: left @ right)[0]


def report(rows: list[dict[str, Any]], what: str, size: int, path: str, dtype: str, measured: tuple[float, float],
           words: int | None = None, of_ceiling: float | None = None) -> None:  # fmt: skip
    spent, memory = measured
    rows.append({
        "what": what, "size": size, "path": path, "dtype": dtype, "ms": spent * 1e3, "peak_gb": memory / 1e9,
        "words_per_s": None if words is None else words / spent, "of_ceiling": of_ceiling,
    })  # fmt: skip
    speed = "" if words is None else f"{words / spent:12,.0f}"
    share = "" if of_ceiling is None else f"{of_ceiling:10.2f}"
    print(
        f"{what:12} {size:6} {path:18} {dtype:9} {spent * 1e3:9.2f} {memory / 1e9:8.1f} {speed:>12} {share:>10}",
        flush=True,
    )


def lstm_rows(name: str, cells: int, size: int, batch: int, ceiling: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    words = batch * STEPS
    work = 3 * 2 * 2 * 2 * (4 * cells * 2 * size + cells * size) * words  # forward and backward, layers, directions
    inputs = torch.randn(2, batch, STEPS, size, device="cuda", dtype=torch.bfloat16)

    def add(path: str, dtype: torch.dtype, run: Callable[[], object]) -> None:
        measured = seconds(run)
        share = work / measured[0] / ceiling
        report(rows, f"lstm {name}", batch, path, str(dtype).removeprefix("torch."), measured, words, share)

    from pyelmo.kernels.gpu.lstm import fast_projected_lstm

    for dtype in (torch.bfloat16, torch.float32):
        weights = [lstm_weights(cells, size, dtype) for _ in range(2)]
        sample = inputs.to(dtype).requires_grad_()
        for what, function in (("fast", fast_projected_lstm), ("plain", projected_lstm)):
            if dtype is torch.float32 and batch > 1024:
                continue  # half a second a step, and no faster
            add(what, dtype, lambda function=function, sample=sample, weights=weights: train(function, sample, weights))
        if dtype is torch.bfloat16:
            graphed = graph(lambda sample=sample, weights=weights: train(fast_projected_lstm, sample, weights))
            add("fast, graph", dtype, graphed)
            del graphed
        del weights, sample
    stacks = [nn.LSTM(size, cells, 2, proj_size=size, batch_first=True).to("cuda", torch.bfloat16) for _ in range(2)]
    for stack in stacks:
        stack.flatten_parameters()
    sample = inputs.requires_grad_()

    def library() -> None:
        outputs = [stack(direction)[0] for stack, direction in zip(stacks, sample, strict=True)]
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

    add("nn.LSTM, no clip", torch.bfloat16, library)
    return rows


def lstm_weights(cells: int, size: int, dtype: torch.dtype) -> list[Tensor]:
    shapes = [(2, 4 * cells, size), (2, 4 * cells, size), (2, 4 * cells), (2, size, cells)]
    scales = [size**-0.5, size**-0.5, 0.1, cells**-0.5]
    return [
        torch.randn(shape, device="cuda").mul(scale).to(dtype).requires_grad_()
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def train(function: Callable[..., Any], inputs: Tensor, layers: list[list[Tensor]]) -> None:
    """The stack, forward and backward: a residual from the second layer on, as ELMo has it."""
    value = inputs
    for number, weights in enumerate(layers):
        hidden = value.new_zeros(2, value.shape[1], weights[-1].shape[1])
        cell = value.new_zeros(2, value.shape[1], weights[-1].shape[2])
        output = function(value, hidden, cell, None, *weights, CLIP, CLIP)[0]
        value = output + value if number else output
    leaves = [inputs, *(weight for weights in layers for weight in weights)]
    torch.autograd.grad(value, leaves, torch.ones_like(value))


def graph(run: Callable[[], object]) -> Callable[[], object]:
    """The same launches without Python between them."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        run()
    return recorded.replay


def char_rows(words: int) -> list[dict[str, Any]]:
    """The convolutions alone, and the whole encoder; words as long as those of a text (two to fifteen symbols)."""
    rows: list[dict[str, Any]] = []
    config = CharConfig()
    encoder = CharCNN(config).to("cuda")
    chars = torch.randint(1, 257, (words, config.max_length), device="cuda")
    lengths = torch.randn(words, device="cuda").mul(3).add(9).round().clamp(3, 48)
    chars[torch.arange(config.max_length, device="cuda") >= lengths[:, None]] = 261

    from pyelmo.kernels.gpu.char_cnn import fast_conv_max

    weights = [convolution.weight for convolution in encoder.convolutions]
    biases = [convolution.bias for convolution in encoder.convolutions]

    def fast() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            features = fast_conv_max(chars, encoder.embedding.weight, weights, biases, 0)
        torch.autograd.grad(features, [encoder.embedding.weight, *weights, *biases], torch.ones_like(features))

    def plain() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            embedded = encoder.embedding(chars).transpose(1, 2)
            features = torch.cat([convolution(embedded).amax(-1) for convolution in encoder.convolutions], -1)
        torch.autograd.grad(features, [encoder.embedding.weight, *weights, *biases], torch.ones_like(features))

    def highways() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            features = start
            for highway in encoder.highways:
                features = highway(features)
        torch.autograd.grad(features, [start, *encoder.highways.parameters()], torch.ones_like(features))

    start = torch.randn(words, config.features, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for path, run in (("fast", fast), ("plain", plain), ("the highways", highways)):
        report(rows, "chars", words, path, "bfloat16", seconds(run), words)
    return rows


def softmax_rows(places: int, size: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    generator = torch.Generator("cuda").manual_seed(0)
    vectors = torch.randn(places, size, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    table = torch.randn(VOCABULARY, size, device="cuda") * size**-0.5
    bias = torch.zeros(VOCABULARY, device="cuda")
    # Zipf's law, nearly: a target is a log-uniform word.
    uniform = torch.rand(places, device="cuda", generator=generator, dtype=torch.float64)
    targets = (torch.exp(uniform * torch.log(torch.tensor(VOCABULARY + 1.0, dtype=torch.float64))) - 1).long()
    negatives = draw_negatives(VOCABULARY, NEGATIVES, generator)
    chosen = touched(targets, negatives.ids)
    of_targets, of_negatives = negatives.log_expected(targets), negatives.log_expected(negatives.ids)
    leaf, leaf_bias = table[chosen.ids].requires_grad_(), bias[chosen.ids].requires_grad_()

    def run(function: Callable[..., Tensor]) -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            nll = function(vectors, chosen.targets, leaf, leaf_bias, chosen.negatives, of_targets, of_negatives)
        torch.autograd.grad(nll.mean(), [vectors, leaf, leaf_bias])

    cases = {
        "fast": lambda: run(fast_sampled_nll),
        "plain": lambda: run(sampled_nll),
        "draw": lambda: draw_negatives(VOCABULARY, NEGATIVES, generator),
        "touched rows": lambda: touched(targets, negatives.ids),
        "gather": lambda: table[chosen.ids],
    }
    for path, case in cases.items():
        report(rows, "softmax", places, path, "bfloat16", seconds(case), places)
    return rows


if __name__ == "__main__":
    main()
