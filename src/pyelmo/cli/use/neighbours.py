"""elmo neighbours: an index of words in their sentences, and the occurrences nearest to a word in another sentence."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.cli.actions import Action
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.neighbours import Neighbour
    from pyelmo.vectors.static import SimilarWord

HELP = "Find the words that are nearest to a word in its context, with an index of a text."
EXAMPLE = "elmo neighbours build text.txt -o index --words bank,river"
EXPORT_EXAMPLE = "elmo neighbours export index -o occurrences.parquet"
QUERY_EXAMPLE = 'elmo neighbours query index "They sat on the *bank* of the river ." -k 3'


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", metavar="TEXT", nargs="+", help=options.TEXT_FILE)
    parser.add_argument("-o", "--output", metavar="INDEX", required=True, help="folder to write the index to")
    options.add_model(parser)
    options.add_model_files(parser)
    parser.add_argument(
        "--words", metavar="WORD,WORD,...", default="all", help="words to index, in upper or lower case (default: all)"
    )
    weights = "top, average, the index of a layer from 0, or the weights of a mix such as 0.2,0.3,0.5"
    options.add_layers(parser, default="top", choices=weights)
    options.add_tokenised(parser)
    options.add_reading(parser)
    options.add_language(parser)
    parser.add_argument(
        "--exact", action="store_true",
        help="make every query search all occurrences in float32 (default: only up to 100,000 occurrences; above "
        "that a faster, approximate search)",
    )  # fmt: skip
    options.add_device(parser)
    options.add_precision(parser)
    options.add_threads(parser)
    options.add_force(parser)
    options.add_quiet(parser)


def _add_query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", metavar="INDEX", help="folder that `elmo neighbours build` wrote")
    parser.add_argument(
        "sentence", metavar="SENTENCE",
        help="sentence with the word between asterisks; - reads one sentence per line from stdin",
    )  # fmt: skip
    parser.add_argument("--word", metavar="WORD", help="word to look for (default: the word between asterisks)")
    options.add_count(parser, "neighbours")
    parser.add_argument(
        "--window", type=int, metavar="N", default=60,
        help="number of characters to print on each side of a neighbour; 0 prints the whole sentence (default: 60)",
    )  # fmt: skip
    parser.add_argument("--same-word", action="store_true", help="print only occurrences of the same word")
    parser.add_argument(
        "--vectors", metavar="FILE", help="static vectors whose nearest words are printed beside (default: none)"
    )
    parser.add_argument(
        "--model", "-m", metavar="MODEL", help="path of the index's model, if it has moved (default: as indexed)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="check only the sizes of the index's files, not their checksums"
    )
    options.add_encoding(parser)
    options.add_threads(parser)
    options.add_json(parser, "print one JSON object per sentence instead of text")


def _build(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.embed.files.inputs import count, read
    from pyelmo.neighbours import build

    words = None if args.words == "all" else [word.strip() for word in args.words.split(",")]
    if words is not None and not all(words):
        raise InputError(f"--words {args.words!r}: expected words with commas between them, or all")
    model, language = options.choose_model(args)
    with tqdm(unit=" lines", disable=args.quiet, file=sys.stderr) as bar:
        bar.total = count(read(args.inputs, options.reading_options(args)), args.inputs)
        index = build(
            args.inputs, args.output, model=model, options=args.options, vocab=args.vocab,
            words=words, language=language, layer=options.parse_layers(args.layers),
            tokenised=args.tokenised, column=args.column, input_format=args.input_format, encoding=args.encoding,
            exact=args.exact, precision=args.precision,
            device=options.choose_device(args.device, args.precision), threads=args.threads, force=args.force,
            advance=lambda lines: bar.update(lines) if lines else bar.unpause(),
        )  # fmt: skip
    if not args.quiet:
        occurrences, sentences = index.manifest["occurrences"], index.manifest["sentences"]
        say(f"elmo: {args.output}: {occurrences:,} occurrences in {sentences:,} sentences ({index.manifest['kind']})")


def _query(args: argparse.Namespace) -> None:
    from pyelmo.encoders.static import read_vectors
    from pyelmo.neighbours import Index
    from pyelmo.text.rows import ReadOptions, read_rows

    options.check_at_least("-k", args.count, 1)
    options.check_at_least("--window", args.window, 0)
    index = Index(args.index, verify=not args.quick)
    sentences = [args.sentence]
    if args.sentence == "-":
        rows = read_rows("-", ReadOptions(input_format="text", encoding=args.encoding))
        sentences = [row.text for row in rows if row.text]
    queries = [index.find(sentence, args.word) for sentence in sentences]  # fails before the model is read
    vectors = read_vectors(Path(args.vectors)) if args.vectors else None
    embedder = index.load_model(args.model, threads=args.threads)
    for number, (sentence, (words, position)) in enumerate(zip(sentences, queries, strict=True)):
        near = index.query(embedder, sentence, word=args.word, count=args.count, same_word=args.same_word)
        beside = vectors.similar(words[position], args.count) if vectors else None
        if args.json:
            print(_as_json(sentence, words[position], near, beside))
            continue
        if number:
            print()
        _print(near, beside, args.window)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("index", metavar="INDEX", help="folder that `elmo neighbours build` wrote")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", required=True,
        help="Parquet file to write: word, sentence, position, source, line, vector, x and y of every occurrence",
    )  # fmt: skip
    options.add_force(parser)
    options.add_quiet(parser)


def _export(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.neighbours import Index, export

    index = Index(args.index)
    with tqdm(total=len(index), unit=" occurrences", disable=args.quiet, file=sys.stderr) as bar:
        export(index, args.output, force=args.force, advance=bar.update)
    if not args.quiet:
        say(f"elmo: {args.output}: {len(index):,} occurrences")


def _as_json(sentence: str, word: str, near: list[Neighbour], static: list[SimilarWord] | None) -> str:
    answer = {"query": sentence, "word": word, "neighbours": [vars(neighbour) for neighbour in near]}
    if static is not None:
        answer["static"] = [{"cosine": similar.similarity, "word": similar.word} for similar in static]
    return json.dumps(answer, ensure_ascii=False)


def _print(near: list[Neighbour], static: list[SimilarWord] | None, window: int) -> None:
    for row, neighbour in enumerate(near):
        beside = ""
        if static is not None:
            beside = f"{static[row].similarity:.4f} {static[row].word}\t" if row < len(static) else "\t"
        text = neighbour.window(window) if window else neighbour.marked
        print(f"{neighbour.cosine:.4f}\t{beside}{neighbour.source}:{neighbour.line}\t{text}")


ACTIONS = {
    "build": Action("Index the occurrences of words in a text.", EXAMPLE, _add_build, _build),
    "query": Action(
        "Print the occurrences that are nearest to a word in a sentence.", QUERY_EXAMPLE, _add_query, _query
    ),
    "export": Action(
        "Write all occurrences to a Parquet file, with two coordinates for a map.", EXPORT_EXAMPLE, _add_export, _export
    ),
}
