"""How much faster the SRL network trains than a plain loop of the same mathematics: forward, backward, optimiser.

    python benchmarks/highway_lstm.py [--device cuda] [--batch 80] [--time 30] [--json FILE]

The network of He et al. (2017): eight layers of 300, dropout on, no padding. Prints milliseconds of a step (the best of
several, by turns) for `highway_lstm` (the loop, its gradient by torch), for the written-out recurrence that runs
anywhere, and on a GPU for the kernel, and how much faster than the loop each is.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import torch
from report import machine

from pyelmo import kernels
from pyelmo.tasks.highway_lstm import highway_lstm
from pyelmo.tasks.srl_network import SrlNetwork

INPUTS, LABELS = 868, 100
REPEATS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=80, help="sentences at once (default: the paper's 80)")
    parser.add_argument("--time", type=int, default=30, help="words of a sentence (default: 30)")
    parser.add_argument("--json", type=Path, help="write the result there, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    network = SrlNetwork(INPUTS, ["O", *(f"B-{n}" for n in range(LABELS - 1))]).to(args.device)
    optimiser = torch.optim.Adadelta(network.parameters())
    inputs = torch.randn(args.batch, args.time, INPUTS, device=args.device)
    predicates = torch.randint(args.time, (args.batch,), device=args.device)
    mask = torch.ones(args.batch, args.time, dtype=torch.bool, device=args.device)
    labels = torch.randint(LABELS, (args.batch * args.time,), device=args.device)

    def milliseconds(path: Callable[[], AbstractContextManager[object]]) -> float:
        start = time.perf_counter()
        with path():
            optimiser.zero_grad(set_to_none=True)
            scores = network(inputs, predicates, mask)
            torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels).backward()
            optimiser.step()
        if inputs.is_cuda:
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - start)

    paths: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "loop": lambda: patch("pyelmo.tasks.highway_lstm.fast_highway_lstm", highway_lstm),
        "written out": kernels.plain_only,
    }
    if kernels.available(args.device):
        paths["kernel"] = nullcontext
    best = dict.fromkeys(paths, float("inf"))
    for _ in range(REPEATS):  # by turns, so that a busy machine slows all
        for name, path in paths.items():
            best[name] = min(best[name], milliseconds(path))
    result = {
        "batch": args.batch, "time": args.time, "milliseconds": {name: round(each, 2) for name, each in best.items()},
        "faster_than_loop": {name: round(best["loop"] / each, 2) for name, each in best.items()},
        "words_per_second": {name: round(1000 * args.time * args.batch / each) for name, each in best.items()},
        "machine": machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
