"""elmo pretrain: a corpus -> a biLM."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.training.processes import Processes

HELP = "train a biLM on a prepared corpus or on text; the same command again goes on where it stopped"
EXAMPLE = "elmo pretrain text.txt -o run --recipe tiny-cpu --set training.minutes=0.05"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus", metavar="DIR", help="what elmo prepare made; or a text file, prepared into OUT.corpus"
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the run's folder; the model is OUT/model")
    parser.add_argument("--language", default="general", help="of a text file: en, ko, ko-morph or general")
    parser.add_argument(
        "--vocab-size", type=int, default=20_000, help="words predicted, of a text file (default: 20000)"
    )
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
            corpus_of(args, here), args.output, recipe, processes=here, say=quiet if args.quiet else say,
            tensorboard=args.tensorboard, force=args.force,
        )  # fmt: skip
    finally:
        processes.leave()


def corpus_of(args: argparse.Namespace, here: Processes) -> Path:
    """The prepared corpus given, or one made of the text file given (once: a second run finds it there)."""
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    source = Path(args.corpus)
    if not source.is_file():
        return source
    output = Path(args.output)
    corpus = output.with_name(f"{output.name}.corpus")
    if here.first and (args.force or not corpus.is_dir()):
        settings = PrepareSettings(
            inputs=(str(source),), language=args.language, vocab_size=args.vocab_size, valid_fraction=0.02
        )
        prepare(settings, corpus, progress=not args.quiet, force=args.force)
    here.wait()
    return corpus


def check_device(device: str | None) -> str | None:
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: there is no CUDA device here; leave it out to use the CPU")
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"--device {device}: is neither cpu nor cuda")
    return device
