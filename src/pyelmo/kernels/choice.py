"""The choice for a GPU: `fast(plain, example)` returns a Triton function with the arguments and results of `plain`
if the GPU can run it, and `plain` itself otherwise.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

log = logging.getLogger("pyelmo")

# The name of a plain function -> the module in gpu/ that has `fast_<name>`.
MODULES = {
    "projected_lstm": "lstm", "conv_max": "char_cnn", "sampled_nll": "softmax", "highway_recurrence": "highway_lstm",
    "gru_recurrence": "gru",
}  # fmt: skip

# Not float16: the gradients of a mean over 80,000 positions are below its smallest number.
DTYPES = (torch.float32, torch.bfloat16)

A = ParamSpec("A")
R = TypeVar("R")

_enabled = True


def fast(plain: Callable[A, R], example: Tensor) -> Callable[A, R]:
    """Return the function to call instead of `plain` for arguments of the device and dtype of `example`."""
    if not _enabled or compute_type(example) not in DTYPES or not available(example.device):
        return plain
    module = importlib.import_module(f"pyelmo.kernels.gpu.{MODULES[plain.__name__]}")
    kernel: Callable[A, R] = getattr(module, f"fast_{plain.__name__}")
    return kernel


def available(device: torch.device | str) -> bool:
    """Return whether the kernels run on this device; if a GPU cannot run them, log the reason once."""
    device = torch.device(device)
    return device.type == "cuda" and _works(device.index if device.index is not None else torch.cuda.current_device())


def compute_type(example: Tensor) -> torch.dtype:
    """Return the dtype to compute in: that of autocast if it is enabled, otherwise that of the tensor."""
    device = example.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else example.dtype


@contextmanager
def plain_only() -> Iterator[None]:
    """Make `fast` return the plain function inside the `with` block, for comparisons."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


@functools.cache
def _works(index: int) -> bool:
    # Triton also needs a C compiler and a GPU that it supports, and fails with different exceptions without them.
    # Therefore a small kernel is run, and after any error the plain functions are used.
    try:
        importlib.import_module("pyelmo.kernels.gpu.lstm").probe(torch.device("cuda", index))
    except ImportError:
        log.warning(
            "Triton is not installed, so the GPU uses slower plain functions; install it with: pip install triton"
        )
    except Exception as error:
        log.warning("Triton does not work on cuda:%d (%s), so the GPU uses slower plain functions", index, error)
    else:
        return True
    return False
