"""elmo finetune: a model and a corpus of a domain -> the model adapted to it."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say, say_nothing
from pyelmo.cli.train.text_corpus import add_corpus, add_preparing, prepared_corpus

HELP = "Adapt a model to a prepared corpus or a text file and print its perplexity before and after."
NO_HELD_OUT = "has no held-out text. It needs at least ten lines, or a file of its own (elmo prepare --valid FILE)."
EXAMPLE = "elmo finetune en corpus -o tuned --set training.words=2000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.MODEL)
    add_corpus(parser)
    parser.add_argument(
        "-o", "--output", metavar="RUN", required=True, help="folder of the run; the model is written to RUN/model"
    )
    options.add_model_files(parser)
    options.add_language(parser)
    add_preparing(parser)
    parser.add_argument(
        "--add-words", action="store_true",
        help="predict the words of CORPUS's vocabulary, too (default: only those that MODEL predicts)",
    )  # fmt: skip
    options.add_recipe(parser, "finetune", default="finetune")
    options.add_device(parser)
    options.add_threads(parser)
    options.add_force(parser, "delete the run in RUN and start again")
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import resolve
    from pyelmo.training import processes
    from pyelmo.training.finetune import finetune
    from pyelmo.training.recipe import read_recipe

    options.set_threads(args.threads)
    recipe = read_recipe(args.recipe, args.set)
    model = resolve.read(args.model, options=args.options, vocab=args.vocab)
    group = processes.join(options.choose_device(args.device))
    try:
        with resumable(args.output):
            language = args.language or model.language or "general"
            tuned = finetune(
                model, prepared_corpus(args, group, language=language), args.output,
                recipe.training, add_words=args.add_words, processes=group, say=say_nothing if args.quiet else say,
                force=args.force,
            )  # fmt: skip
    finally:
        processes.leave()
    if group.first:
        perplexities = {"before": tuned.before, "after": tuned.after}
        figures = {name: {**vars(p), "average": p.average} if p else None for name, p in perplexities.items()}
        if tuned.before is None:
            say(f"elmo: no perplexity: {args.corpus} {NO_HELD_OUT}")
        print(json.dumps({"model": str(tuned.model), **figures}, indent=1))
