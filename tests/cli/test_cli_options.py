"""Values of options that several commands share: --device, --layers and --threads."""

from __future__ import annotations

import pytest
import torch

from pyelmo.cli import options, wait_passively
from pyelmo.cli.options import choose_device, parse_layers
from pyelmo.cli.progress import WordProgress
from pyelmo.errors import InputError


@pytest.mark.parametrize(
    ("gpu", "device", "precision", "chosen"),
    [
        (False, "auto", "float32", "cpu"),
        (True, "auto", "float32", "cuda"),
        (True, "auto", "bfloat16", "cuda"),
        (True, "auto", "int8", "cpu"),  # computed only on a CPU
        (True, "cpu", "float32", "cpu"),
        (True, "cuda:1", "float32", "cuda:1"),
    ],
)
def test_auto_is_a_gpu_if_there_is_one_for_the_precision(gpu, device, precision, chosen, monkeypatch):
    monkeypatch.setattr("pyelmo.cli.options._may_have_gpu", lambda: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    assert choose_device(device, precision) == chosen


@pytest.mark.parametrize(
    ("device", "message"), [("cuda", "no CUDA GPU is available"), ("tpu", "unknown device"), ("", "unknown device")]
)
def test_a_device_that_cannot_be_used_is_an_error(device, message):
    with pytest.raises(InputError, match=f"^--device {device}: {message}"):
        choose_device(device)


@pytest.mark.parametrize(
    ("text", "layers"), [("all", "all"), ("top", "top"), ("2", 2), ("0.2,0.3,0.5", [0.2, 0.3, 0.5])]
)
def test_layers_are_a_name_an_index_or_weights(text, layers):
    assert parse_layers(text) == layers


def test_weights_that_are_no_numbers_are_an_error():
    with pytest.raises(InputError, match="^--layers a,b: the weights of a mix must be numbers"):
        parse_layers("a,b")


def test_the_words_of_a_text_are_estimated_from_the_lines_read_so_far():
    class Bar:
        total: int | None = None
        done = 0

        def update(self, words: int) -> None:
            self.done += words

    bar = Bar()
    progress = WordProgress(bar, 10)
    for words in (8, 12):
        progress.read(words)
    assert bar.total == 100  # two of ten lines have 20 words
    progress.done(20)
    progress.read_all()
    assert (bar.total, bar.done) == (20, 20)
    stream = WordProgress(Bar(), None)
    stream.read(8)
    assert stream.bar.total is None  # nobody knows how long a stream is


def test_threads_of_torch_sleep_while_they_wait_unless_the_user_chose():
    environment: dict[str, str] = {}
    wait_passively(environment)
    assert environment == {"OMP_WAIT_POLICY": "passive"}
    chosen = {"OMP_WAIT_POLICY": "active"}
    wait_passively(chosen)
    assert chosen == {"OMP_WAIT_POLICY": "active"}


def test_threads_are_those_of_torch():
    before = torch.get_num_threads()
    try:
        options.set_threads(None)
        assert torch.get_num_threads() == before
        options.set_threads(3)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    with pytest.raises(InputError, match="--threads 0: must be at least 1"):
        options.set_threads(0)
