"""Drawings as SVG text without external resources: charts by layer, a map of points, a grid of shares, curves.

All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

FONT = "font-family='system-ui, Noto Sans CJK KR, Malgun Gothic, Apple SD Gothic Neo, sans-serif' font-size='12'"
COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#8a5aa8", "#b8860b", "#4a4a4a", "#d1438f", "#008b8b")
NAMESPACE = "xmlns='http://www.w3.org/2000/svg'"  # required in an .svg file
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 14, 30
_LABEL_HEIGHT, _LABEL_WIDTH = 15, 180
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
    parts.append(f"<text x='{_WIDTH / 2:.0f}' y='{_HEIGHT - 8}' text-anchor='middle'>{escape(unit)}</text>")
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


def point_map(points: Sequence[tuple[float, float]], labels: Sequence[str], below: Sequence[str] = ()) -> str:
    """Draw numbered points with labels, with the same scale on both axes. `below` are lines of text under the map."""
    size, margin = 420, 28
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    reach = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    scale = size / reach
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    placed = [
        (margin + size / 2 + (x - middle[0]) * scale, margin + size / 2 - (y - middle[1]) * scale) for x, y in points
    ]
    width, height = size + 2 * margin + _LABEL_WIDTH, size + 2 * margin
    parts = [f"<svg viewBox='0 0 {width} {height + _ROW * len(below)}' role='img' {FONT}>"]
    parts.append(f"<rect width='{width}' height='{height}' fill='#fafafa' stroke='#ddd'/>")
    taken: list[tuple[float, float]] = []
    for number in sorted(range(len(placed)), key=lambda number: placed[number][1]):
        x, y = placed[number]
        label = y
        while any(abs(x - other) < _LABEL_WIDTH and abs(label - line) < _LABEL_HEIGHT for other, line in taken):
            label += 1
        taken.append((x, label))
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{colour}'/>")
        parts.append(f"<text x='{x + 9:.1f}' y='{label + 4:.1f}'>{number + 1} {escape(labels[number])}</text>")
    for row, line in enumerate(below):
        parts.append(f"<text x='8' y='{height + _ROW * row + 16}'>{escape(line)}</text>")
    return "".join([*parts, "</svg>"])


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
    parts = [f"<svg {NAMESPACE} viewBox='0 0 {width} {height}' role='img' {FONT}>"]
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
                f"<rect x='{x}' y='{y}' width='{cell}' height='{cell // 2}' fill='{COLOURS[0]}' "
                f"fill-opacity='{share:.3f}' stroke='#999'/>"
                f"<text x='{x + cell / 2:.0f}' y='{y + 20}' text-anchor='middle' "
                f"fill='{'#fff' if share > 0.5 else '#222'}'>{share:.2f}</text>"
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
    parts = [f"<svg {NAMESPACE} viewBox='0 0 {_WIDTH} {full}' role='img' {FONT}>"]
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
