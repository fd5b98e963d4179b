"""elmo score: the log probability of each word of a text."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli import options
from pyelmo.errors import InputError

HELP = "Print the log probability of each word of a text, in both directions."
EXAMPLE = "elmo score en sentences.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    parser.add_argument("text", metavar="TEXT", help=options.TEXT_FILE)
    options.add_model_files(parser)
    options.add_language(parser)
    options.add_tokenised(parser)
    options.add_reading(parser)
    options.add_device(parser)
    options.add_json(parser, "print one JSON object per sentence instead of text")


def run(args: argparse.Namespace) -> None:
    from pyelmo.text.rows import read_rows

    embedder = options.load_embedder(args)
    empty = True
    for row in read_rows(args.text, options.reading_options(args)):
        empty = False
        words = embedder.score(row.words or (row.text.split() if args.tokenised else row.text))
        if args.json:
            print(json.dumps({"words": [vars(word) for word in words]}))
            continue
        for word in words:
            backward = "" if word.backward is None else f"\t{word.backward:.4f}"
            print(f"{word.word}\t{word.forward:.4f}{backward}" + ("" if word.known else "\tunknown"))
        print()
    if empty:
        raise InputError(f"{args.text}: there is nothing to score, because the input is empty")
