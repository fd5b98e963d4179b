"""elmo bench: how fast a model embeds on this machine."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyelmo.cli.options import add_model_files
from pyelmo.text.lines import open_text, read_lines

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
    from pyelmo.embed.bench import bench, random_model, standard_sentences

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


def table(facts: dict[str, Any]) -> Iterator[str]:
    """The lines of the report."""
    for name in ("model", "text", "device"):
        yield f"{name}: {facts[name]}"
    yield f"threads: {facts['threads']}, instructions: {facts['instructions']}"
    yield f"sentences: {facts['sentences']:,}, words: {facts['words']:,}, distinct: {facts['distinct_words']:,}"
    yield f"arithmetic: {facts['mflop_per_token']:.1f} MFLOP a token, {facts['mflop_per_new_word']:.1f} a new word"
    yield ""
    yield "precision  batch    words    words/s    GOP/s  of the limit"
    for precision, measured in facts["precisions"].items():
        for row in measured["speeds"]:
            yield (
                f"{precision:9}  {row['batch']!s:7}  {row['words']:5} {row['words_per_s']:10,.0f} {row['gflops']:8.1f}"
                f" {row['share_of_limit']:13.0%}"
            )
    yield "limit: a large product in float32, for int8 too (bfloat16 for bfloat16)"
    yield ""
    yield "precision  20 words, ms: median     p99  peak memory    load  limit, GFLOP/s"
    for precision, measured in facts["precisions"].items():
        one, peak = measured["one_sentence_ms"], measured["peak_memory_gb"]
        memory = "unknown" if peak is None else f"{peak:.2f} GB"
        yield (
            f"{precision:9} {one['median']:21.2f} {one['p99']:7.2f} {memory:>12} {measured['load_s']:5.1f} s "
            f"{measured['limit_gflops']:14.0f}"
        )
