"""A step of training (forward, backward, optimiser) by several paths of the same mathematics, and how they compare."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import Tensor, nn

from pyelmo.provenance import machine

REPEATS = 10
Way = Callable[[], AbstractContextManager[object]]  # what a step is run in


def arguments(about: str | None, *, batch: int, time: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=batch, help=f"texts at once (default: the paper's {batch})")
    parser.add_argument("--time", type=int, default=time, help=f"words of a text (default: {time})")
    parser.add_argument("--json", type=Path, help="write the result there, too")
    return parser.parse_args()


def compare(network: nn.Module, loss: Callable[[], Tensor], paths: Mapping[str, Way], args: argparse.Namespace) -> None:
    """Print milliseconds of a step by each path, the best of several, and how much faster than by the first it is."""
    optimiser = torch.optim.Adadelta(network.parameters())

    def milliseconds(path: Way) -> float:
        start = time.perf_counter()
        with path():
            optimiser.zero_grad(set_to_none=True)
            loss().backward()
            optimiser.step()
        if args.device != "cpu":
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - start)

    best = dict.fromkeys(paths, float("inf"))
    for _ in range(REPEATS):  # by turns, so that a busy machine slows all
        for name, path in paths.items():
            best[name] = min(best[name], milliseconds(path))
    first = next(iter(paths))
    result = {
        "batch": args.batch, "time": args.time, "milliseconds": {name: round(each, 2) for name, each in best.items()},
        f"faster_than_{first}": {name: round(best[first] / each, 2) for name, each in best.items()},
        "words_per_second": {name: round(1000 * args.time * args.batch / each) for name, each in best.items()},
        "machine": machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
