"""Convert labels of words to spans and back, and count correct spans like conlleval and the CoNLL-2005 scorer.

    words    He  lives  in  New    York   .
    bio      O   O      O   B-LOC  I-LOC  O     also called IOB2: B begins every span
    iob1     O   O      O   I-LOC  I-LOC  O     B only if a span of the same label ends directly before
    bioul    O   O      O   B-LOC  L-LOC  O     L is the last word, U a span of one word (unit)
    span     Span(3, 5, "LOC")

The three schemes describe the same spans. Files use any of them, and a network learns one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyelmo.errors import InputError

SCHEMES = {"bio": "BI", "iob1": "BI", "bioul": "BIUL"}  # the letters before a label


class Span(NamedTuple):
    """The words from `start` up to, but not including, `end`."""

    start: int
    end: int
    label: str


def split_label(label: str, scheme: str) -> tuple[str, str]:
    """Split a label into its letter and its name: B-LOC -> ("B", "LOC"), O -> ("O", "")."""
    letters = letters_of(scheme)
    letter, dash, name = label.partition("-")
    if label == "O" or (letter in letters and len(letter) == 1 and dash and name):
        return letter, name
    raise InputError(f"label {label[:60]!r} is not valid in {scheme}: expected O, or one of {letters} as in B-LOC")


def letters_of(scheme: str) -> str:
    if scheme not in SCHEMES:
        raise InputError(f"unknown scheme {scheme!r}. Use one of {', '.join(SCHEMES)}.")
    return SCHEMES[scheme]


def to_spans(labels: Sequence[str], scheme: str = "bio") -> list[Span]:
    """Return the spans in their order. Invalid label sequences are read as conlleval reads them.

    That is, in every scheme, I or L begins a span if no span of its label is open.
    """
    spans: list[Span] = []
    start, open_label = 0, ""
    for position, label in enumerate(labels):
        letter, name = split_label(label, scheme)
        if open_label and (letter in "OBU" or name != open_label):
            spans.append(Span(start, position, open_label))
            open_label = ""
        if letter != "O" and not open_label:
            start, open_label = position, name
        if letter in "UL":
            spans.append(Span(start, position + 1, name))
            open_label = ""
    if open_label:
        spans.append(Span(start, len(labels), open_label))
    return spans


def to_labels(spans: Iterable[Span], length: int, scheme: str = "bio") -> list[str]:
    """Return the labels of `length` words with these spans, which must not overlap."""
    letters_of(scheme)
    labels = ["O"] * length
    before: Span | None = None
    for span in sorted(spans):
        start, end, name = span
        if not 0 <= start < end <= length or (before and start < before.end):
            raise InputError(f"{span} is empty, overlaps another span or lies outside of a sentence of {length} words")
        labels[start:end] = [f"I-{name}"] * (end - start)
        if scheme == "bioul":
            labels[end - 1] = f"L-{name}"
            labels[start] = f"U-{name}" if end == start + 1 else f"B-{name}"
        elif scheme == "bio" or (before and (before.end, before.label) == (start, name)):
            labels[start] = f"B-{name}"
        before = span
    return labels


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """Convert labels from one scheme to another."""
    return to_labels(to_spans(labels, source), len(labels), target)


@dataclass(frozen=True)
class SpanCounts:
    """The numbers of correct, predicted and gold spans, and scores in percent."""

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        return 100 * self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return 100 * self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 200 * self.correct / (self.predicted + self.gold) if self.correct else 0.0

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(self.correct + other.correct, self.predicted + other.predicted, self.gold + other.gold)


@dataclass(frozen=True)
class SpanCountsByLabel:
    """Span counts by label. Counts of sentences can be added: sum(counts, SpanCountsByLabel())."""

    by_label: Mapping[str, SpanCounts] = field(default_factory=dict)

    @property
    def all(self) -> SpanCounts:
        return sum(self.by_label.values(), SpanCounts())

    def __add__(self, other: SpanCountsByLabel) -> SpanCountsByLabel:
        labels = sorted({*self.by_label, *other.by_label})
        none = SpanCounts()
        return SpanCountsByLabel(
            {label: self.by_label.get(label, none) + other.by_label.get(label, none) for label in labels}
        )


def count_spans(gold: Iterable[Span], predicted: Iterable[Span]) -> SpanCountsByLabel:
    """Count the spans of one sentence like conlleval: a span is correct if its bounds and its label are."""
    return _count({(span,) for span in gold}, {(span,) for span in predicted})


def count_arguments(gold: Iterable[Span], predicted: Iterable[Span]) -> SpanCountsByLabel:
    """Count the arguments of one predicate like the CoNLL-2005 scorer (srl-eval.pl).

    A span C-X continues the last argument X before it, and the argument is correct only with all its pieces. Without
    such an argument, it counts as X. The predicate itself (V and C-V) is not counted. R-X is a label of its own.
    """
    return _count(_arguments(gold), _arguments(predicted))


_Pieces = tuple[Span, ...]  # one argument, with the same label in all its pieces


def _arguments(spans: Iterable[Span]) -> set[_Pieces]:
    arguments: list[list[Span]] = []
    last: dict[str, list[Span]] = {}  # the last argument of each label, which a piece would continue
    for span in sorted(spans):
        label = span.label.removeprefix("C-")
        piece = Span(span.start, span.end, label)
        if label != span.label and label in last:
            last[label].append(piece)
        else:
            last[label] = [piece]
            arguments.append(last[label])
    return {tuple(pieces) for pieces in arguments if pieces[0].label != "V"}


def _count(gold: set[_Pieces], predicted: set[_Pieces]) -> SpanCountsByLabel:
    correct_of, predicted_of, gold_of = (
        Counter(argument[0].label for argument in arguments) for arguments in (gold & predicted, predicted, gold)
    )
    labels = sorted({*predicted_of, *gold_of})
    return SpanCountsByLabel(
        {label: SpanCounts(correct_of[label], predicted_of[label], gold_of[label]) for label in labels}
    )
