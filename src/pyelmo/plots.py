"""Drawings as SVG text that needs nothing from outside: lines by layer, a map of points, shares of layers, curves.

All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

FONT = "font-family='system-ui, Noto Sans CJK KR, Malgun Gothic, Apple SD Gothic Neo, sans-serif' font-size='12'"
COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#8a5aa8", "#b8860b", "#4a4a4a", "#d1438f", "#008b8b")
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 14, 30
_LABEL_HEIGHT, _LABEL_WIDTH = 15, 180


@dataclass(frozen=True)
class Line:
    """Values from the first layer to the last."""

    name: str
    values: Sequence[float]


def line_chart(lines: Sequence[Line], levels: Mapping[str, float], unit: str) -> str:
    """Lines from the first layer to the last of each encoder, with level lines for what needs no encoder."""
    numbers = [value for line in lines for value in line.values] + list(levels.values())
    low, high, step = _scale(numbers)
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(layer: int, count: int) -> float:
        return _LEFT + width * (layer / (count - 1) if count > 1 else 0.5)

    def down(value: float) -> float:
        return _TOP + height * (high - value) / (high - low)

    legend = _HEIGHT + 18 * (len(lines) + len(levels))
    parts = [f"<svg viewBox='0 0 {_WIDTH} {legend}' role='img' {FONT}>"]
    for mark in range(round((high - low) / step) + 1):
        value = low + mark * step
        parts.append(
            f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{down(value):.1f}' y2='{down(value):.1f}' stroke='#ddd'/>"
            f"<text x='{_LEFT - 6}' y='{down(value) + 4:.1f}' text-anchor='end'>{value:.4g}</text>"
        )
    parts.append(f"<text x='{_LEFT}' y='{_HEIGHT - 8}'>first layer</text>")
    parts.append(f"<text x='{_WIDTH - _RIGHT}' y='{_HEIGHT - 8}' text-anchor='end'>last layer</text>")
    parts.append(f"<text x='{_WIDTH / 2:.0f}' y='{_HEIGHT - 8}' text-anchor='middle'>{escape(unit)}</text>")
    for number, (name, value) in enumerate(levels.items()):
        y, dashes = down(value), f"stroke='#777' stroke-dasharray='{2 + 3 * number} 4'"
        parts.append(f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}' {dashes}/>")
        parts += _legend(len(lines) + number, name, dashes)
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        points = [(across(layer, len(line.values)), down(value)) for layer, value in enumerate(line.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        for (x, y), value in zip(points, line.values, strict=True):
            title = f"<title>{escape(line.name)}: {value:.4g}</title>"
            parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'>{title}</circle>")
        parts += _legend(number, line.name, f"stroke='{colour}' stroke-width='3'")
    return "".join([*parts, "</svg>"])


def _legend(row: int, name: str, stroke: str) -> list[str]:
    y = _HEIGHT + 18 * row + 8
    return [
        f"<line x1='{_LEFT}' x2='{_LEFT + 24}' y1='{y - 4}' y2='{y - 4}' {stroke}/>",
        f"<text x='{_LEFT + 32}' y='{y}'>{escape(name)}</text>",
    ]


def _scale(numbers: Sequence[float]) -> tuple[float, float, float]:
    """The ends of an axis and the step between its marks: 1, 2 or 5 times a power of ten, six marks at most."""
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    rough = (high - low) / 4 or 0.25
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, (last if last > first else first + 1) * step, step


def point_map(points: Sequence[tuple[float, float]], labels: Sequence[str], below: Sequence[str] = ()) -> str:
    """Numbered points with short labels beside them, equal scales both ways; `below` are lines of text under it."""
    size, margin = 420, 28
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    reach = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    scale = size / reach
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    placed = [
        (margin + size / 2 + (x - middle[0]) * scale, margin + size / 2 - (y - middle[1]) * scale) for x, y in points
    ]
    width, height = size + 2 * margin + _LABEL_WIDTH, size + 2 * margin
    full = height + 18 * len(below)
    parts = [f"<svg viewBox='0 0 {width} {full}' role='img' {FONT}>"]
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
        parts.append(f"<text x='8' y='{height + 18 * row + 16}'>{escape(line)}</text>")
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Shares:
    """The share of each layer, from the first to the last."""

    name: str
    shares: Sequence[float]


def share_grid(rows: Sequence[Shares]) -> str:
    """Squares as dark as a share is large, with its number: a row for each mix, the first layer on the left."""
    cell, label, gap = 64, 300, 4
    columns = max(len(row.shares) for row in rows)
    width, height = label + columns * (cell + gap), 24 + len(rows) * (cell // 2 + gap)
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img' {FONT}>"]
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
    """Points (x, y) with x above 0."""

    name: str
    points: Sequence[tuple[float, float]]


def curves(drawn: Sequence[Curve], across: str, up: str) -> str:
    """Curves over an axis whose steps multiply, with a mark at each x that a curve has."""
    points = [point for curve in drawn for point in curve.points]
    places = sorted({x for x, _ in points})
    low, high, step = _scale([y for _, y in points])
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    first, last = math.log(places[0]), math.log(places[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        share = (math.log(x) - first) / (last - first) if last > first else 0.5
        return _LEFT + width * share, _TOP + height * (high - y) / (high - low)

    full = _HEIGHT + 18 * (len(drawn) + 1)
    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {full}' role='img' {FONT}>"]
    for mark in range(round((high - low) / step) + 1):
        _, y = at(places[0], low + mark * step)
        parts.append(f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>")
        parts.append(f"<text x='{_LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{low + mark * step:.4g}</text>")
    for place in places:
        parts.append(f"<text x='{at(place, low)[0]:.1f}' y='{_HEIGHT - 12}' text-anchor='middle'>{place:g}</text>")
    for number, curve in enumerate(drawn):
        colour, ends = COLOURS[number % len(COLOURS)], [at(x, y) for x, y in sorted(curve.points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in ends)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'/>" for x, y in ends]
        parts += _legend(number, curve.name, f"stroke='{colour}' stroke-width='3'")
    parts.append(f"<text x='{_LEFT}' y='{full - 6}'>across: {escape(across)}; up: {escape(up)}</text>")
    return "".join([*parts, "</svg>"])
