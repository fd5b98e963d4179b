"""elmo embed: files of sentences -> a file of vectors, or a folder of them."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli.options import add_language, add_model_files
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.embed.settings import EmbedSettings

HELP = "turn each line of a text into vectors"
EXAMPLE = "elmo embed sentences.txt -o vectors.hdf5 --model en --layers all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", metavar="IN", nargs="+",
        help="text, one sentence a line, or Parquet; - is stdin. A blank line gives no vectors",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="the file to write; - is stdout (jsonl); OUT/ is a folder of parts, which a second run goes on with",
    )  # fmt: skip
    parser.add_argument("--model", "-m", required=True, help="a folder, a file, a name in the box or a Hub id")
    add_model_files(parser)
    parser.add_argument(
        "--layers", default="all", help="all, top, average, a layer's index, or the weights of a mix: 0.2,0.3,0.5"
    )
    parser.add_argument("--pooling", choices=("mean", "max", "first", "last"), help="one vector a sentence")
    parser.add_argument(
        "--format", choices=("hdf5", "npz", "parquet", "jsonl"), help="default: by OUT's suffix; parquet for a folder"
    )
    parser.add_argument("--float16", action="store_true", help="store half precision")
    parser.add_argument("--tokenised", action="store_true", help="words are separated by white space already")
    parser.add_argument("--column", help="of Parquet files: texts or lists of words (default: tokens, sentence, text)")
    add_language(parser)
    parser.add_argument("--batch-size", type=int, help="sentences at once at most (default: by their words)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu)")
    parser.add_argument(
        "--precision", choices=("float32", "int8", "bfloat16"), default="float32",
        help="what is computed in: int8 on a CPU, bfloat16 on a GPU are faster (default: float32)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, help="of a CPU, for each worker (default: 1, or all for one worker)")
    parser.add_argument("--workers", type=int, default=1, help="processes that share a folder's parts (default: 1)")
    parser.add_argument("--runner", choices=("processes", "ray"), default="processes", help="what runs the workers")
    parser.add_argument("--part-sentences", type=int, default=5000, help="sentences of a part (default: 5000)")
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
    with_workers = args.workers != 1 or args.runner != "processes"
    folder = args.output.endswith("/") or Path(args.output).is_dir()
    if with_workers and not folder and (args.output == "-" or Path(args.output).suffix):
        raise InputError(f"{args.output}: workers write a folder of parts, not a file. Name one, such as -o vectors/")
    if with_workers or folder:
        _run_bulk(args)
    else:
        _run_single(args)


def _settings(args: argparse.Namespace, format: str) -> EmbedSettings:
    """Build the settings from the options of the same names."""
    from pyelmo.embed.settings import EmbedSettings

    names = {field.name for field in dataclasses.fields(EmbedSettings)}
    options = {name: value for name, value in vars(args).items() if name in names}
    return EmbedSettings(**{**options, "layers": parse_layers(args.layers), "format": format})


def _run_bulk(args: argparse.Namespace) -> None:
    from pyelmo.embed.bulk.job import BulkJob
    from pyelmo.embed.bulk.run import run_job

    job = BulkJob(
        settings=_settings(args, args.format or "parquet"), inputs=args.inputs, output=args.output,
        column=args.column, part_sentences=args.part_sentences, workers=args.workers, runner=args.runner,
    )  # fmt: skip
    result = run_job(job, progress=not args.quiet, force=args.force)
    if not args.quiet:
        kept = f", {result.parts - result.new_parts} of them from before" if result.new_parts < result.parts else ""
        print(f"elmo: {args.output}: {result.sentences} sentences in {result.parts} parts{kept}", file=sys.stderr)


def _run_single(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyelmo.embed.files.inputs import count, read
    from pyelmo.embed.files.store import format_of
    from pyelmo.embed.files.write import write_embeddings
    from pyelmo.files import check_output

    settings = _settings(args, format_of(args.output, args.format))
    if args.output != "-":
        check_output(Path(args.output), force=args.force)  # before the model is loaded
    total = count(args.inputs)
    embedder = settings.load()
    with tqdm(total=total, unit=" sentences", disable=args.quiet, file=sys.stderr) as bar:
        sentences = read(args.inputs, args.column)
        blank = write_embeddings(settings, embedder, sentences, args.output, force=args.force, advance=bar.update)
    if blank and not args.quiet:
        print(f"elmo: {blank} blank lines: each keeps its number and has no vectors", file=sys.stderr)
