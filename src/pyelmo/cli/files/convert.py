"""elmo convert: any checkpoint -> pyelmo's own format, AllenNLP's, or ONNX."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.text.tokens import LANGUAGES

HELP = "Convert an ELMo checkpoint of any known format to pyelmo's, to AllenNLP's or to ONNX."
EXAMPLE = "elmo convert en my-model --to allennlp"
WORDS = 50_000  # of the text to calibrate with


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="MODEL", help=options.MODEL)
    parser.add_argument(
        "target", metavar="OUT",
        help="folder to write; a name that ends in .hdf5 is a file of AllenNLP's weights, with its options beside it, "
        "and one that ends in .onnx is an ONNX file",
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
        "--calibrate", metavar="TEXT",
        help="with --precision int4: text file, one paragraph per line, like the text of the training (all genres, "
        "shuffled); weights are rounded so that products change little on its first 50,000 words "
        "(default: each weight is rounded by itself)",
    )  # fmt: skip
    options.add_tokenised(parser)
    parser.add_argument(
        "--vocab-size", type=int, metavar="N",
        help="number of words that the model predicts, special tokens included; vectors do not change (default: all)",
    )  # fmt: skip
    options.add_language(parser, otherwise="the one that the model names", choices=LANGUAGES)
    options.add_model_files(parser)
    options.add_force(parser)


def sentences(args: argparse.Namespace, language: str) -> Iterator[list[str]]:
    """Yield the tokenised sentences of the text to calibrate with, up to WORDS words."""
    from pyelmo.text.rows import read_paragraphs
    from pyelmo.text.tokens import split_sentences, split_words

    words = 0
    for line in read_paragraphs(args.calibrate, tokenised=args.tokenised):
        for sentence in [line] if args.tokenised else split_sentences(line, language):
            split = sentence.split() if args.tokenised else split_words(sentence, language)
            yield split
            words += len(split)
        if words >= WORDS:
            return


def run(args: argparse.Namespace) -> None:
    from dataclasses import replace
    from pathlib import Path

    from pyelmo.errors import InputError, require_torch
    from pyelmo.files import check_output
    from pyelmo.formats import resolve
    from pyelmo.formats.trim import trim
    from pyelmo.integrations import onnx

    if args.calibrate is not None and args.precision != "int4":
        raise InputError(
            f"--calibrate {args.calibrate}: rounds weights to int4, but --precision is {args.precision}. "
            "Add --precision int4, or leave out --calibrate."
        )
    target = Path(args.target)
    to_onnx = target.suffix == onnx.SUFFIX
    resolve.check_precision(target, "onnx" if to_onnx else args.to, args.precision)
    check_output(target, force=args.force)
    model = resolve.read(args.source, options=args.options, vocab=args.vocab)
    if args.vocab_size is not None:
        model = trim(model, args.vocab_size)
    if args.language is not None:
        model = replace(model, language=args.language)
    if to_onnx:
        onnx.write(model, target, force=args.force)
        say(f"{args.target}: written from {model.source} ({model.format})")
        return
    rounded = None
    if args.calibrate is not None:
        require_torch("--calibrate")
        from pyelmo.training.calibration import calibrated

        rounded = calibrated(model, sentences(args, model.language or "general"))
    resolve.write(model, args.target, format=args.to, precision=args.precision, rounded=rounded, force=args.force)
    say(f"{args.target}: written from {model.source} ({model.format})")
