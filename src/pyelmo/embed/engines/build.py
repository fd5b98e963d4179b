"""Choose and build the engine of a model: packed weights on a CPU, torch modules on a GPU.

A `CpuEngine` packs the weights. If the model has no modules yet, the packed weights become its only copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch

from pyelmo.arrays import Float32Array
from pyelmo.embed.engines.base import Engine
from pyelmo.embed.engines.cpu import CpuEngine
from pyelmo.embed.engines.torch import TorchEngine
from pyelmo.errors import InputError
from pyelmo.formats.native import quantised
from pyelmo.formats.pretrained import Pretrained, StoredWeight, Weights, floats
from pyelmo.kernels.cpu import compiled
from pyelmo.kernels.cpu.quantise import Quantised
from pyelmo.model.bilm import BiLM

Precision = Literal["float32", "int8", "bfloat16"]


def build_engine(pretrained: Pretrained, device: torch.device, precision: Precision, threads: int) -> Engine:
    """Return the fastest engine for a device and a precision."""
    # The device is compared first: with a GPU, `compiled.available` must not warn that the CPU functions are missing.
    if device.type != "cpu" or not (compiled.available() or precision == "int8"):
        return TorchEngine(pretrained.bilm.to(device), device, precision)
    if precision == "int8":
        compiled.warn_about_int8()
    model, weights = pretrained.model, pretrained.weights

    def fetch(name: str) -> Float32Array | Quantised:
        weight = model.take(name) if isinstance(model, Weights) else weights[name]
        return quantised(name, weight) if precision == "int8" else floats(weight)

    engine = CpuEngine(pretrained.config, fetch, threads=threads)
    if isinstance(model, Weights):
        pretrained.model = Weights(pretrained.config, _PackedWeights(engine, model.stored), model.where)
    return engine


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


def parameter_versions(bilm: BiLM) -> list[tuple[int, int]]:
    """Return a value that changes whenever a parameter is replaced, moved or trained."""
    return [(parameter.data_ptr(), parameter._version) for parameter in bilm.parameters()]


def check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InputError(f"{name} {value!r} is none of {', '.join(map(repr, known))}")


def check_precision(precision: str, device: torch.device) -> None:
    check_choice("precision", precision, ("float32", "int8", "bfloat16"))
    needed = {"int8": "cpu", "bfloat16": "cuda"}.get(precision, device.type)
    if device.type != needed:
        raise InputError(
            f"precision {precision!r} is not available on device {str(device)!r}: a CPU computes in float32 or int8, "
            "a GPU in float32 or bfloat16"
        )


def usable_device(name: str | torch.device) -> torch.device:
    """Return a device, or raise one clear error if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {str(name)!r} cannot be used here ({str(error).splitlines()[0]})") from error
    return device
