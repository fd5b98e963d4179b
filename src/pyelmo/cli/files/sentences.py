"""elmo sentences: how a model makes one vector of a sentence, from the words of a text."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

HELP = "Add the sentence form to a model: the weights of frequent words in a sentence vector, from a corpus or a text."
EXAMPLE = "elmo sentences my-model text.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="folder of a model in pyelmo's format; sentence.json is added")
    parser.add_argument(
        "text", metavar="TEXT", nargs="+",
        help=f"folder that `elmo prepare` wrote, best that of the training text; or {options.DOCUMENT_FILE}",
    )  # fmt: skip
    parser.add_argument(
        "--smoothing", type=float, metavar="A", default=0.001,
        help="a of the weight a / (a + p) of a word with the share p of the text (default: 0.001)",
    )  # fmt: skip
    parser.add_argument(
        "--directions", type=int, metavar="K", default=64,
        help="largest number of directions, common to the vectors of all words, that are damped (default: 64)",
    )  # fmt: skip
    options.add_tokenised(parser)
    options.add_reading(parser)
    options.add_threads(parser)
    options.add_force(parser, "replace the sentence form if the model has one")


def run(args: argparse.Namespace) -> None:
    from pyelmo.embed.embedder import Embedder
    from pyelmo.embed.sentence import corpus_counts, make_form
    from pyelmo.files import check_output
    from pyelmo.formats.native import CONFIG, read
    from pyelmo.formats.sentence import SENTENCE

    folder = Path(args.model)
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: not a folder of a model in pyelmo's format. Make one with elmo convert")
    if not 0 < args.smoothing < float("inf"):
        raise InputError(f"--smoothing {args.smoothing}: must be above 0")
    options.check_at_least("--directions", args.directions, 0)
    check_output(folder / SENTENCE, force=args.force)
    options.set_threads(args.threads)
    embedder = Embedder(read(folder, with_form=False))  # a damaged form can be replaced
    if all(Path(text).is_dir() for text in args.text):
        counts = corpus_counts(args.text, embedder.language)
    else:
        counts = Counter(_words(args, embedder.language))
    form = make_form(embedder.word_table(), counts, smoothing=args.smoothing, directions=args.directions)
    form.write(folder / SENTENCE)
    say(f"{folder / SENTENCE}: weights of {len(form.weights):,} words, from a text of {counts.total():,} words")


def _words(args: argparse.Namespace, language: str) -> Iterator[str]:
    from pyelmo.text.rows import read_paragraphs
    from pyelmo.text.tokens import split_sentences, split_words

    for path in args.text:
        for line in read_paragraphs(path, options.reading_options(args), tokenised=args.tokenised):
            for sentence in [line] if args.tokenised else split_sentences(line, language):
                yield from sentence.split() if args.tokenised else split_words(sentence, language)
