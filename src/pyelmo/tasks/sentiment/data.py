"""Reviews of films, as published -> words, and what the review thinks of the film.

    Stanford Sentiment Treebank    (3 (2 It) (4 (2 's) (4 lovely)))    a tree a line, 0 very bad ... 4 very good
    NSMC (Naver)                   6270596  굳 ㅋ  1                   a header, then number, text and 0 or 1

Labels are numbers from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import FormatError
from pyelmo.tasks.labels.columns import plain_word
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.text.tokens import split_words

# Reviews in NSMC's files as published, so that a cut copy is noticed.
PUBLISHED = {"ratings_train.txt": 150_000, "ratings_test.txt": 50_000}

_NEUTRAL = 2
_TREE_PART = re.compile(r"\(([0-4]) |([^\s()]+)|(\))|(\S)")
_HEADER = "id\tdocument\tlabel"


@dataclass(frozen=True)
class Review:
    """A sentence, a phrase or a whole review; it may have no words at all."""

    words: list[str]
    label: int


def read_sst(path: str | Path, *, binary: bool = False, phrases: bool = False) -> list[Review]:
    """A part of the Stanford Sentiment Treebank: five classes, or two without what is neutral.

    With `phrases` every phrase is an example, as networks are trained; the test parts are of sentences only.
    """
    reviews: list[Review] = []
    for number, line in numbered_lines(existing(path)):
        found = _tree(line, f"{path}, line {number}")
        for review in found if phrases else found[-1:]:
            if not binary:
                reviews.append(review)
            elif review.label != _NEUTRAL:
                reviews.append(Review(review.words, int(review.label > _NEUTRAL)))
    if not reviews:
        raise FormatError(f"{path}: holds no sentence")
    return reviews


def _tree(line: str, where: str) -> list[Review]:
    """Every phrase of a tree, the whole sentence last."""
    words: list[str] = []
    opened: list[tuple[int, int]] = []  # label and first word of the phrases that are not closed yet
    phrases: list[Review] = []
    for match in _TREE_PART.finditer(line):
        label, word, closed, other = match.groups()
        ended = bool(phrases) and not opened
        if other or ended or (closed and (not opened or opened[-1][1] == len(words))) or (word and not opened):
            raise FormatError(f"{where}: not a tree like (3 (2 It) (4 works)), at {line[match.start() :][:30]!r}")
        if label:
            opened.append((int(label), len(words)))
        elif word:
            words.append(plain_word(word))
        else:
            number, first = opened.pop()
            phrases.append(Review(words[first:], number))
    if opened or not phrases:
        raise FormatError(f"{where}: a tree that does not end. Is the file cut off?")
    return phrases


def read_nsmc(path: str | Path, language: str = "ko", *, tokenised: bool = False) -> list[Review]:
    """Naver's film reviews, split into words by a language's rules unless they are already, with spaces between.

    A few are empty: they have no words.
    """
    reviews: list[Review] = []
    for number, line in numbered_lines(existing(path)):
        columns = line.split("\t")
        if number == 1 and line == _HEADER:
            continue
        if number == 1 or len(columns) != 3 or columns[2] not in ("0", "1"):
            expected = "the header id, document, label" if number == 1 else "a number, a text and 0 or 1"
            raise FormatError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")
        words = columns[1].split() if tokenised else split_words(columns[1], language)
        reviews.append(Review(words, int(columns[2])))
    check_published(path, len(reviews), PUBLISHED.get(Path(path).name), "reviews")
    return reviews
