"""Read and write safetensors files.

    bytes 0 to 7      the length of the header
    header            JSON: for each tensor its dtype, shape, and the positions of its first byte and after its last one
    data              the tensors one after another

Tensors are read into memory, not mapped: a mapped tensor changes when another program writes to the file, and a
truncated file ends the process that reads from the mapping. Nothing in the file need be aligned.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyelmo.errors import FormatError
from pyelmo.files import FileVersion, open_regular
from pyelmo.parsing import parse_json

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip
MAX_HEADER = 1 << 24


@dataclass(frozen=True)
class StoredTensor:
    """The dtype, shape and position of one tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int  # in the file


class TensorFile:
    """The header of a safetensors file, checked; `read` reads one tensor, unless the file was changed meanwhile."""

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            NotFoundError: The file does not exist.
            FormatError: The file is not a complete safetensors file.
        """
        self.path = path
        self.version = FileVersion.of(path.absolute())  # the folder of the process may change
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MAX_HEADER):
                raise self._error("its header is longer than the file" if length < 2**40 else "it has no header")
            header = parse_json(file.read(length), path, what="a complete safetensors file")
        if not isinstance(header, dict):
            raise self._error("its header is not a JSON object")
        metadata = header.pop("__metadata__", None) or {}
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise self._error("its metadata are not strings")
        self.metadata: dict[str, str] = metadata
        self.tensors = {name: self._entry(name, facts, 8 + length) for name, facts in header.items()}
        end = 8 + length
        for name, entry in sorted(self.tensors.items(), key=lambda item: (item[1].start, _bytes(item[1]))):
            if entry.start != end:
                raise self._error(f"{name!r} begins at byte {entry.start}, expected {end}")
            end += _bytes(entry)
        if end != size:
            raise self._error(f"{size:,} bytes, expected {end:,}")

    def _entry(self, name: str, facts: Any, first: int) -> StoredTensor:
        try:
            kind, shape, (start, end) = facts["dtype"], facts["shape"], facts["data_offsets"]
            if kind not in DTYPES:
                raise self._error(f"{name!r} has the dtype {str(kind)[:20]!r}, expected one of {', '.join(DTYPES)}")
            if len(shape) > 8 or not all(type(number) is int and number >= 0 for number in (*shape, start, end)):
                raise TypeError
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise self._error(f"no dtype, shape and position of {name!r}") from error
        entry = StoredTensor(DTYPES[kind], tuple(shape), first + start)
        if end - start != _bytes(entry):
            raise self._error(f"{name!r} has {end - start} bytes, its shape {tuple(shape)} needs {_bytes(entry)}")
        return entry

    def read(self, name: str) -> Tensor:
        """Read one tensor.

        Raises:
            FormatError: The file was changed after its header was read.
        """
        entry = self.tensors[name]
        tensor = torch.empty(entry.shape, dtype=entry.dtype)
        rest = tensor.reshape(-1).view(torch.uint8).numpy().data
        self.version.check()
        with open_regular(self.version.path) as file:
            file.seek(entry.start)
            while rest and (count := file.readinto(rest)):  # type: ignore[attr-defined]
                rest = rest[count:]
        self.version.check()
        if rest:
            raise self._error("it ends too early")
        return tensor

    def _error(self, reason: str) -> FormatError:
        return FormatError(f"{self.path}: not a complete safetensors file ({reason}). Was the copy cut short?")


def _bytes(entry: StoredTensor) -> int:
    return math.prod(entry.shape) * entry.dtype.itemsize


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file into memory.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The file is not a complete safetensors file.
    """
    file = TensorFile(path)
    return {name: file.read(name) for name in file.tensors}


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a file with the permissions that other files of this process get; an OSError says what went wrong."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # safetensors makes a file that only its owner may read
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error)) from error
    path.chmod(mode)
