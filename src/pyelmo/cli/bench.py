"""elmo bench: how fast a model embeds on this machine."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from pathlib import Path

from pyelmo.cli.source import add_model_files, open_text, read_lines

HELP = "measure this machine: words/s by batch and precision, latency, memory, share of the arithmetic limit"
EXAMPLE = "elmo bench MODEL --threads 1 --seconds 0.1 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="without one, random weights are measured")
    add_model_files(parser)
    parser.add_argument("--size", choices=("small", "original"), default="small", help="of the random weights")
    parser.add_argument(
        "--text", metavar="FILE", help="one sentence a line, 512 at most; - is stdin. Default: built in"
    )
    parser.add_argument("--threads", type=int, help="default: as many as torch takes")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each speed is measured (default: 2)")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    from pyelmo.embed.bench import bench, random_model, standard_sentences, table

    sentences = read_sentences(args.text) if args.text else standard_sentences()
    with tempfile.TemporaryDirectory() as folder:
        source = args.model or Path(folder) / "model"
        if args.model is None:
            random_model(args.size).save(source)
        measured = bench(
            source, sentences, device=args.device, threads=args.threads, seconds=args.seconds,
            options=args.options, vocab=args.vocab,
        )  # fmt: skip
    name = args.model or f"random weights, {args.size} size"
    facts = {"model": name, "text": args.text or "built in", **measured}
    print(json.dumps(facts, indent=1) if args.json else "\n".join(table(facts)))


def read_sentences(path: str) -> list[list[str]]:
    """The first sentences of a text, split into words."""
    from pyelmo.embed.bench import SENTENCES
    from pyelmo.text.tokens import split_words

    with open_text(path) as file:
        lines = (line for line in read_lines(file, "stdin" if path == "-" else path) if line.strip())
        return [split_words(line) for line in itertools.islice(lines, SENTENCES)]
