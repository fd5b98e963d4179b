"""Coreference resolution (Lee et al. 2017): a ranker of spans, scored by the mean F1 of MUC, B-cubed and CEAF.

An example is a document. Its texts are the sentences, its labels clusters of (first word, end) over the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from pyelmo.arrays import Float64Array
from pyelmo.tasks.answers import Answer, CoreferenceAnswer, CoreferenceMention
from pyelmo.tasks.coref.data import document_files, group_by_sentence, read_documents, sorted_clusters
from pyelmo.tasks.coref.network import CorefNetwork, Ranking, gold_clusters
from pyelmo.tasks.coref.scores import FIELDS, METRICS, count_clusters, f1, mean_f1
from pyelmo.tasks.harness.metrics import Metric
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe, check_positive
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs, Prediction, Task, TextOrWords, Vocabularies
from pyelmo.tasks.harness.texts import SplitText, split_source, with_offsets
from pyelmo.tasks.inputs.characters import CharacterFeatures
from pyelmo.text.characters import Bytes
from pyelmo.text.tokens import TokenSpan, split_sentences, split_spans

SYMBOL = 8  # size of a character's embedding
FILTER_WIDTHS = (3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class CorefDataSettings(DataSettings):
    """How files are read. The path of a data set is a file, a folder of files, or a list of documents."""

    format: Literal["conll2012", "litbank", "ontogum"] = "conll2012"
    folder: str | None = None  # of the documents in a list, if it is not the folder of the list
    singletons: bool = False  # keep clusters of one mention in the correct answers; the network never predicts them

    @property
    def words_given(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class CorefNetworkSettings:
    hidden: int = 200  # size of each direction of the LSTM
    scorer: int = 150  # hidden size of the feed-forward nets
    depth: int = 2  # hidden layers of the feed-forward nets
    feature: int = 20  # size of the embeddings of width, distance, speaker and genre
    characters: int = 50  # filters of each width in the character CNN; 0 for none
    width: int = 10  # words of the widest span
    ratio: float = 0.4  # kept spans per word of a document
    antecedents: int = 250  # spans before a span that are scored as its antecedent
    sentences: int = 50  # a training step reads at most this many sentences of a document
    dropout: float = 0.2
    input_dropout: float = 0.5  # on all input vectors, those of ELMo included

    def __post_init__(self) -> None:
        sizes = ("hidden", "scorer", "depth", "feature", "width", "ratio", "antecedents", "sentences")
        check_positive("network", self, *sizes)


@dataclass(frozen=True, kw_only=True)
class CorefRecipe(TaskRecipe):
    data: CorefDataSettings = field(default_factory=CorefDataSettings)
    network: CorefNetworkSettings = field(default_factory=CorefNetworkSettings)


@dataclass(frozen=True)
class DocumentMetadata:
    """What an example holds beside its words and clusters."""

    speakers: tuple[str, ...] = ()  # one for each word, or empty
    genre: str = ""


def read(path: Path, data: CorefDataSettings, training: bool) -> list[Example]:
    least = 1 if data.singletons else 2
    documents = read_documents(path, data.format, folder=data.folder, language=data.language)
    examples = []
    for document in documents:
        metadata = DocumentMetadata(document.speakers, document.genre)
        examples.append(Example(document.sentences, sorted_clusters(document.clusters, least), metadata))
    return examples


def data_files(path: Path, data: CorefDataSettings) -> list[Path]:
    return document_files(path, data.folder)


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    return {"genres": tuple(sorted({example.metadata.genre for example in examples} - {""}))}


def crop(example: Example, recipe: CorefRecipe, random: np.random.Generator) -> Example:
    """Cut a long document to random consecutive sentences, with the mentions and clusters inside them."""
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
    metadata = DocumentMetadata(example.metadata.speakers[first:end], example.metadata.genre)
    return Example(texts, tuple(cluster for cluster in clusters if len(cluster) > 1), metadata)


class Ranker(nn.Module):
    """The ranker of antecedents. A prediction is the clusters of one document."""

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
        return [_sorted_words(self._ranking(sentences))]

    def answer(self, sentences: NetworkInputs) -> list[CoreferenceAnswer]:
        (example,) = sentences.examples
        ranking = self._ranking(sentences)
        spans = [(start, last + 1) for start, last in torch.stack(ranking.spans, 1).tolist()]
        links, probabilities = ranking.links().tolist(), ranking.link_probabilities().tolist()
        link_of = {
            span: (None if link == row else spans[link], probability)
            for row, (span, link, probability) in enumerate(zip(spans, links, probabilities, strict=True))
        }
        words = [word for text in example.texts for word in text]
        source, clusters = example.source or split_source(words, "general"), _sorted_words(ranking)
        mentions = [tuple(_mention(words, cluster, link_of, source) for words in cluster) for cluster in clusters]
        return [
            CoreferenceAnswer(texts=example.texts, labels=clusters, offsets=source.offsets, clusters=tuple(mentions))
        ]

    def _ranking(self, sentences: NetworkInputs) -> Ranking:
        (example,) = sentences.examples
        vectors, mask, metadata = sentences.vectors, sentences.mask, example.metadata
        if self.characters is not None:
            vectors = self.characters.append_to(vectors, example.texts)
        output = None if sentences.output is None else self.dropout(sentences.output)
        speakers = None
        if metadata.speakers:
            numbers = {name: number for number, name in enumerate(dict.fromkeys(("", *metadata.speakers)))}
            speakers = torch.tensor([numbers[name] for name in metadata.speakers], device=mask.device)
        genre = self.genres.get(metadata.genre, 0)
        ranking: Ranking = self.ranker(self.dropout(vectors), mask, output, speakers, genre)
        return ranking


def _sorted_words(ranking: Ranking) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the first word and the end of each mention, by cluster."""
    return tuple(sorted(tuple((start, last + 1) for start, last in cluster) for cluster in ranking.clusters()))


