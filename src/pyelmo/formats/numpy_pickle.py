"""Numbers from pickles of numpy arrays, without running them.

A pickle can run code, and even numpy's own classes, filled from a pickle, can read any memory of the process. So every
class that a pickle names becomes a plain holder of what the file has for it, and arrays are built here from their
bytes, after checks.
"""

from __future__ import annotations

import math
import os
import pickle
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.errors import UnsafeFileError

_MODULES = {
    "numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric",
}  # fmt: skip


class Holder:
    """The attributes of an object, without its methods."""

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class Items(dict[Any, Any]):
    """Any kind of dictionary."""

    def __init__(self, *arguments: object) -> None:
        super().__init__()

    def __setstate__(self, state: object) -> None:
        pass


class _Dtype:
    """A dtype of plain numbers, such as "f4". All that a pickle can say about other dtypes is ignored."""

    def __init__(self, name: object = None, *arguments: object) -> None:
        self.name, self.order = name, "<"

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] == ">":
            self.order = ">"

    def numbers(self) -> np.dtype[Any] | None:
        if not isinstance(self.name, str) or not re.fullmatch(r"f[248]|i[1248]|u[1248]", self.name):
            return None
        return np.dtype(self.order + self.name)


class StoredArray:
    """An array: as `_reconstruct` makes it, which fills it afterwards."""

    def __init__(self, *arguments: object) -> None:
        self.parts: tuple[object, ...] = ()

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) == 5:
            _, shape, dtype, by_columns, data = state
            self.parts = (data, dtype, shape, "F" if by_columns else "C")

    def values(self) -> npt.NDArray[Any] | None:
        """Return the array, or None if it has no plain numbers or not as many as its shape says."""
        if len(self.parts) != 4:
            return None
        data, dtype, shape, order = self.parts
        numbers = dtype.numbers() if isinstance(dtype, _Dtype) else None
        if numbers is None or not isinstance(data, bytes | bytearray) or not isinstance(shape, tuple):
            return None
        if len(shape) > 8 or not all(type(size) is int and size >= 0 for size in shape):
            return None
        if math.prod(shape) * numbers.itemsize != len(data):
            return None
        return np.frombuffer(data, numbers).reshape(shape, order="F" if order == "F" else "C")


class _Buffer(StoredArray):
    """An array as `_frombuffer` makes it, from its bytes at once."""

    def __init__(self, *arguments: object) -> None:
        self.parts = arguments


_NUMPY = {"_reconstruct": StoredArray, "_frombuffer": _Buffer, "scalar": Holder, "ndarray": Holder, "dtype": _Dtype}


def _encode(text: object, encoding: object = None) -> bytes:
    """Return the bytes that protocols before 3 store as text of Latin-1."""
    if not isinstance(text, str) or encoding != "latin1":
        raise UnsafeFileError("the file asks for another encoding than numpy does")
    return text.encode("latin1")


# The unpickler in Python, because the one in C reserves memory for any number that a file names.
class ArrayUnpickler(pickle._Unpickler):
    """Reads arrays as `StoredArray`. A subclass may allow more names than numpy's."""

    def find_class(self, module: str, name: str) -> Any:
        if module in _MODULES and name in _NUMPY:
            return _NUMPY[name]
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise UnsafeFileError(f"the file asks for {module}.{name}")


class LimitedFile:
    """A file that returns at most what it has, without reserving memory for more."""

    def __init__(self, file: Any) -> None:
        self._file, self._rest = file, os.fstat(file.fileno()).st_size
        self.readline = file.readline

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(min(size, self._rest))
        return data
