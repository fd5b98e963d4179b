"""Questions about passages, as SQuAD 1.1 and KorQuAD 1.0 publish them -> words, and where the answers stand.

    {"data": [{"paragraphs": [{"context": "Ann lives in Paris.", "qas": [
        {"id": "7", "question": "Where does Ann live?", "answers": [{"text": "Paris", "answer_start": 13}]}]}]}]}

Answers are looked for by their text, everywhere in the passage: `answer_start` is not read, and need not be right.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from pyelmo.errors import FormatError, InputError
from pyelmo.formats.pretrained import read_json
from pyelmo.text.lines import check_published
from pyelmo.text.tokens import TokenSpan, split_spans, split_words

log = logging.getLogger("pyelmo")

# Questions in the files as published, so that a cut copy is noticed.
PUBLISHED = {"train-v1.1.json": 87_599, "dev-v1.1.json": 10_570, "KorQuAD_v1.0_dev.json": 5_774}


class AnswerSpan(NamedTuple):
    """An answer in a passage: its first and its last word."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Passage:
    """A text and its words: word n is `text[starts[n]:ends[n]]`, or what is written for a morpheme."""

    text: str
    words: tuple[str, ...]
    starts: array[int]
    ends: array[int]

    def bounds(self, first: int, last: int) -> tuple[int, int]:
        """The characters from one word to another. A morpheme that is not written has those of the word before it."""
        while first and self.starts[first] == self.ends[last]:
            first -= 1
        return self.starts[first], self.ends[last]

    def part(self, first: int, last: int) -> str:
        """The text as it stands, from one word to another."""
        start, end = self.bounds(first, last)
        return self.text[start:end]

    def places(self, answer: str) -> list[AnswerSpan]:
        """Where an answer stands. One that begins or ends inside a word is widened to the word.

        That is for answers that stand nowhere better: the 5 of 1952 is no answer where another 5 stands alone.
        """
        found: dict[AnswerSpan, int] = {}
        answer = answer.strip()
        start = self.text.find(answer) if answer else -1
        while start >= 0:
            end = start + len(answer)
            place = AnswerSpan(bisect_right(self.ends, start), bisect_left(self.starts, end) - 1)
            if place.first <= place.last:
                broken = (self.starts[place.first] != start) + (self.ends[place.last] != end)
                found[place] = min(broken, found.get(place, broken))
            start = self.text.find(answer, start + 1)
        best = min(found.values(), default=0)
        return sorted(place for place, broken in found.items() if broken == best)

    def cut(self, words: int) -> Passage:
        """Its first words."""
        if words >= len(self.words):
            return self
        text = self.text[: self.ends[words - 1]]
        return Passage(text, self.words[:words], self.starts[:words], self.ends[:words])


@dataclass(frozen=True)
class Question:
    """What is asked about a passage, the answers wanted, and where these stand in it: nowhere, or in several places."""

    number: str  # the file's id
    words: tuple[str, ...]
    passage: Passage
    answers: tuple[str, ...] = ()
    places: tuple[AnswerSpan, ...] = ()


def split_passage(text: str, language: str) -> Passage:
    """A text with its words by the rules of a language."""
    return make_passage(text, split_spans(text, language))


def spaced_passage(words: Sequence[str]) -> Passage:
    """Words as they are, with a space between."""
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    spans = [TokenSpan(word, start, start + len(word)) for word, start in zip(words, starts, strict=False)]
    return make_passage(" ".join(words), spans)


def make_passage(text: str, spans: Sequence[TokenSpan]) -> Passage:
    """A text of which it is known where its words stand."""
    if not spans:
        raise InputError("the passage has no words")
    starts = array("i", accumulate((span.start for span in spans), max))  # morphemes of one syllable share it, and
    ends = array("i", accumulate((span.end for span in spans), max))  # need not stand in the order that a search needs
    return Passage(text, tuple(span.word for span in spans), starts, ends)


def split_question(text: str, language: str) -> tuple[str, ...]:
    words = tuple(split_words(text, language))
    if not words:
        raise InputError("the question has no words")
    return words


def read_questions(path: str | Path, language: str = "en") -> list[Question]:
    """All questions of a file, those whose answer is not in the passage too; a passage is split once."""
    reader = _SquadFile(Path(path), language)
    questions = list(reader.questions())
    check_published(path, len(questions), PUBLISHED.get(Path(path).name), "questions")
    return questions


def to_train_on(questions: list[Question], limit: int) -> list[Question]:
    """Those with an answer within the first `limit` words of the passage, which is cut there."""
    cut: dict[int, Passage] = {}
    kept: list[Question] = []
    missing = beyond = 0
    for each in questions:
        places = tuple(place for place in each.places if place.last < limit)
        if not places:
            missing, beyond = missing + (not each.places), beyond + bool(each.places)
            continue
        passage = cut.setdefault(id(each.passage), each.passage.cut(limit))
        kept.append(Question(each.number, each.words, passage, each.answers, places))
    if missing or beyond:
        log.warning(
            "%d of %d questions not trained on: %d have no answer in their passage, %d one beyond its first %d words",
            missing + beyond, len(questions), missing, beyond, limit,
        )  # fmt: skip
    return kept


@dataclass
class _SquadFile:
    """A file, and its passages so far."""

    path: Path
    language: str
    passages: dict[str, Passage] = field(default_factory=dict)

    def questions(self) -> Iterator[Question]:
        for where, paragraph in self._paragraphs():
            context = self._get(paragraph, "context", str, where)
            passage = self.passages.get(context)
            if passage is None:
                passage = self.passages[context] = self._split(split_passage, context, f"{where}.context")
            found: dict[str, list[AnswerSpan]] = {}  # questions of a passage may share an answer
            for number, each in enumerate(self._get(paragraph, "qas", list, where)):
                place = f"{where}.qas[{number}]"
                words = self._split(split_question, self._get(each, "question", str, place), place)
                answers = self._answers(each, place)
                for answer in answers:
                    if answer not in found:
                        found[answer] = passage.places(answer)
                places = sorted({one for answer in answers for one in found[answer]})
                yield Question(str(each.get("id", place)), words, passage, answers, tuple(places))

    def _paragraphs(self) -> Iterator[tuple[str, Any]]:
        content = read_json(self.path)
        for number, article in enumerate(self._get(content, "data", list, "")):
            for place, paragraph in enumerate(self._get(article, "paragraphs", list, f"data[{number}]")):
                yield f"data[{number}].paragraphs[{place}]", paragraph

    def _answers(self, question: Any, where: str) -> tuple[str, ...]:
        answers = [
            self._get(answer, "text", str, f"{where}.answers[{number}]")
            for number, answer in enumerate(self._get(question, "answers", list, where))
        ]
        return tuple(dict.fromkeys(answers))

    def _get(self, values: Any, name: str, kind: type, where: str) -> Any:
        found = values.get(name) if isinstance(values, dict) else None
        if not isinstance(found, kind):
            raise FormatError(
                f"{self.path}: {where or 'the file'} has no {name!r} that is a {'text' if kind is str else 'list'}. "
                "Is it a file of SQuAD 1.1 or KorQuAD 1.0?"
            )
        return found

    def _split(self, split: Any, text: str, where: str) -> Any:
        try:
            return split(text, self.language)
        except InputError as error:
            raise FormatError(f"{self.path}: {where}: {error}") from error
