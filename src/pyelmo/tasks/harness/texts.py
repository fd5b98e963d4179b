"""A text, its words, and the characters of each word: the way from a prediction back to the text as it was given."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pyelmo.text.normalisation import normalise_words
from pyelmo.text.tokens import TokenSpan, split_spans


@dataclass(frozen=True, eq=False)
class SplitText:
    """A text and its words: word n is `text[starts[n]:ends[n]]`, or the morpheme that is written so."""

    text: str
    words: tuple[str, ...]
    starts: array[int]
    ends: array[int]

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """The start and end of the characters of each word."""
        return tuple(zip(self.starts, self.ends, strict=True))

    def bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return the start and end of the characters of a span of words.

        A morpheme that is not written (its start is its end) has the characters of the word before it.
        """
        while first and self.starts[first] == self.ends[last]:
            first -= 1
        return self.starts[first], self.ends[last]

    def text_of(self, first: int, last: int) -> str:
        """Return the original text of a span of words."""
        start, end = self.bounds(first, last)
        return self.text[start:end]


def with_offsets(text: str, spans: Sequence[TokenSpan]) -> SplitText:
    """Return a text with its words and their characters."""
    # Morphemes that share a syllable need not be in the order of their bounds, but searches need sorted ones.
    starts = array("i", accumulate((span.start for span in spans), max))
    ends = array("i", accumulate((span.end for span in spans), max))
    return SplitText(text, tuple(span.word for span in spans), starts, ends)


def split_source(text: str | Sequence[str], language: str) -> SplitText:
    """Split raw text by the rules of a language. Words stay separate words, and spaces between them make the text."""
    if isinstance(text, str):
        return with_offsets(text, split_spans(text, language))
    starts = accumulate((len(word) + 1 for word in text), initial=0)
    words = zip(normalise_words(text, language), text, starts, strict=False)
    spans = [TokenSpan(normal, start, start + len(word)) for normal, word, start in words]
    return with_offsets(" ".join(text), spans)
