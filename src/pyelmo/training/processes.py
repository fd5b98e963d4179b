"""One process or many: what data-parallel training needs of torch.distributed; nothing where there is one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """This process among `count` that train together."""

    rank: int = 0
    count: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009

    @property
    def first(self) -> bool:
        return self.rank == 0

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one message."""
        if self.count == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def gather(self, tensor: Tensor, axis: int = 0) -> Tensor:
        """The tensors of all processes (of one shape), put together in the order of their ranks."""
        if self.count == 1:
            return tensor
        parts = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(self.count)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, axis)

    def any(self, flag: bool) -> bool:
        """Whether the flag is up in any process."""
        if self.count == 1:
            return flag
        raised = torch.tensor([float(flag)], device=self.device)
        dist.all_reduce(raised)
        return bool(raised.item() > 0)

    def wait(self) -> None:
        if self.count > 1:
            dist.barrier()


def join(device: str | None = None) -> Processes:
    """Join the others if torchrun started this process; pick the device of its rank."""
    count, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    here = torch.device(f"cuda:{local}") if kind == "cuda" else torch.device(kind)
    if here.type == "cuda":
        torch.cuda.set_device(here)
    if count == 1:
        return Processes(device=here)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if here.type == "cuda" else "gloo")
    return Processes(dist.get_rank(), dist.get_world_size(), here)


def leave() -> None:
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
