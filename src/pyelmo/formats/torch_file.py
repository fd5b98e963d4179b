"""Named torch tensors in files: safetensors, and torch's own files, read without what else they may ask for.

A file of torch is a pickle with the data beside it. torch reads it with `weights_only`, which runs no code but still
builds sparse, quantised and other special tensors from whatever the file says. So the names in the pickle are compared
with the few that a plain state dict needs before torch sees the file.
"""

from __future__ import annotations

import pickle
import pickletools
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyelmo.errors import FormatError, PyelmoError, UnsafeFileError
from pyelmo.files import open_regular
from pyelmo.formats.tensor_file import TensorFile, plain_permissions

MAX_PICKLE = 1 << 26  # bytes of names and shapes
LEGACY_PICKLES = 4  # magic number, protocol, system, tensors; the data follow
_ALLOWED = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_(tensor|tensor_v2|parameter)"
    r"|torch(\.cuda)? (Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Storage"
)
_LOOKUPS = ("STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4")  # other ways to name a class, which torch never uses


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file into memory, as `tensor_file.read_tensors` does."""
    file = TensorFile(path)
    return {name: _read_tensor(file, name) for name in file.tensors}


def _read_tensor(file: TensorFile, name: str) -> Tensor:
    entry = file.tensors[name]
    if entry.dtype != "bfloat16":
        return torch.from_numpy(file.read(name))
    return torch.from_numpy(file.read_bytes(name).view(np.int16)).view(torch.bfloat16).reshape(entry.shape)


def write_safetensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors of any device, as `tensor_file.write_tensors` does."""
    from safetensors.torch import save_file

    with plain_permissions(path):
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata)


def load_state_dict(path: Path) -> dict[str, Tensor]:
    """Read a torch file of named tensors; a file that could run code is refused.

    Raises:
        NotFoundError: The file does not exist.
        UnsafeFileError: The file asks for something else than tensors.
        FormatError: The file is damaged, or its tensors are sparse, quantised, without data, or otherwise not plain.
    """
    values, size = _load(path)
    if not isinstance(values, Mapping) or not all(isinstance(value, Tensor) for value in values.values()):
        raise FormatError(f"{path}: expected a state dict (names and tensors), got {type(values).__name__}")
    _check_tensors(path, values, size)
    return dict(values)


def load_tensor(path: Path) -> Tensor:
    """Read a torch file of one tensor, as `load_state_dict` reads several."""
    value, size = _load(path)
    if not isinstance(value, Tensor):
        raise FormatError(f"{path}: expected one tensor, got {type(value).__name__}")
    _check_tensors(path, {"the tensor": value}, size)
    return value


def _load(path: Path) -> tuple[Any, int]:
    """Return what a torch file holds, and the size of the file."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            for name in _globals(file):
                _check_global(name, path)
        return torch.load(path, map_location="cpu", weights_only=True), size
    except PyelmoError:
        raise
    except pickle.UnpicklingError as error:
        if "Unsupported global" in str(error):
            raise _unsafe(path) from error
        raise _incomplete(path, error) from error
    except Exception as error:  # a damaged file can raise any error
        raise _incomplete(path, error) from error


def _check_tensors(path: Path, values: Mapping[str, Tensor], size: int) -> None:
    for name, tensor in values.items():
        _check_tensor(path, name, tensor)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in values.values()}
    if sum(storages.values()) > size:  # torch makes a storage larger, without values, if a shape asks for more
        raise FormatError(f"{path}: {size:,} bytes, but its tensors have {sum(storages.values()):,}. Is it damaged?")


def _globals(file: Any) -> Iterator[str]:
    """Yield the classes and functions that the pickles of a file name."""
    file.seek(0)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                    raise FormatError(
                        f"{file.name}: its parts are compressed or encrypted, unlike any of torch's files"
                    )
                if entry.filename.endswith(".pkl"):
                    if entry.file_size > MAX_PICKLE:
                        raise FormatError(f"{entry.filename}: {entry.file_size:,} bytes of names")
                    yield from _pickle_globals(archive.read(entry))
        return
    file.seek(0)
    for _ in range(LEGACY_PICKLES):
        yield from _pickle_globals(file)


def _pickle_globals(data: Any) -> Iterator[str]:
    # Only names and shapes are in the pickle; the data of the tensors are beside it.
    for operation, argument, position in pickletools.genops(data):
        if operation.name in _LOOKUPS:
            yield operation.name
        elif operation.name == "GLOBAL":
            yield str(argument)
        if position is not None and position > MAX_PICKLE:
            raise ValueError("more names and shapes than any model has")


def _check_global(name: str, path: Path) -> None:
    if _ALLOWED.fullmatch(name):
        return
    if name.startswith("torch") and "." not in name.partition(" ")[2]:  # a dot leads from torch to any module
        raise FormatError(
            f"{path}: needs {name.replace(' ', '.')[:100]!r}; sparse, quantised and other special tensors are not "
            "weights of a model. Save a plain state dict of dense tensors."
        )
    raise _unsafe(path)


def _check_tensor(path: Path, name: object, tensor: Tensor) -> None:
    if not isinstance(name, str):
        raise FormatError(f"{path}: expected a state dict (names and tensors), got the name {str(name)[:80]!r}")
    plain = tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type == "cpu"
    if not plain or tensor.is_complex():
        raise FormatError(f"{path}: {name!r} is sparse, quantised, complex or without data, expected a plain tensor")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise FormatError(f"{path}: {name!r} has the shape {tuple(tensor.shape)}, but not as many values")


def _unsafe(path: Path) -> UnsafeFileError:
    return UnsafeFileError(
        f"{path}: contains more than tensors and could run code when it is read, so pyelmo refuses it. Ask its author "
        "for a plain state dict."
    )


def _incomplete(path: Path, error: Exception) -> FormatError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return FormatError(f"{path}: not a complete torch file ({reason})")
