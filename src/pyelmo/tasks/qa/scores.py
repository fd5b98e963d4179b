"""How right an answer is: exact match and F1, as the official scorers of SQuAD 1.1 and KorQuAD 1.0 count them.

    SQuAD      in small letters, without ASCII punctuation and a, an, the; F1 over words
    KorQuAD    in small letters, quotes and brackets a space, without ASCII punctuation; F1 over characters

An answer is compared with every one that was wanted, and the best counts.
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
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


@dataclass(frozen=True)
class AnswerScore:
    """Of one answer: 0 or 1, and between 0 and 1."""

    exact: float
    f1: float


def squad_words(text: str) -> list[str]:
    """What SQuAD's scorer compares."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def korquad_words(text: str) -> list[str]:
    """What KorQuAD's scorer compares: whole for an exact match, the characters for F1."""
    return text.translate(_KOREAN_MARKS).lower().translate(_NO_PUNCTUATION).split()


def _score_squad(given: str, wanted: str) -> AnswerScore:
    one, other = squad_words(given), squad_words(wanted)
    return AnswerScore(float(one == other), _overlap(one, other))


def _score_korquad(given: str, wanted: str) -> AnswerScore:
    one, other = korquad_words(given), korquad_words(wanted)
    return AnswerScore(float(one == other), _overlap("".join(one), "".join(other)))


_SCORERS: dict[str, Callable[[str, str], AnswerScore]] = {"squad": _score_squad, "korquad": _score_korquad}


def score_answer(given: str, wanted: Iterable[str], scheme: str = "squad") -> AnswerScore:
    """The best exact match and the best F1 against the wanted answers; nothing wanted is nothing right."""
    if scheme not in _SCORERS:
        raise InputError(f"answers are scored by one of {', '.join(_SCORERS)}, not by {scheme!r}")
    found = [_SCORERS[scheme](given, each) for each in wanted]
    return AnswerScore(max((each.exact for each in found), default=0.0), max((each.f1 for each in found), default=0.0))


def _overlap(given: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 of two bags; two empty ones share nothing, as the official scorers have it."""
    same = sum((Counter(given) & Counter(wanted)).values())
    return 2 * same / (len(given) + len(wanted)) if same else 0.0
