"""The alignment of a model to another language: align.pth of AllenNLP's multilingual ELMo (Schuster et al. 2019).

The file is a matrix (D, D) that torch saved, as a numpy array (MUSE's best_mapping.pth) or as a tensor. A vector x of
the model becomes matrix @ x, whichever layers it is mixed of; the published matrices were learnt for layer 1.

D vector.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, PyelmoError, UnsafeFileError, require_torch
from pyelmo.files import open_regular
from pyelmo.formats.numpy_pickle import ArrayUnpickler, LimitedFile, StoredArray

MAX_PICKLE = 1 << 28  # bytes; a matrix of 4096 x 4096 numbers has 64 MiB
_BEFORE = 3  # pickles before the array in torch's older files: magic number, protocol, system


def read_alignment(path: Path, dim: int) -> Float32Array:
    """Read the matrix (D, D) for a model whose vectors have `dim` numbers.

    Raises:
        NotFoundError: The file does not exist.
        UnsafeFileError: The file could run code.
        FormatError: The file is damaged, or its matrix does not fit the model.
    """
    matrix = _read(path)
    if matrix.shape != (dim, dim) or matrix.dtype.kind != "f":
        raise FormatError(
            f"{path}: {matrix.dtype} of shape {matrix.shape}, expected the matrix ({dim}, {dim}) of an alignment. Is "
            "it of another model?"
        )
    if not np.isfinite(matrix).all():
        raise FormatError(f"{path}: the alignment contains NaN or infinity. Is the file damaged?")
    return np.ascontiguousarray(matrix, np.float32)


def _read(path: Path) -> np.ndarray:
    try:
        with open_regular(path) as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    value = _array_in_zip(archive)
            else:
                file.seek(0)
                value = _array_in_pickles(file)
    except UnsafeFileError:
        return _read_tensor(path)  # which refuses what is no tensor
    except PyelmoError:
        raise
    except Exception as error:  # a damaged pickle can raise any error
        raise FormatError(f"{path}: not a complete file of torch ({type(error).__name__}: {error})"[:300]) from error
    array = value.values() if isinstance(value, StoredArray) else None
    if array is None:
        raise FormatError(f"{path}: expected the matrix of an alignment, got another object")
    return array


def _array_in_zip(archive: zipfile.ZipFile) -> Any:
    entry = next(entry for entry in archive.infolist() if entry.filename.endswith("data.pkl"))
    if entry.file_size > MAX_PICKLE or entry.compress_type != zipfile.ZIP_STORED:
        raise FormatError(f"{archive.filename}: {entry.file_size:,} bytes or compressed, unlike any alignment")
    with archive.open(entry) as file:
        return ArrayUnpickler(file).load()


def _array_in_pickles(file: IO[bytes]) -> Any:
    limited = LimitedFile(file)
    for _ in range(_BEFORE):
        ArrayUnpickler(limited).load()
    return ArrayUnpickler(limited).load()


def _read_tensor(path: Path) -> np.ndarray:
    require_torch(f"{path}: an alignment that is a tensor")
    from pyelmo.formats.torch_file import load_tensor

    return np.asarray(load_tensor(path).float().numpy())
