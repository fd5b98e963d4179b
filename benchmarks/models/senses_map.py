"""Draw the bundled list of words with two senses: each occurrence is a point, its colour is its sense.

    python benchmarks/models/senses_map.py en -o docs/pictures/two_senses.svg

For each word the vectors of one layer are projected to the plane of largest variance (PCA). The upper row of the
picture is the token layer, which does not see the sentence: all occurrences of a word are one point.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from html import escape
from pathlib import Path

import numpy as np

import pyelmo
from pyelmo.plots import COLOURS, FONT, NAMESPACE, STYLE

LIST = Path(pyelmo.__file__).parent / "probes" / "lists"
PANEL, GAP, TITLE = 150, 14, 22
LABELS = {  # the rows and the caption
    "en": (
        ("token layer", "top layer"),
        "One point a sentence. Axes of a panel: the first (across) and second (up) principal component of its vectors.",
    ),
    "ko": (("0층", "맨 위층"), "점 하나가 문장 하나이다. 칸의 축은 벡터들의 첫째(가로)와 둘째(세로) 주성분이다."),
}


def occurrences(path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return (sense, sentence, marked word) of every line, by word."""
    words = defaultdict(list)
    for line in path.read_text("utf-8").splitlines():
        word, sense, sentence = line.split("\t")
        words[word].append((sense, sentence.replace("*", ""), re.findall(r"\*(.+?)\*", sentence)[0]))
    return words


def vectors(model: pyelmo.Embedder, lines: list[tuple[str, str, str]]) -> np.ndarray:  # (L, N, D)
    """Return all layers of the marked word of each sentence."""
    sentences = [model.tokenise(sentence) for _, sentence, _ in lines]
    layers = model.embed(sentences)
    positions = [tokens.index(word) for tokens, (_, _, word) in zip(sentences, lines, strict=True)]
    return np.stack([layer[:, position] for layer, position in zip(layers, positions, strict=True)], axis=1)


def plane(points: np.ndarray) -> np.ndarray:  # (N, D) -> (N, 2), scaled to fit -1..1
    centred = points - points.mean(0)
    projected = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return projected / max(np.abs(projected).max(), 1e-3)


def panel(x: float, y: float, points: np.ndarray, senses: list[str]) -> list[str]:
    order = list(dict.fromkeys(senses))
    parts = [f"<rect x='{x}' y='{y}' width='{PANEL}' height='{PANEL}' fill='none' stroke='#888' stroke-opacity='.4'/>"]
    for (across, up), sense in zip(points, senses, strict=True):
        at = (x + PANEL / 2 + across * PANEL * 0.42, y + PANEL / 2 - up * PANEL * 0.42)
        colour = COLOURS[order.index(sense)]
        parts.append(f"<circle cx='{at[0]:.1f}' cy='{at[1]:.1f}' r='5' fill='{colour}' fill-opacity='.75'/>")
    return parts


def draw(model: pyelmo.Embedder, words: dict[str, list[tuple[str, str, str]]], language: str) -> str:
    rows, axes = LABELS[language]
    columns = len(words)
    width, height = 80 + columns * (PANEL + GAP), 3 * TITLE + 2 * (PANEL + GAP)
    parts = [
        f"<svg {NAMESPACE} viewBox='0 0 {width} {height}' role='img' {FONT}>",
        STYLE,
        "<title>Words with two senses: one point a sentence, one colour a sense</title>",
    ]
    for row, name in enumerate(rows):
        parts.append(f"<text x='0' y='{TITLE + PANEL / 2 + row * (PANEL + GAP):.0f}'>{name}</text>")
    for column, (word, lines) in enumerate(words.items()):
        x = 80 + column * (PANEL + GAP)
        parts.append(f"<text x='{x}' y='14' font-weight='600'>{escape(word)}</text>")
        layers, senses = vectors(model, lines), [sense for sense, _, _ in lines]
        for row, layer in enumerate((0, -1)):
            parts += panel(x, TITLE + row * (PANEL + GAP), plane(layers[layer]), senses)
        for number, sense in enumerate(dict.fromkeys(senses)):
            at = x + number * PANEL / 2
            y = height - TITLE * 3 / 2
            parts.append(f"<circle cx='{at + 5}' cy='{y - 4}' r='5' fill='{COLOURS[number]}'/>")
            parts.append(f"<text x='{at + 14}' y='{y}'>{escape(sense)}</text>")
    parts.append(f"<text x='80' y='{height - 8}'>{axes}</text>")
    return "".join([*parts, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model's name or path")
    parser.add_argument("--words", default="bank,bat,crane,play,spring", help="words of the list, with commas between")
    parser.add_argument(
        "--language", default="en", choices=LABELS, help="language of the list and of the labels (default: en)"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="the SVG file to write")
    args = parser.parse_args()
    listed = occurrences(LIST / f"senses.{args.language}.tsv")
    words = {word: listed[word] for word in args.words.split(",")}
    args.output.write_text(draw(pyelmo.load(args.model), words, args.language), "utf-8")


if __name__ == "__main__":
    main()
