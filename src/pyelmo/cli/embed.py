"""elmo embed: a file of sentences -> a file of vectors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from pyelmo.cli.source import add_model_files, count_lines, open_text, read_lines
from pyelmo.errors import InputError

HELP = "turn each line of a text into vectors"
EXAMPLE = "elmo embed sentences.txt -o vectors.hdf5 --model MODEL --layers all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="one sentence a line; - is stdin. A blank line gives no vectors")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write; - is stdout (jsonl)")
    parser.add_argument("--model", "-m", required=True, help="a folder, a file, a name in the box or a Hub id")
    add_model_files(parser)
    parser.add_argument(
        "--layers", default="all", help="all, top, average, a layer's index, or the weights of a mix: 0.2,0.3,0.5"
    )
    parser.add_argument("--pooling", choices=("mean", "max", "first", "last"), help="one vector a sentence")
    parser.add_argument("--format", choices=("hdf5", "npz", "parquet", "jsonl"), help="default: by OUT's suffix")
    parser.add_argument("--tokenised", action="store_true", help="words are separated by white space already")
    parser.add_argument(
        "--language", default="general", help="how lines are split into words: en, ko, ko-morph, general"
    )
    parser.add_argument("--batch-size", type=int, default=32, help="sentences at once (default: 32)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu)")
    parser.add_argument("--keep-boundaries", action="store_true", help="keep the vectors of the sentence marks")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def parse_layers(text: str) -> str | int | list[float]:
    """all, top, average, an index, or numbers with commas between."""
    try:
        if "," in text:
            return [float(part) for part in text.split(",")]
        return int(text)
    except ValueError:
        if "," in text:
            raise InputError(f"--layers {text}: the weights of a mix are numbers with commas between") from None
        return text


def run(args: argparse.Namespace) -> None:
    from pathlib import Path

    from tqdm import tqdm

    from pyelmo.embed.embedder import load
    from pyelmo.embed.store import format_of, open_writer
    from pyelmo.files import check_output

    layers = parse_layers(args.layers)
    format = format_of(args.output, args.format)
    if args.output != "-":
        check_output(Path(args.output), force=args.force)  # before the model is loaded and the work is done
    total = count_lines(args.input)
    embedder = load(args.model, options=args.options, vocab=args.vocab, device=args.device, language=args.language)
    names = [f"layer_{index}" for index in range(embedder.config.layers)] if layers == "all" else None
    with (
        open_text(args.input) as file,
        open_writer(
            args.output, format=format, dim=embedder.config.dim, layers=names, pooled=args.pooling is not None,
            force=args.force,
        ) as writer,
        tqdm(total=total, unit=" sentences", disable=args.quiet, file=sys.stderr) as bar,
    ):  # fmt: skip
        waiting: list[tuple[str, list[str]]] = []

        def tokenised() -> Iterator[list[str]]:
            for line in read_lines(file, "stdin" if args.input == "-" else args.input):
                words = line.split() if args.tokenised else embedder.tokenise(line)
                waiting.append((line.strip(), words))
                yield words

        vectors: Iterator[Any] = embedder.stream(
            tokenised(), layers=layers, pooling=args.pooling, batch_size=args.batch_size,
            keep_boundaries=args.keep_boundaries,
        )  # fmt: skip
        blank = 0
        for array in vectors:
            line, words = waiting.pop(0)
            blank += not words
            kept = [embedder.lexicon.begin, *words, embedder.lexicon.end] if args.keep_boundaries else words
            writer.write(line, kept, array)
            bar.update()
    if blank and not args.quiet:
        print(f"elmo: {blank} blank lines: each keeps its number and has no vectors", file=sys.stderr)
