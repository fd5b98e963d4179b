"""Labels of words <-> spans, and how many spans are right: as conlleval and as the CoNLL-2005 scorer count them.

    words    He  lives  in  New    York   .
    bio      O   O      O   B-LOC  I-LOC  O     IOB2: B begins every span
    iob1     O   O      O   I-LOC  I-LOC  O     B only where a span of the same label ends right before
    bioul    O   O      O   B-LOC  L-LOC  O     L is the last word, U a span of one word
    span     Span(3, 5, "LOC")

Three spellings of the same spans; a network learns one, files hold any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyelmo.errors import InputError

SCHEMES = {"bio": "BI", "iob1": "BI", "bioul": "BIUL"}  # the letters before a label


class Span(NamedTuple):
    """The words from `start` to before `end`."""

    start: int
    end: int
    label: str


def split_label(label: str, scheme: str) -> tuple[str, str]:
    """B-LOC -> ("B", "LOC"), O -> ("O", "")."""
    letters = letters_of(scheme)
    letter, dash, name = label.partition("-")
    if label == "O" or (letter in letters and len(letter) == 1 and dash and name):
        return letter, name
    raise InputError(f"label {label!r} is not of the scheme {scheme}: expected O, or one of {letters} as in B-LOC")


def letters_of(scheme: str) -> str:
    if scheme not in SCHEMES:
        raise InputError(f"scheme {scheme!r} is not known. Use one of {', '.join(SCHEMES)}.")
    return SCHEMES[scheme]


def to_spans(labels: Sequence[str], scheme: str = "bio") -> list[Span]:
    """The spans in their order. Labels that cannot follow each other are read as conlleval reads them.

    That is: I (or L) of a label that is not open begins a span, in every scheme.
    """
    spans: list[Span] = []
    start, open_label = 0, ""
    for place, label in enumerate(labels):
        letter, name = split_label(label, scheme)
        if open_label and (letter in "OBU" or name != open_label):
            spans.append(Span(start, place, open_label))
            open_label = ""
        if letter != "O" and not open_label:
            start, open_label = place, name
        if letter in "UL":
            spans.append(Span(start, place + 1, name))
            open_label = ""
    if open_label:
        spans.append(Span(start, len(labels), open_label))
    return spans


def to_labels(spans: Iterable[Span], length: int, scheme: str = "bio") -> list[str]:
    """The labels of `length` words with these spans, which must not overlap."""
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
    """The same spans in another scheme."""
    return to_labels(to_spans(labels, source), len(labels), target)


@dataclass(frozen=True)
class SpanCounts:
    """How many were found rightly, found at all, and there to be found."""

    right: int = 0
    found: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        """In percent, as recall and f1; 0 where nothing was found."""
        return 100 * self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return 100 * self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 200 * self.right / (self.found + self.gold) if self.right else 0.0

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(self.right + other.right, self.found + other.found, self.gold + other.gold)


@dataclass(frozen=True)
class SpanCountsByLabel:
    """Counts by label. Those of sentences add up: sum(counts, SpanCountsByLabel())."""

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


def count_spans(gold: Iterable[Span], found: Iterable[Span]) -> SpanCountsByLabel:
    """Of one sentence, as conlleval counts: a span is right if its bounds and its label are."""
    return _count({(span,) for span in gold}, {(span,) for span in found})


def count_arguments(gold: Iterable[Span], found: Iterable[Span]) -> SpanCountsByLabel:
    """Of one predicate, as the CoNLL-2005 scorer (srl-eval.pl) counts.

    A C-X piece belongs to the last X before it and is right only with it; without one it is an X. The predicate itself
    (V and C-V) is not counted. R-X is a label of its own.
    """
    return _count(_arguments(gold), _arguments(found))


_Pieces = tuple[Span, ...]  # what counts as one: all with the same label


def _arguments(spans: Iterable[Span]) -> set[_Pieces]:
    arguments: list[list[Span]] = []
    last: dict[str, list[Span]] = {}  # the argument of each label that a piece would belong to
    for span in sorted(spans):
        label = span.label.removeprefix("C-")
        piece = Span(span.start, span.end, label)
        if label != span.label and label in last:
            last[label].append(piece)
        else:
            last[label] = [piece]
            arguments.append(last[label])
    return {tuple(pieces) for pieces in arguments if pieces[0].label != "V"}


def _count(gold: set[_Pieces], found: set[_Pieces]) -> SpanCountsByLabel:
    right, found_by, gold_by = (Counter(one[0].label for one in part) for part in (gold & found, found, gold))
    labels = sorted({*found_by, *gold_by})
    return SpanCountsByLabel({label: SpanCounts(right[label], found_by[label], gold_by[label]) for label in labels})
