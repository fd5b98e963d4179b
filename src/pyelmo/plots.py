"""Drawings as SVG text without external resources: charts by layer, a map of points, a grid of shares, curves, bars.

All text is escaped. Drawings for .svg files have `STYLE`, which makes them readable on a light and on a dark page;
those for a report have the colours of the report.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

FONT = "font-family='system-ui, Noto Sans CJK KR, Malgun Gothic, Apple SD Gothic Neo, sans-serif' font-size='12'"
COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#8a5aa8", "#b8860b", "#4a4a4a", "#d1438f", "#008b8b")
NAMESPACE = "xmlns='http://www.w3.org/2000/svg'"  # required in an .svg file
_ON_DARK = ("#5fb0e8", "#ee8a72", "#4fc985", "#bd93d8", "#d9ab3a", "#b5b5b5", "#ec7fb8", "#35bdbd")  # for COLOURS
# What replaces a colour on a dark page; the last three are lines of a grid, dashed lines and the titles of axes.
_DARK = {**dict(zip(COLOURS, _ON_DARK, strict=True)), "#ddd": "#4a4f57", "#777": "#999", "#666": "#aaa"}
STYLE = (
    "<style>text:not([fill]){fill:#222}@media(prefers-color-scheme:dark){text:not([fill]){fill:#ddd}"
    + "".join(f"[fill='{light}']{{fill:{dark}}}[stroke='{light}']{{stroke:{dark}}}" for light, dark in _DARK.items())
    + "}</style>"
)
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 14, 30
_LABEL_HEIGHT, _LABEL_WIDTH, _LABEL_LIMIT = 15, 180, 240
_QUIET = "fill='#666'"  # the titles of axes
_ROW = 18  # height of a line of text below a drawing


@dataclass(frozen=True)
class Line:
    """Values from the first layer to the last."""

    name: str
    values: Sequence[float]


def line_chart(lines: Sequence[Line], levels: Mapping[str, float], unit: str) -> str:
    """Draw a line for each encoder from its first layer to its last, and dashed levels for baselines."""
    numbers = [value for line in lines for value in line.values] + list(levels.values())
    low, high, step = _scale(numbers)
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x_of(layer: int, count: int) -> float:
        return _LEFT + width * (layer / (count - 1) if count > 1 else 0.5)

    def y_of(value: float) -> float:
        return _TOP + height * (high - value) / (high - low)

    parts = [f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT + _ROW * (len(lines) + len(levels))}' role='img' {FONT}>"]
    parts += _grid([low + tick * step for tick in range(round((high - low) / step) + 1)], y_of)
    parts.append(f"<text x='{_LEFT}' y='{_HEIGHT - 8}'>first layer</text>")
    parts.append(f"<text x='{_WIDTH - _RIGHT}' y='{_HEIGHT - 8}' text-anchor='end'>last layer</text>")
    parts.append(f"<text x='{_LEFT}' y='{_TOP - 3}' {_QUIET}>{escape(unit)}</text>")
    for number, (name, value) in enumerate(levels.items()):
        y, dashes = y_of(value), f"stroke='#777' stroke-dasharray='{2 + 3 * number} 4'"
        parts.append(f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}' {dashes}/>")
        parts += _legend(len(lines) + number, name, dashes)
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x_of(layer, len(line.values)), y_of(value)) for layer, value in enumerate(line.values)]
        parts.append(_polyline(points, f"stroke='{colour}' stroke-width='2'"))
        for (x, y), value in zip(points, line.values, strict=True):
            title = f"<title>{escape(line.name)}: {value:.4g}</title>"
            parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'>{title}</circle>")
        parts += _legend(number, line.name, f"stroke='{colour}' stroke-width='3'")
    return "".join([*parts, "</svg>"])


def _grid(ticks: Sequence[float], y_of: Callable[[float], float]) -> list[str]:
    """Draw a horizontal line and a number for each tick."""
    return [
        f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y_of(tick):.1f}' y2='{y_of(tick):.1f}' stroke='#ddd'/>"
        f"<text x='{_LEFT - 6}' y='{y_of(tick) + 4:.1f}' text-anchor='end'>{tick:.4g}</text>"
        for tick in ticks
    ]


def _polyline(points: Sequence[tuple[float, float]], stroke: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"<polyline points='{path}' fill='none' {stroke}/>"


def _legend(row: int, name: str, stroke: str) -> list[str]:
    y = _HEIGHT + _ROW * row + 8
    return [
        f"<line x1='{_LEFT}' x2='{_LEFT + 24}' y1='{y - 4}' y2='{y - 4}' {stroke}/>",
        f"<text x='{_LEFT + 32}' y='{y}'>{escape(name)}</text>",
    ]


def _scale(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Return the ends of an axis and the step of its ticks: 1, 2 or 5 times a power of ten, at most six ticks."""
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    rough = (high - low) / 4 or 0.25
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, (last if last > first else first + 1) * step, step


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two numbers."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= tick <= high]


Marked = tuple[str, str, str]  # the text before a word, the word, the text after it


