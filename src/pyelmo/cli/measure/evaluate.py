"""elmo evaluate: the perplexity of a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from pyelmo.cli import options

HELP = "Measure the perplexity of a text with the full softmax: forward, backward and average."
EXAMPLE = "elmo evaluate en text.txt --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=options.SOFTMAX_MODEL)
    parser.add_argument(
        "text", metavar="TEXT",
        help=options.DOCUMENT_FILE,
    )  # fmt: skip
    options.add_model_files(parser)
    options.add_language(parser)
    options.add_tokenised(parser)
    options.add_reading(parser)
    options.add_device(parser)
    parser.add_argument(
        "--context", choices=("document", "sentence"), default="document",
        help="how far the LSTM state is carried: through a document, or only through a sentence (default: document)",
    )  # fmt: skip
    options.add_batch_size(parser, "documents (or sentences, see --context)", default=32)
    options.add_json(parser)


def documents(args: argparse.Namespace, language: str) -> Iterator[list[list[str]]]:
    """Yield each document as a list of tokenised sentences."""
    from pyelmo.text.rows import read_paragraphs
    from pyelmo.text.tokens import split_sentences, split_words

    document: list[list[str]] = []
    for line in read_paragraphs(args.text, options.reading_options(args), tokenised=args.tokenised):
        if not line:
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

    embedder = options.load_embedder(args)
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
