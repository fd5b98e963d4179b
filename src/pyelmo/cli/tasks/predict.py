"""elmo task predict: the answers of a trained model about raw text."""

from __future__ import annotations

import argparse
import json
import os
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
        help="file with one input per line, its texts separated by tabs if there are several (- is stdin); "
        "a blank line gets an empty answer",
    )  # fmt: skip
    options.add_device(parser)
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
    texts = {name: getattr(args, name) for name in _TEXTS if getattr(args, name) is not None}
    if set(texts) - set(names) or (texts and len(texts) < len(names)) or (args.text and len(names) > 1):
        needed = " and ".join(f"--{name}" for name in names if name in _TEXTS) or "sentences"
        raise InputError(f"{args.model}: a model of the task {task} needs {needed}, or a file with --input")
    for name in texts:
        if _TEXTS[name][0] == "FILE":
            texts[name] = "\n".join(_lines(texts[name]))
    inputs: list[Any] = list(args.text)
    if texts:
        ordered = [texts[name] for name in names]
        inputs.append(ordered if len(names) > 1 else ordered[0])
    lines = _lines(args.input) if args.input else []
    return inputs + [_read_line(line, names, f"{args.input}, line {number}") for number, line in enumerate(lines, 1)]


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


def _lines(path: str) -> list[str]:
    from pyelmo.text.lines import numbered_lines

    return [line for _, line in numbered_lines(path)]
