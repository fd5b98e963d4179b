"""How much faster the highway LSTM trains than its plain loop: one layer, forward and backward.

    python benchmarks/highway_lstm.py [--device cuda] [--batch 80] [--time 30] [--json FILE]

Prints milliseconds of a step (the best of several, by turns) and their ratio; dropout on, no padding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from report import machine
from torch import Tensor

from pyelmo.tasks.highway_lstm import HighwayLayer, fast_highway_lstm, highway_lstm

HIDDEN = 300
REPEATS = 10


def milliseconds(run: Callable[..., Tensor], layer: HighwayLayer, inputs: Tensor, mask: Tensor, keep: Tensor) -> float:
    start = time.perf_counter()
    run(inputs, mask, layer.input, layer.recurrent, layer.bias, keep).sum().backward()
    if inputs.is_cuda:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=80, help="sentences at once (default: the paper's 80)")
    parser.add_argument("--time", type=int, default=30, help="words of a sentence (default: 30)")
    parser.add_argument("--json", type=Path, help="write the result there, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    layer = HighwayLayer(HIDDEN, HIDDEN).to(args.device)
    inputs = torch.randn(args.time, args.batch, HIDDEN, device=args.device, requires_grad=True)
    mask = torch.ones(args.time, args.batch, dtype=torch.bool, device=args.device)
    keep = (torch.rand(args.batch, HIDDEN, device=args.device) < 0.9) / 0.9
    loop = fast = float("inf")
    for _ in range(REPEATS):  # by turns, so that a busy machine slows both
        loop = min(loop, milliseconds(highway_lstm, layer, inputs, mask, keep))
        fast = min(fast, milliseconds(fast_highway_lstm, layer, inputs, mask, keep))
    words = args.time * args.batch
    result = {
        "batch": args.batch, "time": args.time, "hidden": HIDDEN, "loop_ms": round(loop, 2), "fast_ms": round(fast, 2),
        "faster": round(loop / fast, 2), "words_per_second_a_layer": round(1000 * words / fast), "machine": machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
