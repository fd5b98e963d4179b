"""Exact match and F1 of answers, as the official scorers of SQuAD 1.1 and KorQuAD 1.0 count them.

    SQuAD      lower case, without ASCII punctuation and the words a, an, the; F1 over words
    KorQuAD    lower case, quotes and brackets become spaces, without other ASCII punctuation; F1 over characters

An answer is compared with every correct answer, and the best score counts.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyelmo.errors import InputError

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KOREAN_QUOTES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


@dataclass(frozen=True)
class AnswerScore:
    """The score of one answer: exact match is 0 or 1, F1 between 0 and 1."""

    exact: float
    f1: float


def squad_words(text: str) -> list[str]:
    """Return the words that SQuAD's scorer compares."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def korquad_words(text: str) -> list[str]:
    """Return the words that KorQuAD's scorer compares; F1 is over their characters."""
    return text.translate(_KOREAN_QUOTES).lower().translate(_NO_PUNCTUATION).split()


def _score_squad(answer: str, gold: str) -> AnswerScore:
    answer_words, gold_words = squad_words(answer), squad_words(gold)
    return AnswerScore(float(answer_words == gold_words), _overlap(answer_words, gold_words))


def _score_korquad(answer: str, gold: str) -> AnswerScore:
    answer_words, gold_words = korquad_words(answer), korquad_words(gold)
    return AnswerScore(float(answer_words == gold_words), _overlap("".join(answer_words), "".join(gold_words)))


_SCORERS: dict[str, Callable[[str, str], AnswerScore]] = {"squad": _score_squad, "korquad": _score_korquad}


def score_answer(answer: str, gold: Iterable[str], scheme: str = "squad") -> AnswerScore:
    """Return the best exact match and the best F1 against the correct answers; 0 if there are none."""
    if scheme not in _SCORERS:
        raise InputError(f"unknown scoring scheme {scheme!r}. Choose one of {', '.join(_SCORERS)}.")
    scores = [_SCORERS[scheme](answer, correct) for correct in gold]
    exact = max((score.exact for score in scores), default=0.0)
    return AnswerScore(exact, max((score.f1 for score in scores), default=0.0))


def _overlap(answer: Sequence[str], gold: Sequence[str]) -> float:
    """Return the F1 of two multisets; it is 0 for two empty ones, as in the official scorers."""
    same = sum((Counter(answer) & Counter(gold)).values())
    return 2 * same / (len(answer) + len(gold)) if same else 0.0
