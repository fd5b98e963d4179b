"""Which mentions of a document mean the same (Lee et al. 2017): a ranker of spans, scored by MUC, B-cubed and CEAF.

An example is a document: its texts are its sentences, its labels are clusters of (first word, end) over all its words.
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
from pyelmo.tasks.coref.data import Document, document_files, read_documents, sorted_clusters, split
from pyelmo.tasks.coref.network import CorefNetwork, Ranking, gold_clusters
from pyelmo.tasks.coref.scores import FIELDS, METRICS, count_clusters, f1, mean_f1
from pyelmo.tasks.harness.metrics import Metric
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs, Prediction, Task, TextOrWords, Vocabularies
from pyelmo.tasks.ner.network import CharacterFeatures
from pyelmo.text.characters import Bytes
from pyelmo.text.tokens import split_sentences, split_words

SYMBOL = 8  # size of a symbol's vector
FILTER_WIDTHS = (3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class CorefData(DataSettings):
    """Data is a file, a folder of files, or a list of documents' names."""

    format: Literal["conll2012", "litbank", "ontogum"] = "conll2012"
    folder: str | None = None  # where the documents lie that a list names, if not beside it
    singletons: bool = False  # keep mentions without another of their cluster: wanted, but never given


@dataclass(frozen=True, kw_only=True)
class CorefSettings:
    hidden: int = 200  # of each direction of the LSTM
    scorer: int = 150  # of the feed-forward nets
    depth: int = 2  # ... and their layers
    feature: int = 20  # size of the vectors of width, distance, speaker and genre
    characters: int = 50  # filters of each width over a word's symbols; 0 for none
    width: int = 10  # words of the widest span
    ratio: float = 0.4  # spans kept for each word of a document
    antecedents: int = 250
    sentences: int = 50  # of a document, that one step of training sees at most
    dropout: float = 0.2
    input_dropout: float = 0.5  # of all that comes in, ELMo too

    def __post_init__(self) -> None:
        for name in ("hidden", "scorer", "depth", "feature", "width", "ratio", "antecedents", "sentences"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"network.{name}: {getattr(self, name)} must be positive")


@dataclass(frozen=True, kw_only=True)
class CorefRecipe(TaskRecipe):
    data: CorefData = field(default_factory=CorefData)
    network: CorefSettings = field(default_factory=CorefSettings)


@dataclass(frozen=True)
class About:
    """What is known of a document besides its words."""

    speakers: tuple[str, ...] = ()  # one a word, or none
    genre: str = ""


def read(path: Path, data: CorefData, training: bool) -> list[Example]:
    least = 1 if data.singletons else 2
    found = read_documents(path, data.format, folder=data.folder, language=data.language)
    return [
        Example(each.sentences, sorted_clusters(each.clusters, least), About(each.speakers, each.genre))
        for each in found
    ]


def data_files(path: Path, data: CorefData) -> list[Path]:
    return document_files(path, data.folder)


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    return {"genres": tuple(sorted({example.metadata.genre for example in examples} - {""}))}


def crop(example: Example, recipe: CorefRecipe, random: np.random.Generator) -> Example:
    """A random stretch of a document that is long, with what is left of its clusters."""
    count = recipe.network.sentences
    if len(example.texts) <= count:
        return example
    begin = int(random.integers(len(example.texts) - count + 1))
    texts = example.texts[begin : begin + count]
    first = sum(len(text) for text in example.texts[:begin])
    end = first + sum(len(text) for text in texts)
    clusters = [
        tuple((start - first, stop - first) for start, stop in cluster if first <= start and stop <= end)
        for cluster in example.labels
    ]
    about = About(example.metadata.speakers[first:end], example.metadata.genre)
    return Example(texts, tuple(cluster for cluster in clusters if len(cluster) > 1), about)


