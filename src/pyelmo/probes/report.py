"""Figures of several encoders -> one self-contained HTML page with tables and charts.

The key of a figure is "ENCODER: PROBE". Each probe has a function that turns a figure into a `SectionPart`: values by
layer for the chart, baselines, and a table row for each layer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pyelmo import plots
from pyelmo.errors import FormatError, PyelmoError
from pyelmo.files import write_text
from pyelmo.probes.explore import STYLE

PAGE, FIGURES = "report.html", "figures.json"
ProbeFigures = Mapping[str, Any]
ReportRow = tuple[str, ...]


@dataclass(frozen=True)
class SectionPart:
    """What the figures of one encoder add to a section. A row holds the cells after the names of encoder and layer."""

    values: Sequence[float]  # by layer, for the chart
    rows: Sequence[ReportRow]
    levels: dict[str, float] = field(default_factory=dict)  # baselines without an encoder
    more: list[tuple[str, ReportRow]] = field(default_factory=list)  # rows for mixes of layers: their name and cells


@dataclass(frozen=True)
class Section:
    """The texts of a probe in the report, and the function that turns its figures into rows."""

    title: str
    note: str
    unit: str
    columns: tuple[str, ...]
    part: Callable[[ProbeFigures], SectionPart]


def number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _wsd(result: ProbeFigures) -> SectionPart:
    groups = {**result["by_set"], **result["by_pos"]}
    rows = [(number(f1), *(number(groups[name][layer]) for name in groups)) for layer, f1 in enumerate(result["f1"])]
    return SectionPart(result["f1"], rows, {"WordNet's first sense": result["first_sense"]})


def _pos(result: ProbeFigures) -> SectionPart:
    control = result["control"] or [None] * len(result["accuracy"])
    selectivity = result["selectivity"] or control
    rows = [tuple(map(number, row)) for row in zip(result["accuracy"], control, selectivity, strict=True)]
    return SectionPart(result["accuracy"], rows, {"each word's most frequent tag": result["baseline"]})


def _wic(result: ProbeFigures) -> SectionPart:
    substitutes = result.get("substitutes")
    more = [("substitutes", row) for row in _wic_rows(substitutes)] if substitutes else []
    return SectionPart(result["test"], _wic_rows(result), {"chance": 50.0}, more)


def _wic_rows(result: ProbeFigures) -> list[ReportRow]:
    columns = zip(result["train"], result["dev"], result["test"], result["thresholds"], strict=True)
    return [(*map(number, row[:3]), number(row[3], 3)) for row in columns]


def _scws(result: ProbeFigures) -> SectionPart:
    rows = [(number(value), f"{result['without']:,} of {result['pairs']:,}") for value in result["spearman"]]
    return SectionPart(result["spearman"], rows)


def _senses(result: ProbeFigures) -> SectionPart:
    rows = [(number(value),) for value in result["layers"]]
    mixes = {
        "mean of layers": result["mean"], "top layer minus the one below": result["added"],
        "substitutes": result.get("substitutes"),  # absent in figures of older versions
    }  # fmt: skip
    more: list[tuple[str, ReportRow]] = [(name, (number(value),)) for name, value in mixes.items() if value is not None]
    return SectionPart(result["layers"], rows, {"chance": result["chance"]}, more)


def _phrases(result: ProbeFigures) -> SectionPart:
    rows = [(number(value),) for value in result["layers"]]
    more: list[tuple[str, ReportRow]] = [("mean of layers", (number(result["mean"]),))]
    if result.get("substitutes") is not None:
        more.append(("substitutes", (number(result["substitutes"]),)))
    return SectionPart(result["layers"], rows, {"chance": 50.0}, more)


def _typos(result: ProbeFigures) -> SectionPart:
    kinds = list(result["found"])
    rows = []
    for layer in range(len(result["found"]["all"])):
        shares = (number(result["found"][kind][layer]) for kind in kinds)
        cosines = (number(result["cosine"][kind][layer], 2) for kind in kinds)
        rows.append((*shares, *cosines, number(result["without"]["all"])))
    return SectionPart(result["found"]["all"], rows)


KINDS = ("all", "swap", "drop", "double", "neighbour")
SECTIONS = {
    "wsd": Section(
        "Word senses", "F1 on the unified test sets with the nearest sense of SemCor, by set and by part of speech.",
        "F1", ("all", "senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015", "nouns", "verbs",
               "adjectives", "adverbs"), _wsd,
    ),
    "pos": Section(
        "Parts of speech", "A linear probe on each layer. Control: the same probe on random labels for each word; "
        "selectivity is the difference.", "accuracy, %", ("accuracy", "control", "selectivity"), _pos,
    ),
    "wic": Section(
        "WiC", "Does a word have the same sense in two sentences? A threshold on the cosine, fitted on the train set.",
        "accuracy on the test set, %", ("train", "dev", "test", "threshold"), _wic,
    ),
    "scws": Section(
        "SCWS", "Spearman's correlation (x 100) of cosines with ratings of words in contexts. The cosine is 0 for a "
        "pair with a word that has no vector.", "Spearman x 100", ("correlation", "without a vector"), _scws,
    ),
    "senses": Section(
        "Words with two senses", "Sentences whose nearest other sentence with the word has the same sense.",
        "%", ("same sense",), _senses,
    ),
    "phrases": Section(
        "Short phrases", "Phrases that are nearer to a phrase with the same sense of the word than to one with another "
        "sense.", "%", ("same sense",), _phrases,
    ),
    "typos": Section(
        "Misspelt words", "Found: of all original words, the nearest is the one that was misspelt, in %. Cosine: with "
        "the vector of the original, over the words that have a vector.", "found, %",
        (*(f"found: {kind}" for kind in KINDS), *(f"cosine: {kind}" for kind in KINDS), "without a vector, %"), _typos,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class ReportTable:
    """The figures of one probe for all encoders."""

    section: Section
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, str, ReportRow]]  # encoder, layer, cells
    lines: list[plots.Line]
    levels: dict[str, float]


def tables(figures: Mapping[str, Any]) -> Iterator[ReportTable]:
    """Return a table for each probe that has figures, in the order of the sections."""
    kinds = dict.fromkeys(key.rpartition(": ")[2] for key in figures)
    order = {name: number for number, name in enumerate(SECTIONS)}
    for kind in sorted(kinds, key=lambda kind: order[kind.partition(" ")[0]]):
        section = SECTIONS[kind.partition(" ")[0]]
        rows: list[tuple[str, str, ReportRow]] = []
        lines: list[plots.Line] = []
        levels: dict[str, float] = {}
        of: Mapping[str, Any] = {}
        columns = section.columns
        for key, figure in figures.items():
            encoder, _, name = key.rpartition(": ")
            if name != kind:
                continue
            result, of = figure["result"], figure["of"]
            if "by_set" in result:
                columns = ("all", *result["by_set"], *result["by_pos"])
            part = section.part(result)
            by_layer = zip(result["layer_names"], part.rows, strict=True)
            rows += [(encoder, layer, cells) for layer, cells in [*by_layer, *part.more]]
            lines.append(plots.Line(encoder, part.values))
            levels |= part.levels
        data_set = of.get("treebank") or of.get("text") or ("held out" if kind.endswith("held out") else "")
        title = f"{section.title}, {data_set}" if data_set else section.title
        yield ReportTable(section, title, columns, rows, lines, levels)


@contextlib.contextmanager
def _complete_figures() -> Iterator[None]:
    """Raise a FormatError for figures of a file that lack a value or have one of another type."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, PyelmoError):
            raise
        raise FormatError(f"{FIGURES}: a figure is incomplete ({error!r}). Measure again with --force.") from error


