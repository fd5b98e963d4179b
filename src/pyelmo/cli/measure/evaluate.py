"""elmo evaluate: the perplexity of a text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyelmo.cli import options

if TYPE_CHECKING:
    from pyelmo.cli.progress import WordProgress

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
    options.add_threads(parser)
    parser.add_argument(
        "--context", choices=("document", "sentence"), default="document",
        help="how far the LSTM state is carried: through a document, or only through a sentence (default: document)",
    )  # fmt: skip
    options.add_batch_size(parser, "documents (or sentences, see --context)", default=32)
    options.add_quiet(parser)
    options.add_json(parser)


def documents(args: argparse.Namespace, language: str, progress: WordProgress) -> Iterator[list[list[str]]]:
    """Yield each document as a list of tokenised sentences."""
    from pyelmo.text.rows import read_paragraphs
    from pyelmo.text.tokens import split_sentences, split_words

    document: list[list[str]] = []
    for line in read_paragraphs(args.text, options.reading_options(args), tokenised=args.tokenised):
        if not line:
            if document:
                yield document
            document = []
            progress.read(0)
            continue
        if args.tokenised:
            sentences = [line.split()]
        else:
            sentences = [split_words(sentence, language) for sentence in split_sentences(line, language)]
        progress.read(sum(len(sentence) + 1 for sentence in sentences))  # with their ends
        document += sentences
    progress.read_all()
    if document:
        yield document


def run(args: argparse.Namespace) -> None:
    from pyelmo.cli.progress import word_progress
    from pyelmo.embed.files.inputs import count
    from pyelmo.text.rows import read_paragraphs

    embedder = options.load_embedder(args)
    lines = count(read_paragraphs(args.text, options.reading_options(args), tokenised=args.tokenised), [args.text])
    with word_progress(lines, quiet=args.quiet) as progress:
        texts = documents(args, embedder.language, progress)
        result = embedder.perplexity(texts, context=args.context, batch_size=args.batch_size, advance=progress.done)
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
