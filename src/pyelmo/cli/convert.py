"""elmo convert: any checkpoint -> pyelmo's own format, or AllenNLP's."""

from __future__ import annotations

import argparse
import sys

from pyelmo.cli.source import add_model_files
from pyelmo.text.tokens import LANGUAGES

HELP = "read any ELMo checkpoint and write it in another format"
EXAMPLE = "elmo convert options_and_weights/ my-model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", help="a folder, a file, a name in the box or a Hub id")
    parser.add_argument(
        "target",
        metavar="DST",
        help="a new folder; a name ending in .hdf5 gets AllenNLP's weights, with its options beside",
    )
    parser.add_argument(
        "--to", choices=("pyelmo", "allennlp"), default="pyelmo",
        help="pyelmo (config.json, model.safetensors) or allennlp (options.json, weights.hdf5); default: pyelmo",
    )  # fmt: skip
    parser.add_argument(
        "--precision", choices=("float32", "int8", "int4"), default="float32",
        help="int8: a quarter of the size, int4: a seventh, for pyelmo's format (default: float32)",
    )  # fmt: skip
    parser.add_argument(
        "--vocab-size", type=int, metavar="N",
        help="predict only the first N words of the vocabulary, marks counted in; no vector changes (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--language", choices=LANGUAGES, help="the one whose rules split the model's text, where SRC does not say it"
    )
    add_model_files(parser)
    parser.add_argument("--force", action="store_true", help="replace DST if it exists")


def run(args: argparse.Namespace) -> None:
    from dataclasses import replace
    from pathlib import Path

    from pyelmo.files import check_output
    from pyelmo.formats import source
    from pyelmo.formats.trim import trim

    check_output(Path(args.target), force=args.force)
    model = source.read(args.source, options=args.options, vocab=args.vocab)
    if args.vocab_size is not None:
        model = trim(model, args.vocab_size)
    if args.language is not None:
        model = replace(model, language=args.language)
    source.write(model, args.target, format=args.to, precision=args.precision, force=args.force)
    print(f"{args.target}: written from {model.source} ({model.format})", file=sys.stderr)
