"""Batches of examples of similar length, and the padded word ids of a batch.

B batch, T time steps, N words of all texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyelmo.tasks.harness.task import Words

WINDOW = 32  # batches whose examples are sorted by length together
LONG = 256  # words; longer examples get smaller batches, because attention needs memory quadratic in their length
CACHED_WORDS = 1 << 24  # limit of `WordIdCache`, in words of all its texts


def epoch_batches(lengths: Sequence[int], size: int, seed: int, epoch: int) -> list[list[int]]:
    """Return shuffled training batches of example indices; examples of a batch have similar lengths."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths)).tolist()
    batches: list[list[int]] = []
    for start in range(0, len(order), size * WINDOW):
        window = sorted(order[start : start + size * WINDOW], key=lambda index: lengths[index])
        batches += [window[first : first + size] for first in range(0, len(window), size)]
    return [batches[index] for index in random.permutation(len(batches))]


def length_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return batches of example indices from the shortest to the longest, for evaluation.

    A batch has at most `size` examples, and fewer (but at least one) if they are longer than `LONG` words.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        limit = size * min(1.0, (LONG / lengths[index]) ** 2) if lengths[index] else size
        if not batches or len(batches[-1]) + 1 > limit:
            batches.append([])
        batches[-1].append(index)
    return batches


def pad_ids(ids: Iterable[int], lengths: Sequence[int], device: torch.device, padding: int = 0) -> Tensor:  # (B, T)
    """Return the ids of consecutive texts of these lengths as padded rows.

    There is one copy to the device, and it does not make the host wait for a GPU.
    """
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    values = np.full(mask.shape, padding, dtype=np.int64)
    values[mask] = np.fromiter(ids, dtype=np.int64, count=sum(lengths))
    return torch.from_numpy(values).to(device, non_blocking=True)


class WordIdCache:
    """The word ids of texts. Each distinct text is looked up once; the cache is cleared when it grows too large."""

    def __init__(self, word_id: Callable[[str], int]) -> None:
        self.word_id = word_id
        self.known: dict[Words, npt.NDArray[np.int64]] = {}
        self.words = 0  # in all known texts

    def __call__(self, texts: Sequence[Words]) -> npt.NDArray[np.int64]:  # (N,)
        """Return the ids of all words, text after text."""
        if self.words > CACHED_WORDS:
            self.clear()
        for text in texts:
            if text not in self.known:
                self.known[text] = np.fromiter(map(self.word_id, text), np.int64, len(text))
                self.words += len(text)
        return np.concatenate([self.known[text] for text in texts])

    def clear(self) -> None:
        self.known.clear()
        self.words = 0
