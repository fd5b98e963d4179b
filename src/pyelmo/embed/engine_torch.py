"""The biLM through torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyelmo.embed.engine import Pick
from pyelmo.model.bilm import BiLM
from pyelmo.text.lexicon import IntArray, Words


@dataclass
class _Done:
    values: np.ndarray

    def result(self) -> np.ndarray:
        return self.values


class TorchEngine:
    batch_tokens = 4096
    batch_rows = 256
    depth = 1

    def __init__(self, bilm: BiLM, device: torch.device, precision: str = "float32") -> None:
        self.bilm = bilm.to(device).eval()
        self.device = device
        self.size = bilm.config.lstm.dim

    def table(self, rows: int) -> Tensor:
        return torch.empty(rows, self.size, device=self.device)

    @torch.inference_mode()
    def encode(self, words: Words) -> Tensor:
        chars = None if words.chars is None else torch.from_numpy(words.chars).to(self.device)
        numbers = None if words.words is None else torch.from_numpy(words.words).to(self.device)
        return self.bilm.encode_words(chars, numbers)

    @torch.inference_mode()
    def submit(self, table: Tensor, rows: IntArray, lengths: npt.NDArray[np.int64], pick: Pick, dtype: str) -> _Done:
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
        index = np.zeros(mask.shape, dtype=np.int32)
        index[mask] = rows
        tokens = torch.nn.functional.embedding(torch.from_numpy(index).to(self.device), table)
        on_device = torch.from_numpy(mask).to(self.device)
        values = pick(self.bilm.contextualise(tokens, on_device).values)
        return _Done(
            values.flatten(-3, -2)[..., on_device.flatten(), :].float().cpu().numpy().astype(dtype, copy=False)
        )
