"""How much faster the QA network trains with the GRU kernel than with torch's own GRU: forward, backward, optimiser.

    python benchmarks/gru.py [--device cuda] [--batch 45] [--time 150] [--json FILE]

The network of Clark & Gardner (2017) with the paper's sizes, dropout on, no padding. Prints milliseconds of a step, the
best of several, by turns. Off a GPU there is only torch's.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from report import machine

from pyelmo import kernels
from pyelmo.tasks.qa_network import QaNetwork, Side, answer_loss

INPUTS, QUESTION = 968, 12
REPEATS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=45, help="questions at once (default: the paper's 45)")
    parser.add_argument("--time", type=int, default=150, help="words of a passage (default: 150)")
    parser.add_argument("--json", type=Path, help="write the result there, too")
    args = parser.parse_args()
    torch.manual_seed(0)
    network = QaNetwork(INPUTS).to(args.device)
    optimiser = torch.optim.Adadelta(network.parameters())
    passage, question = (
        Side(
            torch.randn(args.batch, length, INPUTS, device=args.device),
            torch.ones(args.batch, length, dtype=torch.bool, device=args.device),
        )
        for length in (args.time, QUESTION)
    )
    places = [[(row % args.time, row % args.time)] for row in range(args.batch)]

    def milliseconds(path: AbstractContextManager[object]) -> float:
        start = time.perf_counter()
        with path:
            optimiser.zero_grad(set_to_none=True)
            answer_loss(network(passage, question), places).backward()
            optimiser.step()
        if passage.vectors.is_cuda:
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - start)

    paths = {"torch": kernels.plain_only, **({"kernel": nullcontext} if kernels.available(args.device) else {})}
    best = dict.fromkeys(paths, float("inf"))
    for _ in range(REPEATS):  # by turns, so that a busy machine slows all
        for name, path in paths.items():
            best[name] = min(best[name], milliseconds(path()))
    result = {
        "batch": args.batch, "time": args.time, "milliseconds": {name: round(each, 2) for name, each in best.items()},
        "faster_than_torch": {name: round(best["torch"] / each, 2) for name, each in best.items()},
        "machine": machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
