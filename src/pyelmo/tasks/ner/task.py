"""Names of people, places and the like (Peters et al. 2017): a tagger with a CRF, scored by whole spans."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from pyelmo.tasks.harness.batching import pad_ids
from pyelmo.tasks.harness.metrics import SPAN_F1
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs, Prediction, Task, Vocabularies
from pyelmo.tasks.labels.crf import CRF, allowed_transitions
from pyelmo.tasks.labels.spans import convert, count_spans, to_spans
from pyelmo.tasks.ner.data import read_conll2003, read_klue, read_labelled, read_naver
from pyelmo.tasks.ner.network import CharacterFeatures, TaggerNetwork
from pyelmo.text.characters import Bytes, Jamo


@dataclass(frozen=True, kw_only=True)
class NerData(DataSettings):
    """Which reader: any columns in a scheme, or a set with a reader of its own."""

    format: Literal["columns", "conll2003", "klue", "naver"] = "columns"
    scheme: Literal["bio", "iob1", "bioul"] = "bio"
    word: int = 0  # column
    label: int = -1
    comment: str | None = None  # how lines begin that are no words


@dataclass(frozen=True, kw_only=True)
class NerNetwork:
    hidden: tuple[int, int] = (200, 100)  # of each direction of the two layers
    dropout: float = 0.5
    characters: int = 128  # filters over a word's symbols; 0 for none
    alphabet: Literal["bytes", "jamo"] = "bytes"


@dataclass(frozen=True, kw_only=True)
class NerRecipe(TaskRecipe):
    data: NerData = field(default_factory=NerData)
    network: NerNetwork = field(default_factory=NerNetwork)


def read(path: Path, data: NerData, training: bool) -> list[Example]:
    if data.format == "conll2003":
        found = read_conll2003(path)
    elif data.format == "klue":
        found = read_klue(path, data.language)
    elif data.format == "naver":
        found = read_naver(path)
    else:
        found = read_labelled(path, word=data.word, label=data.label, scheme=data.scheme, comment=data.comment)
    return [Example((tuple(each.words),), tuple(each.labels)) for each in found]


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    """O, and both labels of each kind of span: one of them may be missing in a small set."""
    kinds = sorted({label.partition("-")[2] for example in examples for label in example.labels} - {""})
    return {"labels": ("O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))}


@functools.lru_cache(maxsize=1 << 17)
def _bioul(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Of a sentence that is learnt from in every epoch."""
    return tuple(convert(labels, "bio", "bioul"))


class Tagger(nn.Module):
    """Words and their characters -> BIOUL, which tells the network more about spans; outside of it labels are BIO."""

    def __init__(self, recipe: NerRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        kinds = [label[2:] for label in vocabularies["labels"] if label.startswith("B-")]
        self.labels = ["O", *(f"{letter}-{kind}" for kind in kinds for letter in "BIUL")]
        self.numbers = {label: number for number, label in enumerate(self.labels)}
        alphabet = Jamo() if settings.alphabet == "jamo" else Bytes()
        self.characters = CharacterFeatures(alphabet, filters=settings.characters) if settings.characters else None
        self.tagger = TaggerNetwork(
            sizes.input + settings.characters, len(self.labels), hidden=settings.hidden, dropout=settings.dropout,
            extra=sizes.output,
        )  # fmt: skip
        self.crf = CRF(len(self.labels), allowed_transitions(self.labels, "bioul"))

    def loss(self, inputs: NetworkInputs) -> Tensor:
        names = chain.from_iterable(_bioul(example.labels) for example in inputs.examples)
        labels = pad_ids(map(self.numbers.__getitem__, names), inputs.lengths, inputs.mask.device)
        likelihood: Tensor = self.crf(self._emissions(inputs), labels, inputs.mask)
        return -likelihood.mean()

    def predict(self, inputs: NetworkInputs) -> list[Prediction]:
        paths = self.crf.decode(self._emissions(inputs), inputs.mask)
        return [tuple(convert([self.labels[number] for number in path], "bioul", "bio")) for path in paths]

    def _emissions(self, inputs: NetworkInputs) -> Tensor:
        vectors = inputs.vectors
        if self.characters is not None:
            texts = [example.words for example in inputs.examples]
            vectors = torch.cat([vectors, self.characters.spell(texts, inputs.mask.device)], -1)
        found: Tensor = self.tagger(vectors, inputs.mask, inputs.output, inputs.packing)
        return found


def count(example: Example, given: Prediction) -> tuple[int, ...]:
    return astuple(count_spans(to_spans(example.labels), to_spans(given)).all)


def format_examples(examples: Sequence[Example]) -> str:
    """John lives in [LOC New York] ."""
    (example,) = examples
    return bracketed(example)


def bracketed(example: Example) -> str:
    """The words, with brackets around spans."""
    words = list(example.words)
    for span in to_spans(example.labels):
        words[span.start] = f"[{span.label} {words[span.start]}"
        words[span.end - 1] += "]"
    return " ".join(words)


TASK = Task(
    name="ner",
    metric=SPAN_F1,
    paper_reduction=21.0,
    paper_dataset="CoNLL-2003",
    recipe=NerRecipe,
    read=read,
    build_vocabularies=build_vocabularies,
    build_network=Tagger,
    count=count,
    format=format_examples,
)
