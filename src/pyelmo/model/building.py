"""Build a biLM from weights that were read from a file: shapes first, without values, then the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig, weight_shapes
from pyelmo.model.bilm import BiLM

_RANDOM_FILLS = (Tensor.uniform_, Tensor.normal_)


class SkipInit(TorchFunctionMode):
    """Skip the random initialisation of modules whose weights are all read from a file afterwards.

    Random initialisation takes longer than reading the file; on meta tensors it also costs two seconds of imports.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _RANDOM_FILLS or getattr(function, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        if function is torch.linalg.qr:  # nn.init.orthogonal_ calls it
            return args[0], args[0]
        return function(*args, **(kwargs or {}))


def build_bilm(config: ModelConfig, fetch: Callable[[str], Float32Array]) -> BiLM:
    """Return a biLM in evaluation mode with a copy of the weights that `fetch` returns for their names."""
    with torch.inference_mode(False):  # the caller may be in it, but the model may be trained later
        with SkipInit(), torch.device("meta"):
            bilm = BiLM(config)
        weights = {name: torch.tensor(fetch(name)) for name in weight_shapes(config)}
        bilm.load_state_dict(weights, strict=False, assign=True)
        bilm.share_softmax()
    return bilm.eval()
