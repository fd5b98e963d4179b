"""elmo explore: the vectors of one word in several sentences, as tables, as a file, or on a page in the browser."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.cli import options
from pyelmo.cli.messages import say
from pyelmo.errors import InputError

if TYPE_CHECKING:
    from pyelmo.probes.explore import Exploration

HELP = (
    "Compare the vectors of one word in several sentences, as tables of cosines and two-dimensional maps. Without "
    "sentences, open the explorer in the browser."
)
EXAMPLE = (
    'elmo explore "the *bank* of a river" "a *bank* account" "he sat on the *bank* of a lake" --model en -o map.html'
)

HANGUL = re.compile("[가-힣]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="*",
        help="sentence with the word between asterisks, which are optional if the sentences share only that word "
        "(default: open the explorer with an example)",
    )  # fmt: skip
    parser.add_argument("--open", action="store_true", help="open the sentences in the explorer instead of printing")
    parser.add_argument(
        "--port", type=int, metavar="PORT", default=0, help="port of the explorer on this machine (default: a free one)"
    )
    options.add_model(parser, options.ENCODER)
    options.add_layers(
        parser, default="all",
        choices="all (side by side, and substitutes), top, average, the index of a layer from 0, or substitutes (what "
        "could stand in the place of the word)",
    )  # fmt: skip
    parser.add_argument(
        "--centred", "--centered", action="store_true",
        help="subtract the mean of the word's vectors first, so that what the contexts add decides (three sentences or "
        "more)",
    )  # fmt: skip
    options.add_language(parser)
    options.add_device(parser)
    options.add_threads(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="MAP",
        help="file for the map, .html or .svg; an .svg has the last of the layers (default: no map)",
    )  # fmt: skip
    options.add_force(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    if args.open or not args.sentences:
        _open_page(args)
        return
    check_layers(args.layers)
    if args.output is not None:
        from pyelmo.files import check_output
        from pyelmo.probes.explore import check_ending

        check_ending(args.output)
        check_output(args.output, force=args.force)
    from pyelmo.encoders import open_encoder
    from pyelmo.probes.explore import SUBSTITUTES, explore, facts, find_occurrences, write_map

    options.set_threads(args.threads)
    source, language = options.choose_model(args)
    encoder = open_encoder(source, language=language, device=options.choose_device(args.device))
    occurrences = find_occurrences(args.sentences, language or encoder.loaded.language or "general")
    words = ", ".join(dict.fromkeys(occurrence.written()[1] for occurrence in occurrences))
    title = f"{words} ({encoder.name}{', centred' if args.centred else ''})"
    layers = named_layers(args.layers, encoder.name, encoder.layers)
    model = encoder.loaded.embedder
    if args.layers not in ("all", SUBSTITUTES) or (model is not None and not model.predicts_words):
        model = None
    if args.layers == SUBSTITUTES and model is None:
        raise InputError(f"--layers {SUBSTITUTES}: {encoder.name} predicts no words, so it has no substitutes")
    results = explore(encoder.embed_own_tokens, occurrences, layers, title, centred=args.centred, model=model)
    if args.json:
        print(json.dumps(facts(results), indent=1, ensure_ascii=False))
    else:
        _print(results)
    if args.output is not None:
        write_map(results, args.output, force=args.force)
        say(f"{args.output}: written")


def _open_page(args: argparse.Namespace) -> None:
    """Serve the page on this machine, and open the browser when it is ready; Ctrl-C ends both."""
    if args.output is not None or args.json:
        raise InputError("-o and --json need sentences, and cannot be combined with --open")
    import threading
    import webbrowser
    from urllib.parse import urlencode

    from pyelmo.server.run import run as serve
    from pyelmo.server.settings import ServerSettings

    models = {"en": "en", "ko": "ko"}
    if args.model is not None or args.language is not None:
        source, _ = options.choose_model(args)
        models = {Path(source).name: source}
    query = [("s", sentence) for sentence in args.sentences]
    if query and len(models) > 1:  # else the page would choose by the language of the browser
        query.append(("model", "ko" if HANGUL.search(" ".join(args.sentences)) else "en"))

    def show(address: str) -> None:
        page = f"{address}/#context?{urlencode(query)}" if query else f"{address}/"
        say(f"elmo: the explorer is at {page} (Ctrl-C stops)")
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()  # a browser in a terminal blocks

    serve(ServerSettings(models=models, precision="int8", threads=args.threads, port=args.port), show)


def _print(results: Sequence[Exploration]) -> None:
    """Print the cosines of all layers side by side, with the sentences at the right."""
    from pyelmo.probes.explore import marked

    print(f"cosines of the vectors of {results[0].title}")
    count = len(results[0].occurrences)
    width = max(7 * count - 2, *(len(result.layer) for result in results))
    print("     " + "    ".join(f"{result.layer:{width}}" for result in results).rstrip())
    numbers = "  ".join(f"{number:5}" for number in range(1, count + 1))
    print("     " + "    ".join([f"{numbers:{width}}"] * len(results)).rstrip())
    for row, occurrence in enumerate(results[0].occurrences):
        cells = ("  ".join(f"{value:5.2f}" for value in result.cosines[row].tolist()) for result in results)
        print(f"{row + 1:3}  " + "    ".join(f"{cell:{width}}" for cell in cells) + f"   {marked(occurrence)}")
    for result in results:
        if result.words:
            print("what could stand in its place")
        for number, words in enumerate(result.words, 1):
            print(f"{number:3}  {', '.join(words)}")


def check_layers(text: str) -> None:
    if text not in ("all", "top", "average", "substitutes") and not text.isdecimal():
        raise InputError(f"--layers {text}: expected all, top, average, the index of a layer from 0, or substitutes")


def named_layers(text: str, encoder: str, names: Sequence[str]) -> dict[str, int | None]:
    """Return the layers that --layers chooses, by name; None is the mean of all layers."""
    if text == "substitutes":
        return {}
    if text == "average":
        return {"mean of the layers": None}
    if text == "all":
        return {name: number for number, name in enumerate(names)}
    layer = len(names) - 1 if text == "top" else int(text)
    if layer >= len(names):
        raise InputError(f"--layers {layer}: {encoder} has only layers 0 to {len(names) - 1}. Choose one of them")
    return {names[layer]: layer}
