"""Natural language inference (Chen et al. 2017): does a hypothesis follow from a premise? ESIM, scored by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch import Tensor

from pyelmo.tasks.answers import Answer
from pyelmo.tasks.harness.metrics import ACCURACY
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import EMPTY_TEXT, Example, InputSizes, NetworkInputs, Task, Vocabularies
from pyelmo.tasks.labels import classification
from pyelmo.tasks.nli.data import read_pairs
from pyelmo.tasks.nli.network import EsimNetwork


@dataclass(frozen=True, kw_only=True)
class NliDataSettings(DataSettings):
    format: Literal["auto", "jsonl", "json", "tsv", "csv", "lines"] = "auto"  # auto: by the name of the training set
    tokenised: bool = False  # the texts are already split into words, with spaces between


@dataclass(frozen=True, kw_only=True)
class NliNetworkSettings:
    hidden: int = 300
    dropout: float = 0.5


@dataclass(frozen=True, kw_only=True)
class NliRecipe(TaskRecipe):
    data: NliDataSettings = field(default_factory=NliDataSettings)
    network: NliNetworkSettings = field(default_factory=NliNetworkSettings)


def read(path: Path, data: NliDataSettings, training: bool) -> list[Example]:
    pairs = read_pairs(path, data.format, data.language, tokenised=data.tokenised)
    return [Example((pair.premise or EMPTY_TEXT, pair.hypothesis or EMPTY_TEXT), (pair.label,)) for pair in pairs]


class Entailment(classification.OneLabelModule):
    """The classifier of pairs of a premise and a hypothesis."""

    def __init__(self, recipe: NliRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.esim = EsimNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout, extra=sizes.output
        )

    def scores(self, *texts: NetworkInputs) -> Tensor:
        premises, hypotheses = texts
        scores: Tensor = self.esim(
            premises.vectors, premises.mask, hypotheses.vectors, hypotheses.mask,
            premises.output, hypotheses.output, premises.packing, hypotheses.packing,
        )  # fmt: skip
        return scores


def format_answers(answers: Sequence[Answer]) -> str:
    """Format a pair with its label: entailment: A man sleeps . -> A man rests ."""
    (answer,) = answers
    return f"{answer.labels[0]}: {' -> '.join(' '.join(text) for text in answer.texts)}"


TASK = Task(
    name="nli",
    metric=ACCURACY,
    paper_reduction=5.8,
    paper_dataset="SNLI",
    recipe=NliRecipe,
    read=read,
    build_vocabularies=classification.build_vocabularies,
    build_network=Entailment,
    count=classification.count,
    format=format_answers,
    input_names=("premise", "hypothesis"),
    texts_per_example=2,
)
