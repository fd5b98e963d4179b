"""TensorFlow checkpoints and modules of TensorFlow Hub, written by hand, byte by byte, as the format's description says."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np

from pyelmo.config import CharConfig, LstmConfig, ModelConfig

DTYPES = {np.float32: 1, np.float64: 2, np.int32: 3, np.int64: 9, np.float16: 19}
# The sizes are small; clipping, skip connections and 50 characters are those of every module.
MODULE = ModelConfig(
    chars=CharConfig(dim=4, filters=((1, 4), (2, 8)), highways=2, max_length=50),
    lstm=LstmConfig(cells=16, projection=8, layers=2, cell_clip=3.0, projection_clip=3.0, skip=True),
)


def plain_crc32c(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = plain_crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value: int) -> bytes:
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def shape_message(shape) -> bytes:
    return b"".join(field(2, field(1, size)) for size in shape)


def entry(array: np.ndarray, *, shard: int = 0, offset: int = 0) -> bytes:
    checksum = varint(6 << 3 | 5) + struct.pack("<I", masked(array.tobytes()))
    numbers = field(1, DTYPES[array.dtype.type]) + field(3, shard) + field(4, offset) + field(5, array.nbytes)
    return numbers + field(2, shape_message(array.shape)) + checksum


def block(items: dict[bytes, bytes], *, compression: int = 0) -> bytes:
    """A block without prefix compression: every key in full, one restart."""
    body = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in items.items())
    body += struct.pack("<II", 0, 1) + bytes([compression])
    return body + struct.pack("<I", masked(body))


def table(items: dict[bytes, bytes], *, compression: int = 0) -> bytes:
    data, meta = block(items, compression=compression), block({})
    handle = varint(0) + varint(len(data) - 5)
    index = block({max(items, default=b"") + b"~": handle})
    footer = varint(len(data)) + varint(len(meta) - 5) + varint(len(data) + len(meta)) + varint(len(index) - 5)
    return data + meta + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


HEADER = field(1, 1) + field(3, field(1, 1))


def write_checkpoint(
    folder: Path, items: dict[bytes, bytes], shards: dict[str, bytes] | None = None, **options
) -> Path:
    prefix = folder / "model.ckpt"
    (folder / "model.ckpt.index").write_bytes(table(items, **options))
    for name, data in (shards or {"00000-of-00001": b""}).items():
        (folder / f"model.ckpt.data-{name}").write_bytes(data)
    return prefix


def write_arrays(prefix: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write PREFIX.index and PREFIX.data-00000-of-00001 with these arrays."""
    items, data = {b"": HEADER}, b""
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        items[name.encode()] = entry(array, offset=len(data))
        data += array.tobytes()
    Path(f"{prefix}.index").write_bytes(table(items))
    Path(f"{prefix}.data-00000-of-00001").write_bytes(data)


def write_module(folder: Path, weights: Path, *, root: str = "", padded: bool = True) -> None:
    """Write a module of TensorFlow Hub from the weights of an HDF5 file."""
    arrays = {"aggregation/weights": np.zeros(3, np.float32), "aggregation/scaling": np.float32(1)[()]}
    with h5py.File(weights) as file:
        stored: dict[str, np.ndarray] = {}
        file.visititems(lambda name, item: stored.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    for name, array in stored.items():
        if name == "char_embed" and padded:
            array = np.concatenate([np.zeros_like(array[:1]), array])
        for hdf5, hub in (("W_P_0", "projection/kernel"), ("W_0", "kernel"), ("B", "bias")):
            name = name.replace(f"LSTMCell/{hdf5}", f"rnn/lstm_cell/{hub}")
        arrays[f"bilm/{name}"] = array
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "tfhub_module.pb").write_bytes(b"\x08\x03")
    write_arrays(folder / "variables" / "variables", {root + name: np.asarray(array) for name, array in arrays.items()})
