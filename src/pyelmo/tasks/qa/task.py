"""Question answering (Clark & Gardner 2017): the span of a passage that answers a question, scored by F1.

T positions of the passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from pyelmo.arrays import Float64Array
from pyelmo.tasks.answers import Answer, PassageAnswer
from pyelmo.tasks.harness.metrics import Metric, percentage
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe, check_positive
from pyelmo.tasks.harness.task import (
    Example,
    InputSizes,
    NetworkInputs,
    Prediction,
    Task,
    TextOrWords,
    Vocabularies,
)
from pyelmo.tasks.harness.texts import split_source
from pyelmo.tasks.inputs.characters import ALPHABETS, CharacterFeatures
from pyelmo.tasks.qa.data import (
    AnswerSpan,
    Passage,
    make_passage,
    read_questions,
    training_questions,
)
from pyelmo.tasks.qa.network import BoundaryScores, QaNetwork, TextBatch, answer_loss, best_spans, span_probabilities
from pyelmo.tasks.qa.scores import score_answer


@dataclass(frozen=True, kw_only=True)
class QaDataSettings(DataSettings):
    format: Literal["squad", "korquad"] = "squad"  # the same layout; F1 over words, or over characters
    limit: int = 400  # training passages are truncated to this number of words

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("data", self, "limit")


@dataclass(frozen=True, kw_only=True)
class QaNetworkSettings:
    hidden: int = 90  # size of each direction of a GRU
    dropout: float = 0.2
    characters: int = 100  # filters of the character CNN; 0 for none
    alphabet: Literal["bytes", "jamo"] = "bytes"
    longest: int = 17  # words of the longest answer

    def __post_init__(self) -> None:
        check_positive("network", self, "longest")


@dataclass(frozen=True, kw_only=True)
class QaRecipe(TaskRecipe):
    data: QaDataSettings = field(default_factory=QaDataSettings)
    network: QaNetworkSettings = field(default_factory=QaNetworkSettings)


@dataclass(frozen=True)
class QuestionMetadata:
    """What an example holds beside its words and its correct answers."""

    passage: Passage
    scheme: str  # how answers are scored: squad or korquad
    spans: tuple[AnswerSpan, ...] = ()


def read(path: Path, data: QaDataSettings, training: bool) -> list[Example]:
    questions = read_questions(path, data.language)
    if training:
        questions = training_questions(questions, data.limit)
    examples = []
    for question in questions:
        metadata = QuestionMetadata(question.passage, data.format, question.spans)
        texts = (question.passage.words, question.words)
        examples.append(Example(texts, question.answers, metadata, unit=question.article))
    return examples


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """Return nothing: answers are spans, so there are no labels to learn."""
    return {}


class Reader(nn.Module):
    """The reader of passages. A prediction is the text of the answer and the character at which it starts."""

    def __init__(self, recipe: QaRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.longest = settings.longest
        self.characters = None
        if settings.characters:
            self.characters = CharacterFeatures(ALPHABETS[settings.alphabet](), filters=settings.characters)
        self.qa = QaNetwork(
            sizes.input + settings.characters, hidden=settings.hidden, dropout=settings.dropout, extra=sizes.output
        )

    def loss(self, passages: NetworkInputs, questions: NetworkInputs) -> Tensor:
        return answer_loss(self._scores(passages, questions), [example.metadata.spans for example in passages.examples])

    def predict(self, passages: NetworkInputs, questions: NetworkInputs) -> list[Prediction]:
        return self._answers(passages.examples, self._scores(passages, questions))

    def answer(self, passages: NetworkInputs, questions: NetworkInputs) -> list[PassageAnswer]:
        scores = self._scores(passages, questions)
        spans = best_spans(scores, self.longest)
        answers = []
        probabilities = span_probabilities(scores, spans, self.longest)
        for example, span, probability in zip(passages.examples, spans, probabilities, strict=True):
            passage = example.metadata.passage
            start, end = passage.bounds(*span)
            answers.append(
                PassageAnswer(
                    texts=example.texts,
                    labels=(passage.text[start:end], start),
                    offsets=passage.offsets,
                    end=end,
                    probability=probability,
                )
            )
        return answers

    def probabilities(self, passages: NetworkInputs, questions: NetworkInputs) -> list[Tensor]:
        """Return for each example the probabilities (2, T) of the first and of the last word."""
        values = torch.stack(self._scores(passages, questions)).softmax(2)  # (2, B, T)
        return [values[:, row, :length] for row, length in enumerate(passages.lengths)]

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]:
        answers: list[Prediction] = []
        for example, values in zip(examples, probabilities, strict=True):
            scores = values.clamp(min=torch.finfo(values.dtype).tiny).log().unsqueeze(1)  # (2, 1, T)
            answers += self._answers([example], BoundaryScores(*scores))
        return answers

    def _answers(self, examples: Sequence[Example], scores: BoundaryScores) -> list[Prediction]:
        answers: list[Prediction] = []
        for example, span in zip(examples, best_spans(scores, self.longest), strict=True):
            passage = example.metadata.passage
            answers.append((passage.text_of(*span), passage.bounds(*span)[0]))
        return answers

    def _scores(self, passages: NetworkInputs, questions: NetworkInputs) -> BoundaryScores:
        scores: BoundaryScores = self.qa(self._text_batch(passages, 0), self._text_batch(questions, 1))
        return scores

    def _text_batch(self, inputs: NetworkInputs, number: int) -> TextBatch:
        vectors = inputs.vectors
        if self.characters is not None:
            vectors = self.characters.append_to(vectors, [example.texts[number] for example in inputs.examples])
        return TextBatch(vectors, inputs.mask, inputs.output, inputs.packing)


def count(example: Example, prediction: Prediction) -> tuple[float, ...]:
    score = score_answer(prediction[0], example.labels, example.metadata.scheme)
    return score.exact, score.f1, 1


def _figures(sums: Float64Array) -> dict[str, Float64Array]:
    exact, overlap, of = np.moveaxis(sums, -1, 0)
    return {"f1": percentage(overlap, of), "exact_match": percentage(exact, of)}


def make_examples(texts: Sequence[TextOrWords], data: QaDataSettings, vocabularies: Vocabularies) -> list[Example]:
    """Return the example of a passage and a question. If the passage is given in words, spaces join its answer."""
    text, question = texts
    passage = make_passage(split_source(text, data.language))
    words = split_source(question, data.language).words
    return [Example((passage.words, words), metadata=QuestionMetadata(passage, data.format))]


def format_answers(answers: Sequence[Answer]) -> str:
    """Return the text of each answer, one per line: New York"""
    return "\n".join(str(answer.labels[0]) for answer in answers)


TASK = Task(
    name="qa",
    metric=Metric("F1", ("matches", "overlap", "of"), _figures),
    paper_reduction=24.9,
    paper_dataset="SQuAD 1.1",
    recipe=QaRecipe,
    read=read,
    build_vocabularies=build_vocabularies,
    build_network=Reader,
    count=count,
    unit="article",
    format=format_answers,
    input_names=("passage", "question"),
    make_examples=make_examples,
    texts_per_example=2,
)
