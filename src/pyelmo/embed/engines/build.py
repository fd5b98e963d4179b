"""Choose and build the engine and the softmax of a model: packed weights on a CPU, torch modules on a GPU.

A `CpuEngine` packs the weights. If the model has no modules yet, the packed weights become its only copy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from pyelmo.arrays import Float32Array
from pyelmo.embed.engines.base import Engine
from pyelmo.embed.engines.cpu import CpuEngine
from pyelmo.embed.engines.softmax import CpuSoftmax, WordSoftmax
from pyelmo.errors import InputError, require_torch
from pyelmo.formats.native import quantised
from pyelmo.formats.pretrained import Pretrained, StoredWeight, Weights, floats
from pyelmo.kernels.cpu import compiled
from pyelmo.kernels.cpu.quantise import Quantised

if TYPE_CHECKING:
    import torch

    from pyelmo.model.bilm import BiLM

Precision = Literal["float32", "int8", "bfloat16"]


def build_engine(pretrained: Pretrained, device: str, precision: Precision, threads: int) -> Engine:
    """Return the engine for a device and a precision."""
    if device != "cpu":
        on_gpu: Engine = torch_engine(f"device {device!r}").TorchEngine(pretrained.bilm.to(device), device, precision)
        return on_gpu
    if precision == "int8":
        compiled.warn_about_int8()
    model, weights = pretrained.model, pretrained.weights
    fetch = model.take if isinstance(model, Weights) else weights.__getitem__

    def convert(name: str, weight: StoredWeight) -> Float32Array | Quantised:
        return quantised(name, weight) if precision == "int8" else floats(weight)

    engine = CpuEngine(pretrained.config, fetch, convert, threads=threads)
    if isinstance(model, Weights):
        pretrained.model = Weights(pretrained.config, _PackedWeights(engine, model.stored), model.where)
    return engine


def build_softmax(pretrained: Pretrained, device: str, threads: int) -> WordSoftmax:
    """Return the softmax of a model for a device; it computes in float32, as it is a small part of the work."""
    if device != "cpu":
        on_gpu: WordSoftmax = torch_engine(f"device {device!r}").TorchSoftmax(pretrained.bilm.to(device))
        return on_gpu
    return CpuSoftmax(pretrained.config, pretrained.weights.__getitem__, threads=threads)


class _PackedWeights(Mapping[str, StoredWeight]):
    """The weights of a model whose engine holds most of them. Those are unpacked when they are read.

    The others, such as a softmax, which may be larger than the rest of the model, are read from `stored` on access. A
    file that was changed since then is an error.
    """

    def __init__(self, engine: CpuEngine, stored: Mapping[str, StoredWeight]) -> None:
        self._engine, self._stored = engine, stored
        self._rest = [name for name in stored if name not in engine.names]

    def __getitem__(self, name: str) -> StoredWeight:
        if name in self._rest:
            return self._stored[name]
        return self._engine.weight(name)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._rest, *self._engine.names])

    def __len__(self) -> int:
        return len(self._rest) + len(self._engine.names)


def parameter_versions(bilm: BiLM) -> object:
    """Return a value that changes whenever a parameter is replaced, moved or trained."""
    return torch_engine("a trained model").parameter_versions(bilm)


def check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")


def check_precision(precision: str, device: str) -> None:
    check_choice("precision", precision, ("float32", "int8", "bfloat16"))
    kind = device.partition(":")[0]
    if kind != {"int8": "cpu", "bfloat16": "cuda"}.get(precision, kind):
        raise InputError(
            f"precision {precision!r} is not available on device {device!r}: a CPU computes in float32 or int8, "
            "a GPU in float32 or bfloat16"
        )


def usable_device(name: str | torch.device) -> str:
    """Return the name of a device, or raise one clear error if this machine does not have it."""
    if str(name) == "cpu":
        return "cpu"
    return str(torch_engine(f"device {str(name)!r}").usable_device(name))


def torch_engine(what: str) -> ModuleType:
    """Return the module of the torch engine, or raise an error that says what needs it."""
    require_torch(what)
    from pyelmo.embed.engines import torch as module

    return module


def default_threads() -> int:
    """Return how many CPU threads to use: as many as torch, if it is imported, or as OMP_NUM_THREADS or cores allow."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdecimal() and int(limit):
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
