"""elmo finetune: a model and a corpus of a domain -> the model adapted to it."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli.options import add_model_files
from pyelmo.cli.train.pretrain import add_training, check_device, quiet, say

HELP = "adapt a model to a prepared corpus, and say its perplexity before and after"
EXAMPLE = "elmo finetune MODEL corpus -o tuned --set training.epochs=1 --set training.batch=2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder, a file, a name in the box or a Hub id")
    parser.add_argument("corpus", metavar="DIR", help="what elmo prepare made")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the run's folder; the model is OUT/model")
    parser.add_argument("--recipe", default="finetune", help="a TOML file with [training] (default: finetune)")
    add_model_files(parser)
    add_training(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.formats import resolve
    from pyelmo.training import processes
    from pyelmo.training.finetune import finetune
    from pyelmo.training.recipe import read_recipe

    recipe = read_recipe(args.recipe, args.set)
    model = resolve.read(args.model, options=args.options, vocab=args.vocab)
    here = processes.join(check_device(args.device))
    try:
        tuned = finetune(
            model, args.corpus, args.output, recipe.training, processes=here, say=quiet if args.quiet else say,
            force=args.force,
        )  # fmt: skip
    finally:
        processes.leave()
    if here.first and tuned.result.finished:
        both = {"before": tuned.before, "after": tuned.after}
        print(
            json.dumps({name: {**vars(p), "average": p.average} if p else None for name, p in both.items()}, indent=1)
        )
