"""elmo embed: files of sentences -> a file of vectors, or a folder of them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.embed.settings import EmbedSettings
    from pyelmo.text.rows import ReadOptions

HELP = "Embed every sentence of a text and write the vectors to a file."
EXAMPLE = "elmo embed sentences.txt -o vectors.hdf5 --layers all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", metavar="TEXT", nargs="+",
        help=options.TEXT_FILE,
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="file to write; - is stdout (as JSON Lines). OUT/ is a folder of files, which a second run resumes",
    )  # fmt: skip
    options.add_model(parser)
    options.add_model_files(parser)
    parser.add_argument(
        "--align", metavar="FILE",
        help="align.pth of an AllenNLP model, which maps its vectors into a space that several languages share "
        "(default: none)",
    )  # fmt: skip
    weights = "all, top, average, the index of a layer from 0, or the weights of a mix such as 0.2,0.3,0.5"
    options.add_layers(parser, default="all", choices=weights)
    parser.add_argument(
        "--pooling", choices=("sentence", "mean", "max", "first", "last", "words"),
        help="write one vector per sentence, computed from those of its tokens, as one matrix in npz and Parquet; "
        "sentence: the model's own form (zeros for a blank line), mean and others: over the tokens (NaN for a blank "
        "line); words: one per word between spaces (a Korean eojeol), the mean of its tokens (default: one vector per "
        "token)",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("hdf5", "npz", "parquet", "jsonl"),
        help="format of the output (default: by the suffix of OUT; parquet for a folder)",
    )  # fmt: skip
    parser.add_argument("--float16", action="store_true", help="store the vectors in half precision")
    options.add_tokenised(parser)
    options.add_reading(parser)
    parser.add_argument(
        "--keep", metavar="NAME,NAME,...", default="",
        help="other columns of the input, such as labels, that are copied into Parquet, npz or jsonl; in hdf5, a column"
        " id names the arrays (default: none, of FASTA files the id)",
    )  # fmt: skip
    parser.add_argument(
        "--documents", action="store_true",
        help="split each line or row into its sentences; the output has a column document, the number of the line or "
        "row from 0, and a blank one has no sentences",
    )  # fmt: skip
    options.add_language(parser)
    options.add_batch_size(parser)
    options.add_device(parser)
    options.add_precision(parser)
    options.add_threads(parser, otherwise="all cores for one worker, else 1")
    options.add_workers(parser, " that share the files of a folder")
    parser.add_argument(
        "--runner", choices=("processes", "ray"), default="processes",
        help="how the workers are started: as processes of this machine, or by Ray (default: processes)",
    )  # fmt: skip
    parser.add_argument(
        "--part-sentences", type=int, metavar="N", default=5000,
        help="number of sentences in each file of a folder (default: 5000)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-boundaries", action="store_true", help="also write the vectors of the boundary tokens <S> and </S>"
    )
    options.add_force(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    with_workers = args.workers != 1 or args.runner != "processes"
    folder = args.output.endswith("/") or Path(args.output).is_dir()
    if with_workers and not folder and (args.output == "-" or Path(args.output).suffix):
        raise InputError(
            f"{args.output}: several workers write a folder, not a single file. Name a folder, such as -o vectors/"
        )
    if with_workers or folder:
        _run_bulk(args)
    else:
        _run_single(args)


def _settings(args: argparse.Namespace, format: str) -> EmbedSettings:
    """Build the settings from the options of the same names."""
    from pyelmo.embed.settings import EmbedSettings

    names = {field.name for field in dataclasses.fields(EmbedSettings)}
    values = {name: value for name, value in vars(args).items() if name in names}
    values["model"], values["language"] = options.choose_model(args)
    values["device"] = options.choose_device(args.device, args.precision)
    return EmbedSettings(**{**values, "layers": options.parse_layers(args.layers), "format": format})


def _run_bulk(args: argparse.Namespace) -> None:
    from pyelmo.embed.bulk.job import BulkJob
    from pyelmo.embed.bulk.run import run_job

    job = BulkJob(
        settings=_settings(args, args.format or "parquet"), inputs=args.inputs, output=args.output,
        reading=_reading(args), part_sentences=args.part_sentences,
        workers=args.workers, runner=args.runner,
    )  # fmt: skip
    result = run_job(job, progress=not args.quiet, force=args.force)
    if not args.quiet:
        old = result.parts - result.new_parts
        resumed = f", {old} of them from an earlier run" if old else ""
        say(f"elmo: {args.output}: {result.sentences} sentences in {result.parts} files{resumed}")


def _run_single(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.embed.files.inputs import count, read
    from pyelmo.embed.files.store import format_of
    from pyelmo.embed.files.write import write_embeddings
    from pyelmo.files import check_output

    settings = _settings(args, format_of(args.output, args.format))
    if args.output != "-":
        check_output(Path(args.output), force=args.force)  # before the model is loaded
    reading = _reading(args)
    total = count(read(args.inputs, reading), args.inputs)
    if total == 0:
        raise InputError(f"{', '.join(args.inputs)}: there is nothing to embed, because the input is empty")
    extra = settings.extra_columns(args.inputs, reading)
    embedder = settings.load()
    if settings.documents:
        total = count(settings.sentences(embedder, read(args.inputs, reading)), args.inputs)
    with tqdm(total=total, unit=" sentences", disable=args.quiet, file=sys.stderr) as bar:
        sentences = settings.sentences(embedder, read(args.inputs, reading))
        blank = write_embeddings(
            settings, embedder, sentences, args.output, extra=extra, force=args.force, advance=bar.update
        )
    if blank and not args.quiet:
        missing = "zeros" if settings.pooling == "sentence" else "null" if settings.format == "jsonl" else "NaN"
        result = "no vectors" if settings.pooling in (None, "words") else f"{missing} instead of a vector"
        say(f"elmo: {blank} blank lines have {result}, and are counted in the numbering of the sentences")


def _reading(args: argparse.Namespace) -> ReadOptions:
    from pyelmo.text.fasta import keep_ids

    names = [name.strip() for name in args.keep.split(",") if name.strip()]
    return keep_ids(args.inputs, options.reading_options(args, names))
