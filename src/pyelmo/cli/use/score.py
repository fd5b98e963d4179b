"""elmo score: the log probability of each word of a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.embed.scoring import SentenceScore, WordScore

HELP = "Print the log probability of each word and of each sentence of a text, in both directions."
EXAMPLE = "elmo score en sentences.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    parser.add_argument("text", metavar="TEXT", help=options.TEXT_FILE)
    options.add_model_files(parser)
    options.add_language(parser)
    options.add_tokenised(parser)
    options.add_reading(parser)
    options.add_direction(parser, default="both")
    options.add_device(parser)
    options.add_threads(parser)
    options.add_quiet(parser)
    options.add_json(parser, "print one JSON object per sentence instead of text")


def run(args: argparse.Namespace) -> None:
    from pyelmo.cli.progress import WordProgress, word_progress
    from pyelmo.embed.files.inputs import count
    from pyelmo.text.rows import read_rows

    embedder = options.load_embedder(args)
    reading = options.reading_options(args)

    def sentences(progress: WordProgress) -> Iterator[list[str]]:
        for row in read_rows(args.text, reading):
            words = embedder.tokenise(row.words or (row.text.split() if args.tokenised else row.text))
            progress.read(len(words))
            yield words
        progress.read_all()

    names = ("forward", "backward") if args.direction == "both" else (args.direction,)
    if not embedder.config.bidirectional:
        names = ("forward",)
    # On a terminal the scores themselves show the progress.
    with word_progress(count(read_rows(args.text, reading), [args.text]), args.quiet or sys.stdout.isatty()) as bar:
        empty = True
        for sentence in embedder.score_sentences(sentences(bar), direction=args.direction, advance=bar.done):
            if args.json:
                print(_as_json(sentence))
            else:
                if empty:
                    print("\t".join(["word", *names]))
                _print(sentence, names)
            empty = False
    if empty:
        raise InputError(f"{args.text}: there is nothing to score, because the input is empty")


def _as_json(sentence: SentenceScore) -> str:
    facts = {
        "words": [vars(word) for word in sentence], "end": sentence.end and vars(sentence.end),
        "forward": sentence.forward, "backward": sentence.backward, "unknown": sentence.unknown,
    }  # fmt: skip
    return json.dumps(facts)


def _print(sentence: SentenceScore, names: Sequence[str]) -> None:
    """Print a line for each word, for the end and for the sum, and a blank line; of a blank line only that."""

    def line(name: str, scores: WordScore | SentenceScore, note: str = "") -> None:
        print("\t".join([name, *(f"{getattr(scores, column):.4f}" for column in names), *([note] if note else [])]))

    for word in sentence:
        line(word.word, word, "" if word.known else "unknown")
    if sentence.end is not None:
        line("(end)", sentence.end)
        line("(sum)", sentence, f"{sentence.unknown} unknown" if sentence.unknown else "")
    print()
