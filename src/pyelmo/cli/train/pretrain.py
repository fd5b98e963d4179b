"""elmo pretrain: a corpus -> a bidirectional language model (biLM)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.cli.messages import say, say_nothing

if TYPE_CHECKING:
    from pyelmo.training.processes import Processes

HELP = "Train a biLM on a prepared corpus or a text file; the same command again resumes an interrupted run."
EXAMPLE = "elmo pretrain text.txt -o run --recipe tiny-cpu --set training.minutes=0.05"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus", metavar="CORPUS", help="folder that `elmo prepare` wrote, or a text file, prepared into RUN.corpus"
    )
    parser.add_argument(
        "-o", "--output", metavar="RUN", required=True, help="folder of the run; the model is written to RUN/model"
    )
    options.add_language(parser, default="general")
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", default=20_000,
        help="number of words that the model predicts, if CORPUS is a text file (default: 20000)",
    )  # fmt: skip
    options.add_recipe(parser, "tiny-cpu, small, medium, original, ...", default="tiny-cpu")
    options.add_tensorboard(parser)
    options.add_device(parser)
    options.add_force(parser, "delete the run in RUN and start again")
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.training import processes
    from pyelmo.training.loop import pretrain
    from pyelmo.training.recipe import read_recipe

    recipe = read_recipe(args.recipe, args.set)
    group = processes.join(options.choose_device(args.device))
    try:
        pretrain(
            _prepared_corpus(args, group), args.output, recipe, processes=group,
            say=say_nothing if args.quiet else say, tensorboard=args.tensorboard, force=args.force,
        )  # fmt: skip
    finally:
        processes.leave()


def _prepared_corpus(args: argparse.Namespace, group: Processes) -> Path:
    """Return the folder of the corpus; a text file is prepared first, unless an earlier run has done it."""
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    source = Path(args.corpus)
    if not source.is_file():
        return source
    output = Path(args.output)
    corpus = output.with_name(f"{output.name}.corpus")
    if group.first and (args.force or not corpus.is_dir()):
        settings = PrepareSettings(
            inputs=(str(source),), language=args.language, vocab_size=args.vocab_size, valid_fraction=0.02
        )
        prepare(settings, corpus, progress=not args.quiet, force=args.force)
    group.wait()
    return corpus
