"""Tables (csv, tsv, JSON Lines, Parquet, compressed or not) with a label in each row, or with a label for each word.

text,label                                          read_labelled_texts: any labels
"A lovely film, really.",good

{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}  read_labelled_words: lists of equal length
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError
from pyelmo.text.lines import check_published
from pyelmo.text.rows import ReadOptions, TextRow, read_rows
from pyelmo.text.tokens import split_words


@dataclass(frozen=True)
class LabelledText:
    """The words of a text, which may have none, and its label."""

    words: tuple[str, ...]
    label: str


def read_labelled_texts(
    path: str | Path, options: ReadOptions, language: str, *, tokenised: bool = False
) -> list[LabelledText]:
    """Read the texts of a table and their labels.

    Args:
        path: The file.
        options: The column of the texts (strings, or lists of words), and as the column to keep that of the labels
            (strings, numbers or truth values).
        language: The language by whose rules texts are split into words.
        tokenised: The texts are already split, with spaces between the words.
    """
    texts = []
    for where, row in _rows(path, options):
        words = row.words
        if words is None:
            words = row.text.split() if tokenised else split_words(row.text, language)
        texts.append(LabelledText(tuple(words), _one_label(row.kept[0], f"{where}, column {options.keep[0]!r}")))
    check_published(path, len(texts), None, "rows")
    return texts


def read_labelled_words(path: str | Path, options: ReadOptions) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield where each row is, its words, and a label for each word."""
    for where, row in _rows(path, options):
        words, labels = row.words, row.kept[0]
        if not words:
            raise FormatError(f"{where}, column {options.column!r}: expected a list of words, got {row.text[:40]!r}")
        if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
            raise FormatError(
                f"{where}, column {options.keep[0]!r}: expected a list of labels such as B-PER, got "
                f"{str(labels)[:40]!r}"
            )
        if len(labels) != len(words):
            raise FormatError(f"{where}: {len(labels)} labels for {len(words)} words. Correct the file.")
        yield where, words, labels


def _rows(path: str | Path, options: ReadOptions) -> Iterator[tuple[str, TextRow]]:
    return ((f"{path}, row {number}", row) for number, row in enumerate(read_rows(path, options), 1))


def _one_label(value: Any, where: str) -> str:
    text = str(value).strip()
    if value is None or not text or not isinstance(value, str | int | float):
        raise FormatError(
            f"{where}: no label, found {value!r}. Correct the file, or choose another column with --label."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise FormatError(f"{where}: the label is {value}. Correct the file.")
    return text
