"""Results of a GPU -> arrays on the host, while the GPU computes the next ones.

A GPU writes into page-locked memory at 50 GB/s (H200), but locking new memory is slow: 1 to 3 GB/s. So there are two
ways:

    results --> a block of locked memory, which is used again when the caller has dropped its arrays
    results --> a small locked buffer of a thread --> new memory, if no block is free or the results are small

Blocks are allocated in the background, up to a limit. A caller who keeps all results soon has all blocks, and the
second way, at 11 GB/s, is left.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pyelmo.embed.engines.base import PendingBatch

Bytes = npt.NDArray[np.uint8]

# Threads that copy results to the host (one writes 3.5 GB/s to newly allocated memory), and bytes per copy.
THREADS = min(8, os.cpu_count() or 1)
COPY_BYTES = 32 * 2**20
# Locked blocks: the fewest bytes of results that are worth one, and the most bytes of all of them.
LEAST_BYTES = 16 * 2**20
LOCKED_SHARE, LOCKED_BYTES = 1 / 8, 8 * 2**30  # of the main memory


class Downloader:
    """Copies tensors of a GPU to arrays, on threads beside the computation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread = threading.local()  # the stream, the event and the locked buffer of each thread
        self._pool = ThreadPoolExecutor(THREADS, "pyelmo-download", self._prepare_thread)
        self._blocks = _LockedBlocks(_locked_limit())

    def start(self, values: Tensor) -> PendingBatch:
        """Start to copy a tensor that the current stream computes."""
        dtype, count = str(values.dtype).removeprefix("torch."), values.nbytes
        computed = torch.cuda.Event(blocking=True)  # blocking: a waiting thread sleeps and leaves its core to others
        computed.record(torch.cuda.current_stream(self._device))
        block = self._blocks.take(count) if count >= LEAST_BYTES else None
        if block is not None:
            array = block.view(dtype).reshape(values.shape)
            return _PendingDownload(array, [self._pool.submit(self._copy, computed, values, torch.from_numpy(array))])
        if count >= LEAST_BYTES and self._blocks.may_grow(count):
            self._pool.submit(self._blocks.grow, count)
        array = np.empty(values.shape, dtype)
        parts = (tensor.flatten().view(torch.uint8).split(COPY_BYTES) for tensor in (values, torch.from_numpy(array)))
        return _PendingDownload(
            array, [self._pool.submit(self._copy_by_buffer, computed, *part) for part in zip(*parts, strict=True)]
        )

    def _prepare_thread(self) -> None:
        self._thread.stream = torch.cuda.Stream(self._device)
        self._thread.copied = torch.cuda.Event(blocking=True)
        self._thread.buffer = torch.empty(COPY_BYTES, dtype=torch.uint8, pin_memory=True)

    def _copy(self, computed: torch.cuda.Event, source: Tensor, locked: Tensor) -> None:
        """Copy to locked memory, and wait for the end."""
        computed.synchronize()
        with torch.inference_mode(), torch.cuda.stream(self._thread.stream):
            locked.copy_(source, non_blocking=True)
            self._thread.copied.record()
        self._thread.copied.synchronize()

    def _copy_by_buffer(self, computed: torch.cuda.Event, source: Tensor, target: Tensor) -> None:
        buffer = self._thread.buffer[: len(source)]
        self._copy(computed, source, buffer)
        target.numpy()[:] = buffer.numpy()


@dataclass(frozen=True)
class _PendingDownload:
    array: np.ndarray
    copies: list[Future[None]]

    def result(self) -> np.ndarray:
        for copy in self.copies:
            copy.result()
        return self.array


class _LockedBlocks:
    """Blocks of page-locked memory, whose sizes are powers of two, as torch allocates them.

    Threads share it: each change of `_free` is one operation, and one thread at a time allocates.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._free: dict[int, Bytes] = {}
        self._allocated = 0
        self._growing = threading.Lock()

    def take(self, count: int) -> Bytes | None:
        """Return `count` bytes of a free block, or None. The block is free again when no array uses them."""
        fitting = [(len(block), key) for key, block in list(self._free.items()) if len(block) >= count]
        block = self._free.pop(min(fitting)[1], None) if fitting else None
        if block is None:
            return None
        owner: Bytes = np.frombuffer(block.data, np.uint8)  # the base of all arrays in the block, which keep it alive
        weakref.finalize(owner, self._free.__setitem__, id(block), block).atexit = False
        return owner[:count]

    def may_grow(self, count: int) -> bool:
        return self._allocated + _block_bytes(count) <= self._limit and not self._growing.locked()

    def grow(self, count: int) -> None:
        """Allocate a block for `count` bytes, unless another thread allocates one or there is no memory for it."""
        if not self._growing.acquire(blocking=False):
            return
        try:
            block = torch.empty(_block_bytes(count), dtype=torch.uint8, pin_memory=True).numpy()
            self._allocated += len(block)
            self._free[id(block)] = block
        except RuntimeError:
            self._limit = 0  # results are copied by buffers
        finally:
            self._growing.release()


def _block_bytes(count: int) -> int:
    return 1 << math.ceil(math.log2(count))


def _locked_limit() -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else LOCKED_BYTES
    return int(min(LOCKED_SHARE * memory, LOCKED_BYTES))
