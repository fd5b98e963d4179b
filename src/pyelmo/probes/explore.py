"""One word in several sentences: how near its vectors are, and a map of them in two dimensions.

    "the *bank* of a river", "a *bank* account" --> cosines (N, N), points (N, 2) --> HTML, SVG or PNG

N occurrences of the word, D vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo import plots
from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder
from pyelmo.errors import InputError, missing_extra
from pyelmo.files import atomic_path
from pyelmo.probes.in_context import Cosines, WordInContext, vectors_in_context
from pyelmo.text.marked import read_marked
from pyelmo.vectors.static import unit_vectors

ENDINGS = (".html", ".svg", ".png")
_AROUND = 2  # words on either side of the word in a label
_KOREAN_FONTS = ("Noto Sans CJK KR", "NanumGothic", "Malgun Gothic", "AppleGothic", "UnDotum", "Baekmuk Gulim")


@dataclass(frozen=True)
class Exploration:
    """What was found: `cosines` (N, N), `points` (N, 2) and the share of the variance that they show."""

    title: str
    places: list[WordInContext]
    cosines: Cosines
    points: Cosines
    shown: float

    def facts(self) -> dict[str, Any]:
        return {
            "title": self.title, "occurrences": [marked(place) for place in self.places],
            "cosines": np.round(self.cosines, 4).tolist(), "points": np.round(self.points, 4).tolist(),
            "variance_shown": round(self.shown, 4),
        }  # fmt: skip


def marked(place: WordInContext) -> str:
    """The sentence with its word between asterisks."""
    words = list(place.words)
    words[place.position] = f"*{words[place.position]}*"
    return " ".join(words)


def find_places(sentences: Sequence[str], language: str) -> list[WordInContext]:
    """The marked words; in a sentence without a mark the word marked elsewhere, or the one that all sentences have."""
    read = [read_marked(sentence, language) for sentence in sentences]
    chosen = {words[place].casefold() for words, places in read for place in places}
    forms = [{word.casefold() for word in words if any(map(str.isalnum, word))} for words, _ in read]
    common = reduce(set.intersection, forms) if forms else set()
    found = []
    for (words, places), own in zip(read, forms, strict=True):
        if not places:
            meant = chosen & own if chosen else common
            places = [place for place, word in enumerate(words) if word.casefold() in meant]
            if len(places) != 1:
                standing = ", ".join(words[place] for place in places[:5]) or "none is common to all sentences"
                raise InputError(f"which word is it in {' '.join(words)[:60]!r} ({standing})? Mark it: *word*")
        found += [WordInContext(words, place) for place in places]
    if len(found) < 2:
        raise InputError("one occurrence has nothing to be compared with; give two sentences or more")
    return found


def explore(embed: Encoder, places: list[WordInContext], layer: int | None, title: str) -> Exploration:
    """The occurrences in one layer, or in the mean of the layers (None)."""
    layers = np.stack(list(vectors_in_context(embed, places)), axis=1)  # (L, N, D)
    if layer is not None and not -len(layers) <= layer < len(layers):
        raise InputError(f"layer {layer} is not there; the encoder has layers 0 to {len(layers) - 1}")
    vectors = layers.mean(0) if layer is None else layers[layer]
    scaled = unit_vectors(vectors)
    points, shown = project(scaled)
    return Exploration(title, places, scaled @ scaled.T, points, shown)


def project(vectors: Float32Array) -> tuple[Cosines, float]:  # (N, D) -> (N, 2)
    """The two principal components, and their share of the variance; signs are chosen, so that a map stays as it is."""
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(vectors), 2))
    kept = left[:, :2] * sizes[:2]
    points[:, : kept.shape[1]] = kept * np.sign(kept[np.abs(kept).argmax(0), np.arange(kept.shape[1])] + 1e-300)
    whole = float((sizes**2).sum())
    return points, float((sizes[:2] ** 2).sum()) / whole if whole > 1e-12 else 1.0


def write_map(found: Exploration, path: Path, *, force: bool = False) -> None:
    """A drawing, as what the file's ending says."""
    check_ending(path)
    with atomic_path(path, force=force) as part:
        if path.suffix == ".png":
            _write_png(found, part)
        else:
            text = _html(found) if path.suffix == ".html" else _svg(found)
            part.write_text(text, "utf-8")


