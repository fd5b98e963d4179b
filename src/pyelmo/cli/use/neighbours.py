"""elmo neighbours: an index of words in their sentences, and those nearest to a word in another."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli.options import add_language, add_model_files
from pyelmo.cli.use.embed import parse_layers
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.neighbours import Neighbour
    from pyelmo.vectors.static import SimilarWord

HELP = "find the words that are nearest in context: build an index of a text, then query it"
EXAMPLE = "elmo neighbours build text.txt -o INDEX --model en --words bank,river"
QUERY_EXAMPLE = 'elmo neighbours query INDEX "They sat on the *bank* of the river ." -k 3'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="build|query", required=True)
    what = "index the occurrences of words in a text"
    _add_build(actions.add_parser("build", help=what, description=what, epilog=f"example: {EXAMPLE}"))
    what = "give the occurrences nearest to a word in a sentence"
    _add_query(actions.add_parser("query", help=what, description=what, epilog=f"example: {QUERY_EXAMPLE}"))


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", metavar="TEXT", nargs="+", help="one sentence a line, or Parquet; - is stdin")
    parser.add_argument("-o", "--output", metavar="INDEX", required=True, help="the folder to write")
    parser.add_argument("--model", "-m", required=True, help="a folder, a file, a name in the box or a Hub id")
    add_model_files(parser)
    parser.add_argument("--words", default="all", help="with commas between, in any case (default: all)")
    parser.add_argument(
        "--layer", default="top", help="top (default), average, a layer's index, or the weights of a mix: 0.2,0.3,0.5"
    )
    parser.add_argument("--tokenised", action="store_true", help="words are separated by white space already")
    parser.add_argument("--column", help="of Parquet files: texts or lists of words (default: tokens, sentence, text)")
    add_language(parser)
    parser.add_argument(
        "--exact", action="store_true",
        help="compare with every occurrence, in float32; by default so up to 100,000, then with the nearest lists",
    )  # fmt: skip
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu)")
    parser.add_argument(
        "--precision", choices=("float32", "int8", "bfloat16"), default="float32",
        help="what is computed in: int8 on a CPU, bfloat16 on a GPU are faster (default: float32)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, help="of a CPU (default: all)")
    parser.add_argument("--force", action="store_true", help="replace INDEX if it exists")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", metavar="INDEX", help="what build wrote")
    parser.add_argument("sentence", metavar="SENTENCE", help="with one word between asterisks; - is stdin, one a line")
    parser.add_argument("--word", help="the word, where none is marked in the sentence")
    parser.add_argument("-k", "--count", type=int, default=10, help="how many neighbours (default: 10)")
    parser.add_argument("--same-word", action="store_true", help="only occurrences of the same word")
    parser.add_argument("--static", metavar="FILE", help="static vectors to show beside them")
    parser.add_argument("--model", "-m", help="where the index's model is now (default: where it was)")
    parser.add_argument(
        "--quick", action="store_true", help="trust the files: compare their sizes, not their checksums"
    )
    parser.add_argument("--threads", type=int, help="of a CPU (default: all)")
    parser.add_argument("--json", action="store_true", help="for programs: an object a sentence")


def run(args: argparse.Namespace) -> None:
    {"build": _build, "query": _query}[args.action](args)


def _build(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.embed.files.inputs import count
    from pyelmo.neighbours import build

    words = None if args.words == "all" else [word.strip() for word in args.words.split(",")]
    if words is not None and not all(words):
        raise InputError(f"--words {args.words!r}: expected words with commas between, or all")
    with tqdm(unit=" lines", disable=args.quiet, file=sys.stderr) as bar:
        bar.total = count(args.inputs)
        index = build(
            args.inputs, args.output, model=args.model, options=args.options, vocab=args.vocab, words=words,
            language=args.language, layer=parse_layers(args.layer), tokenised=args.tokenised, column=args.column,
            exact=args.exact, precision=args.precision, device=args.device, threads=args.threads, force=args.force,
            advance=bar.update,
        )  # fmt: skip
    if not args.quiet:
        found = index.manifest
        print(
            f"elmo: {args.output}: {found['occurrences']:,} occurrences in {found['sentences']:,} sentences "
            f"({found['kind']})", file=sys.stderr,
        )  # fmt: skip


def _query(args: argparse.Namespace) -> None:
    from pyelmo.encoders.static import read_vectors
    from pyelmo.neighbours import Index
    from pyelmo.text.lines import open_text, read_lines

    if args.count < 1:
        raise InputError(f"-k {args.count}: must be at least 1")
    index = Index(args.index, verify=not args.quick)
    sentences = [args.sentence]
    if args.sentence == "-":
        with open_text("-") as file:
            sentences = [line for line in read_lines(file, "stdin") if line.strip()]
    queries = [index.find(sentence, args.word) for sentence in sentences]  # an error before the model is read
    vectors = read_vectors(Path(args.static)) if args.static else None
    embedder = index.load_model(args.model, threads=args.threads)
    for number, (sentence, (words, place)) in enumerate(zip(sentences, queries, strict=True)):
        near = index.query(embedder, sentence, word=args.word, count=args.count, same_word=args.same_word)
        beside = vectors.similar(words[place], args.count) if vectors else None
        if args.json:
            print(_as_json(sentence, words[place], near, beside))
            continue
        if number:
            print()
        _print(near, beside)


def _as_json(sentence: str, word: str, near: list[Neighbour], static: list[SimilarWord] | None) -> str:
    beside = {} if static is None else {"static": [{"cosine": o.similarity, "word": o.word} for o in static]}
    found = {"query": sentence, "word": word, "neighbours": [vars(neighbour) for neighbour in near], **beside}
    return json.dumps(found, ensure_ascii=False)


def _print(near: list[Neighbour], static: list[SimilarWord] | None) -> None:
    for row, neighbour in enumerate(near):
        beside = ""
        if static is not None:
            beside = f"{static[row].similarity:.4f} {static[row].word}\t" if row < len(static) else "\t"
        print(f"{neighbour.cosine:.4f}\t{beside}{neighbour.source}:{neighbour.line}\t{neighbour.marked}")
