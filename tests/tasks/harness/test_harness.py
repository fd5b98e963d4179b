"""What the harness does for any task: several texts, documents as batches, cropping in training, any metric."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from pyelmo.encoders.base import NamedEncoder
from pyelmo.errors import InputError
from pyelmo.tasks import load
from pyelmo.tasks.answers import Answer
from pyelmo.tasks.compare.bootstrap import paired_bootstrap
from pyelmo.tasks.harness import task
from pyelmo.tasks.harness.batching import length_batches
from pyelmo.tasks.harness.metrics import SPAN_F1, Metric, percentage
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.settings import TaskRecipe, TrainingSettings
from pyelmo.tasks.harness.task import Example, Task
from pyelmo.tasks.harness.training_loop import _tensor_cores

SEEN: list[tuple[bool, int, torch.Size]] = []  # in training or not, examples, shape of the mask


class Lengths(nn.Module):
    """Predicts the lengths of its texts."""

    def __init__(self, recipe, sizes, vocabularies):
        super().__init__()
        self.weight = nn.Linear(sizes.input, 1)

    def loss(self, *texts):
        SEEN.extend((self.training, len(each.examples), each.mask.shape) for each in texts)
        return sum(self.weight(each.vectors)[each.mask].square().mean() for each in texts)

    def predict(self, *texts):
        self.loss(*texts)
        if len(texts) == 1:
            return [tuple(texts[0].mask.sum(1).tolist())]
        return [tuple(row) for row in torch.stack([each.mask.sum(1) for each in texts], 1).tolist()]

    def answer(self, *texts):
        pairs = zip(texts[0].examples, self.predict(*texts), strict=True)
        return [Answer(texts=example.texts, labels=labels) for example, labels in pairs]


@dataclass(frozen=True)
class ToyNetwork:
    pass


@dataclass(frozen=True, kw_only=True)
class ToyRecipe(TaskRecipe):
    network: ToyNetwork = field(default_factory=ToyNetwork)


def read(path, data, training):
    """Read one example per line, with bars between its texts."""
    found = []
    for line in path.read_text().splitlines():
        texts = tuple(tuple(text.split()) for text in line.split("|"))
        found.append(Example(texts, tuple(len(text) for text in texts)))
    return found


TOY = {
    "name": "toy", "paper_reduction": 1.0, "paper_dataset": "none", "recipe": ToyRecipe, "read": read,
    "build_vocabularies": lambda examples: {}, "build_network": Lengths, "format": lambda examples: str(examples[0].labels),
    "count": lambda example, given: (float(example.labels == given) / 2, 1.0),
    "metric": Metric("halves", ("half", "of"), lambda sums: {"halves": percentage(sums[..., 0], sums[..., 1])}),
}  # fmt: skip


@pytest.fixture
def toy(tmp_path, monkeypatch, ner_data):
    """Train a toy task on three examples, with an encoder."""

    def run(**fields):
        monkeypatch.setattr(task, "TASKS", ("toy",))
        monkeypatch.setitem(sys.modules, "pyelmo.tasks.toy.task", SimpleNamespace(TASK=Task(**TOY | fields)))
        (tmp_path / "data").write_text("a b c|d|e f\na b c|d e|f\ng|h|a b c\n")
        settings = ToyRecipe(training=TrainingSettings(epochs=1, batch=3))
        plan = RunSettings(task="toy", data=[tmp_path / "data"] * 2, recipe=settings, encoder=str(ner_data / "LM"))
        SEEN.clear()
        return train_run(plan, tmp_path / "run")[0]

    return run


def test_examples_of_several_texts_give_inputs_for_each_and_embed_them_once(toy, tmp_path, monkeypatch):
    embedded: list[list[str]] = []
    embed = NamedEncoder.__call__
    monkeypatch.setattr(NamedEncoder, "__call__", lambda self, given: embedded.extend(given) or embed(self, given))
    result = toy(texts_per_example=3, input_names=("one", "two", "three"))
    assert sorted(" ".join(words) for words in embedded) == ["a b c", "d", "d e", "e f", "f", "g", "h"]
    assert SEEN[:3] == [(True, 3, (3, 3)), (True, 3, (3, 2)), (True, 3, (3, 3))]
    assert result["dev"] == {"score": 50.0, "halves": 50.0, "half": 1.5, "of": 3}
    model = load(tmp_path / "run")
    embedded.clear()
    asked = [("a b", "a b", ["c"]), ("a b", "d", "d")]
    assert [found[0].labels for found in model.predict(asked)] == [(2, 2, 1), (2, 1, 1)]
    assert len(embedded) == 5  # the first text, which both share, once
    with pytest.raises(InputError, match="input 0: toy needs 3 texts \\(one, two, three\\)"):
        model.predict(["a b"])
    with pytest.raises(InputError, match="input 1: the two has no words"):
        model.predict([("a", "b", "c"), ("a", " ", "c")])


def test_a_document_is_a_batch_and_is_cropped_only_in_training(toy):
    def crop(example, recipe, random):
        start = int(random.integers(len(example.texts)))
        return Example(example.texts[start : start + 1], example.labels)

    assert toy(texts_per_example=0, crop=crop)["dev"]["score"] == 50
    training = [shape for train, examples, shape in SEEN if train and examples == 1]
    assert [shape[0] for shape in training] == [1, 1, 1]
    assert {(examples, tuple(shape)) for train, examples, shape in SEEN if not train} == {(1, (3, 3))}


def test_long_examples_are_predicted_in_smaller_batches():
    lengths = [5000, 1, 256, 512, 512, 512, 0, *[10] * 100]
    batches = length_batches(lengths, 64)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert (batches[0][:2], len(batches[0]), batches[-1]) == ([6, 1], 64, [0])
    assert len(length_batches([512] * 33, 64)) == 3  # 16 each
    assert [len(batch) for batch in length_batches([3, 2, 1], 1)] == [1, 1, 1]


def test_the_bootstrap_resamples_any_metric():
    random = np.random.default_rng(0)
    first = np.stack([random.random(200), np.ones(200)], -1)[None]
    means = Metric("mean", ("value", "of"), lambda sums: {"mean": percentage(sums[..., 0], sums[..., 1])})
    better = first + np.array([0.02, 0.0])
    found = paired_bootstrap(first, better, means, resamples=300)
    assert (found.p, found.low, found.high) == (pytest.approx(1 / 301), pytest.approx(2), pytest.approx(2))
    spans = np.concatenate([(first > 0.5) * 1.0, np.ones((1, 200, 1))], -1)
    assert paired_bootstrap(spans, spans, SPAN_F1, resamples=50).p == 1


@pytest.mark.parametrize(("device", "wanted"), [("cpu", "highest"), ("cuda", "high")])
def test_only_training_steps_on_a_gpu_use_tensor_cores(device, wanted):
    with _tensor_cores(torch.device(device)):
        assert torch.get_float32_matmul_precision() == wanted
    assert torch.get_float32_matmul_precision() == "highest"


def test_the_words_of_an_example_are_normalised_and_keep_their_number():
    assert Example((("cafe\u0301", "\u200b", "bank\ufeff"),), ("O", "O", "O")).words == ("café", "\u200b", "bank")