def _mention(
    words: tuple[int, int],
    cluster: Sequence[tuple[int, int]],
    link_of: Mapping[tuple[int, int], tuple[tuple[int, int] | None, float]],
    source: SplitText,
) -> CoreferenceMention:
    start, end = source.bounds(words[0], words[1] - 1)
    antecedent, probability = link_of[words]
    return CoreferenceMention(
        text=source.text[start:end], start=start, end=end, words=words, probability=probability,
        antecedent=None if antecedent is None else cluster.index(antecedent),
    )  # fmt: skip


def count(example: Example, prediction: Prediction) -> tuple[float, ...]:
    return count_clusters(example.labels, prediction)


def make_examples(texts: Sequence[TextOrWords], data: CorefDataSettings, vocabularies: Vocabularies) -> list[Example]:
    """Return the example of a document. Raw text is split into lines, sentences and words; words into sentences."""
    (text,) = texts
    if not isinstance(text, str):
        source = split_source(text, data.language)
        return [Example(group_by_sentence(text, data.language), (), DocumentMetadata(), source)]
    sentences: list[tuple[str, ...]] = []
    spans: list[TokenSpan] = []
    begin = 0  # of the line
    for line in text.split("\n"):
        at = 0
        for sentence in split_sentences(line, data.language):
            at = line.index(sentence, at)
            words = split_spans(sentence, data.language)
            spans += [TokenSpan(word, begin + at + start, begin + at + end) for word, start, end in words]
            sentences += [tuple(span.word for span in words)] if words else []
            at += len(sentence)
        begin += len(line) + 1
    return [Example(tuple(sentences), (), DocumentMetadata(), with_offsets(text, spans))]


def format_answers(answers: Sequence[Answer]) -> str:
    """Format a document, one sentence per line with numbered brackets, then the mentions of each number."""
    (example,) = answers
    words = [word for text in example.texts for word in text]
    marked, lines, begin = list(words), [], 0
    spans = [(start, end, number) for number, cluster in enumerate(example.labels, 1) for start, end in cluster]
    for start, end, number in sorted(spans, key=lambda span: span[1] - span[0]):  # wider spans around narrower ones
        marked[start] = f"[{number} {marked[start]}"
        marked[end - 1] += "]"
    for text in example.texts:
        lines.append(" ".join(marked[begin : begin + len(text)]))
        begin += len(text)
    for number, cluster in enumerate(example.labels, 1):
        lines.append(f"{number}: " + " | ".join(" ".join(words[start:end]) for start, end in cluster))
    return "\n".join(lines)


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
    unit="document",
    format=format_answers,
    input_names=("document",),
    make_examples=make_examples,
    texts_per_example=0,
    crop=crop,
)
