"""Files of SQuAD 1.1 and KorQuAD 1.0 -> questions and passages in words, with the spans of the answers.

    {"data": [{"paragraphs": [{"context": "Ann lives in Paris.", "qas": [
        {"id": "7", "question": "Where does Ann live?", "answers": [{"text": "Paris", "answer_start": 13}]}]}]}]}

Answers are searched by their text in the whole passage; `answer_start` is not read, because it is sometimes wrong.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pyelmo.errors import FormatError, InputError
from pyelmo.parsing import read_json
from pyelmo.tasks.harness.texts import SplitText, split_source
from pyelmo.text.lines import check_published
from pyelmo.text.tokens import split_words

log = logging.getLogger("pyelmo")

# Questions in the published files, so that an incomplete copy is noticed.
PUBLISHED = {"train-v1.1.json": 87_599, "dev-v1.1.json": 10_570, "KorQuAD_v1.0_dev.json": 5_774}


class AnswerSpan(NamedTuple):
    """The first and the last word of an answer in its passage."""

    first: int
    last: int


class Passage(SplitText):
    """A text in which answers are searched."""

    def find(self, answer: str) -> list[AnswerSpan]:
        """Return the spans of an answer that begins or ends inside the fewest words.

        So the 5 of 1952 is no answer if another 5 is a word of its own. An answer that begins or ends inside a word
        is extended to the whole word.
        """
        partial_words: dict[AnswerSpan, int] = {}  # words that the answer covers in part only
        answer = answer.strip()
        start = self.text.find(answer) if answer else -1
        while start >= 0:
            end = start + len(answer)
            span = AnswerSpan(bisect_right(self.ends, start), bisect_left(self.starts, end) - 1)
            if span.first <= span.last:
                count = (self.starts[span.first] != start) + (self.ends[span.last] != end)
                partial_words[span] = min(count, partial_words.get(span, count))
            start = self.text.find(answer, start + 1)
        fewest = min(partial_words.values(), default=0)
        return sorted(span for span, count in partial_words.items() if count == fewest)

    def truncate(self, words: int) -> Passage:
        """Return the passage of the first `words` words."""
        if words >= len(self.words):
            return self
        text = self.text[: self.ends[words - 1]]
        return Passage(text, self.words[:words], self.starts[:words], self.ends[:words])


@dataclass(frozen=True)
class Question:
    """A question about a passage, its correct answers, and all their spans in the passage, if there are any."""

    id: str
    words: tuple[str, ...]
    passage: Passage
    answers: tuple[str, ...] = ()
    spans: tuple[AnswerSpan, ...] = ()
    article: int = 0  # its number in the file


def split_passage(text: str, language: str) -> Passage:
    """Split a text into words by the rules of a language."""
    return make_passage(split_source(text, language))


def make_passage(source: SplitText) -> Passage:
    """Return a text with at least one word as a passage."""
    if not source.words:
        raise InputError("the passage has no words")
    return Passage(source.text, source.words, source.starts, source.ends)


def split_question(text: str, language: str) -> tuple[str, ...]:
    words = tuple(split_words(text, language))
    if not words:
        raise InputError("the question has no words")
    return words


def read_questions(path: str | Path, language: str = "en") -> list[Question]:
    """Read all questions of a file, also those whose answer is not in the passage."""
    questions = list(_SquadFile(Path(path), language).questions())
    check_published(path, len(questions), PUBLISHED.get(Path(path).name), "questions")
    return questions


def training_questions(questions: list[Question], limit: int) -> list[Question]:
    """Return the questions with an answer in the first `limit` words of the passage, which is truncated there."""
    truncated: dict[int, Passage] = {}
    selected: list[Question] = []
    missing = beyond = 0
    for question in questions:
        spans = tuple(span for span in question.spans if span.last < limit)
        if not spans:
            missing += not question.spans
            beyond += bool(question.spans)
            continue
        passage = truncated.setdefault(id(question.passage), question.passage.truncate(limit))
        selected.append(replace(question, passage=passage, spans=spans))
    if missing or beyond:
        log.warning(
            "%d of %d questions are left out of training: %d have no answer in their passage, %d have it after the "
            "first %d words",
            missing + beyond, len(questions), missing, beyond, limit,
        )  # fmt: skip
    return selected


@dataclass
class _SquadFile:
    """A file, and its passages, each of which is split into words once."""

    path: Path
    language: str
    passages: dict[str, Passage] = field(default_factory=dict)

    def questions(self) -> Iterator[Question]:
        for article, where, paragraph in self._paragraphs():
            context = self._get(paragraph, "context", str, where)
            passage = self.passages.get(context)
            if passage is None:
                passage = self.passages[context] = self._split(split_passage, context, f"{where}.context")
            spans_of: dict[str, list[AnswerSpan]] = {}  # questions about a passage may share an answer
            for number, question in enumerate(self._get(paragraph, "qas", list, where)):
                where_question = f"{where}.qas[{number}]"
                text = self._get(question, "question", str, where_question)
                words = self._split(split_question, text, where_question)
                answers = self._answers(question, where_question)
                for answer in answers:
                    if answer not in spans_of:
                        spans_of[answer] = passage.find(answer)
                spans = sorted({span for answer in answers for span in spans_of[answer]})
                name = str(question.get("id", where_question))
                yield Question(name, words, passage, answers, tuple(spans), article)

    def _paragraphs(self) -> Iterator[tuple[int, str, Any]]:
        content = read_json(self.path)
        for article_number, article in enumerate(self._get(content, "data", list, "")):
            where = f"data[{article_number}]"
            for number, paragraph in enumerate(self._get(article, "paragraphs", list, where)):
                yield article_number, f"{where}.paragraphs[{number}]", paragraph

    def _answers(self, question: Any, where: str) -> tuple[str, ...]:
        answers = [
            self._get(answer, "text", str, f"{where}.answers[{number}]")
            for number, answer in enumerate(self._get(question, "answers", list, where))
        ]
        return tuple(dict.fromkeys(answers))

    def _get(self, values: Any, name: str, kind: type, where: str) -> Any:
        value = values.get(name) if isinstance(values, dict) else None
        if not isinstance(value, kind):
            place = f"{self.path}, {where}" if where else self.path
            fields = ", ".join(values) if isinstance(values, dict) else "none"
            raise FormatError(
                f"{place}: no field {name!r} with a {'string' if kind is str else 'list'} (fields: {fields}). "
                "Use a file in the layout of SQuAD 1.1 or KorQuAD 1.0."
            )
        return value

    def _split(self, split: Any, text: str, where: str) -> Any:
        try:
            return split(text, self.language)
        except InputError as error:
            raise FormatError(f"{self.path}, {where}: {error}. Remove it from the file.") from error
