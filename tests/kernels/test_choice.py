"""`choice.fast` chooses between a kernel and the plain reference."""

from __future__ import annotations

import logging
import sys

import pytest
import torch

from pyelmo.kernels import choice
from pyelmo.model.lstm import projected_lstm


def test_the_cpu_runs_the_plain_reference():
    assert not choice.available("cpu")
    assert choice.fast(projected_lstm, torch.zeros(1)) is projected_lstm


def test_a_gpu_without_triton_runs_the_plain_reference_and_says_so_once(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pyelmo.kernels.gpu.lstm", None)  # importing it fails
    choice._works.cache_clear()
    try:
        with caplog.at_level(logging.WARNING, logger="pyelmo"):
            assert not choice.available("cuda:0")
            assert not choice.available("cuda:0")
    finally:
        choice._works.cache_clear()
    assert [record.message for record in caplog.records] == [
        "Triton is not installed, so the GPU uses slower plain functions; install it with: pip install triton"
    ]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_with_triton_runs_the_kernel_unless_plain_only():
    pytest.importorskip("triton")
    example = torch.zeros(1, device="cuda")
    assert choice.fast(projected_lstm, example).__name__ == "fast_projected_lstm"
    assert choice.fast(projected_lstm, example.double()) is projected_lstm
    with choice.plain_only():
        assert choice.fast(projected_lstm, example) is projected_lstm
