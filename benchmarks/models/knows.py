"""Measure what a model knows: perplexity of held-out text, word senses, parts of speech, words with two senses.

    python benchmarks/models/knows.py MODEL --language en --text wikipedia=en-wikipedia.test.txt \\
        --tokenised-text wikitext-103=wt103.test.tokens --data DIR -o benchmarks/results/knows_en.json
    python benchmarks/models/knows.py en --language en --precision int8 --parts wsd,pos,wic,senses,phrases \\
        --data DIR -o (the same file)

DIR contains the data sets, at any depth: SemCor 3.0, ALL.data.xml of the unified test sets and index.sense of WordNet
3.0 for wsd; UD English EWT, or UD Korean Kaist and GSD, for pos; WiC. The lists of words with two senses and of short
phrases are bundled with the package. `--held-out` adds the held-out list of words with two senses, which should be used
once, after a model has been chosen.

Every figure is saved when it is complete, with its model, command, machine and commit. The same command resumes a
stopped run. Figures may come from several runs and models: the perplexity from the model as trained, with the whole
vocabulary of its softmax, the others from the bundled model. At the end the script prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.encoders.registry import identity, open_encoder
from pyelmo.errors import PyelmoError
from pyelmo.files import sha256
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import Pretrained
from pyelmo.probes import suite
from pyelmo.probes.figures import Measurement, measure
from pyelmo.provenance import machine, plain_command, versions
from pyelmo.text.lines import numbered_lines
from pyelmo.text.tokens import split_sentences, split_words

PARTS = {
    "en": ("perplexity", "wsd", "pos", "wic", "senses", "phrases"),
    "ko": ("perplexity", "pos", "senses", "phrases"),
}
UNKNOWN = "<unk>"  # the out-of-vocabulary token of WikiText
PIECE_WORDS = 10_000  # words for each step of the progress bar


# --- what is measured ----------------------------------------------------------------------------------------------


def planned(args: argparse.Namespace) -> list[Measurement]:
    """Return all measurements; a missing file is an error here, before any work."""
    measurements: list[Measurement] = []
    language = model_language(args.model) or args.language  # ko-morph for Korean
    encoder = open_encoder(f"elmo:{args.model}", precision=args.precision, device=args.device, language=language)
    for part in args.parts:
        if part != "perplexity":
            measurements += suite.plan(part, encoder, args.language, args.data, control=False, held_out=args.held_out)
            continue
        texts = [(name, path, False) for name, path in args.text]
        texts += [(name, path, True) for name, path in args.tokenised_text]
        if not texts:
            sys.exit("perplexity needs a text. Pass --text NAME=PATH, or leave perplexity out of --parts.")
        facts = {**identity(resolve.locate(args.model)), "precision": "float32"}
        for name, path, tokenised in texts:
            of = {**facts, "text": path.name, "text_sha256": sha256(path)}
            find = functools.partial(find_perplexity, args, language, path, tokenised)
            measurements.append(Measurement(f"perplexity {name}", of, find))
    return measurements


def model_language(model: str) -> str | None:
    return resolve.read(model).language


@functools.cache
def language_model(model: str, device: str) -> Pretrained:
    pretrained = resolve.read(model)
    pretrained.bilm.to(device)
    return pretrained


def find_perplexity(args: argparse.Namespace, language: str, path: Path, tokenised: bool) -> dict[str, Any]:
    """Return the perplexity of single sentences with the full softmax, as in the validation of a training run."""
    pretrained = language_model(args.model, args.device)
    unknown = pretrained.lexicon.vocab.unknown if pretrained.lexicon.vocab else UNKNOWN
    sentences = read_sentences(path, language, tokenised, unknown)
    losses, words, unknowns = np.zeros(1 + pretrained.config.bidirectional), 0, 0
    with tqdm(total=sum(map(len, sentences)), unit=" words", desc="  predicting") as bar:
        for piece in pieces(sentences):
            part = perplexity(pretrained, [piece], context="sentence", batch_size=256)
            directions = [part.forward] if part.backward is None else [part.forward, part.backward]
            losses += np.log(directions) * part.words
            words, unknowns = words + part.words, unknowns + part.unknown
            bar.update(sum(map(len, piece)))
    forward, backward = (*np.exp(losses / words).tolist(), None)[:2]
    return {
        "forward": forward, "backward": backward,
        "average": forward if backward is None else math.sqrt(forward * backward),
        "predictions": words, "sentences": len(sentences), "unknown": unknowns, "unknown_rate": unknowns / words,
        "vocabulary": pretrained.config.softmax, "context": "sentence", "softmax": "full",
    }  # fmt: skip


def read_sentences(path: Path, language: str, tokenised: bool, unknown: str) -> list[list[str]]:
    """Split a text into sentences like `elmo prepare`. A tokenised text (WikiText) is not split into words again."""
    sentences: list[list[str]] = []
    for _, line in numbered_lines(path):
        for sentence in split_sentences(line, language):
            words = sentence.split() if tokenised else split_words(sentence, language)
            sentences.append([unknown if tokenised and word == UNKNOWN else word for word in words])
    return sentences


def pieces(sentences: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    piece: list[list[str]] = []
    size = 0
    for sentence in sentences:
        piece.append(sentence)
        size += len(sentence)
        if size >= PIECE_WORDS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


# --- the table -----------------------------------------------------------------------------------------------------


def markdown(figures: dict[str, Any]) -> str:
    """Return all figures of a file as tables for a model card."""
    texts = {key.partition(" ")[2]: figures[key] for key in figures if key.startswith("perplexity ")}
    lines: list[str] = []
    if texts:
        lines += row("perplexity of single sentences", "forward", "backward", "average", "vocabulary", "unknown")
        lines += row(*["---"] * 6)
        for name, figure in texts.items():
            result = figure["result"]
            values = [result[key] for key in ("forward", "backward", "average")]
            share = f"{100 * result['unknown_rate']:.1f} % of {result['predictions']:,}"
            lines += row(name, *map(number, values), f"{result['vocabulary']:,}", share)
        lines.append("")
    probes = probe_rows(figures)
    if probes:
        layers = max(len(values) for _, values, _, _ in probes)
        mixes = ("mean of layers", "top layer minus the one below", "substitutes")
        lines += row("in %", *[f"layer {layer}" for layer in range(layers)], *mixes, "without the model")
        lines += row(*["---"] * (layers + 5))
        for name, values, mixed, plain in probes:
            lines += row(name, *map(number, values), *[""] * (layers - len(values)), *map(number, mixed), plain)
        lines.append("")
    for key in ("senses", "senses held out"):
        if key in figures:
            shares = sorted(figures[key]["result"]["by_word"].items(), key=lambda pair: -pair[1])
            lines += [f"By word ({key}): {', '.join(f'{word} {share:.0f}' for word, share in shares)}.", ""]
    origins: dict[str, list[str]] = {}
    for key, figure in figures.items():
        origins.setdefault(describe(figure), []).append(key)
    return "\n".join([*lines, *[f"- {', '.join(keys)}: {origin}" for origin, keys in origins.items()]])


NO_MIX = (None, None, None)
ProbeRow = tuple[str, list[float], tuple[float | None, float | None, float | None], str]


def probe_rows(figures: dict[str, Any]) -> list[ProbeRow]:
    """Return for each row its name, the figures by layer and of two mixes of layers, and the baseline."""
    rows: list[ProbeRow] = []
    if "wsd" in figures:
        result = figures["wsd"]["result"]
        rows.append(("word senses, all sets (F1)", result["f1"], NO_MIX, f"first sense {result['first_sense']:.1f}"))
        rows += [(f"word senses, {name}", values, NO_MIX, "") for name, values in result["by_set"].items()]
        rows += [(f"word senses, {name}", values, NO_MIX, "") for name, values in result.get("by_pos", {}).items()]
    for key, figure in figures.items():
        if key.startswith("pos"):
            name, result = f"parts of speech, {figure['of']['treebank']}", figure["result"]
            rows.append((name, result["accuracy"], NO_MIX, f"most frequent tag {result['baseline']:.1f}"))
    for key, name in (("senses", "words with two senses"), ("senses held out", "words with two senses, held out")):
        if key in figures:
            result = figures[key]["result"]
            name = f"{name}, {result['sentences']} sentences"
            mixes = result["mean"], result["added"], result.get("substitutes")
            rows.append((name, result["layers"], mixes, f"chance {result['chance']:.1f}"))
    if "phrases" in figures:
        result = figures["phrases"]["result"]
        mixes = result["mean"], None, result.get("substitutes")
        rows.append((f"short phrases, {result['triples']} triples", result["layers"], mixes, "chance 50.0"))
    if "wic" in figures:
        result = figures["wic"]["result"]
        (substitutes,) = (result.get("substitutes") or {"test": [None]})["test"]
        rows.append(("WiC, test", result["test"], (None, None, substitutes), "chance 50.0"))
    return rows


def describe(figure: dict[str, Any]) -> str:
    of, on = figure["of"], figure.get("machine") or figure["made"]  # "made": of `elmo probe`, without the machine
    where = ", ".join(f"{name} {on[name]}" for name in ("cpu", "date", "commit", "torch") if name in on)
    return f"{of['model']} in {of['precision']}, `{figure['command']}`, {where}"


def row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


# --- the command ---------------------------------------------------------------------------------------------------


def named_path(value: str) -> tuple[str, Path]:
    name, equals, path = value.partition("=")
    if not (name and equals and Path(path).is_file()):
        raise argparse.ArgumentTypeError(f"{value!r}: expected NAME=PATH with the path of a file")
    return name, Path(path)


def folder(value: str) -> Path:
    if not Path(value).is_dir():
        raise argparse.ArgumentTypeError(f"{value!r}: not a folder")
    return Path(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="a folder, a file or the name of a bundled model")
    parser.add_argument("--language", choices=sorted(PARTS), required=True, help="the language of the data sets")
    parser.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="precision of the probes (default: float32)"
    )
    parser.add_argument("--device", default="cpu", help="device of the model: cpu, cuda, ... (default: cpu)")
    parser.add_argument("--parts", help="which of perplexity,wsd,pos,wic,senses,phrases (default: all of the language)")
    parser.add_argument("--text", type=named_path, action="append", default=[], metavar="NAME=PATH")
    parser.add_argument(
        "--tokenised-text", type=named_path, action="append", default=[], metavar="NAME=PATH",
        help=f"text whose words are separated by spaces, with {UNKNOWN} for out-of-vocabulary words",
    )  # fmt: skip
    parser.add_argument("--data", type=folder, nargs="+", default=[], metavar="DIR", help="folders with the data sets")
    parser.add_argument("--held-out", action="store_true", help="add the held-out list of senses; use it once")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--force", action="store_true", help="repeat measurements that the file contains")
    args = parser.parse_args()
    known = PARTS[args.language]
    args.parts = args.parts.split(",") if args.parts else list(known)
    for part in args.parts:
        if part not in known:
            parser.error(f"--parts: {part!r} is not one of {', '.join(known)} (language {args.language})")
    if args.held_out and "senses" not in args.parts:
        parser.error("--held-out needs senses, which is missing in --parts")
    return args


def main() -> None:
    args = arguments()
    command = plain_command("python benchmarks/models/knows.py", sys.argv[1:])
    origin = {"command": command, "machine": {**machine(), **versions()}}
    log = functools.partial(print, file=sys.stderr)
    try:
        about = {"language": args.language}
        results = measure(planned(args), args.output, about, origin=origin, force=args.force, log=log)
    except PyelmoError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(f"\nstopped. {args.output} holds the complete figures; run the same command again to resume")
    print(markdown(results["figures"]))


if __name__ == "__main__":
    main()
