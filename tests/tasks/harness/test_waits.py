"""A training step never reads a value from its device, so it also runs on torch's `meta` device, which has no values."""

from __future__ import annotations

import contextlib
import json

import pytest
import torch

from pyelmo.kernels import choice
from pyelmo.recipes import read_settings
from pyelmo.tasks.harness.model import TaskModel
from pyelmo.tasks.harness.run import _embedding_threads
from pyelmo.tasks.harness.task import find_task
from pyelmo.tasks.harness.training_loop import _StepQueue
from pyelmo.tasks.inputs.representation import EncoderShape

QUESTION = {"question": "Who ran?", "answers": [{"text": "Ann"}]}
FILES = {
    "ner": "Ann B-PER\nLee I-PER\nran O\n\nParis B-LOC\n\n",
    "srl": "doc 0 0 He PRP (S* - - (ARG0*)\ndoc 0 1 ran VBD *) run run.01 (V*)\n",
    "sentiment": "(3 (2 A) (4 film))\n(1 (2 No) (1 film))\n",
    "nli": "".join(json.dumps({"sentence1": "A man ran.", "sentence2": "He ran.", "gold_label": label}) + "\n"
                   for label in ("entailment", "neutral")),
    "qa": json.dumps({"data": [{"paragraphs": [{"context": "Ann ran home.", "qas": [QUESTION, QUESTION]}]}]}),
}  # fmt: skip


class NoCast(contextlib.nullcontext):
    """Autocast does not support the meta device."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__()


@pytest.mark.parametrize("name", FILES)
def test_a_step_of_training_waits_for_nothing(name, tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "compute_type", lambda example: example.dtype)
    monkeypatch.setattr(torch, "autocast", NoCast)
    (tmp_path / "data").write_text(FILES[name])
    task = find_task(name)
    recipe = read_settings(task.recipe, name, ["elmo.where=both", "data.language=en"], group="task")
    examples = task.read(tmp_path / "data", recipe.data, True)
    words = tuple({word for example in examples for text in example.texts for word in text})
    vocabularies = {**task.build_vocabularies(examples), "words": words}
    model = TaskModel(task, recipe, vocabularies, torch.zeros(len(words) + 1, 4), EncoderShape(3, 8)).to("meta")
    model.layer_source = lambda texts: torch.zeros(3, len(texts), max(map(len, texts)), 8, device="meta")
    model.train().loss(examples).backward()
    assert all(parameter.grad is not None for parameter in model.network.parameters())


def test_a_shared_gpu_has_one_step_queued_while_the_host_prepares_the_next(monkeypatch):
    calls: list[str] = []

    class Event:
        def __init__(self, *, blocking: bool) -> None:
            assert blocking  # else the wait would use a CPU core
            self.number = len(calls)

        def record(self) -> None:
            calls.append(f"step {self.number} queued")
            self.number = len(calls)

        def synchronize(self) -> None:
            calls.append(f"waited for call {self.number}")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    queue = _StepQueue(2)
    for _ in range(3):
        queue.add_step()
    waits = [call.split()[-1] for call in calls if call.startswith("waited")]
    queued = [str(number) for number, call in enumerate(calls, 1) if call.endswith("queued")]
    assert waits == queued[:-1]  # each step waits for the one before, and nothing waits for the last


@pytest.mark.parametrize(("device", "threads"), [("cuda:0", 1), ("cpu", 2)])
def test_a_process_whose_gpu_embeds_rounds_vectors_with_one_thread(device, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with _embedding_threads(device):
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
