"""The argument CORPUS of the commands that train: a prepared corpus, or a text file, which is prepared first."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.errors import NotFoundError, OutputError

if TYPE_CHECKING:
    from pyelmo.training.processes import Processes

HELD_OUT = 0.02  # fraction of the documents of a text file


def add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus", metavar="CORPUS", help="folder that `elmo prepare` wrote, or a file of text, prepared into RUN.corpus"
    )


def add_preparing(parser: argparse.ArgumentParser) -> None:
    """Add the options of preparing a text file, language aside."""
    options.add_reading(parser)
    parser.add_argument(
        "--vocab-size", type=int, metavar="N", default=20_000,
        help="number of words that the model predicts, if CORPUS is a text file (default: 20000)",
    )  # fmt: skip


def prepared_corpus(args: argparse.Namespace, group: Processes, *, language: str) -> Path:
    """Return the folder of the corpus. A text file is prepared first, unless an earlier run has prepared the same."""
    from pyelmo.corpus.corpus import MANIFEST, PrepareSettings, read_manifest
    from pyelmo.corpus.prepare import differences, prepare

    source = Path(args.corpus)
    if not source.exists():
        raise NotFoundError(f"{source}: not found. Name a text file, or a corpus that `elmo prepare` wrote.")
    if source.is_dir():
        return source
    output = Path(args.output)
    corpus = output.with_name(f"{output.name}.corpus")
    if group.first:
        settings = PrepareSettings(
            inputs=(str(source),), language=language, vocab_size=args.vocab_size, valid_fraction=HELD_OUT,
            column=args.column, input_format=args.input_format, encoding=args.encoding,
        )  # fmt: skip
        if args.force or not (corpus / MANIFEST).is_file():
            prepare(settings, corpus, progress=not args.quiet, force=args.force)
        elif changed := differences(read_manifest(corpus / MANIFEST), settings):
            raise OutputError(
                f"{corpus}: is from an earlier run, and not the corpus of {source} ({'; '.join(changed)}). Choose "
                "another folder with -o, or pass --force to prepare the text again and start again."
            )
    group.wait()
    return corpus
