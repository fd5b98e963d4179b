"""elmo evaluate: the perplexity of a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from pyelmo.cli.options import add_language, add_model_files
from pyelmo.text.lines import open_text, read_lines

HELP = "give the perplexity of a text, forward, backward and average, with the full softmax"
EXAMPLE = "elmo evaluate LM text.txt --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_reading(parser, "a paragraph a line, a blank line between documents; - is stdin")
    parser.add_argument(
        "--context", choices=("document", "sentence"), default="document",
        help="carry the state through a document (default), or start each sentence anew",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=int, default=32, help="rows at once; changes nothing but the speed")
    parser.add_argument("--json", action="store_true", help="for programs")


def add_reading(parser: argparse.ArgumentParser, lines: str) -> None:
    """What evaluate and score share."""
    parser.add_argument("model", metavar="MODEL", help="a model with a softmax")
    parser.add_argument("text", metavar="TEXT", help=lines)
    add_model_files(parser)
    add_language(parser)
    parser.add_argument("--tokenised", action="store_true", help="a sentence a line, words separated by spaces already")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, ... (default: cpu)")


def documents(args: argparse.Namespace, language: str) -> Iterator[list[list[str]]]:
    """Sentences of words, document by document."""
    from pyelmo.text.tokens import split_sentences, split_words

    document: list[list[str]] = []
    with open_text(args.text) as file:
        for line in read_lines(file, "stdin" if args.text == "-" else args.text):
            if not line.strip():
                if document:
                    yield document
                document = []
            elif args.tokenised:
                document.append(line.split())
            else:
                document += [split_words(sentence, language) for sentence in split_sentences(line, language)]
    if document:
        yield document


def run(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.embed.embedder import load

    embedder = load(args.model, options=args.options, vocab=args.vocab, device=args.device, language=args.language)
    with tqdm(documents(args, embedder.language), unit=" documents", file=sys.stderr, disable=args.json) as bar:
        result = embedder.perplexity(bar, context=args.context, batch_size=args.batch_size)
    facts = {
        "forward": result.forward,
        "backward": result.backward,
        "average": result.average,
        "words": result.words,
        "unknown": result.unknown,
        "unknown_rate": result.unknown / result.words,
        "vocabulary": embedder.config.softmax,
        "context": args.context,
    }
    if args.json:
        print(json.dumps(facts, indent=1))
    else:
        for name, value in facts.items():
            print(f"{name}: {value:,.4g}" if isinstance(value, float) else f"{name}: {value}")
