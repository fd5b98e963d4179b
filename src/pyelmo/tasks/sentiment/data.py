"""Film reviews as published -> words and a label, which is a number from 0.

    read_sst     (3 (2 It) (4 (2 's) (4 lovely)))    Stanford Sentiment Treebank: one tree per line, 0 is very negative
                                                     and 4 very positive
    read_nsmc    6270596  굳 ㅋ  1                   NSMC (Naver): a header, then id, text and 0 or 1 with tabs between

A malformed line raises a FormatError that names the file and the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import FormatError
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.tasks.labels.columns import plain_word
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.text.tokens import split_words

# Reviews in the published files of NSMC, so that an incomplete copy is noticed.
PUBLISHED = {"ratings_train.txt": 150_000, "ratings_test.txt": 50_000}

_NEUTRAL = 2
_TREE_PART = re.compile(r"\(([0-4]) |([^\s()]+)|(\))|(\S)")
_HEADER = "id\tdocument\tlabel"


@dataclass(frozen=True)
class Review:
    """A sentence, a phrase or a whole review; it may have no words."""

    words: list[str]
    label: int


def read_sst(path: str | Path, *, binary: bool = False, phrases: bool = False) -> list[Review]:
    """Read a file of the Stanford Sentiment Treebank.

    Args:
        path: The file.
        binary: Return two classes and leave out what is neutral, instead of five classes.
        phrases: Return every distinct phrase, as for training; dev and test sets are whole sentences.
    """
    reviews: list[Review] = []
    for number, line in numbered_lines(existing(path)):
        tree = _parse_tree(line, f"{path}, line {number}")
        for review in tree if phrases else tree[-1:]:
            if not binary:
                reviews.append(review)
            elif review.label != _NEUTRAL:
                reviews.append(Review(review.words, int(review.label > _NEUTRAL)))
    if phrases:  # half of them are short ones that many sentences share
        reviews = list({(tuple(review.words), review.label): review for review in reviews}.values())
    check_published(path, len(reviews), None, "sentences")
    return reviews


def _parse_tree(line: str, where: str) -> list[Review]:
    """Return every phrase of a tree, the whole sentence last."""
    words: list[str] = []
    opened: list[tuple[int, int]] = []  # label and first word of the phrases that are not closed yet
    phrases: list[Review] = []
    for match in _TREE_PART.finditer(line):
        label, word, closed, other = match.groups()
        after_the_end = bool(phrases) and not opened
        closes_nothing = closed and (not opened or opened[-1][1] == len(words))
        if other or after_the_end or closes_nothing or (word and not opened):
            raise FormatError(
                f"{where}: not a tree such as (3 (2 It) (4 works)), at {line[match.start() :][:30]!r}. {CHOOSE_FORMAT}"
            )
        if label:
            opened.append((int(label), len(words)))
        elif word:
            words.append(plain_word(word))
        else:
            number, first = opened.pop()
            phrases.append(Review(words[first:], number))
    if opened or not phrases:
        raise FormatError(f"{where}: the tree does not end. Is the file complete?")
    return phrases


def read_nsmc(path: str | Path, language: str = "ko", *, tokenised: bool = False) -> list[Review]:
    """Read Naver's film reviews, of which a few are empty.

    Args:
        path: The file.
        language: The language by whose rules the text is split into words.
        tokenised: The text is already split, with spaces between the words.
    """
    reviews: list[Review] = []
    for number, line in numbered_lines(existing(path)):
        columns = line.split("\t")
        if number == 1 and line == _HEADER:
            continue
        if number == 1 or len(columns) != 3 or columns[2] not in ("0", "1"):
            expected = "the header id, document, label" if number == 1 else "an id, a text and 0 or 1"
            raise FormatError(f"{path}, line {number}: expected {expected}, found {line[:60]!r}. {CHOOSE_FORMAT}")
        words = columns[1].split() if tokenised else split_words(columns[1], language)
        reviews.append(Review(words, int(columns[2])))
    check_published(path, len(reviews), PUBLISHED.get(Path(path).name), "reviews")
    return reviews
