"""elmo bench: how fast a model embeds on this machine."""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyelmo.cli import options
from pyelmo.text.rows import ReadOptions

HELP = "Measure how fast this machine embeds text: words per second by batch and precision, latency and memory."
EXAMPLE = "elmo bench en --text sentences.txt --threads 1 --seconds 0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help=f"{options.MODEL} (default: a model of random weights)"
    )
    options.add_model_files(parser)
    parser.add_argument(
        "--size", choices=("small", "original"), default="small", help="size of the random model (default: small)"
    )
    parser.add_argument(
        "--text", metavar="FILE",
        help="text file with one sentence per line, of which 512 are used; - is stdin (default: built-in sentences)",
    )  # fmt: skip
    options.add_reading(parser)
    options.add_threads(parser)
    options.add_device(parser)
    parser.add_argument(
        "--seconds", type=float, metavar="S", default=2.0, help="duration of each measurement (default: 2)"
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    from pyelmo.embed.bench import bench, random_model, standard_sentences

    sentences = read_sentences(args.text, options.reading_options(args)) if args.text else standard_sentences()
    with tempfile.TemporaryDirectory() as folder:
        source = args.model or Path(folder) / "model"
        if args.model is None:
            random_model(args.size).save(source)
        measured = bench(
            source, sentences, device=options.choose_device(args.device), threads=args.threads, seconds=args.seconds,
            options=args.options, vocab=args.vocab,
        )  # fmt: skip
    name = args.model or f"random weights, {args.size} size"
    facts = {"model": name, "text": args.text or "built in", **measured}
    print(json.dumps(facts, indent=1) if args.json else "\n".join(table(facts)))


def read_sentences(path: str, reading: ReadOptions | None = None) -> list[list[str]]:
    """Return the first sentences of a text, split into words."""
    from pyelmo.embed.bench import SENTENCES
    from pyelmo.text.rows import read_rows
    from pyelmo.text.tokens import split_words

    rows = (row for row in read_rows(path, reading) if row.text)
    return [row.words or split_words(row.text) for row in itertools.islice(rows, SENTENCES)]


def table(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    for name in ("model", "text", "device"):
        yield f"{name}: {facts[name]}"
    yield f"threads: {facts['threads']}, instructions: {facts['instructions']}"
    yield f"sentences: {facts['sentences']:,}, words: {facts['words']:,}, distinct: {facts['distinct_words']:,}"
    yield f"arithmetic: {facts['mflop_per_token']:.1f} MFLOP per token, {facts['mflop_per_new_word']:.1f} per new word"
    yield ""
    yield "precision  batch    words    words/s    GOP/s  of the limit"
    for precision, measured in facts["precisions"].items():
        for row in measured["speeds"]:
            yield (
                f"{precision:9}  {row['batch']!s:7}  {row['words']:5} {row['words_per_s']:10,.0f} {row['gflops']:8.1f}"
                f" {row['share_of_limit']:13.0%}"
            )
    yield "limit: speed of a large matrix product in float32 (in bfloat16 for bfloat16)"
    yield ""
    yield "precision  20 words, ms: median     p99  peak memory    load  limit, GFLOP/s"
    for precision, measured in facts["precisions"].items():
        one, peak = measured["one_sentence_ms"], measured["peak_memory_gb"]
        memory = "unknown" if peak is None else f"{peak:.2f} GB"
        yield (
            f"{precision:9} {one['median']:21.2f} {one['p99']:7.2f} {memory:>12} {measured['load_s']:5.1f} s "
            f"{measured['limit_gflops']:14.0f}"
        )
