"""Sentences in which words are marked with asterisks ("the *bank* of a river"), or one is missing ("the ___ of it")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyelmo.errors import InputError
from pyelmo.text.normalisation import normalise
from pyelmo.text.tokens import TokenSpan, split_spans

GAP = "___"
_GAP = re.compile("_{3,}")  # people draw gaps of any length


class MarkedSentence(NamedTuple):
    """A text without its asterisks, its words with their positions in it, and which of the words are marked."""

    text: str
    spans: list[TokenSpan]
    positions: list[int]

    @property
    def words(self) -> list[str]:
        return [span.word for span in self.spans]


def read_marked(sentence: str, language: str) -> MarkedSentence:
    """Split a sentence into words, and find those between asterisks."""
    plain, *rest = sentence.split("*")
    if len(rest) % 2:
        raise InputError(f"{sentence[:60]!r}: an asterisk has no partner. Put one before and one after the word.")
    starts = []
    for marked, after in zip(rest[::2], rest[1::2], strict=True):
        if not marked:
            raise InputError(f"{sentence[:60]!r}: there is no word between the asterisks")
        starts.append(len(plain))
        plain += marked + after
    spans = split_spans(plain, language)
    positions = [position for start in starts for position, span in enumerate(spans) if span.start <= start < span.end]
    if len(set(positions)) != len(starts):
        raise InputError(f"{sentence[:60]!r}: no word begins at an asterisk. Mark a whole word, or its beginning.")
    return MarkedSentence(plain, spans, positions)


def read_one_marked(sentence: str, language: str) -> tuple[list[str], int]:
    """Return the words of a sentence and the position of the only one between asterisks."""
    marked = read_marked(sentence, language)
    if len(marked.positions) != 1:
        raise InputError(
            f"{sentence[:60]!r}: {len(marked.positions)} words are marked. Mark one, as in 'the *bank* of a river'"
        )
    return marked.words, marked.positions[0]


def read_gap(sentence: str | Sequence[str], language: str) -> tuple[list[str], list[str]]:
    """Return the words before and after the gap `___`. A string is split as a whole: each side may need the other."""
    if not isinstance(sentence, str):
        gaps = [position for position, word in enumerate(sentence) if _GAP.fullmatch(word)]
        _check_one(len(gaps))
        return list(sentence[: gaps[0]]), list(sentence[gaps[0] + 1 :])
    sentence = normalise(sentence, language)
    matches = list(_GAP.finditer(sentence))
    _check_one(len(matches))
    start, end = matches[0].span()
    before, after = [], []
    for span in split_spans(sentence, language, (start, end)):
        if span.start < end and span.end > start and (span.start, span.end) != (start, end):
            raise InputError(f"the gap is a part of {span.word[:60]!r}. Write {GAP} in place of a whole word.")
        if span.start < start:
            before.append(span.word)
        elif span.start >= end:
            after.append(span.word)
    return before, after


def _check_one(gaps: int) -> None:
    if gaps != 1:
        raise InputError(f"the sentence has {gaps} gaps; write exactly one, as {GAP}")
