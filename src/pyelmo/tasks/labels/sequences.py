"""Functions for tasks that predict a BIO label for each word."""

from __future__ import annotations

from collections.abc import Sequence

from pyelmo.tasks.harness.task import Example, Vocabularies
from pyelmo.tasks.labels.spans import to_spans


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """Return O, and both labels of each kind of span, because a small data set may lack one of the two."""
    kinds = sorted({label.partition("-")[2] for example in examples for label in example.labels} - {""})
    return {"labels": ("O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))}


def format_examples(examples: Sequence[Example]) -> str:
    """Format each example as a line with brackets around its spans: John lives in [LOC New York] ."""
    lines = []
    for example in examples:
        words = list(example.words)
        for span in to_spans(example.labels):
            words[span.start] = f"[{span.label} {words[span.start]}"
            words[span.end - 1] += "]"
        lines.append(" ".join(words))
    return "\n".join(lines)
