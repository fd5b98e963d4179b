"""elmo task predict: the answers of a trained model about raw text."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

from pyelmo.cli import options
from pyelmo.cli.tasks.evaluate import add_trained_model
from pyelmo.errors import InputError

HELP = "Apply a trained model to raw text."
EXAMPLE = 'elmo task predict run "John lives in Paris ."'
# The texts of tasks that need more than a sentence: on the command line (TEXT), or in files (FILE).
_TEXTS = {
    "premise": ("TEXT", "premise of an entailment (nli)"),
    "hypothesis": ("TEXT", "hypothesis that may follow from the premise (nli)"),
    "passage": ("FILE", "file with the passage that holds the answer (qa)"),
    "question": ("TEXT", "question about the passage (qa)"),
    "document": ("FILE", "file with a whole text (coref)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trained_model(parser)
    parser.add_argument(
        "text", nargs="*", metavar="SENTENCE", help="sentence to label (ner, srl, sentiment); - is stdin"
    )
    for name, (metavar, text) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    parser.add_argument(
        "--input", metavar="FILE",
        help="file with one input per line, its texts separated by tabs if there are several, or csv, tsv, JSON Lines "
        "or Parquet file with one per row, compressed or not; - is stdin; a blank line gets an empty answer",
    )  # fmt: skip
    options.add_reading(parser)
    options.add_device(parser)
    options.add_threads(parser)
    options.add_json(parser, "print one JSON object per input, with probabilities and offsets, instead of text")


def run(args: argparse.Namespace) -> None:
    from pyelmo.tasks import load

    if not (args.text or args.input or any(getattr(args, name) for name in _TEXTS)):
        raise InputError("no sentence to predict. Name sentences, or a file with --input")
    if args.text == ["-"] and not args.input:
        args.text, args.input = [], "-"
    for text in args.text:
        if text == "-":
            raise InputError("-: stands for stdin, and must be alone. Read it with --input - beside other sentences")
        if _is_file(text):
            raise InputError(f"{text}: is a file, not a sentence. Read it with --input {text}")
    options.set_threads(args.threads)
    model = load(args.model, encoder=args.encoder, device=options.choose_device(args.device))
    names = model.task.input_names
    inputs = _read_inputs(args, model.task.name, names)
    for texts, answers in zip(inputs, model.predict(inputs), strict=True):
        if not args.json:
            print(model.task.format(answers) if answers else texts if isinstance(texts, str) else "")
            continue
        if isinstance(texts, str):
            first = answers[0] if answers else None
            facts = {"text": texts, "words": first.words if first else [], "offsets": first.offsets if first else []}
        else:
            facts = dict(zip(names, texts, strict=True))
        print(json.dumps({**facts, "answers": [answer.to_json() for answer in answers]}, ensure_ascii=False))


def _is_file(text: str) -> bool:
    try:
        return os.path.isfile(text)
    except ValueError:  # a null byte
        return False


def _read_inputs(args: argparse.Namespace, task: str, names: tuple[str, ...]) -> list[Any]:
    """Return the inputs of the task: a text each, or a list of as many texts as the task needs."""
    from pyelmo.text.lines import numbered_lines

    texts = {name: getattr(args, name) for name in _TEXTS if getattr(args, name) is not None}
    if set(texts) - set(names) or (texts and len(texts) < len(names)) or (args.text and len(names) > 1):
        needed = " and ".join(f"--{name}" for name in names if name in _TEXTS) or "sentences"
        raise InputError(f"{args.model}: a model of the task {task} needs {needed}, or a file with --input")
    for name in texts:
        if _TEXTS[name][0] == "FILE":
            texts[name] = "\n".join(line for _, line in numbered_lines(texts[name], args.encoding))
    inputs: list[Any] = list(args.text)
    if texts:
        ordered = [texts[name] for name in names]
        inputs.append(ordered if len(names) > 1 else ordered[0])
    return inputs + (list(_read_file(args, names)) if args.input else [])


def _read_file(args: argparse.Namespace, names: tuple[str, ...]) -> Iterator[str | list[str]]:
    """Yield the inputs of --input: lines of text, or rows of a table, of which --column names one column or several."""
    from pyelmo.text.rows import ReadOptions, read_rows

    columns = args.column.split(",") if args.column is not None else []
    if columns and len(columns) != len(names):
        raise InputError(
            f"--column {args.column}: expected {' and '.join(names)}, a column for each with commas between"
        )
    input_format = "text" if len(names) > 1 and not columns else args.input_format  # its lines may have tabs
    reading = ReadOptions(
        column=columns[0] if columns else None, keep=tuple(columns[1:]), input_format=input_format,
        encoding=args.encoding,
    )  # fmt: skip
    for number, row in enumerate(read_rows(args.input, reading, stripped=False), 1):
        if row.words is not None:
            raise InputError(f"{args.input}, row {number}: has a list of words, expected text. Choose another --column")
        where = f"{args.input}, line {number}"
        yield [row.text, *map(str, row.kept)] if row.kept else _read_line(row.text, names, where)


def _read_line(line: str, names: tuple[str, ...], where: str) -> str | list[str]:
    """Return the text of a line, or its texts if the task needs several; a blank line is a blank input."""
    if len(names) == 1:
        return line
    if not line.strip():
        return [""] * len(names)
    texts = line.split("\t")
    if len(texts) != len(names) or not all(text.strip() for text in texts):
        raise InputError(f"{where}: expected {' and '.join(names)} with a tab between, got {line[:60]!r}")
    return texts
