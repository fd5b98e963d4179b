"""Read and write safetensors files.

    bytes 0 to 7      the length of the header
    header            JSON: for each tensor its dtype, shape, and the positions of its first byte and after its last one
    data              the tensors one after another

Tensors are read into memory, not mapped: a mapped tensor changes when another program writes to the file, and a
truncated file ends the process that reads from the mapping. Nothing in the file need be aligned.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError
from pyelmo.files import FileVersion, open_regular
from pyelmo.parsing import parse_json

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8",
}  # fmt: skip
MAX_HEADER = 1 << 24


@dataclass(frozen=True)
class StoredTensor:
    """The dtype, shape and position of one tensor."""

    dtype: str
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

    def read(self, name: str) -> np.ndarray:
        """Read one tensor; bfloat16, which numpy does not have, becomes float32.

        Raises:
            FormatError: The file was changed after its header was read.
        """
        entry, data = self.tensors[name], self.read_bytes(name)
        if entry.dtype != "bfloat16":
            return data.view(entry.dtype).reshape(entry.shape)
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(entry.shape)

    def read_bytes(self, name: str) -> npt.NDArray[np.uint8]:
        """Read the bytes of one tensor; see `read`."""
        data = np.empty(_bytes(self.tensors[name]), np.uint8)
        rest = data.data
        self.version.check()
        with open_regular(self.version.path) as file:
            file.seek(self.tensors[name].start)
            while rest and (count := file.readinto(rest)):  # type: ignore[attr-defined]
                rest = rest[count:]
        self.version.check()
        if rest:
            raise self._error("it ends too early")
        return data

    def _error(self, reason: str) -> FormatError:
        return FormatError(f"{self.path}: not a complete safetensors file ({reason}). Was the copy cut short?")


def _bytes(entry: StoredTensor) -> int:
    return math.prod(entry.shape) * (2 if entry.dtype == "bfloat16" else np.dtype(entry.dtype).itemsize)


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Read all tensors of a file into memory.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The file is not a complete safetensors file.
    """
    file = TensorFile(path)
    return {name: file.read(name) for name in file.tensors}


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None) -> None:
    """Write a file with the permissions that other files of this process get; an OSError says what went wrong."""
    from safetensors.numpy import save_file

    with plain_permissions(path):
        save_file({name: np.asarray(array, order="C") for name, array in tensors.items()}, path, metadata)


@contextlib.contextmanager
def plain_permissions(path: Path) -> Iterator[None]:
    """Let safetensors write a file, which only its owner could read otherwise; its errors become an OSError."""
    from safetensors import SafetensorError

    path.touch()
    mode = path.stat().st_mode
    try:
        yield
    except SafetensorError as error:
        raise OSError(errno.EIO, str(error)) from error
    path.chmod(mode)
