"""Texts of the explorer: a sentence with the word between asterisks -> its words, and which of them is meant.

A page shows words as they are written and lets the reader click one of them, so each has its characters in the text. A
Korean syllable may hold two morphemes (갔 is 가 and 었); the first of them stands for the syllable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyelmo.errors import InputError
from pyelmo.neighbours.search import word_spans
from pyelmo.text.normalisation import normalise
from pyelmo.text.rows import TextRow
from pyelmo.text.tokens import TokenSpan
from pyelmo.text.vocabulary import Vocabulary

MOST_CHARACTERS = 1000  # of a sentence
LABEL = 30  # characters on each side of a word that a label shows
_MARK = re.compile(r"\*(?=\S)([^*]*[^*\s])\*")


@dataclass(frozen=True)
class Sentence:
    """A text without its asterisks, its words, and the positions of those that are meant."""

    text: str
    spans: list[TokenSpan]
    positions: tuple[int, ...]

    @property
    def words(self) -> list[str]:
        return [span.word for span in self.spans]

    def to_json(self) -> dict[str, Any]:
        spans = [[span.start, span.end, span.word] for span in self.spans]
        return {"text": self.text, "tokens": spans, "positions": self.positions}

    def parts(self, position: int) -> list[str]:
        """Return a part of the text before a word, the word, and a part of the text after it."""
        return parts_around(self.text, self.spans[position].start, self.spans[position].end, LABEL)


def parts_around(text: str, start: int, end: int, characters: int) -> list[str]:
    """Return what is before, at and after `text[start:end]`, cut between words to some characters on each side."""
    before, after = text[:start], text[end:]
    if len(before) > characters:
        before = "…" + before[-characters:].partition(" ")[2]
    if len(after) > characters:
        after = after[:characters].rpartition(" ")[0] + "…"
    return [before, text[start:end], after]


def read_sentence(text: str, language: str | None, *, whole: bool = False) -> Sentence:
    """Split a text into words, by the rules of a language or else at white space; asterisks are optional.

    With `whole`, what stands between the first asterisks is one word, even if the language would divide it.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"a sentence has {len(text)} characters; at most {MOST_CHARACTERS} are shown. Shorten it")
    plain, marks, end = "", [], 0
    for match in _MARK.finditer(text):
        plain += text[end : match.start()]
        marks.append((len(plain), len(plain) + len(match[1])))
        plain += match[1]
        end = match.end()
    plain += text[end:]
    spans = word_spans(TextRow(plain), language)
    if whole and marks:
        spans = _as_one(spans, plain, *marks[0])
    positions = (
        next((position for position, span in enumerate(spans) if span.start <= start < span.end), None)
        for start, _ in marks
    )
    return Sentence(plain, spans, tuple(sorted({position for position in positions if position is not None})))


def _as_one(spans: list[TokenSpan], text: str, start: int, end: int) -> list[TokenSpan]:
    """Replace all words that lie in some characters of a text by one."""
    before = [span for span in spans if span.end <= start]
    after = [span for span in spans if span.start >= end]
    return [*before, TokenSpan(normalise(text[start:end]), start, end), *after]


def choose_word(sentences: Sequence[Sentence], vocab: Vocabulary | None) -> list[Sentence]:
    """Mark the word in sentences without asterisks: the one marked elsewhere, else the rarest that most share."""
    marked = [sentence.spans[position].word.casefold() for sentence in sentences for position in sentence.positions]
    wanted = set(marked) or _shared_word(sentences, vocab)
    return [sentence if sentence.positions else _mark(sentence, wanted) for sentence in sentences]


def _mark(sentence: Sentence, wanted: set[str]) -> Sentence:
    positions = [position for position, span in enumerate(sentence.spans) if span.word.casefold() in wanted]
    return replace(sentence, positions=tuple(positions[:1]))


def _shared_word(sentences: Sequence[Sentence], vocab: Vocabulary | None) -> set[str]:
    counts = Counter(
        word
        for sentence in sentences
        for word in {word.casefold() for word in sentence.words if any(map(str.isalnum, word))}
    )
    if not counts:
        return set()
    most = max(counts.values())

    def rank(word: str) -> int:  # the vocabulary is in the order of falling frequency
        return vocab.ids.get(word, len(vocab)) if vocab is not None else len(word)

    return {max((word for word, count in counts.items() if count == most), key=rank)}
