"""elmo pretrain: a corpus -> a biLM."""

from __future__ import annotations

import argparse
import sys

from pyelmo.errors import InputError

HELP = "train a biLM on a prepared corpus; the same command again goes on where it stopped"
EXAMPLE = "elmo pretrain corpus -o run --recipe tiny-cpu --set training.minutes=0.05"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="DIR", help="what elmo prepare made")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the run's folder; the model is OUT/model")
    parser.add_argument("--recipe", default="tiny-cpu", help="a TOML file, or tiny-cpu, small, medium, original")
    parser.add_argument("--tensorboard", action="store_true", help="also write OUT/tensorboard (extra: tensorboard)")
    add_training(parser)


def add_training(parser: argparse.ArgumentParser) -> None:
    """What pretrain and finetune share."""
    parser.add_argument("--set", metavar="A.B=C", action="append", default=[], help="change a setting of the recipe")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--force", action="store_true", help="forget a run that is in OUT and start again")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def quiet(line: str) -> None:
    """Says nothing; the log file still does."""


def run(args: argparse.Namespace) -> None:
    from pyelmo.training import processes
    from pyelmo.training.loop import pretrain
    from pyelmo.training.recipe import read_recipe

    recipe = read_recipe(args.recipe, args.set)
    here = processes.join(check_device(args.device))
    try:
        pretrain(
            args.corpus, args.output, recipe, processes=here, say=quiet if args.quiet else say,
            tensorboard=args.tensorboard, force=args.force,
        )  # fmt: skip
    finally:
        processes.leave()


def check_device(device: str | None) -> str | None:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no CUDA device here; leave it out to use the CPU")
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"--device {device}: is neither cpu nor cuda")
    return device
