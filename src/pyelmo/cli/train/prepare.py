"""elmo prepare: text -> a corpus of word ids to train on."""

from __future__ import annotations

import argparse

from pyelmo.cli import options
from pyelmo.cli.messages import resumable, say

HELP = "Prepare text for training: split it into words, count them and write a corpus of word ids."
EXAMPLE = "elmo prepare text.txt -o corpus --language en --vocab-size 65000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", metavar="TEXT", nargs="+",
        help=options.DOCUMENT_FILE,
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="CORPUS", required=True, help="folder to write the corpus to")
    parser.add_argument(
        "--valid", metavar="TEXT", nargs="+", default=[],
        help="files of the held-out set (default: documents of the training text, see --valid-fraction)",
    )  # fmt: skip
    parser.add_argument(
        "--valid-fraction", type=float, metavar="F", default=0.005,
        help="fraction of the documents in the held-out set (default: 0.005)",
    )  # fmt: skip
    options.add_language(parser, default="general")
    options.add_tokenised(parser)
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", default=100_000,
        help="number of words that the model predicts, special tokens included (default: 100000)",
    )  # fmt: skip
    parser.add_argument(
        "--min-count", type=int, metavar="N", default=1,
        help="number of times a word must occur to be predicted (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--max-types", type=int, metavar="N", default=4_000_000,
        help="maximum number of different words in the input; rarer ones become <UNK> (default: 4000000)",
    )  # fmt: skip
    parser.add_argument("--drop-duplicates", action="store_true", help="drop lines that are equal to an earlier line")
    options.add_reading(parser)
    options.add_workers(parser)
    options.add_force(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    settings = PrepareSettings(
        inputs=args.inputs, valid_inputs=args.valid, valid_fraction=args.valid_fraction, language=args.language,
        tokenised=args.tokenised, vocab_size=args.vocab_size, min_count=args.min_count, max_types=args.max_types,
        drop_duplicates=args.drop_duplicates, column=args.column, input_format=args.input_format,
        encoding=args.encoding,
    )  # fmt: skip
    with resumable(args.output):
        manifest = prepare(settings, args.output, workers=args.workers, progress=not args.quiet, force=args.force)
    train, valid = manifest.train, manifest.valid
    say(
        f"{args.output}: {train.words:,} words in {train.sentences:,} sentences to train on ({train.unknown_rate:.2%} "
        f"out of vocabulary), {valid.words:,} words held out; {manifest.types:,} different words, the model predicts "
        f"{manifest.vocab_size:,} of them"
    )
