"""Functions for tasks that predict a BIO label for each word."""

from __future__ import annotations

from collections.abc import Sequence

from pyelmo.tasks.answers import Answer, LabelledSpan, SpansAnswer
from pyelmo.tasks.harness.task import Example, Prediction, Vocabularies
from pyelmo.tasks.labels.spans import Span, to_spans


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """Return O, and both labels of each kind of span, because a small data set may lack one of the two."""
    kinds = sorted({label.partition("-")[2] for example in examples for label in example.labels} - {""})
    return {"labels": ("O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))}


def spans_answer(
    example: Example, labels: Prediction, spans: Sequence[tuple[Span, float]], predicate: int | None = None
) -> SpansAnswer:
    """Return the answer for a sentence with the characters of its spans, given their words and probabilities."""
    source = example.given
    labelled = []
    for span, probability in spans:
        start, end = source.bounds(span.start, span.end - 1)
        labelled.append(
            LabelledSpan(
                label=span.label,
                text=source.text[start:end],
                start=start,
                end=end,
                words=(span.start, span.end),
                probability=probability,
            )
        )
    return SpansAnswer(
        texts=example.texts, labels=labels, offsets=source.offsets, spans=tuple(labelled), predicate=predicate
    )


def format_answers(examples: Sequence[Answer]) -> str:
    """Format each answer as a line with brackets around its spans: John lives in [LOC New York] ."""
    lines = []
    for example in examples:
        words = list(example.words)
        for span in to_spans(example.labels):
            words[span.start] = f"[{span.label} {words[span.start]}"
            words[span.end - 1] += "]"
        lines.append(" ".join(words))
    return "\n".join(lines)
