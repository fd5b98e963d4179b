"""The same mathematics, faster. Nothing here is needed for a right answer; the references live in `model` and `tasks`.

One place of choice: `fast(plain, example)` gives the function that computes the same as `plain` with the same
arguments, a Triton one on a GPU that can run it, else `plain` itself. The caller cannot tell which ran.
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

# The plain function's name -> the file here that holds `fast_<name>`.
FILES = {
    "projected_lstm": "lstm", "conv_max": "char_cnn", "sampled_nll": "softmax", "highway_recurrence": "highway_lstm",
    "gru_recurrence": "gru",
}  # fmt: skip

# Not float16: gradients of a mean over 80,000 places lie below what it can hold.
DTYPES = (torch.float32, torch.bfloat16)

A = ParamSpec("A")
R = TypeVar("R")

_enabled = True


def fast(plain: Callable[A, R], example: Tensor) -> Callable[A, R]:
    """What to call instead of `plain` for arguments on the device and of the type of `example`."""
    if not _enabled or compute_type(example) not in DTYPES or not available(example.device):
        return plain
    module = importlib.import_module(f"pyelmo.kernels.gpu.{FILES[plain.__name__]}")
    chosen: Callable[A, R] = getattr(module, f"fast_{plain.__name__}")
    return chosen


def available(device: torch.device | str) -> bool:
    """Whether the kernels run on this device; says once, in the log, why a GPU does without them."""
    device = torch.device(device)
    return device.type == "cuda" and _works(device.index if device.index is not None else torch.cuda.current_device())


def compute_type(example: Tensor) -> torch.dtype:
    """The type to compute in: autocast's where that is on, else the tensor's own."""
    device = example.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else example.dtype


@contextmanager
def plain_only() -> Iterator[None]:
    """Within it every choice falls on the plain reference: for comparisons."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


@functools.cache
def _works(index: int) -> bool:
    # Being installed is not enough: Triton also needs a C compiler and a GPU it knows, and each of them is missed with
    # an exception of its own. So one small kernel is tried, and whatever goes wrong means the plain path.
    try:
        importlib.import_module("pyelmo.kernels.gpu.lstm").probe(torch.device("cuda", index))
    except ImportError:
        log.warning("Triton is not installed: the GPU runs the plain, slower path (pip install triton)")
    except Exception as error:
        log.warning("Triton does not work on cuda:%d (%s): the GPU runs the plain, slower path", index, error)
    else:
        return True
    return False
