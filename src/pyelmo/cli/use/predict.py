"""elmo predict: the likeliest words for a gap."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli.options import add_language, add_model_files

HELP = "give the likeliest words for the gap ___ in a sentence"
EXAMPLE = 'elmo predict en "The bank of the ___ ." -k 3'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model with a softmax")
    parser.add_argument("sentence", metavar="SENTENCE", help="with one gap, written ___")
    add_model_files(parser)
    parser.add_argument("-k", "--count", type=int, default=10, help="how many words (default: 10)")
    add_language(parser)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, ... (default: cpu)")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    from pyelmo.embed.embedder import load

    embedder = load(args.model, options=args.options, vocab=args.vocab, device=args.device, language=args.language)
    guesses = embedder.predict(args.sentence, count=args.count)
    if args.json:
        print(json.dumps([vars(guess) for guess in guesses], indent=1, ensure_ascii=False))
        return
    for guess in guesses:
        backward = "" if guess.backward is None else f"\tbackward {guess.backward:.2f}"
        print(f"{guess.probability:.4f}\t{guess.word}\tforward {guess.forward:.2f}{backward}")
