"""elmo pretrain: a corpus -> a bidirectional language model (biLM)."""

from __future__ import annotations

import argparse

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say, say_nothing
from pyelmo.cli.train.text_corpus import add_corpus, add_preparing, prepared_corpus

HELP = "Train a biLM on a prepared corpus or a text file; the same command again resumes an interrupted run."
EXAMPLE = "elmo pretrain text.txt -o run --recipe tiny-cpu --set training.minutes=0.05"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_corpus(parser)
    parser.add_argument(
        "-o", "--output", metavar="RUN", required=True, help="folder of the run; the model is written to RUN/model"
    )
    options.add_language(parser, default="general")
    add_preparing(parser)
    options.add_recipe(parser, "tiny-cpu, small, medium, original, ...", default="tiny-cpu")
    options.add_tensorboard(parser)
    options.add_device(parser)
    options.add_threads(parser)
    options.add_force(parser, "delete the run in RUN and start again")
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.training import processes
    from pyelmo.training.loop import pretrain
    from pyelmo.training.recipe import read_recipe

    options.set_threads(args.threads)
    recipe = read_recipe(args.recipe, args.set)
    group = processes.join(options.choose_device(args.device))
    try:
        with resumable(args.output):
            corpus = prepared_corpus(args, group, language=args.language)
            pretrain(
                corpus, args.output, recipe, processes=group, say=say_nothing if args.quiet else say,
                tensorboard=args.tensorboard, force=args.force,
            )  # fmt: skip
    finally:
        processes.leave()
