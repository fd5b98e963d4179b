"""The step by graphs: the same losses and weights as the plain one, padded or not, stopped or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pyelmo.config import WordConfig
from pyelmo.corpus.corpus import Corpus
from pyelmo.training import checkpoint, graphs, optim
from pyelmo.training.feed import Feed, open_stream, type_tables
from pyelmo.training.graphs import GraphSteps, padded
from pyelmo.training.loop import new_model, pretrain
from pyelmo.training.processes import Processes
from pyelmo.training.trainer import Trainer

from .conftest import SMALL, recipe

CPU = torch.device("cpu")
NEEDS_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
GPU = pytest.param(torch.device("cuda:0"), marks=NEEDS_GPU)


def losses(corpus, settings, device, *, by_graphs: bool, steps: int = 12):
    """The loss of each step, and the weights at the end."""
    corpus, processes = Corpus.open(corpus), Processes(device=device)
    model = new_model(settings.model, corpus, 1)
    bilm = model.bilm.to(device)
    trainer = Trainer(bilm, type_tables(corpus, bilm, model.lexicon, processes), settings.training, processes)
    taken = GraphSteps(trainer) if by_graphs else None
    stream = open_stream(corpus, settings.training, processes)
    feed = Feed(stream, 2, device, taken.prepare if taken else None)
    try:
        step = taken.step if taken else trainer.step
        means = [step(batch, 0.01) for (batch, _), _ in zip(feed, range(steps), strict=False)]
    finally:
        feed.close()
    if taken and device.type == "cuda":
        assert any(taken.graphs.values())
    return torch.stack(means).cpu(), {name: p.detach().cpu() for name, p in bilm.named_parameters()}


@pytest.mark.parametrize("device", [CPU, GPU])
@pytest.mark.parametrize(
    "training",
    [
        {},
        {"optimiser": "adagrad", "lr": 0.1},
        {"loss": "full"},
        {"weight_decay": 0.1, "zero_starts": False, "dropout": 0.0},
        {"samples": 8},
        {"clip_median": 1.0, "recent": 5},
    ],
)
def test_graphs_train_as_the_plain_step_does(corpus, device, training, monkeypatch):
    monkeypatch.setattr(optim, "RECENT", training.get("recent", optim.RECENT))
    settings = recipe(**{name: value for name, value in training.items() if name != "recent"})
    plain, plain_weights = losses(corpus, settings, device, by_graphs=False)
    fast, fast_weights = losses(corpus, settings, device, by_graphs=True)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    for name, weight in plain_weights.items():
        torch.testing.assert_close(fast_weights[name], weight, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize("device", [CPU, GPU])
@pytest.mark.parametrize("shares", [False, True])
def test_graphs_train_a_model_of_words(corpus, device, shares):
    model = replace(SMALL, chars=None, words=WordConfig(size=1, dim=8), project=False, softmax_shares_words=shares)
    plain, _ = losses(corpus, recipe(model), device, by_graphs=False)
    fast, _ = losses(corpus, recipe(model), device, by_graphs=True)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_run_by_graphs_resumes_exactly(corpus, tmp_path, monkeypatch):
    processes = Processes(device=torch.device("cuda:0"))
    pretrain(corpus, tmp_path / "whole", recipe(words=1600), processes=processes)
    save = checkpoint.save

    def killed(folder, trainer, position):
        save(folder, trainer, position)
        if position.step == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        pretrain(corpus, tmp_path / "halves", recipe(words=1600), processes=processes)
    monkeypatch.undo()
    pretrain(corpus, tmp_path / "halves", recipe(words=1600), processes=processes)
    whole, halves = (_trained(tmp_path / name) for name in ("whole", "halves"))
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


def _trained(output):
    from safetensors.torch import load_file

    return load_file(output / "model" / "model.safetensors")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, 256), (256, 256), (257, 288), (1000, 1024), (1025, 1152), (9000, 9216), (9217, 10240), (16000, 16384)],
)
def test_padded_sizes_waste_an_eighth_at_most(size, expected):
    assert padded(size) == expected
    assert padded(size, 1000) == min(expected, 1000)


def test_a_batch_of_another_step_is_refused(corpus):
    settings = recipe()
    corpus, processes = Corpus.open(corpus), Processes()
    model = new_model(settings.model, corpus, 1)
    tables = type_tables(corpus, model.bilm, model.lexicon, processes)
    steps = GraphSteps(Trainer(model.bilm, tables, settings.training, processes))
    feed = Feed(open_stream(corpus, settings.training, processes), 2, CPU, steps.prepare)
    try:
        batches = iter(feed)
        next(batches)
        with pytest.raises(ValueError, match="the batch of step 2 was given to step 1"):
            steps.step(next(batches)[0], 0.1)
    finally:
        feed.close()


def test_the_plain_step_is_taken_without_a_gpu(corpus):
    settings = recipe()
    corpus = Corpus.open(corpus)
    model = new_model(settings.model, corpus, 1)
    trainer = Trainer(
        model.bilm, type_tables(corpus, model.bilm, model.lexicon, Processes()), settings.training, Processes()
    )
    assert graphs.stepper(trainer).step == trainer.step
