"""elmo score: the log probability of each word."""

from __future__ import annotations

import argparse
import json

from pyelmo.cli.measure.evaluate import add_reading
from pyelmo.text.lines import open_text, read_lines

HELP = "give the log probability of each word of each line, in both directions"
EXAMPLE = "elmo score en sentences.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_reading(parser, "one sentence a line; - is stdin")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(args: argparse.Namespace) -> None:
    from pyelmo.embed.embedder import load

    embedder = load(args.model, options=args.options, vocab=args.vocab, device=args.device, language=args.language)
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
