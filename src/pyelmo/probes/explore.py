"""One word in several sentences: the cosines of its vectors, and a map of them in two dimensions.

    "the *bank* of a river", "a *bank* account" --> cosines (N, N), points (N, 2) --> HTML or SVG

L layers, N occurrences of the word, D vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo import plots
from pyelmo.arrays import Float32Array
from pyelmo.embed.language_model import LanguageModel
from pyelmo.encoders.base import Encoder
from pyelmo.errors import InputError
from pyelmo.files import atomic_path
from pyelmo.probes.in_context import ROUNDING, Cosines, WordInContext, substitute_units, vectors_in_context
from pyelmo.text.marked import read_marked
from pyelmo.vectors.static import unit_vectors

ENDINGS = (".html", ".svg")
SUBSTITUTES = "substitutes"  # the name beside those of layers
SHOWN = 5  # substitutes of an occurrence
_CONTEXT = 2  # words of a label on each side of the word


@dataclass(frozen=True)
class Exploration:
    """The occurrences of a word, their cosines (N, N) in one layer, and their points (N, 2) on the map."""

    title: str
    layer: str
    occurrences: list[WordInContext]
    cosines: Cosines
    points: Cosines
    shown: float  # the share of the variance in the two dimensions of the map
    words: Sequence[Sequence[str]] = ()  # the likeliest substitutes of each occurrence, if these are compared


def facts(explorations: Sequence[Exploration]) -> dict[str, Any]:
    """Return the contents of all layers as plain values for JSON."""
    layers = [
        {
            "layer": exploration.layer, "cosines": np.round(exploration.cosines, 4).tolist(),
            "points": np.round(exploration.points, 4).tolist(), "variance_shown": round(exploration.shown, 4),
            **({"words": list(map(list, exploration.words))} if exploration.words else {}),
        }
        for exploration in explorations
    ]  # fmt: skip
    occurrences = [marked(occurrence) for occurrence in explorations[0].occurrences]
    return {"title": explorations[0].title, "occurrences": occurrences, "layers": layers}


def marked(occurrence: WordInContext) -> str:
    """Return the sentence as it was written, with asterisks around the word."""
    return "*".join(occurrence.written())


def find_occurrences(sentences: Sequence[str], language: str) -> list[WordInContext]:
    """Return the words between asterisks.

    In a sentence without asterisks it is the word that is marked in another sentence, or else the only word that all
    sentences have in common.
    """
    split = [read_marked(sentence, language) for sentence in sentences]
    marked_words = {sentence.words[position].casefold() for sentence in split for position in sentence.positions}
    vocabularies = [{word.casefold() for word in sentence.words if any(map(str.isalnum, word))} for sentence in split]
    common = reduce(set.intersection, vocabularies) if vocabularies else set()
    occurrences = []
    for sentence, vocabulary in zip(split, vocabularies, strict=True):
        words, positions = sentence.words, sentence.positions
        if not positions:
            candidates = marked_words & vocabulary if marked_words else common
            positions = [position for position, word in enumerate(words) if word.casefold() in candidates]
            if len(positions) != 1:
                spans = [sentence.spans[position] for position in positions[:5]]
                names = ", ".join(sentence.text[span.start : span.end] for span in spans)
                raise InputError(
                    f"{sentence.text[:60]!r}: the word to compare is not clear "
                    f"({names or 'no word is common to all sentences'}). Mark it with asterisks: *word*"
                )
        offsets = tuple((span.start, span.end) for span in sentence.spans)
        occurrences += [WordInContext(words, position, text=sentence.text, offsets=offsets) for position in positions]
    if len(occurrences) < 2:
        raise InputError("there is only one occurrence, and nothing to compare it with. Pass at least two sentences.")
    return occurrences


def explore(
    embed: Encoder,
    occurrences: list[WordInContext],
    layers: Mapping[str, int | None],
    title: str,
    *,
    centred: bool = False,
    model: LanguageModel | None = None,
) -> list[Exploration]:
    """Compare the occurrences in each of some layers, named and numbered; None is the mean of all layers.

    With a `model` that predicts words, they are also compared by what could stand in their place.

    `centred` subtracts the mean of the compared vectors first. It holds what all occurrences of the word share, which
    makes every cosine high, so that what the contexts add decides.
    """
    if centred and len(occurrences) < 3:
        raise InputError("two vectors minus their mean are always opposite. Pass at least three sentences.")
    compared: dict[str, Float32Array] = {}
    if layers:
        stacked = np.stack(list(vectors_in_context(embed, occurrences)), axis=1)  # (L, N, D)
    for name, layer in layers.items():
        if layer is not None and not -len(stacked) <= layer < len(stacked):
            raise InputError(f"layer {layer} does not exist. The encoder has the layers 0 to {len(stacked) - 1}.")
        compared[name] = stacked.mean(0) if layer is None else stacked[layer]
    if model is not None:
        (compared[SUBSTITUTES],) = substitute_units(model.substitute_vectors, occurrences)  # (N, V)
    explorations = []
    for name, vectors in compared.items():
        scaled = unit_vectors(_centred(vectors) if centred else vectors)
        points, shown = project(scaled)
        words = _substitutes(model, occurrences) if model is not None and name == SUBSTITUTES else []
        explorations.append(Exploration(title, name, occurrences, scaled @ scaled.T, points, shown, words))
    return explorations


def _substitutes(model: LanguageModel, occurrences: Sequence[WordInContext]) -> list[list[str]]:
    """Return the likeliest substitutes of each occurrence."""
    return [
        [guess.word for guess in model.substitutes((each.words, each.position), count=SHOWN)] for each in occurrences
    ]


def _centred(vectors: Float32Array) -> Float32Array:
    """Subtract the mean; what is left of equal vectors, as those of a layer without context, is rounding: zero."""
    rest: Float32Array = vectors - vectors.mean(0)
    lengths, left = (np.linalg.norm(rows, axis=1, keepdims=True) for rows in (vectors, rest))
    return np.where(left > ROUNDING * lengths, rest, np.float32(0))


def project(vectors: Float32Array) -> tuple[Cosines, float]:  # (N, D) -> (N, 2)
    """Return the first two principal components and their share of the variance.

    The sign of a component is arbitrary: here its largest value is positive, so that a map can be reproduced.
    """
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2))
    components = left[:, :2] * sizes[:2]
    columns = np.arange(components.shape[1])
    points[:, : len(columns)] = components * np.sign(components[np.abs(components).argmax(0), columns] + 1e-300)
    variance = float((sizes**2).sum())
    return points, float((sizes[:2] ** 2).sum()) / variance if variance > 1e-12 else 1.0


def write_map(explorations: Sequence[Exploration], path: Path, *, force: bool = False) -> None:
    """Write a drawing in the format of the file name: all layers as HTML, the last of them as SVG."""
    check_ending(path)
    text = _html(explorations) if path.suffix == ".html" else _svg(explorations[-1])
    with atomic_path(path, force=force) as part:
        part.write_text(text, "utf-8")


def check_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: unknown format {path.suffix!r}. A map ends in {' or '.join(ENDINGS)}.")


def _map(exploration: Exploration, below: Sequence[plots.Marked] = ()) -> str:
    points = [(x, y) for x, y in exploration.points.tolist()]
    labels = [occurrence.written(_CONTEXT) for occurrence in exploration.occurrences]
    up = f"second principal component (both: {exploration.shown:.0%} of the variance)"
    return plots.point_map(points, labels, below, across="first principal component", up=up)


def _svg(exploration: Exploration) -> str:
    below: list[plots.Marked] = [("", f"{exploration.title}, {exploration.layer}", "")]
    for number, occurrence in enumerate(exploration.occurrences, 1):
        before, word, after = occurrence.written()
        below.append((f"{number} {before}", f"*{word}*", after))
    return _map(exploration, below).replace("<svg ", f"<svg {plots.NAMESPACE} ", 1) + "\n"


def _cell(cosine: float) -> str:
    share = min(max(cosine, 0.0), 1.0)
    return f"<td style='background:rgba(27,108,168,{share:.2f});color:{plots.text_on(share)}'>{cosine:.2f}</td>"


def _html(explorations: Sequence[Exploration]) -> str:
    """One table with the cosines of all layers side by side, then the map of each layer."""
    occurrences, title = explorations[0].occurrences, escape(explorations[0].title)
    rows = []
    for row, occurrence in enumerate(occurrences):
        cells = "<td></td>".join("".join(map(_cell, layer.cosines[row].tolist())) for layer in explorations)
        before, word, after = map(escape, occurrence.written())
        texts = [
            f"{before}<b>{word}</b>{after}",
            *(escape(", ".join(each.words[row])) for each in explorations if each.words),
        ]
        told = "".join(f"<td class='text'>{text}</td>" for text in texts)
        rows.append(f"<tr><th>{row + 1}</th>{cells}{told}</tr>")
    numbers = "".join(f"<th>{number}</th>" for number in range(1, len(rows) + 1))
    names = "<th></th>".join(f"<th class='text' colspan='{len(rows)}'>{escape(e.layer)}</th>" for e in explorations)
    heads = "<th></th>".join([numbers] * len(explorations))
    maps = "".join(f"<h2>{escape(layer.layer)}</h2>{_map(layer)}" for layer in explorations)
    return (
        "<!doctype html><html><head><meta charset='utf-8'>"
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
        f"<h1>{title}</h1>"
        f"<table><tr><th></th>{names}<th></th></tr><tr><th></th>{heads}<th></th></tr>{''.join(rows)}</table>"
        "<p>Near points have similar vectors. A darker cell of the table is a higher cosine.</p>"
        f"{maps}</body></html>\n"
    )


# System fonts only: a browser that can show Hangul shows it here.
STYLE = (
    "body{font:15px system-ui,'Noto Sans CJK KR','Malgun Gothic','Apple SD Gothic Neo',sans-serif;max-width:60em;"
    "margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}"
    "th{font-weight:600}td.text,th.text{text-align:left}svg{width:100%;height:auto}code{font-size:.85em}"
    "h2{margin-top:2em}p.note{color:#555}"
)
