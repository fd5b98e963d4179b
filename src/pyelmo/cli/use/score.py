"""elmo score: the log probability of each word of a text."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options
from pyelmo.text.lines import open_text, read_lines

HELP = "Print the log probability of each word of a text, in both directions."
EXAMPLE = "elmo score en sentences.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    parser.add_argument("text", metavar="TEXT", help="text file with one sentence per line; - is stdin")
    options.add_model_files(parser)
    options.add_language(parser)
    options.add_tokenised(parser)
    options.add_device(parser)
    options.add_json(parser, "print one JSON object per sentence instead of text")


def run(args: argparse.Namespace) -> None:
    embedder = options.load_embedder(args)
    with open_text(args.text) as file:
        for line in read_lines(file, "stdin" if args.text == "-" else args.text):
            words = embedder.score(line.split() if args.tokenised else line)
            if args.json:
                print(json.dumps({"words": [vars(word) for word in words]}))
                continue
            for word in words:
                backward = "" if word.backward is None else f"\t{word.backward:.4f}"
                print(f"{word.word}\t{word.forward:.4f}{backward}" + ("" if word.known else "\tunknown"))
            print()
