"""Sentiment of reviews (McCann et al. 2017): the biattentive classification network, scored by accuracy.

With tables of texts and labels of any kind, it is a general classifier of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch import Tensor

from pyelmo.tasks.answers import Answer
from pyelmo.tasks.harness.metrics import ACCURACY
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe, only_for
from pyelmo.tasks.harness.task import EMPTY_TEXT, Example, InputSizes, NetworkInputs, Task, Vocabularies
from pyelmo.tasks.labels import classification
from pyelmo.tasks.labels.tables import read_labelled_texts
from pyelmo.tasks.sentiment.data import read_nsmc, read_sst
from pyelmo.tasks.sentiment.network import BcnNetwork
from pyelmo.text.rows import ReadOptions


@dataclass(frozen=True, kw_only=True)
class SentimentDataSettings(DataSettings):
    """The file format; auto: a table if the name of the training set ends in csv, tsv, jsonl or parquet, else SST."""

    format: Literal["auto", "sst", "nsmc", "table"] = "auto"
    binary: bool = False  # SST: two classes, without neutral sentences
    phrases: bool = False  # SST: train on the distinct phrases of the sentences, too
    tokenised: bool = False  # NSMC and tables: the text is already split into words, with spaces between
    column: str | None = None  # tables: the column of the texts (default: text)
    label: str | None = None  # tables: the column of the labels, which may be any (default: label)
    encoding: str | None = None  # tables: such as cp949 (default: utf-8)

    def __post_init__(self) -> None:
        super().__post_init__()
        only_for(self, ("column", "label", "encoding"), ("table",))

    @property
    def words_given(self) -> bool:
        return self.format == "sst"


@dataclass(frozen=True, kw_only=True)
class SentimentNetworkSettings:
    hidden: int = 300
    dropout: float = 0.2
    input_dropout: float = 0.5


@dataclass(frozen=True, kw_only=True)
class SentimentRecipe(TaskRecipe):
    data: SentimentDataSettings = field(default_factory=SentimentDataSettings)
    network: SentimentNetworkSettings = field(default_factory=SentimentNetworkSettings)


def read(path: Path, data: SentimentDataSettings, training: bool) -> list[Example]:
    if data.format == "table":
        options = ReadOptions(column=data.column or "text", keep=(data.label or "label",), encoding=data.encoding)
        texts = read_labelled_texts(path, options, data.language, tokenised=data.tokenised)
        return [Example((text.words or EMPTY_TEXT,), (text.label,)) for text in texts]
    if data.format == "nsmc":
        reviews = read_nsmc(path, data.language, tokenised=data.tokenised)
    else:
        reviews = read_sst(path, binary=data.binary, phrases=data.phrases and training)
    return [Example((tuple(review.words) or EMPTY_TEXT,), (str(review.label),)) for review in reviews]


class Classifier(classification.OneLabelModule):
    """The classifier of reviews."""

    def __init__(self, recipe: SentimentRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.bcn = BcnNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout,
            input_dropout=settings.input_dropout, extra=sizes.output,
        )  # fmt: skip

    def scores(self, *texts: NetworkInputs) -> Tensor:
        (reviews,) = texts
        scores: Tensor = self.bcn(reviews.vectors, reviews.mask, reviews.output, reviews.packing)
        return scores


def format_answers(answers: Sequence[Answer]) -> str:
    """Format a review with its label: 4: A lovely film ."""
    (answer,) = answers
    return f"{answer.labels[0]}: {' '.join(answer.words)}"


TASK = Task(
    name="sentiment",
    metric=ACCURACY,
    paper_reduction=6.8,
    paper_dataset="SST-5",
    recipe=SentimentRecipe,
    read=read,
    build_vocabularies=classification.build_vocabularies,
    build_network=Classifier,
    count=classification.count,
    format=format_answers,
)
