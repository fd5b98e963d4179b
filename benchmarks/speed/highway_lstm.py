"""How much faster the SRL network trains with the kernel than with the plain loop: forward, backward, optimiser.

    python benchmarks/speed/highway_lstm.py [--device cuda] [--batch 80] [--time 30] [--json FILE]

The network of He et al. (2017): eight layers of 300, with dropout and without padding. Prints the milliseconds of a
step (the best of several, in turns) for the plain loop over the time steps and, on a GPU, for the kernel.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from steps import Way, arguments, compare

from pyelmo.kernels import choice
from pyelmo.tasks.srl.network import SrlNetwork

INPUTS, LABELS = 868, 100


def main() -> None:
    args = arguments(__doc__, batch=80, time=30)
    torch.manual_seed(0)
    network = SrlNetwork(INPUTS, ["O", *(f"B-{n}" for n in range(LABELS - 1))]).to(args.device)
    inputs = torch.randn(args.batch, args.time, INPUTS, device=args.device)
    predicates = torch.randint(args.time, (args.batch,), device=args.device)
    mask = torch.ones(args.batch, args.time, dtype=torch.bool, device=args.device)
    labels = torch.randint(LABELS, (args.batch * args.time,), device=args.device)
    paths: dict[str, Way] = {"loop": choice.plain_only}
    if choice.available(args.device):
        paths["kernel"] = nullcontext

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(network(inputs, predicates, mask).flatten(0, 1), labels)

    compare(network, loss, paths, args)


if __name__ == "__main__":
    main()
