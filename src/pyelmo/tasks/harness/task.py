"""The definition of a downstream task: how its data is read, which network learns it and how predictions are scored.

B batch, T time steps, I input vector, E encoder vector.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from pyelmo.errors import FormatError, InputError
from pyelmo.model.recurrent import Packing, pack
from pyelmo.tasks.harness.metrics import Metric
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.texts import SplitText, split_source
from pyelmo.text.lines import existing
from pyelmo.text.normalisation import normalise_words

Words = tuple[str, ...]
Vocabularies = Mapping[str, tuple[str, ...]]  # words, labels, and what else a task collects from its training set
Prediction = tuple[Any, ...]  # a label for each word or for the whole example, a text, clusters of spans: JSON values
TextOrWords = str | Sequence[str]  # raw text, or text that is already split into words
TASKS = ("ner", "srl", "sentiment", "nli", "qa", "coref")  # one folder each
EMPTY_TEXT = (".",)  # the words of a text that has none


@dataclass(frozen=True)
class Example:
    """One or more texts with their labels. The encoder reads each text on its own."""

    texts: tuple[Words, ...]  # a sentence; a premise and a hypothesis; a passage and a question; a document's sentences
    labels: Prediction = ()  # gold labels; empty if unknown
    metadata: Any = None  # what else the task needs: the position of a predicate, the speakers of words
    source: SplitText | None = None  # the first text, or the document, as it was given for a prediction
    unit: int | None = None  # the number of what it is resampled with, such as its article; None: it is a unit itself

    def __post_init__(self) -> None:
        normal = tuple(tuple(normalise_words(text)) for text in self.texts)
        if normal != self.texts:
            object.__setattr__(self, "texts", normal)

    @property
    def given(self) -> SplitText:
        """The first text as it was given, or its words with spaces between them."""
        return self.source or split_source(self.words, "general")

    @property
    def words(self) -> Words:
        """The words of the first text."""
        return self.texts[0]

    @property
    def length(self) -> int:
        """The number of words in all texts."""
        return sum(len(text) for text in self.texts)


@dataclass(frozen=True)
class NetworkInputs:
    """A batch of texts as a network reads it.

    A row is one text: the first (or second) text of each example. If a task's examples have any number of texts, the
    rows are all texts of a single example.
    """

    examples: Sequence[Example]
    vectors: Tensor  # (B, T, I) static word vectors and the mix for the input
    mask: Tensor  # (B, T)
    output: Tensor | None  # (B, T, E) the mix for the output of the network
    lengths: Sequence[int]  # (B,) on the host: summing the mask would wait for a GPU

    @functools.cached_property
    def packing(self) -> Packing:
        """The packing that all LSTMs over these texts share."""
        return pack(self.lengths, self.mask.shape[1], self.mask.device)


class Network(Protocol):
    """A torch module for a task. Its methods take one `NetworkInputs` for each text of an example."""

    def loss(self, *texts: NetworkInputs) -> Tensor: ...

    def predict(self, *texts: NetworkInputs) -> list[Prediction]: ...

    def answer(self, *texts: NetworkInputs) -> list[Any]:
        """Return the same predictions as one of the types of `pyelmo.tasks.answers` each, with probabilities."""


class ProbabilisticNetwork(Network, Protocol):
    """A network that predicts from probabilities, so that an ensemble can average them."""

    def probabilities(self, *texts: NetworkInputs) -> list[Tensor]:
        """Return a tensor for each example. Its shape must depend on the example alone."""

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]: ...


@dataclass(frozen=True)
class InputSizes:
    """Sizes of the vectors that a network reads; `output` is 0 if there is no mix for the output."""

    input: int
    output: int


def single_example(texts: Sequence[TextOrWords], data: DataSettings, vocabularies: Vocabularies) -> list[Example]:
    """Return one example that holds these texts."""
    sources = [split_source(text, data.language) for text in texts]
    return [Example(tuple(source.words for source in sources), source=sources[0])]


def single_file(path: Path, data: DataSettings) -> list[Path]:
    return [path]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A downstream task: its data, network and metric."""

    name: str
    metric: Metric
    paper_reduction: float  # the relative error reduction by ELMo in the paper, in percent
    paper_dataset: str  # the data set of that figure
    recipe: type[TaskRecipe]
    # Training and data: `read` gets a file, the data settings, and whether the file is the training set.
    read: Callable[[Path, Any, bool], list[Example]]
    data_files: Callable[[Path, Any], list[Path]] = single_file  # all files that `read` reads, for their checksums
    build_vocabularies: Callable[[Sequence[Example]], Vocabularies]  # labels etc.; the harness adds the words
    build_network: Callable[[Any, InputSizes, Vocabularies], Any]  # recipe, sizes, vocabularies -> Network
    texts_per_example: int = 1  # 0: any number, and every batch is a single example
    # Shortens an example for one training step; the texts must be texts of the example.
    crop: Callable[[Example, Any, np.random.Generator], Example] | None = None
    # Evaluation: an example and its prediction -> the numbers that it adds to the metric.
    count: Callable[[Example, Prediction], Sequence[float]]
    unit: str = "example"  # what a unit of the examples is, which the bootstrap draws as a whole
    # Prediction: texts with these names become examples without labels.
    input_names: tuple[str, ...] = ("sentence",)
    make_examples: Callable[[Sequence[TextOrWords], Any, Vocabularies], list[Example]] = single_example
    format: Callable[[Sequence[Any]], str]  # the answers about one input, as text


def find_task(name: str) -> Task:
    """Return the task of this name."""
    if name not in TASKS:
        raise InputError(f"unknown task {name!r}. Choose one of {', '.join(TASKS)}.")
    task: Task = importlib.import_module(f"pyelmo.tasks.{name}.task").TASK
    return task


def unit_numbers(examples: Iterable[Example]) -> list[int]:
    """Return the unit of each example."""
    return [number if example.unit is None else example.unit for number, example in enumerate(examples)]


def all_texts(examples: Iterable[Example]) -> Iterator[Words]:
    return (text for example in examples for text in example.texts)


def read_examples(
    task: Task, path: str | Path, settings: DataSettings, vocabularies: Vocabularies | None = None
) -> list[Example]:
    """Read a labelled file: the training set, or with the `vocabularies` of the training set any other file."""
    path = existing(path)
    examples = task.read(path, settings, vocabularies is None)
    if not examples:
        raise FormatError(f"{path}: the file has no examples. Is it empty, or in another format?")
    if vocabularies is not None and "labels" in vocabularies and settings.unseen == "error":
        _check_labels(path, examples, set(vocabularies["labels"]))
    return examples


def _check_labels(path: Path, examples: Sequence[Example], known: set[str]) -> None:
    for example in examples:
        for label in example.labels:
            if label not in known:
                raise FormatError(
                    f"{path}: the label {label!r} (in {' '.join(example.words[:8])!r}) is not one of the {len(known)} "
                    "labels of the training set. Use a file of the same data set, or --set data.unseen=miss to count "
                    "such labels as wrong predictions."
                )
