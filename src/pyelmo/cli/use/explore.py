"""elmo explore: one word in several sentences."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pyelmo.errors import InputError

HELP = "compare the vectors of one word in several sentences: a table of cosines, and a map in two dimensions"
EXAMPLE = 'elmo explore "the *bank* of a river" "a *bank* account" "we sat on the bank" --model LM -o map.html'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="+",
        help="with the word between asterisks; no mark is needed for the one word that all sentences have",
    )  # fmt: skip
    parser.add_argument("--model", default="en", help="an encoder, named as for elmo probe (default: en)")
    parser.add_argument("--layer", default="top", help="a number from 0, top or average (default: top)")
    parser.add_argument("--language", help="how text is split (default: as the model's text, else general)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, ... (default: cpu)")
    parser.add_argument("-o", "--output", type=Path, metavar="MAP", help="file for a drawing, .html or .svg")
    parser.add_argument("--force", action="store_true", help="replace an existing drawing")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    layer = layer_number(args.layer)
    if args.output is not None:
        from pyelmo.files import check_output
        from pyelmo.probes.explore import check_ending

        check_ending(args.output)
        check_output(args.output, force=args.force)
    from pyelmo.encoders import open_encoder
    from pyelmo.probes.explore import explore, find_occurrences, marked, write_map

    encoder = open_encoder(args.model, language=args.language, device=args.device)
    occurrences = find_occurrences(args.sentences, args.language or encoder.loaded.language or "general")
    words = ", ".join(dict.fromkeys(occurrence.words[occurrence.position] for occurrence in occurrences))
    if layer is not None and layer >= len(encoder.layers):
        raise InputError(f"layer {layer} does not exist. {encoder.name} has the layers 0 to {len(encoder.layers) - 1}.")
    name = "mean of the layers" if layer is None else encoder.layers[layer]
    exploration = explore(encoder.embed_own_tokens, occurrences, layer, f"{words} ({encoder.name}, {name})")
    if args.json:
        print(json.dumps(exploration.facts(), indent=1, ensure_ascii=False))
    else:
        print(f"cosines of the vectors of {exploration.title}")
        rows = zip(exploration.occurrences, exploration.cosines.tolist(), strict=True)
        for number, (occurrence, row) in enumerate(rows, 1):
            print(f"{number:3}  {'  '.join(f'{value:5.2f}' for value in row)}   {marked(occurrence)}")
    if args.output is not None:
        write_map(exploration, args.output, force=args.force)
        print(f"{args.output}: written", file=sys.stderr)


def layer_number(text: str) -> int | None:
    """The layer asked for; None is the mean of all."""
    if text == "average":
        return None
    if text != "top" and not text.isdecimal():
        raise InputError(f"--layer {text}: expected a number from 0, top or average")
    return -1 if text == "top" else int(text)
