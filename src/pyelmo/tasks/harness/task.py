"""What a task is: a reader of its data, a network, a metric; and the settings of its runs.

B batch, T tokens, I input vector, E encoder's vector.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyelmo.errors import ConfigError, FormatError, InputError
from pyelmo.model.recurrent import Packing, pack
from pyelmo.tasks.harness.cache import Words
from pyelmo.tasks.harness.metrics import Metric
from pyelmo.text.lines import existing
from pyelmo.text.tokens import split_words

Vocabularies = Mapping[str, tuple[str, ...]]  # words, labels, and what else a task learns from its training data
Answer = tuple[Any, ...]  # a label for each word or for all of them, a text, clusters of spans: what JSON can hold
Raw = str | Sequence[str]  # a text as it is written, or in words
TASKS = ("ner", "srl", "sentiment", "nli", "qa", "coref")  # one file each
NOTHING = (".",)  # stands for the words of a text that has none
KEPT = 1 << 24  # words of all texts whose numbers are remembered


@dataclass(frozen=True)
class Example:
    """Texts, each of which an encoder reads by itself, with what is known about them."""

    texts: tuple[Words, ...]  # a sentence; a premise and a hypothesis; a passage and a question; a document's sentences
    labels: Answer = ()  # what is wanted, or after a prediction given; none where it is not known
    about: Any = None  # what else the task knows: the place of a predicate, where words stand in a raw text

    @property
    def words(self) -> Words:
        """Of the only text, or of the first."""
        return self.texts[0]

    @property
    def length(self) -> int:
        return sum(len(text) for text in self.texts)


@dataclass(frozen=True)
class Inputs:
    """What a network reads of texts: static vectors and the input's mix side by side, and the output's mix by itself.

    A row is a text: the first of each example, or the second; or where examples have any number, all texts of one.
    """

    examples: Sequence[Example]
    vectors: Tensor  # (B, T, I)
    mask: Tensor  # (B, T)
    output: Tensor | None  # (B, T, E)
    lengths: Sequence[int]  # (B,) words of each text: to count the mask is to wait for a GPU

    @functools.cached_property
    def packing(self) -> Packing:
        """For the LSTMs that read these texts, made once for all of them."""
        return pack(self.lengths, self.mask.shape[1], self.mask.device)


class Network(Protocol):
    """A torch module that learns from examples and answers them, from `Inputs` for each of their texts."""

    def loss(self, *texts: Inputs) -> Tensor: ...

    def predict(self, *texts: Inputs) -> list[Answer]: ...


class Averaged(Network, Protocol):
    """A network whose answers follow from probabilities, so that the means over several networks have answers too."""

    def probabilities(self, *texts: Inputs) -> list[Tensor]:
        """One for each example, of a shape that depends on the example alone."""

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Answer]: ...


@dataclass(frozen=True)
class Sizes:
    """Of the vectors that a network is built for: `output` is 0 where no ELMo comes in there."""

    input: int
    output: int


@dataclass(frozen=True, kw_only=True)
class ElmoSettings:
    """How an encoder's layers come into the network."""

    where: Literal["input", "output", "both"] = "input"  # with a mix each
    layers: Literal["mix", "top", "average"] = "mix"
    penalty: float = 0.001  # the paper's lambda
    dropout: float = 0.5
    layer_norm: bool = False
    precision: Literal["float16", "float32"] = "float16"  # of the vectors of a frozen encoder
    tune: bool = False  # train the biLM too, instead of reading its vectors from a cache

    def __post_init__(self) -> None:
        _check(self.penalty >= 0, f"elmo.penalty: {self.penalty} is negative")
        _check(0 <= self.dropout < 1, f"elmo.dropout: {self.dropout} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """The table of static vectors: those of a file, or new ones where none is given."""

    tune: bool = False  # train those of a file too; new ones are trained always
    dim: int = 100  # of new vectors; 0 for none
    min_count: int = 2  # a word that comes less often in the training data has no new vector


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a network is trained: until the development score stands still for `patience` epochs."""

    optimiser: Literal["adam", "adadelta"] = "adam"
    lr: float = 0.001
    encoder_lr: float = 0.0001  # of a biLM that is trained too
    weight_decay: float = 0.0
    clip_norm: float = 5.0
    batch: int = 32
    epochs: int = 50
    patience: int = 10
    halve_after: int = 0  # epochs without a better score after which the rate is halved; 0: never
    average: float = 0.0  # decay of a running mean of the weights, by which answers are given; 0: by the last ones
    minutes: float = 0.0  # after which the epoch that runs is the last; 0: no limit
    checkpoint_every: int = 1000  # steps; and after every epoch

    def __post_init__(self) -> None:
        for name in ("lr", "clip_norm", "batch", "epochs", "patience", "checkpoint_every"):
            _check(getattr(self, name) > 0, f"training.{name}: {getattr(self, name)} must be positive")
        _check(0 <= self.average < 1, f"training.average: {self.average} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """How labelled files are read; a task may add to it."""

    language: str = "en"  # by whose rules raw text is split into words
    unseen: Literal["error", "miss"] = "error"  # a label that training did not have: an error, or an answer missed

    def __post_init__(self) -> None:
        from pyelmo.text.tokens import check_language

        check_language(self.language)


@dataclass(frozen=True, kw_only=True)
class TaskRecipe:
    """All settings of a run. A task's own recipe adds its `network`, and may have another `data`."""

    data: DataSettings = field(default_factory=DataSettings)
    words: WordSettings = field(default_factory=WordSettings)
    elmo: ElmoSettings = field(default_factory=ElmoSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def words_of(text: Raw, language: str) -> Words:
    """Raw text by a language's rules; words as they are."""
    return tuple(split_words(text, language) if isinstance(text, str) else text)


def whole_texts(texts: Sequence[Raw], data: DataSettings, vocabularies: Vocabularies) -> list[Example]:
    """The one example of these texts, for tasks that ask nothing else about them."""
    return [Example(tuple(words_of(text, data.language) for text in texts))]


def one_file(path: Path, data: DataSettings) -> list[Path]:
    return [path]


def labels_alone(example: Example) -> dict[str, Any]:
    return {"labels": example.labels}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Data, network and metric under a name."""

    name: str
    metric: Metric
    paper: float  # the paper's relative error reduction by ELMo, in percent
    paper_set: str  # ... and the set it was measured on
    recipe: type[TaskRecipe]
    read: Callable[[Path, Any, bool], list[Example]]  # a file by the recipe's data settings, and whether to train on it
    files: Callable[[Path, Any], list[Path]] = one_file  # all that `read` would read: their checksums tell runs apart
    learn: Callable[[Sequence[Example]], Vocabularies]  # labels and the like; the words are learnt for all tasks
    build: Callable[[Any, Sizes, Vocabularies], Any]  # the recipe -> a Network
    count: Callable[[Example, Answer], Sequence[float]]  # an example and the answer given -> its part of the metric
    show: Callable[[Sequence[Example]], str]  # the examples of a question with their answers, for people
    tell: Callable[[Example], dict[str, Any]] = labels_alone  # an answered example, for programs
    # What a model is asked about: raw texts by these names -> examples without labels.
    asks: tuple[str, ...] = ("sentence",)
    ask: Callable[[Sequence[Raw], Any, Vocabularies], list[Example]] = whole_texts
    texts: int = 1  # of an example; 0 for any number, and then each example is a batch of its own
    # A part of an example for one step of training, by the recipe; its texts must be texts of the example.
    crop: Callable[[Example, Any, np.random.Generator], Example] | None = None


def find(name: str) -> Task:
    """A task by its name."""
    if name not in TASKS:
        raise InputError(f"task {name!r} is none of {', '.join(TASKS)}")
    task: Task = importlib.import_module(f"pyelmo.tasks.{name}.task").TASK
    return task


def texts_of(examples: Iterable[Example]) -> Iterator[Words]:
    return (text for example in examples for text in example.texts)


def padded(numbers: Iterable[int], lengths: Sequence[int], device: torch.device, padding: int = 0) -> Tensor:  # (B, T)
    """Numbers of words, text after text, as rows of these lengths: in one copy, for which a GPU is not waited for."""
    places = np.arange(max(lengths)) < np.array(lengths)[:, None]
    values = np.full(places.shape, padding, dtype=np.int64)
    values[places] = np.fromiter(numbers, dtype=np.int64, count=sum(lengths))
    return torch.from_numpy(values).to(device, non_blocking=True)


class TextNumbers:
    """The numbers of the words of texts, text after text; a text is looked up once, until too many are kept."""

    def __init__(self, number: Callable[[str], int]) -> None:
        self.number = number
        self.known: dict[Words, npt.NDArray[np.int64]] = {}
        self.words = 0  # of all that are known

    def __call__(self, texts: Sequence[Words]) -> npt.NDArray[np.int64]:  # (N,)
        if self.words > KEPT:
            self.clear()
        for text in texts:
            if text not in self.known:
                self.known[text] = np.fromiter(map(self.number, text), np.int64, len(text))
                self.words += len(text)
        return np.concatenate([self.known[text] for text in texts])

    def clear(self) -> None:
        self.known.clear()
        self.words = 0


def read_examples(
    task: Task, path: str | Path, settings: DataSettings, learnt: Vocabularies | None = None
) -> list[Example]:
    """The examples of a file to train on, or with what was `learnt` in training, of any other."""
    path = existing(path)
    examples = task.read(path, settings, learnt is None)
    if not examples:
        raise FormatError(f"{path}: no examples in it. Is it empty, or of another format?")
    if learnt is not None and "labels" in learnt and settings.unseen == "error":
        known = set(learnt["labels"])
        for example in examples:
            for label in example.labels:
                if label not in known:
                    raise FormatError(
                        f"{path}: the label {label!r} (in {' '.join(example.words[:8])!r}) is none of the {len(known)} "
                        "of the training data. Is it another set? --set data.unseen=miss counts it as missed."
                    )
    return examples


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise ConfigError(message)
