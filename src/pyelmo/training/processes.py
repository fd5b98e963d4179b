"""Data-parallel training: thin functions around torch.distributed, which do nothing for a single process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """The rank of this process among `count` that train together, and its device."""

    rank: int = 0
    count: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009

    @property
    def first(self) -> bool:
        """Whether this process writes files and logs."""
        return self.rank == 0

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, with one all-reduce."""
        if self.count == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def gather(self, tensor: Tensor, axis: int = 0) -> Tensor:
        """Concatenate the tensors of all processes, which have the same shape, in the order of ranks."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(self.count)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, axis)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""
        if self.count == 1:
            return flag
        raised = torch.tensor([float(flag)], device=self.device)
        dist.all_reduce(raised)
        return bool(raised.item() > 0)

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.count > 1:
            dist.barrier()


def join(device: str | None = None) -> Processes:
    """Join the other processes if torchrun started this one, and choose the device of its rank."""
    count, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    own = torch.device(f"cuda:{local}") if kind == "cuda" else torch.device(kind)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    if count == 1:
        return Processes(device=own)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if own.type == "cuda" else "gloo")
    return Processes(dist.get_rank(), dist.get_world_size(), own)


def leave() -> None:
    """End the connection to the other processes."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
