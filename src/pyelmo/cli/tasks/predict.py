"""elmo task predict: the answers of a trained model about raw text."""

from __future__ import annotations

import argparse
import json
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
    parser.add_argument("text", nargs="*", metavar="SENTENCE", help="sentence to label (ner, srl, sentiment)")
    for name, (metavar, text) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    parser.add_argument(
        "--input", metavar="FILE",
        help="file with one input per line, its texts separated by tabs if there are several; - is stdin",
    )  # fmt: skip
    options.add_device(parser)
    options.add_json(parser, "print one JSON object per input instead of text")


def run(args: argparse.Namespace) -> None:
    from pyelmo.tasks import load

    if not (args.text or args.input or any(getattr(args, name) for name in _TEXTS)):
        raise InputError("no sentence to predict. Name sentences, or a file with --input")
    model = load(args.model, encoder=args.encoder, device=options.choose_device(args.device))
    names = model.task.input_names
    inputs = _read_inputs(args, model.task.name, names)
    for texts, examples in zip(inputs, model.predict(inputs), strict=True):
        if not args.json:
            print(model.task.format(examples) or texts)
            continue
        if isinstance(texts, str):
            facts = {"text": texts, "words": examples[0].words if examples else []}
        else:
            facts = dict(zip(names, texts, strict=True))
        answers = [model.task.to_json(example) for example in examples]
        print(json.dumps({**facts, "answers": answers}, ensure_ascii=False))


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
    for line in _lines(args.input) if args.input else ():
        if not line.strip():
            continue
        if len(names) > 1 and line.count("\t") != len(names) - 1:
            raise InputError(f"{args.input}: expected {' and '.join(names)} with a tab between, got {line[:60]!r}")
        inputs.append(line.split("\t") if len(names) > 1 else line)
    return inputs


def _lines(path: str) -> list[str]:
    from pyelmo.text.lines import open_text, read_lines

    with open_text(path) as file:
        return list(read_lines(file, path))
