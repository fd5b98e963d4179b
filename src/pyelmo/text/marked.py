"""Sentences in which words are marked with asterisks: "the *bank* of a river"."""

from __future__ import annotations

from pyelmo.errors import InputError
from pyelmo.text.tokens import split_spans


def read_marked(sentence: str, language: str) -> tuple[list[str], list[int]]:
    """Return the words of a sentence, and the positions of those between asterisks."""
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
    return [span.word for span in spans], positions
