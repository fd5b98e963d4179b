"""Sentences in which words are marked with asterisks: "the *bank* of a river"."""

from __future__ import annotations

from typing import NamedTuple

from pyelmo.errors import InputError
from pyelmo.text.tokens import TokenSpan, split_spans


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