@_complete_figures()
def markdown(figures: Mapping[str, Any]) -> str:
    """Return the tables as Markdown."""
    lines = []
    for table in tables(figures):
        plain = "; ".join(f"{name} {number(value)}" for name, value in table.levels.items())
        lines += [f"{table.title}{f' (without an encoder: {plain})' if plain else ''}", ""]
        lines += [_line(("encoder", "layer", *table.columns)), _line(["---"] * (2 + len(table.columns)))]
        lines += [*(_line((encoder, layer, *cells)) for encoder, layer, cells in table.rows), ""]
    return "\n".join(lines).rstrip("\n")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def write_report(folder: Path, results: Mapping[str, Any], skipped: Sequence[str] = ()) -> Path:
    """Write the page of a folder of figures, and return its path."""
    path = folder / PAGE
    write_text(path, page(results, skipped))
    return path


@_complete_figures()
def page(results: Mapping[str, Any], skipped: Sequence[str] = ()) -> str:
    """Return the HTML page; all names and texts in it are escaped."""
    figures = results["figures"]
    body = [f"<h1>What the vectors know: {escape(str(results.get('language', '')))}</h1>"]
    body += [f"<p class='note'>Not measured: {escape(reason)}</p>" for reason in skipped]
    for table in tables(figures):
        body += [f"<h2>{escape(table.title)}</h2>", f"<p>{escape(table.section.note)}</p>"]
        body.append(plots.line_chart(table.lines, table.levels, table.section.unit))
        head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
        body.append(f"<table><tr><th class='text'>encoder</th><th class='text'>layer</th>{head}</tr>")
        for encoder, layer, cells in table.rows:
            numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            names = "".join(f"<td class='text'>{escape(name)}</td>" for name in (encoder, layer))
            body.append(f"<tr>{names}{numbers}</tr>")
        body.append("</table>")
        for name, value in table.levels.items():
            body.append(f"<p class='note'>Without an encoder: {escape(name)} {number(value)}.</p>")
    body += ["<h2>Where the figures come from</h2>", *_origins(figures)]
    return (
        "<!doctype html><html><head><meta charset='utf-8'><title>What the vectors know</title>"
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _origins(figures: Mapping[str, Any]) -> Iterator[str]:
    head = ("figure", "model", "sha256", "precision", "seconds", "with", "command")
    names = "".join(f"<th class='text'>{name}</th>" for name in head)
    yield f"<table><tr>{names}</tr>"
    for key, figure in figures.items():
        of, made = figure["of"], figure.get("made", {})
        sums = ", ".join(f"{name} {value[:12]}" for name, value in of.get("sha256", {}).items())
        versions = ", ".join(f"{name} {value}" for name, value in made.items())
        cells = (key, of.get("model", ""), sums, of.get("precision", ""), figure["seconds"], versions)
        plain = "".join(f"<td class='text'>{escape(str(cell))}</td>" for cell in cells)
        yield f"<tr>{plain}<td class='text'><code>{escape(figure.get('command', ''))}</code></td></tr>"
    yield "</table>"
