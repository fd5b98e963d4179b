"""Draw the diagrams of the explanations, with English and with Korean labels (NAME.svg and NAME.ko.svg).

    python benchmarks/diagrams.py -o docs/pictures

window.svg   the pairs of skip-gram, as `elmo vectors pairs` prints them
bilm.svg     the two directions and the layers of a biLM over one sentence
mix.svg      the weighted sum of the layers of one token
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

from pyelmo.files import atomic_path
from pyelmo.plots import COLOURS, FONT, NAMESPACE, STYLE, text_width
from pyelmo.vectors.pairs import training_pairs

BLUE, RED, GREEN = COLOURS[:3]
ARROW = (
    "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
    "<path d='M0 0L8 4L0 8z' fill='#777'/></marker></defs>"
)
SENTENCES = {
    "en": ["The", "quick", "brown", "fox", "jumps"],
    "ko": ["농부", "는", "사과", "를", "따", "었", "다"],
}
WORDS = {
    "en": {
        "pairs": "(input, word to predict)",
        "forward": "forward LSTM: predicts the next word",
        "backward": "backward LSTM: predicts the previous word",
        "chars": "character CNN",
        "layers": ("layer 0: the word alone", "layer 1: more about syntax", "layer 2: more about meaning"),
        "sum": "one vector for the task",
        "task": "the task learns s₀, s₁, s₂ and γ",
    },
    "ko": {
        "pairs": "(입력, 예측할 단어)",
        "forward": "순방향 LSTM: 다음 형태소를 예측",
        "backward": "역방향 LSTM: 이전 형태소를 예측",
        "chars": "자모 CNN",
        "layers": ("0층: 단어 자체", "1층: 문법 정보가 많다", "2층: 의미 정보가 많다"),
        "sum": "과제에 쓰는 벡터 하나",
        "task": "과제가 s₀, s₁, s₂와 γ를 학습한다",
    },
}


def text(x: float, y: float, content: str, more: str = "text-anchor='middle'") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{escape(content)}</text>"


def box(x: float, y: float, width: float, label: str, colour: str, height: float = 30) -> str:
    """Draw a box in a light tint of a colour, which is visible on white and on black, around its label."""
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height}' rx='4' fill='{colour}' "
        f"fill-opacity='.2' stroke='{colour}'/>" + text(x + width / 2, y + height / 2 + 4, label)
    )


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f"x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
    return f"<line {ends} stroke='#777' marker-end='url(#head)'/>"


def svg(width: float, height: float, parts: list[str]) -> str:
    opening = f"<svg {NAMESPACE} viewBox='0 0 {width:.0f} {height:.0f}' role='img' {FONT}>"
    return "".join([opening, STYLE, ARROW, *parts, "</svg>"])


def window(language: str) -> str:
    """Draw one row per word: the sentence with the word and its window, then the pairs."""
    words, size = SENTENCES[language], 2
    row, gap = 34, 6
    widths = [text_width(word) + 16 for word in words]
    right = sum(widths) + gap * len(words) + 16
    parts = [text(right, 14, WORDS[language]["pairs"], "fill='#666'")]
    for centre, word in enumerate(words):
        x, y = 0.0, 22 + centre * row
        for position, (other, width) in enumerate(zip(words, widths, strict=True)):
            near = 0 < abs(position - centre) <= size
            if position == centre or near:
                parts.append(box(x, y, width, other, RED if position == centre else BLUE, 26))
            else:
                parts.append(text(x + width / 2, y + 17, other))
            x += width + gap
        pairs = [pair for pair in training_pairs(words, size) if pair.inputs == (word,)]
        own = "  ".join(f"({word}, {pair.predicts})" for pair in pairs)
        parts.append(text(right, y + 17, own, ""))
    return svg(right + 400, 22 + row * len(words), parts)


def bilm(language: str) -> str:
    """Draw the tokens, the character CNN, and two LSTM layers in both directions."""
    words, labels = SENTENCES[language][:5], WORDS[language]
    column, width, left = 118, 96, 14
    parts, half = [], 44
    for number, word in enumerate(words):
        x = left + number * column
        parts.append(text(x + width / 2, 300, word, "text-anchor='middle' font-weight='bold'"))
        parts += [box(x, 250, width, labels["chars"], GREEN), arrow(x + width / 2, 288, x + width / 2, 282)]
        for level, y in ((1, 180), (2, 100)):
            parts += [box(x, y, half, "→", BLUE), box(x + width - half, y, half, "←", RED)]
            for middle in (x + half / 2, x + width - half / 2):
                parts.append(arrow(middle, y + (68 if level == 1 else 78), middle, y + 33))
            if number + 1 < len(words):
                parts.append(arrow(x + half, y + 8, x + column - 2, y + 8))
                parts.append(arrow(x + column + width - half, y + 22, x + width + 2, y + 22))
    for number, word in enumerate(words[1:], 1):  # what the forward direction predicts from the token before
        x = left + (number - 1) * column + half / 2
        parts += [arrow(x, 97, x, 80), text(x, 72, word, f"text-anchor='middle' fill='{BLUE}'")]
    for number, word in enumerate(words[:-1]):
        x = left + (number + 1) * column + width - half / 2
        parts += [arrow(x, 97, x, 80), text(x, 72, word, f"text-anchor='middle' fill='{RED}'")]
    parts += [text(left, 20, labels["forward"], f"fill='{BLUE}'"), text(left, 40, labels["backward"], f"fill='{RED}'")]
    return svg(left * 2 + column * 4 + width, 312, parts)


def mix(language: str) -> str:
    """Draw the three layers of a token, their weights and the sum."""
    labels = WORDS[language]
    parts = []
    for level, (name, colour) in enumerate(zip(labels["layers"], (GREEN, BLUE, RED), strict=True)):
        y = 110 - level * 50
        parts.append(box(0, y, 230, name, colour))
        parts += [arrow(230, y + 15, 340, 75), text(240, y + 8, f"s{'₀₁₂'[level]}", "")]
    parts += [box(342, 60, 60, "γ Σ", GREEN), arrow(402, 75, 440, 75), text(446, 79, labels["sum"], "")]
    parts.append(text(342, 140, labels["task"], "fill='#666'"))
    return svg(620, 150, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder for the drawings")
    args = parser.parse_args()
    for draw in (window, bilm, mix):
        for language, suffix in (("en", ".svg"), ("ko", ".ko.svg")):
            with atomic_path(args.output / f"{draw.__name__}{suffix}") as part:
                part.write_text(draw(language) + "\n", "utf-8")


if __name__ == "__main__":
    main()
