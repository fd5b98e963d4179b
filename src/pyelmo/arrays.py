"""Type names of numpy arrays, and arrays from files of any origin."""

from __future__ import annotations

import math
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


def read_npz_member(file: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Return an array of an .npz file, after comparing the size in its header with the bytes that are there.

    numpy alone would reserve the memory for a header that asks for terabytes.

    Raises:
        ValueError: There is no such array, or it is damaged.
    """
    try:
        entry = f"{name}.npy"
        with file.open(entry) as stream:
            version = np.lib.format.read_magic(stream)
            read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, fortran, dtype = read_header[version](stream)
            left = file.getinfo(entry).file_size - stream.tell()
            if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != left:
                raise ValueError(f"shape {shape} of {dtype}, but {left} bytes")
            array = np.frombuffer(stream.read(), dtype)
        return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    except Exception as error:  # zipfile and numpy raise errors of many types for damaged files
        raise ValueError(f"array {name!r}: {type(error).__name__}: {error}") from error