def check_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: a map ends in {', '.join(ENDINGS)}; which one says what is written")


def _label(place: WordInContext) -> str:
    return " ".join(place.words[max(place.position - _AROUND, 0) : place.position + _AROUND + 1])


def _points(found: Exploration) -> list[tuple[float, float]]:
    return [(x, y) for x, y in found.points.tolist()]


def _svg(found: Exploration) -> str:
    below = [found.title, *(f"{number} {marked(place)}" for number, place in enumerate(found.places, 1))]
    drawn = plots.point_map(_points(found), [_label(place) for place in found.places], below)
    return drawn.replace("<svg ", "<svg xmlns='http://www.w3.org/2000/svg' ", 1) + "\n"  # a file has to say what it is


def _html(found: Exploration) -> str:
    rows = []
    for number, (place, cosines) in enumerate(zip(found.places, found.cosines.tolist(), strict=True), 1):
        cells = "".join(f"<td style='background:rgba(27,108,168,{max(c, 0):.2f})'>{c:.2f}</td>" for c in cosines)
        before, word, after = (
            escape(" ".join(part)) for part in (
                place.words[: place.position], [place.words[place.position]], place.words[place.position + 1 :]
            )
        )  # fmt: skip
        rows.append(f"<tr><th>{number}</th>{cells}<td class='text'>{before} <b>{word}</b> {after}</td></tr>")
    head = "".join(f"<th>{number}</th>" for number in range(1, len(found.places) + 1))
    return (
        "<!doctype html><html><head><meta charset='utf-8'>"
        f"<title>{escape(found.title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(found.title)}</h1>"
        f"<table><tr><th></th>{head}<th></th></tr>{''.join(rows)}</table>"
        f"{plots.point_map(_points(found), [_label(place) for place in found.places])}"
        f"<p>Two principal components: {found.shown:.0%} of the variance.</p></body></html>\n"
    )


# Fonts that a system has anyway: Hangul is readable wherever a browser can show any.
STYLE = (
    "body{font:15px system-ui,'Noto Sans CJK KR','Malgun Gothic','Apple SD Gothic Neo',sans-serif;max-width:60em;"
    "margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}"
    "th{font-weight:600}td.text,th.text{text-align:left}svg{width:100%;height:auto}code{font-size:.85em}"
    "h2{margin-top:2em}p.note{color:#555}"
)


def _write_png(found: Exploration, path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        raise missing_extra("plots", "a map as PNG (HTML and SVG need nothing)") from None
    matplotlib.use("agg")
    from matplotlib import font_manager, pyplot

    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = [font for font in _KOREAN_FONTS if font in installed]
    text = "".join(map(_label, found.places))
    if not fonts and any("\u1100" <= character <= "\ud7a3" for character in text):
        raise InputError(f"{path.name}: no font with Hangul is installed for PNG; an .html or .svg shows it")
    with matplotlib.rc_context({"font.family": [*fonts[:1], "DejaVu Sans"]}):
        figure, axes = pyplot.subplots(figsize=(7, 6), layout="constrained")
        for number, (place, (x, y)) in enumerate(zip(found.places, _points(found), strict=True), 1):
            axes.scatter([x], [y], color=plots.COLOURS[(number - 1) % len(plots.COLOURS)])
            label = f"{number} {_label(place)}".replace("$", r"\$")  # not as mathematics
            axes.annotate(label, (x, y), xytext=(6, 4), textcoords="offset points")
        axes.set_title(found.title.replace("$", r"\$"))
        axes.margins(0.2)
        axes.set_aspect("equal", "datalim")
        figure.savefig(path, dpi=150, format="png")
        pyplot.close(figure)
