"""Semantic role labelling (He et al. 2017): the arguments of a given predicate, scored by the F1 of whole spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from pyelmo.tasks.answers import SpansAnswer
from pyelmo.tasks.harness.batching import pad_ids
from pyelmo.tasks.harness.metrics import SPAN_F1
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
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
from pyelmo.tasks.labels import sequences
from pyelmo.tasks.labels.spans import count_arguments, to_spans
from pyelmo.tasks.srl.data import read_conll2005, read_conll2012, read_propbank
from pyelmo.tasks.srl.network import SrlNetwork

PADDING = -100  # the label number of padding, which the loss ignores


@dataclass(frozen=True, kw_only=True)
class SrlDataSettings(DataSettings):
    """The file format. For CoNLL-2005 give the file X.words; X.props is read from the same folder."""

    format: Literal["propbank", "conll2012", "conll2005"] = "propbank"
    unseen: Literal["error", "miss"] = "miss"  # test sets have rare roles that the training data lacks

    @property
    def words_given(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class SrlNetworkSettings:
    hidden: int = 300
    layers: int = 8
    flag: int = 100  # size of the embedding that says whether a word is the predicate
    dropout: float = 0.1  # on the recurrent states
    input_dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SrlRecipe(TaskRecipe):
    data: SrlDataSettings = field(default_factory=SrlDataSettings)
    network: SrlNetworkSettings = field(default_factory=SrlNetworkSettings)


def read(path: Path, data: SrlDataSettings, training: bool) -> list[Example]:
    if data.format == "conll2005":
        sentences = read_conll2005(path, path.with_suffix(".props"))
    elif data.format == "conll2012":
        sentences = read_conll2012(path)
    else:
        sentences = read_propbank(path)
    return [Example((tuple(item.words),), tuple(item.labels), item.predicate, unit=item.sentence) for item in sentences]


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """Return the labels, and the words that are usually predicates, so that raw text can be labelled."""
    positions_of: dict[tuple[str, ...], set[int]] = {}
    for example in examples:
        positions_of.setdefault(example.words, set()).add(example.metadata)
    predicates = Counter(words[position].lower() for words, positions in positions_of.items() for position in positions)
    occurrences = Counter(word.lower() for words in positions_of for word in words)
    usual = sorted(word for word, times in predicates.items() if 2 * times > occurrences[word])
    return {**sequences.build_vocabularies(examples), "predicates": tuple(usual)}


class Labeller(nn.Module):
    """The labeller of one predicate's arguments; the predicate's position is the `metadata` of each example."""

    def __init__(self, recipe: SrlRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.numbers = {label: number for number, label in enumerate(self.labels)}
        self.dropout = nn.Dropout(settings.input_dropout)
        self.roles = SrlNetwork(
            sizes.input, self.labels, hidden=settings.hidden, layers=settings.layers, flag=settings.flag,
            dropout=settings.dropout, extra=sizes.output,
        )  # fmt: skip

    def loss(self, inputs: NetworkInputs) -> Tensor:
        names = chain.from_iterable(example.labels for example in inputs.examples)
        labels = pad_ids(map(self.numbers.__getitem__, names), inputs.lengths, inputs.mask.device, PADDING)
        return nn.functional.cross_entropy(self._scores(inputs).flatten(0, 1), labels.flatten(), ignore_index=PADDING)

    def predict(self, inputs: NetworkInputs) -> list[Prediction]:
        paths = self.roles.decode(self._scores(inputs), inputs.mask)
        return [tuple(self.labels[number] for number in path) for path in paths]

    def answer(self, inputs: NetworkInputs) -> list[SpansAnswer]:
        scores = self._scores(inputs)
        marginals = self.roles.marginals(scores, inputs.mask)
        answers = []
        for row, path in enumerate(self.roles.decode(scores, inputs.mask)):
            example, labels = inputs.examples[row], tuple(self.labels[number] for number in path)
            spans = marginals.spans(row, path, self.labels, "bio")
            answers.append(sequences.spans_answer(example, labels, spans, example.metadata))
        return answers

    def _scores(self, inputs: NetworkInputs) -> Tensor:  # (B, T, K)
        predicates = torch.tensor([example.metadata for example in inputs.examples])
        predicates = predicates.to(inputs.mask.device, non_blocking=True)
        scores: Tensor = self.roles(self.dropout(inputs.vectors), predicates, inputs.mask, inputs.output)
        return scores


def count(example: Example, prediction: Prediction) -> tuple[int, ...]:
    return astuple(count_arguments(to_spans(example.labels), to_spans(prediction)).all)


def make_examples(texts: Sequence[TextOrWords], data: SrlDataSettings, vocabularies: Vocabularies) -> list[Example]:
    """Return one example for each word that was usually a predicate in the training data."""
    (text,) = texts
    source = split_source(text, data.language)
    predicates = set(vocabularies["predicates"])
    return [
        Example((source.words,), metadata=position, source=source)
        for position, word in enumerate(source.words)
        if word.lower() in predicates
    ]


TASK = Task(
    name="srl",
    metric=SPAN_F1,
    paper_reduction=17.2,
    paper_dataset="OntoNotes",
    recipe=SrlRecipe,
    read=read,
    build_vocabularies=build_vocabularies,
    build_network=Labeller,
    count=count,
    unit="sentence",
    format=sequences.format_answers,
    make_examples=make_examples,
)