def text_width(text: str) -> float:
    """Return about how wide a text is in the font of the drawings; Hangul and Han are twice as wide as Latin."""
    return sum(12.5 if unicodedata.east_asian_width(character) in "WF" else 6.6 for character in text)


def fit(text: Marked, width: float) -> Marked:
    """Shorten the longer side of a marked word until the text is not wider; the end of the word is cut last."""
    before, word, after = text
    if text_width(before + word + after) <= width:
        return text
    cut_before = cut_after = ""
    while text_width(cut_before + before + word + after + cut_after) > width and before + after:
        if len(before) >= len(after):
            before, cut_before = before[1:], "…"
        else:
            after, cut_after = after[:-1], "…"
    while text_width(cut_before + word + cut_after) > width and len(word) > 1:
        word, cut_after = word[:-1], "…"
    return cut_before + before, word, after + cut_after


def point_map(
    points: Sequence[tuple[float, float]],
    labels: Sequence[Marked],
    below: Sequence[Marked] = (),
    *,
    across: str = "",
    up: str = "",
) -> str:
    """Draw numbered points with labels, with the same scale on both axes.

    Args:
        points: The points. They have one colour.
        labels: The label of each point: a word, which is bold and always in view, and the text around it.
        below: Lines of text under the map, shortened around their word to the width of the map.
        across: What the horizontal axis shows.
        up: What the vertical axis shows.
    """
    size, margin = 420, 28
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    scale = size / (max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0)
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    placed = [
        (margin + size / 2 + (x - middle[0]) * scale, margin + size / 2 - (y - middle[1]) * scale) for x, y in points
    ]
    width = size + 2 * margin + _LABEL_WIDTH
    height = max(size + 2 * margin, (len(points) + 2) * _LABEL_HEIGHT + _ROW)
    parts = [f"<svg viewBox='0 0 {width} {height + _ROW * len(below)}' role='img' {FONT}>"]
    parts.append(f"<rect width='{width}' height='{height}' fill='#fafafa' stroke='#ddd'/>")
    frame = (22.0, _LABEL_HEIGHT + 2.0, width - 4.0, height - _ROW - 6.0)
    taken = [(x - 6, x + 6, y) for x, y in placed]  # labels do not cover points
    for number in sorted(range(len(placed)), key=lambda number: placed[number][1]):
        x, y = placed[number]
        before, word, after = fit(labels[number], _LABEL_LIMIT)
        before = f"{number + 1} {before}"
        left, line = _free_place((x, y), text_width(before + word + after), frame, taken)
        if abs(line - y) > _LABEL_HEIGHT:
            end = min(max(x, left), left + text_width(before + word + after))
            parts.append(f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{end:.1f}' y2='{line:.1f}' stroke='#bbb'/>")
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{COLOURS[0]}'/>")
        bold = f"<tspan font-weight='bold'>{escape(word)}</tspan>"
        parts.append(f"<text x='{left:.1f}' y='{line + 4:.1f}'>{escape(before)}{bold}{escape(after)}</text>")
    parts.append(f"<text x='{width / 2:.0f}' y='{height - 6}' text-anchor='middle' {_QUIET}>{escape(across)}</text>")
    turned = f"transform='translate(14 {height / 2:.0f}) rotate(-90)'"
    parts.append(f"<text {turned} text-anchor='middle' {_QUIET}>{escape(up)}</text>")
    for row, line_below in enumerate(below):
        text = "".join(fit(line_below, width - 16))
        parts.append(f"<text x='8' y='{height + _ROW * row + 16}'>{escape(text)}</text>")
    return "".join([*parts, "</svg>"])


def _free_place(
    point: tuple[float, float],
    width: float,
    frame: tuple[float, float, float, float],
    taken: list[tuple[float, float, float]],
) -> tuple[float, float]:
    """Return the left end and the height of a label inside the frame: beside its point, or as near as there is room."""
    (x, y), (first, top, last, bottom) = point, frame
    left = x + 9 if x + 9 + width <= last else max(x - 9 - width, first)
    for step in range(int(bottom - top) + 1):
        for line in (y + step, y - step):
            overlaps = any(
                left < end and begin < left + width and abs(line - other) < _LABEL_HEIGHT for begin, end, other in taken
            )
            if top <= line <= bottom and not overlaps:
                taken.append((left, left + width, line))
                return left, line
    return left, min(max(y, top), bottom)  # there is no room left


def text_on(share: float) -> str:
    """Return the colour of text that is readable on the first colour with this opacity on white."""
    channels = [int(COLOURS[0][at : at + 2], 16) / 255 * share + 1 - share for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    # The contrast of WCAG 2 with white, and with #222, whose luminance is 0.016.
    return "#fff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.066 else "#222"


@dataclass(frozen=True)
class Shares:
    """The share of each layer in a mix, from the first layer to the last."""

    name: str
    shares: Sequence[float]


def share_grid(rows: Sequence[Shares]) -> str:
    """Draw a row of squares for each mix, the first layer on the left: a larger share is darker."""
    cell, label, gap = 64, 300, 4
    columns = max(len(row.shares) for row in rows)
    width, height = label + columns * (cell + gap), 24 + len(rows) * (cell // 2 + gap)
    parts = [f"<svg {NAMESPACE} viewBox='0 0 {width} {height}' role='img' {FONT}>{STYLE}"]
    parts += [
        f"<text x='{label + column * (cell + gap) + cell / 2:.0f}' y='14' text-anchor='middle'>layer {column}</text>"
        for column in range(columns)
    ]
    for number, row in enumerate(rows):
        y = 20 + number * (cell // 2 + gap)
        parts.append(f"<text x='{label - 8}' y='{y + 20}' text-anchor='end'>{escape(row.name)}</text>")
        for column, share in enumerate(row.shares):
            x = label + column * (cell + gap)
            parts.append(
                f"<rect x='{x}' y='{y}' width='{cell}' height='{cell // 2}' fill='#fff'/>"
                f"<rect x='{x}' y='{y}' width='{cell}' height='{cell // 2}' style='fill:{COLOURS[0]}' "
                f"fill-opacity='{share:.3f}' stroke='#999'/>"
                f"<text x='{x + cell / 2:.0f}' y='{y + 20}' text-anchor='middle' "
                f"fill='{text_on(share)}'>{share:.2f}</text>"
            )
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Curve:
    """Points (x, y) with x above 0. `colour` is an index into COLOURS (default: the number of the curve)."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int | None = None
    dots: bool = True


def curves(drawn: Sequence[Curve], across: str, up: str, *, log_y: bool = False) -> str:
    """Draw curves over a logarithmic x axis, and with `log_y` a logarithmic y axis."""
    points = [point for curve in drawn for point in curve.points]
    x_ticks, ys = sorted({x for x, _ in points}), [y for _, y in points]
    first, last = math.log(x_ticks[0]), math.log(x_ticks[-1])
    if len(x_ticks) > 12:
        x_ticks = _log_ticks(x_ticks[0], x_ticks[-1])
    if log_y:
        y_ticks = _log_ticks(min(ys), max(ys))
        low, high = math.log(min(ys)), math.log(max(ys))
    else:
        low, high, step = _scale(ys)
        y_ticks = [low + tick * step for tick in range(round((high - low) / step) + 1)]
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x_of(x: float) -> float:
        return _LEFT + width * ((math.log(x) - first) / (last - first) if last > first else 0.5)

    def y_of(y: float) -> float:
        return _TOP + height * (high - (math.log(y) if log_y else y)) / (high - low)

    full = _HEIGHT + _ROW * (len(drawn) + 1)
    parts = [f"<svg {NAMESPACE} viewBox='0 0 {_WIDTH} {full}' role='img' {FONT}>{STYLE}"]
    parts += _grid(y_ticks, y_of)
    for tick in x_ticks:
        parts.append(f"<text x='{x_of(tick):.1f}' y='{_HEIGHT - 12}' text-anchor='middle'>{tick:g}</text>")
    for number, curve in enumerate(drawn):
        colour = COLOURS[(number if curve.colour is None else curve.colour) % len(COLOURS)]
        placed = [(x_of(x), y_of(y)) for x, y in sorted(curve.points)]
        parts.append(_polyline(placed, f"stroke='{colour}' stroke-width='{2 if curve.dots else 1}'"))
        if curve.dots:
            parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'/>" for x, y in placed]
        parts += _legend(number, curve.name, f"stroke='{colour}' stroke-width='{3 if curve.dots else 1}'")
    parts.append(f"<text x='{_LEFT}' y='{full - 6}'>across: {escape(across)}; up: {escape(up)}</text>")
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Bar:
    """A value with its name. `colour` is an index into COLOURS."""

    name: str
    value: float
    colour: int = 0


def bars(groups: Mapping[str, Sequence[Bar]], unit: str) -> str:
    """Draw horizontal bars from 0 in groups with a title; each group has a scale of its own."""
    row, label, longest = 24, 250, 300
    rows = sum(len(group) + 1 for group in groups.values())
    height = rows * row + 12 * len(groups) + _ROW
    parts = [f"<svg {NAMESPACE} viewBox='0 0 {_WIDTH} {height}' role='img' {FONT}>{STYLE}"]
    y = 0
    for title, group in groups.items():
        parts.append(f"<text x='0' y='{y + 16}' font-weight='bold'>{escape(title)}</text>")
        scale = longest / max(bar.value for bar in group)
        for bar in group:
            y += row
            colour, width = COLOURS[bar.colour % len(COLOURS)], bar.value * scale
            parts.append(
                f"<text x='{label - 8}' y='{y + 16}' text-anchor='end'>{escape(bar.name)}</text>"
                f"<rect x='{label}' y='{y + 3}' width='{width:.1f}' height='{row - 6}' fill='{colour}'/>"
                f"<text x='{label + width + 6:.1f}' y='{y + 16}'>{bar.value:,.0f}</text>"
            )
        y += row + 12
    parts.append(f"<text x='0' y='{height - 6}' {_QUIET}>{escape(unit)}</text>")
    return "".join([*parts, "</svg>"])
