"""Answers of task models in one form for drawing: rows of labelled spans over the characters of the text."""

from __future__ import annotations

from typing import Any

from pyelmo.tasks.answers import Answer, CoreferenceAnswer, LabelAnswer, PassageAnswer, SpansAnswer


def draw(answers: list[Answer]) -> dict[str, Any]:
    """Return the labels of a text (`labels`), or rows of spans over its characters (`rows`)."""
    rows: list[dict[str, Any]] = []
    labels: list[list[Any]] = []
    for answer in answers:
        if isinstance(answer, LabelAnswer):
            labels = [[label, round(share, 4)] for label, share in answer.probabilities.items()]
        elif isinstance(answer, SpansAnswer):
            spans = [_span(span, span.label) for span in answer.spans]
            rows.append({"predicate": _predicate(answer), "spans": spans})
        elif isinstance(answer, PassageAnswer):
            spans = [_span(answer, "")] if answer.text else []
            rows.append({"predicate": None, "spans": spans})
        elif isinstance(answer, CoreferenceAnswer):
            spans = [
                _span(mention, str(number)) for number, cluster in enumerate(answer.clusters, 1) for mention in cluster
            ]
            rows.append({"predicate": None, "spans": sorted(spans, key=lambda span: (span["start"], -span["end"]))})
    return {"labels": labels, "rows": rows}


def _span(span: Any, label: str) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "label": label, "probability": round(span.probability, 4)}


def _predicate(answer: SpansAnswer) -> list[int] | None:
    return None if answer.predicate is None else list(answer.offsets[answer.predicate])
