"""elmo predict: the most probable words for a gap in a sentence."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options

HELP = "Predict the most probable words for the gap ___ in a sentence."
EXAMPLE = 'elmo predict en "The fish was jumping out of the ___." -k 3'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    parser.add_argument("sentence", metavar="SENTENCE", help="sentence with one gap, written ___")
    options.add_model_files(parser)
    options.add_count(parser, "words")
    options.add_direction(parser, otherwise="both; forward if nothing follows the gap")
    parser.add_argument(
        "--punctuation", action="store_true", help="also print punctuation marks, which are left out by default"
    )
    options.add_language(parser)
    options.add_device(parser)
    options.add_threads(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    options.check_at_least("-k", args.count, 1)
    embedder = options.load_embedder(args)
    guesses = embedder.predict(args.sentence, count=args.count, direction=args.direction, punctuation=args.punctuation)
    if args.json:
        print(json.dumps([vars(guess) for guess in guesses], indent=1, ensure_ascii=False))
        return
    for guess in guesses:
        scores = {"forward": guess.forward, "backward": guess.backward}
        columns = [f"{name} {value:.2f}" for name, value in scores.items() if value is not None]
        print("\t".join([f"{guess.probability:.4f}", guess.word, *columns]))
