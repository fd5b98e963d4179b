"""elmo convert: any checkpoint -> pyelmo's own format, or AllenNLP's."""

from __future__ import annotations

import argparse
import sys

from pyelmo.cli.source import add_model_files

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
        "--precision", choices=("float32", "int8"), default="float32",
        help="int8: a quarter of the size, for pyelmo's format (default: float32)",
    )  # fmt: skip
    add_model_files(parser)
    parser.add_argument("--force", action="store_true", help="replace DST if it exists")


def run(args: argparse.Namespace) -> None:
    from pathlib import Path

    from pyelmo.files import check_output
    from pyelmo.formats import source

    check_output(Path(args.target), force=args.force)
    model = source.read(args.source, options=args.options, vocab=args.vocab)
    source.write(model, args.target, format=args.to, precision=args.precision, force=args.force)
    print(f"{args.target}: written from {model.source} ({model.format})", file=sys.stderr)