class Ranker(nn.Module):
    """The clusters of one document."""

    def __init__(self, recipe: CorefRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.genres = {genre: number for number, genre in enumerate(vocabularies["genres"], 1)}
        self.characters = None
        if settings.characters:
            self.characters = CharacterFeatures(Bytes(), dim=SYMBOL, filters=settings.characters, widths=FILTER_WIDTHS)
        self.dropout = nn.Dropout(settings.input_dropout)
        self.ranker = CorefNetwork(
            sizes.input + settings.characters * len(FILTER_WIDTHS), extra=sizes.output, genres=len(self.genres) + 1,
            hidden=settings.hidden, scorer=settings.scorer, depth=settings.depth, feature=settings.feature,
            width=settings.width, ratio=settings.ratio, antecedents=settings.antecedents, dropout=settings.dropout,
        )  # fmt: skip

    def loss(self, sentences: NetworkInputs) -> Tensor:
        (example,) = sentences.examples
        ranking = self._ranking(sentences)
        rows = [(start, end - 1, n) for n, cluster in enumerate(example.labels, 1) for start, end in cluster]
        mentions = torch.tensor(rows, dtype=torch.long, device=sentences.mask.device).view(-1, 3)
        return ranking.loss(gold_clusters(ranking.spans, mentions, self.ranker.width, example.length))

    def predict(self, sentences: NetworkInputs) -> list[Prediction]:
        clusters = self._ranking(sentences).clusters()
        return [tuple(sorted(tuple((start, last + 1) for start, last in cluster) for cluster in clusters))]

    def _ranking(self, sentences: NetworkInputs) -> Ranking:
        (example,) = sentences.examples
        vectors, mask, about = sentences.vectors, sentences.mask, example.metadata
        if self.characters is not None:
            vectors = torch.cat([vectors, self.characters.spell(example.texts, mask.device)], -1)
        output = None if sentences.output is None else self.dropout(sentences.output)
        speakers = None
        if about.speakers:
            numbers = {name: number for number, name in enumerate(dict.fromkeys(("", *about.speakers)))}
            speakers = torch.tensor([numbers[name] for name in about.speakers], device=mask.device)
        genre = self.genres.get(about.genre, 0)
        found: Ranking = self.ranker(self.dropout(vectors), mask, output, speakers, genre)
        return found


def count(example: Example, given: Prediction) -> tuple[float, ...]:
    return count_clusters(example.labels, given)


def make_examples(texts: Sequence[TextOrWords], data: CorefData, vocabularies: Vocabularies) -> list[Example]:
    """A raw text by its lines and their sentences; of words, only the sentences are found."""
    (text,) = texts
    if not isinstance(text, str):
        return [Example(split(Document("", (tuple(text),), ()), data.language).sentences, (), About())]
    sentences = [sentence for line in text.split("\n") for sentence in split_sentences(line, data.language)]
    found = (tuple(split_words(sentence, data.language)) for sentence in sentences)
    return [Example(tuple(words for words in found if words), (), About())]


def format_examples(examples: Sequence[Example]) -> str:
    """A sentence a line with numbered brackets, then the mentions of each number."""
    (example,) = examples
    words = [word for text in example.texts for word in text]
    marked, lines, begin = list(words), [], 0
    spans = [(start, end, number) for number, cluster in enumerate(example.labels, 1) for start, end in cluster]
    for start, end, number in sorted(spans, key=lambda span: span[1] - span[0]):  # a wider one goes around
        marked[start] = f"[{number} {marked[start]}"
        marked[end - 1] += "]"
    for text in example.texts:
        lines.append(" ".join(marked[begin : begin + len(text)]))
        begin += len(text)
    for number, cluster in enumerate(example.labels, 1):
        lines.append(f"{number}: " + " | ".join(" ".join(words[start:end]) for start, end in cluster))
    return "\n".join(lines)


def to_json(example: Example) -> dict[str, Any]:
    return {"sentences": example.texts, "clusters": example.labels}


def figures(sums: Float64Array) -> dict[str, Float64Array]:
    return {"mean": mean_f1(sums), **dict(zip(METRICS, np.moveaxis(f1(sums), -1, 0), strict=True))}


TASK = Task(
    name="coref",
    metric=Metric("mean F1 of MUC, B3 and CEAF", FIELDS, figures),
    paper_reduction=9.8,
    paper_dataset="OntoNotes",
    recipe=CorefRecipe,
    read=read,
    data_files=data_files,
    build_vocabularies=build_vocabularies,
    build_network=Ranker,
    count=count,
    format=format_examples,
    to_json=to_json,
    input_names=("document",),
    make_examples=make_examples,
    texts_per_example=0,
    crop=crop,
)
