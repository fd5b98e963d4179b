"""How much faster the QA network trains with the GRU kernel than with torch's own GRU: forward, backward, optimiser.

    python benchmarks/speed/gru.py [--device cuda] [--batch 45] [--time 150] [--json FILE]

The network of Clark & Gardner (2017) with the paper's sizes, dropout on, no padding. Prints milliseconds of a step, the
best of several, by turns. Off a GPU there is only torch's.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from steps import arguments, compare

from pyelmo.kernels import choice
from pyelmo.tasks.qa.network import QaNetwork, TextBatch, answer_loss

INPUTS, QUESTION = 968, 12


def main() -> None:
    args = arguments(__doc__, batch=45, time=150)
    torch.manual_seed(0)
    network = QaNetwork(INPUTS).to(args.device)
    passage, question = (
        TextBatch(
            torch.randn(args.batch, length, INPUTS, device=args.device),
            torch.ones(args.batch, length, dtype=torch.bool, device=args.device),
        )
        for length in (args.time, QUESTION)
    )
    places = [[(row % args.time, row % args.time)] for row in range(args.batch)]
    paths = {"torch": choice.plain_only, **({"kernel": nullcontext} if choice.available(args.device) else {})}
    compare(network, lambda: answer_loss(network(passage, question), places), paths, args)


if __name__ == "__main__":
    main()
