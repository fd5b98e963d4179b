"""elmo explore: the vectors of one word in several sentences."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

HELP = "Compare the vectors of one word in several sentences, as a table of cosines and a two-dimensional map."
EXAMPLE = 'elmo explore "the *bank* of a river" "a *bank* account" "we sat on the bank" --model en -o map.html'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="+",
        help="sentence with the word between asterisks, which are optional if the sentences share only that word",
    )  # fmt: skip
    options.add_model(parser, options.ENCODER)
    options.add_layers(parser, default="top", choices="top, average or the index of a layer from 0")
    options.add_language(parser)
    options.add_device(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="MAP",
        help="file for the map, .html or .svg (default: no map)",
    )  # fmt: skip
    options.add_force(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    layer = layer_index(args.layers)
    if args.output is not None:
        from pyelmo.files import check_output
        from pyelmo.probes.explore import check_ending

        check_ending(args.output)
        check_output(args.output, force=args.force)
    from pyelmo.encoders import open_encoder
    from pyelmo.probes.explore import explore, find_occurrences, marked, write_map

    encoder = open_encoder(
        options.choose_model(args), language=args.language, device=options.choose_device(args.device)
    )
    occurrences = find_occurrences(args.sentences, args.language or encoder.loaded.language or "general")
    words = ", ".join(dict.fromkeys(occurrence.written()[1] for occurrence in occurrences))
    if layer is not None and layer >= len(encoder.layers):
        last = len(encoder.layers) - 1
        raise InputError(f"--layers {layer}: {encoder.name} has only layers 0 to {last}. Choose one of them")
    name = "mean of the layers" if layer is None else encoder.layers[layer]
    result = explore(encoder.embed_own_tokens, occurrences, layer, f"{words} ({encoder.name}, {name})")
    if args.json:
        print(json.dumps(result.facts(), indent=1, ensure_ascii=False))
    else:
        print(f"cosines of the vectors of {result.title}")
        for number, (occurrence, row) in enumerate(zip(result.occurrences, result.cosines.tolist(), strict=True), 1):
            print(f"{number:3}  {'  '.join(f'{value:5.2f}' for value in row)}   {marked(occurrence)}")
    if args.output is not None:
        write_map(result, args.output, force=args.force)
        say(f"{args.output}: written")


def layer_index(text: str) -> int | None:
    """Return the index of the layer that --layers chooses; None is the mean of all layers."""
    if text == "average":
        return None
    if text != "top" and not text.isdecimal():
        raise InputError(f"--layers {text}: expected top, average or the index of a layer from 0")
    return -1 if text == "top" else int(text)
