"""Named entity recognition (Peters et al. 2017): a BiLSTM-CRF tagger, scored by the F1 of whole spans."""

from __future__ import annotations

import functools
from dataclasses import astuple, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from pyelmo.tasks.answers import SpansAnswer
from pyelmo.tasks.harness.batching import pad_ids
from pyelmo.tasks.harness.metrics import SPAN_F1
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe, only_for
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs, Prediction, Task, Vocabularies
from pyelmo.tasks.inputs.characters import ALPHABETS, CharacterFeatures
from pyelmo.tasks.labels import sequences
from pyelmo.tasks.labels.crf import CRF, allowed_transitions
from pyelmo.tasks.labels.marginals import Marginals
from pyelmo.tasks.labels.spans import convert, count_spans, to_spans
from pyelmo.tasks.ner.data import (
    read_conll2003,
    read_conllu_labels,
    read_klue,
    read_labelled,
    read_naver,
    read_table,
)
from pyelmo.tasks.ner.network import TaggerNetwork
from pyelmo.text.rows import ReadOptions


@dataclass(frozen=True, kw_only=True)
class NerDataSettings(DataSettings):
    """The file format; auto: by the name of the training set (conllu, jsonl, parquet), else columns."""

    format: Literal["auto", "columns", "conll2003", "klue", "naver", "table", "conllu"] = "auto"
    scheme: Literal["bio", "iob1", "bioul", "plain"] = "bio"  # of columns, table and MISC; plain: words, not spans
    word: int = 0  # columns: number of the column, counted from 0, or from the end if negative
    label: int = -1  # columns: likewise
    comment: str | None = None  # columns: lines that begin with this text are skipped
    column: str | None = None  # table: the column of the words (default: tokens)
    tags: str | None = None  # table: the column of the labels (default: tags); conllu: a key of MISC (default: NER) or
    # upos, xpos
    encoding: str | None = None  # table: such as cp949 (default: utf-8)

    def __post_init__(self) -> None:
        super().__post_init__()
        only_for(self, ("column", "encoding"), ("table",))
        only_for(self, ("tags",), ("table", "conllu"))

    @property
    def words_given(self) -> bool:
        return self.format != "klue"


@dataclass(frozen=True, kw_only=True)
class NerNetworkSettings:
    hidden: tuple[int, int] = (200, 100)  # size of each direction of the two LSTM layers
    dropout: float = 0.5
    characters: int = 128  # filters of the character CNN; 0 for none
    alphabet: Literal["bytes", "jamo"] = "bytes"


@dataclass(frozen=True, kw_only=True)
class NerRecipe(TaskRecipe):
    data: NerDataSettings = field(default_factory=NerDataSettings)
    network: NerNetworkSettings = field(default_factory=NerNetworkSettings)


def read(path: Path, data: NerDataSettings, training: bool) -> list[Example]:
    if data.format == "conll2003":
        sentences = read_conll2003(path)
    elif data.format == "klue":
        sentences = read_klue(path, data.language)
    elif data.format == "naver":
        sentences = read_naver(path)
    elif data.format == "table":
        options = ReadOptions(column=data.column or "tokens", keep=(data.tags or "tags",), encoding=data.encoding)
        sentences = read_table(path, options, data.scheme)
    elif data.format == "conllu":
        sentences = read_conllu_labels(path, data.tags or "NER", data.scheme)
    else:
        sentences = read_labelled(path, word=data.word, label=data.label, scheme=data.scheme, comment=data.comment)
    return [Example((tuple(sentence.words),), tuple(sentence.labels)) for sentence in sentences]


@functools.lru_cache(maxsize=1 << 17)  # every epoch converts the same sentences
def _bioul(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(convert(labels, "bio", "bioul"))


class Tagger(nn.Module):
    """The tagger of entities. The CRF uses BIOUL, which says more about spans; examples and predictions use BIO."""

    def __init__(self, recipe: NerRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        kinds = [label[2:] for label in vocabularies["labels"] if label.startswith("B-")]
        self.labels = ["O", *(f"{letter}-{kind}" for kind in kinds for letter in "BIUL")]
        self.numbers = {label: number for number, label in enumerate(self.labels)}
        self.characters = None
        if settings.characters:
            self.characters = CharacterFeatures(ALPHABETS[settings.alphabet](), filters=settings.characters)
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

    def answer(self, inputs: NetworkInputs) -> list[SpansAnswer]:
        emissions, crf = self._emissions(inputs), self.crf
        marginals = Marginals(emissions, inputs.mask, crf.transitions, crf.start, crf.end, crf.allowed)
        answers = []
        for row, path in enumerate(crf.decode(emissions, inputs.mask)):
            labels = tuple(convert([self.labels[number] for number in path], "bioul", "bio"))
            spans = marginals.spans(row, path, self.labels, "bioul")
            answers.append(sequences.spans_answer(inputs.examples[row], labels, spans))
        return answers

    def _emissions(self, inputs: NetworkInputs) -> Tensor:  # (B, T, K)
        vectors = inputs.vectors
        if self.characters is not None:
            vectors = self.characters.append_to(vectors, [example.words for example in inputs.examples])
        emissions: Tensor = self.tagger(vectors, inputs.mask, inputs.output, inputs.packing)
        return emissions


def count(example: Example, prediction: Prediction) -> tuple[int, ...]:
    return astuple(count_spans(to_spans(example.labels), to_spans(prediction)).all)


TASK = Task(
    name="ner",
    metric=SPAN_F1,
    paper_reduction=21.0,
    paper_dataset="CoNLL-2003",
    recipe=NerRecipe,
    read=read,
    build_vocabularies=sequences.build_vocabularies,
    build_network=Tagger,
    count=count,
    format=sequences.format_answers,
)
