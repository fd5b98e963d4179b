"""elmo prepare: text -> a corpus of word ids to train on."""

from __future__ import annotations

import argparse
import sys

HELP = "split and count text into a corpus to train on"
EXAMPLE = "elmo prepare text.txt -o corpus --language en --vocab-size 65000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", metavar="TEXT", nargs="+",
        help="plain text (a paragraph a line, a blank line between documents), jsonl, parquet; .gz .xz .bz2 .zst; -",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to make")
    parser.add_argument("--valid", metavar="TEXT", nargs="+", default=[], help="text to hold out, instead of a share")
    parser.add_argument(
        "--valid-fraction", type=float, default=0.005, help="share of documents held out (default: 0.005)"
    )
    parser.add_argument("--language", default="general", help="en, ko, ko-morph or general (default: general)")
    parser.add_argument("--tokenised", action="store_true", help="a sentence a line, words separated by spaces already")
    parser.add_argument("--vocab-size", type=int, default=100_000, help="words the model predicts (default: 100000)")
    parser.add_argument("--min-count", type=int, default=1, help="least count of such a word (default: 1)")
    parser.add_argument(
        "--max-types", type=int, default=4_000_000, help="word types kept apart at all (default: 4000000)"
    )
    parser.add_argument("--drop-duplicates", action="store_true", help="drop lines that came before")
    parser.add_argument("--text-column", default="text", help="field of jsonl and parquet records (default: text)")
    parser.add_argument(
        "--input-format", default="auto", choices=("auto", "text", "jsonl", "parquet"), help="default: by the name"
    )
    parser.add_argument("--processes", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--force", action="store_true", help="replace DIR if it exists")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    settings = PrepareSettings(
        inputs=args.inputs, valid_inputs=args.valid, valid_fraction=args.valid_fraction, language=args.language,
        tokenised=args.tokenised, vocab_size=args.vocab_size, min_count=args.min_count, max_types=args.max_types,
        drop_duplicates=args.drop_duplicates, column=args.text_column, input_format=args.input_format,
    )  # fmt: skip
    manifest = prepare(settings, args.output, workers=args.processes, progress=not args.quiet, force=args.force)
    train, valid = manifest.train, manifest.valid
    print(
        f"{args.output}: {train.words:,} words in {train.sentences:,} sentences to train on "
        f"({train.unknown_rate:.2%} unknown), {valid.words:,} words held out; {manifest.types:,} types, "
        f"{manifest.vocab_size:,} of them predicted",
        file=sys.stderr,
    )
