"""elmo convert: any checkpoint -> pyelmo's own format, or AllenNLP's."""

from __future__ import annotations

import argparse

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.text.tokens import LANGUAGES

HELP = "Convert an ELMo checkpoint of any known format to pyelmo's or AllenNLP's."
EXAMPLE = "elmo convert en my-model --to allennlp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="MODEL", help=options.MODEL)
    parser.add_argument(
        "target", metavar="OUT",
        help="folder to write; a name that ends in .hdf5 is a file of AllenNLP's weights, with its options beside it",
    )  # fmt: skip
    parser.add_argument(
        "--to", choices=("pyelmo", "allennlp"), default="pyelmo",
        help="format to write: pyelmo (config.json, model.safetensors) or allennlp (options.json, weights.hdf5) "
        "(default: pyelmo)",
    )  # fmt: skip
    parser.add_argument(
        "--precision", choices=("float32", "int8", "int4"), default="float32",
        help="number format of pyelmo's weights: int8 is four times, int4 seven times smaller (default: float32)",
    )  # fmt: skip
    parser.add_argument(
        "--vocab-size", type=int, metavar="N",
        help="number of words that the model predicts, special tokens included; vectors do not change (default: all)",
    )  # fmt: skip
    options.add_language(parser, otherwise="the one that the model names", choices=LANGUAGES)
    options.add_model_files(parser)
    options.add_force(parser)


def run(args: argparse.Namespace) -> None:
    from dataclasses import replace
    from pathlib import Path

    from pyelmo.files import check_output
    from pyelmo.formats import resolve
    from pyelmo.formats.trim import trim

    check_output(Path(args.target), force=args.force)
    model = resolve.read(args.source, options=args.options, vocab=args.vocab)
    if args.vocab_size is not None:
        model = trim(model, args.vocab_size)
    if args.language is not None:
        model = replace(model, language=args.language)
    resolve.write(model, args.target, format=args.to, precision=args.precision, force=args.force)
    say(f"{args.target}: written from {model.source} ({model.format})")
