"""Who did what to whom (He et al. 2017): the roles of a predicate's arguments, scored by whole spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

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
    split_text,
)
from pyelmo.tasks.labels.spans import count_arguments, to_spans
from pyelmo.tasks.ner import task as ner
from pyelmo.tasks.srl.data import read_conll2005, read_conll2012, read_propbank
from pyelmo.tasks.srl.network import SrlNetwork

PADDING = -100  # instead of a label


@dataclass(frozen=True, kw_only=True)
class SrlData(DataSettings):
    """CoNLL-2005 is two files: the one with the words is named, and X.props lies beside X.words."""

    format: Literal["propbank", "conll2012", "conll2005"] = "propbank"
    unseen: Literal["error", "miss"] = "miss"  # rare roles are in one part of a set alone


@dataclass(frozen=True, kw_only=True)
class SrlSettings:
    hidden: int = 300
    layers: int = 8
    flag: int = 100  # size of the vector that marks the predicate
    dropout: float = 0.1  # of the recurrent states
    input_dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SrlRecipe(TaskRecipe):
    data: SrlData = field(default_factory=SrlData)
    network: SrlSettings = field(default_factory=SrlSettings)


def read(path: Path, data: SrlData, training: bool) -> list[Example]:
    if data.format == "conll2005":
        found = read_conll2005(path, path.with_suffix(".props"))
    elif data.format == "conll2012":
        found = read_conll2012(path)
    else:
        found = read_propbank(path)
    return [Example((tuple(each.words),), tuple(each.labels), each.predicate) for each in found]


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """The labels; and the words that are predicates more often than not, for text in which none are marked."""
    seen: dict[tuple[str, ...], set[int]] = {}
    for example in examples:
        seen.setdefault(example.words, set()).add(example.metadata)
    marked = Counter(words[place].lower() for words, places in seen.items() for place in places)
    all_words = Counter(word.lower() for words in seen for word in words)
    often = sorted(word for word, times in marked.items() if 2 * times > all_words[word])
    return {**ner.build_vocabularies(examples), "predicates": tuple(often)}


class Labeller(nn.Module):
    """The roles of one predicate, whose place an example tells, as BIO labels."""

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

    def _scores(self, inputs: NetworkInputs) -> Tensor:
        places = torch.tensor([example.metadata for example in inputs.examples])
        predicates = places.to(inputs.mask.device, non_blocking=True)
        found: Tensor = self.roles(self.dropout(inputs.vectors), predicates, inputs.mask, inputs.output)
        return found


def count(example: Example, given: Prediction) -> tuple[int, ...]:
    return astuple(count_arguments(to_spans(example.labels), to_spans(given)).all)


def make_examples(texts: Sequence[TextOrWords], data: SrlData, vocabularies: Vocabularies) -> list[Example]:
    """An example for each word that was mostly a predicate in training."""
    (words,) = (split_text(text, data.language) for text in texts)
    known = set(vocabularies["predicates"])
    return [Example((words,), metadata=place) for place, word in enumerate(words) if word.lower() in known]


def format_examples(examples: Sequence[Example]) -> str:
    """A line for each predicate: [ARG0 She] [V broke] [ARG1 it] ."""
    return "\n".join(ner.bracketed(example) for example in examples)


def to_json(example: Example) -> dict[str, Any]:
    return {"labels": example.labels, "predicate": example.metadata}


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
    format=format_examples,
    to_json=to_json,
    make_examples=make_examples,
)
