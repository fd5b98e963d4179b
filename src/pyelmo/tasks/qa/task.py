"""Where a passage answers a question (Clark & Gardner 2017): the first and last word, scored by words or characters.

B batch, T words of the passage, J of the question, U distinct words, C symbols a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from pyelmo.arrays import Float64Array
from pyelmo.errors import ConfigError
from pyelmo.tasks.harness.metrics import Metric, percentage
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import (
    Example,
    InputSizes,
    NetworkInputs,
    Prediction,
    Task,
    TextOrWords,
    Vocabularies,
    split_text,
)
from pyelmo.tasks.ner.network import CharacterFeatures
from pyelmo.tasks.qa.data import (
    AnswerSpan,
    Passage,
    Question,
    read_questions,
    spaced_passage,
    split_passage,
    to_train_on,
)
from pyelmo.tasks.qa.network import QaNetwork, Scores, Side, answer_loss, best_places
from pyelmo.tasks.qa.scores import score_answer
from pyelmo.text.characters import Bytes, Jamo


@dataclass(frozen=True, kw_only=True)
class QaData(DataSettings):
    format: Literal["squad", "korquad"] = "squad"  # the same layout, scored by words or by characters
    limit: int = 400  # words of a passage that are trained on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit < 1:
            raise ConfigError(f"data.limit: {self.limit} must be positive")


@dataclass(frozen=True, kw_only=True)
class QaSettings:
    hidden: int = 90  # of each direction of a GRU
    dropout: float = 0.2
    characters: int = 100  # filters over a word's symbols; 0 for none
    alphabet: Literal["bytes", "jamo"] = "bytes"
    longest: int = 17  # words of an answer

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise ConfigError(f"network.longest: {self.longest} must be positive")


@dataclass(frozen=True, kw_only=True)
class QaRecipe(TaskRecipe):
    data: QaData = field(default_factory=QaData)
    network: QaSettings = field(default_factory=QaSettings)


@dataclass(frozen=True)
class Asked:
    """What an example knows beside its words and the answers wanted."""

    passage: Passage
    scheme: str  # by which answers are scored
    places: tuple[AnswerSpan, ...] = ()


def read(path: Path, data: QaData, training: bool) -> list[Example]:
    questions = read_questions(path, data.language)
    return [_example(each, data.format) for each in (to_train_on(questions, data.limit) if training else questions)]


def _example(question: Question, scheme: str) -> Example:
    about = Asked(question.passage, scheme, question.places)
    return Example((question.passage.words, question.words), question.answers, about)


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """Nothing: answers are places."""
    return {}


class Reader(nn.Module):
    """Words and their characters of both texts -> a part of the passage, and the character at which it starts."""

    def __init__(self, recipe: QaRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.longest = settings.longest
        alphabet = Jamo() if settings.alphabet == "jamo" else Bytes()
        self.characters = CharacterFeatures(alphabet, filters=settings.characters) if settings.characters else None
        self.qa = QaNetwork(
            sizes.input + settings.characters, hidden=settings.hidden, dropout=settings.dropout, extra=sizes.output
        )

    def loss(self, passages: NetworkInputs, questions: NetworkInputs) -> Tensor:
        return answer_loss(self._scores(passages, questions), [each.metadata.places for each in passages.examples])

    def predict(self, passages: NetworkInputs, questions: NetworkInputs) -> list[Prediction]:
        return self._answers(passages.examples, self._scores(passages, questions))

    def probabilities(self, passages: NetworkInputs, questions: NetworkInputs) -> list[Tensor]:
        """Of first and of last words: (2, T) each."""
        both = torch.stack(self._scores(passages, questions)).softmax(2)  # (2, B, T)
        return [both[:, row, :length] for row, length in enumerate(passages.lengths)]

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]:
        found = []
        for example, each in zip(examples, probabilities, strict=True):
            scores = each.clamp(min=torch.finfo(each.dtype).tiny).log().unsqueeze(1)  # (2, 1, T)
            found += self._answers([example], Scores(*scores))
        return found

    def _answers(self, examples: Sequence[Example], scores: Scores) -> list[Prediction]:
        places = best_places(scores, self.longest)
        found = [(each.metadata.passage, place) for each, place in zip(examples, places, strict=True)]
        return [(passage.part(*place), passage.bounds(*place)[0]) for passage, place in found]

    def _scores(self, passages: NetworkInputs, questions: NetworkInputs) -> Scores:
        found: Scores = self.qa(*(self._side(side, number) for number, side in enumerate((passages, questions))))
        return found

    def _side(self, side: NetworkInputs, number: int) -> Side:
        vectors = side.vectors
        if self.characters is not None:
            texts = [example.texts[number] for example in side.examples]
            vectors = torch.cat([vectors, self.characters.spell(texts, side.mask.device)], 2)
        return Side(vectors, side.mask, side.output, side.packing)


def count(example: Example, given: Prediction) -> tuple[float, ...]:
    found = score_answer(given[0], example.labels, example.metadata.scheme)
    return found.exact, found.f1, 1


def _figures(sums: Float64Array) -> dict[str, Float64Array]:
    exact, overlap, of = np.moveaxis(sums, -1, 0)
    return {"f1": percentage(overlap, of), "exact_match": percentage(exact, of)}


def make_examples(texts: Sequence[TextOrWords], data: QaData, vocabularies: Vocabularies) -> list[Example]:
    """Of raw text the answer is a part as it stands; of words, those with spaces between."""
    text, question = texts
    passage = split_passage(text, data.language) if isinstance(text, str) else spaced_passage(text)
    return [Example((passage.words, split_text(question, data.language)), metadata=Asked(passage, data.format))]


def format_examples(examples: Sequence[Example]) -> str:
    """New York"""
    return "\n".join(str(example.labels[0]) for example in examples)


def to_json(example: Example) -> dict[str, Any]:
    answer, start = example.labels
    return {"answer": answer, "start": start}


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
    format=format_examples,
    to_json=to_json,
    input_names=("passage", "question"),
    make_examples=make_examples,
    texts_per_example=2,
)
