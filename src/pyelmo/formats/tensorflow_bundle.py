"""Read TensorFlow (V2) checkpoints without TensorFlow: PREFIX.index lists where each tensor is in PREFIX.data-*.

The index is a LevelDB table. From the outside in:

    file    blocks of entries | metaindex block (not needed) | index block | footer
    footer  handles (offset, size) of the last two blocks, padded to 40 bytes | magic number
    block   entries | offsets of restarts | number of restarts | compression (1 byte) | masked CRC-32C (4 bytes)
    entry   lengths: key bytes shared with the previous key, other key bytes, value | other key bytes | value
    value   in the index block: the handle of a block of entries
            for the key "": BundleHeaderProto; for the name of a tensor: BundleEntryProto

Lengths and handles are varints. The two protos are protobuf messages, whose numbers are varints, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.files import open_regular, read_regular
from pyelmo.formats.crc32c import crc32c, masked

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
MAX_INDEX = 1 << 26  # bytes
DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 9: np.int64, 19: np.float16}
OTHER_DTYPES = {
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    20: "resource",
}


@dataclass(frozen=True)
class TensorEntry:
    """The type, shape and position of one tensor."""

    dtype: np.dtype
    shape: tuple[int, ...]
    shard: Path
    offset: int
    size: int
    checksum: int


class Bundle(Mapping[str, np.ndarray]):
    """The tensors of a checkpoint by name, in alphabetical order; each is read into memory on access.

    `tensors` has shapes and dtypes, which need no reading; `unreadable` has the reason for each tensor left out.
    """

    def __init__(self, tensors: dict[str, TensorEntry], unreadable: dict[str, str]) -> None:
        self.tensors = tensors
        self.unreadable = unreadable

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.unreadable:
            raise FormatError(f"tensor {name!r} of the checkpoint cannot be read: {self.unreadable[name]}.")
        tensor = self.tensors[name]
        data = np.empty(tensor.size, np.uint8)
        with open_regular(tensor.shard) as file:
            file.seek(tensor.offset)
            count = file.readinto(data.data)  # type: ignore[attr-defined]
        if count != tensor.size or masked(crc32c(data)) != tensor.checksum:
            raise FormatError(f"{tensor.shard}: checksum mismatch in {name!r}. Copy the checkpoint again.")
        return data.view(tensor.dtype).reshape(tensor.shape)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def read_bundle(prefix: str | Path) -> Bundle:
    """Read the index of a checkpoint; `prefix` is the common part of its file names, or one of its files."""
    prefix = Path(re.sub(r"\.(index|data-\d{5}-of-\d{5})$", "", str(prefix)))
    index = Path(f"{prefix}.index")
    if not index.is_file():
        if prefix.is_file():
            raise FormatError(
                f"{prefix}: no {index.name} beside it. Save the checkpoint again in TensorFlow's format V2."
            )
        raise NotFoundError(f"{index}: no such file. Give the path of a checkpoint up to the part before '.index'.")
    try:
        return _read_index(prefix, read_regular(index, limit=MAX_INDEX))
    except _MalformedError as error:
        raise FormatError(f"{index}: {error}") from None


class _MalformedError(Exception):
    """An error in the index, with what to do about it; `read_bundle` adds the path."""


DAMAGED = "The file is damaged or cut short: copy the checkpoint again."


def _read_index(prefix: Path, file: bytes) -> Bundle:
    entries = _table(file)
    if next(iter(entries), None) != b"":
        raise _MalformedError(f"the header is missing. {DAMAGED}")
    shards = _header(entries.pop(b""))
    tensors: dict[str, TensorEntry] = {}
    unreadable: dict[str, str] = {}
    for key, value in entries.items():
        if key.startswith(b"\0"):
            continue  # a slice of a partitioned variable; the variable has an entry of its own
        try:
            name = key.decode("utf-8")
        except UnicodeDecodeError:
            raise _MalformedError(f"a name is not UTF-8: {key!r}. {DAMAGED}") from None
        tensor = _entry(name, value, prefix, shards)
        if isinstance(tensor, str):
            unreadable[name] = tensor
        else:
            tensors[name] = tensor
    _check_shards(tensors)
    return Bundle(tensors, unreadable)


def _check_shards(tensors: dict[str, TensorEntry]) -> None:
    ends: dict[Path, int] = {}
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].offset, item[1].size)):
        if tensor.offset < ends.get(tensor.shard, 0):
            raise FormatError(f"{tensor.shard}: {name!r} overlaps another tensor. {DAMAGED}")
        ends[tensor.shard] = tensor.offset + tensor.size
    for shard, end in ends.items():
        if not shard.is_file():
            raise FormatError(f"{shard}: no such file, but the index names it. Copy all files of the checkpoint.")
        if shard.stat().st_size < end:
            raise FormatError(f"{shard}: {shard.stat().st_size} bytes, expected {end} or more. Copy it again.")


# The table


def _table(file: bytes) -> dict[bytes, bytes]:
    """Return all entries of the table; keys must be sorted and distinct."""
    if len(file) < FOOTER_BYTES or int.from_bytes(file[-8:], "little") != MAGIC:
        raise _MalformedError(f"not the index of a TensorFlow V2 checkpoint: the magic number is missing. {DAMAGED}")
    footer = file[-FOOTER_BYTES:-8]
    _, at = _handle(footer, 0)
    index, _ = _handle(footer, at)
    entries: dict[bytes, bytes] = {}
    last_key, last_end = None, 0
    for _, value in _entries(_block(file, *index)):
        (offset, size), _ = _handle(value, 0)
        if offset < last_end:
            raise _MalformedError(f"two blocks overlap. {DAMAGED}")
        last_end = offset + size
        for key, content in _entries(_block(file, offset, size)):
            if last_key is not None and key <= last_key:
                raise _MalformedError(f"the names are out of order. {DAMAGED}")
            entries[key] = content
            last_key = key
    return entries


def _block(file: bytes, offset: int, size: int) -> bytes:
    end = offset + size + 1  # includes the byte for the compression
    if end + 4 > len(file) - FOOTER_BYTES:
        raise _MalformedError(f"a block reaches beyond the end of the file. {DAMAGED}")
    if masked(crc32c(np.frombuffer(file[offset:end], np.uint8))) != int.from_bytes(file[end : end + 4], "little"):
        raise _MalformedError(f"checksum mismatch in a block. {DAMAGED}")
    if file[end - 1] == 1:
        raise _MalformedError("the blocks are compressed with Snappy. Save the checkpoint again with tf.train.Saver.")
    if file[end - 1] != 0:
        raise _MalformedError(f"a block has the unknown compression {file[end - 1]}. {DAMAGED}")
    return file[offset : end - 1]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise _MalformedError(f"a block is too short. {DAMAGED}")
    key, at = b"", 0
    while at < end:
        shared, at = _varint(block, at)
        other, at = _varint(block, at)
        length, at = _varint(block, at)
        if shared > len(key) or at + other + length > end:
            raise _MalformedError(f"an entry is longer than its block. {DAMAGED}")
        key = key[:shared] + block[at : at + other]
        at += other
        yield key, block[at : at + length]
        at += length


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, lowest first, the top bit set on all but the last, and where it ends."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise _MalformedError(f"a number has no end. {DAMAGED}")


# The messages


@dataclass
class _Field:
    number: int
    value: int | bytes

    @property
    def as_int(self) -> int:
        if not isinstance(self.value, int) or self.value >= 2**63:  # from 2**63 on it is a negative number
            raise _MalformedError(f"field {self.number} of a message is not a number >= 0. {DAMAGED}")
        return self.value

    @property
    def as_bytes(self) -> bytes:
        if not isinstance(self.value, bytes):
            raise _MalformedError(f"field {self.number} of a message is not a message. {DAMAGED}")
        return self.value


def _fields(message: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value: int | bytes
        if tag & 7 == 0:
            value, at = _varint(message, at)
        elif tag & 7 == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        elif tag & 7 in (1, 5):
            size = 8 if tag & 7 == 1 else 4
            value, at = int.from_bytes(message[at : at + size], "little"), at + size
        else:
            raise _MalformedError(f"a message has a field of unknown type. {DAMAGED}")
        if at > len(message):
            raise _MalformedError(f"a message ends in the middle of a field. {DAMAGED}")
        yield _Field(tag >> 3, value)


def _header(message: bytes) -> int:
    """Return the number of shards in a BundleHeaderProto."""
    shards = 0
    for field in _fields(message):
        if field.number == 1:
            shards = field.as_int
        elif field.number == 2 and field.as_int != 0:
            raise _MalformedError("written on a big-endian machine. Save the checkpoint again on a little-endian one.")
    if shards == 0:
        raise _MalformedError(f"the header names no data files. {DAMAGED}")
    return shards


def _entry(name: str, message: bytes, prefix: Path, shards: int) -> TensorEntry | str:
    """Return the tensor of a BundleEntryProto, or the reason why it cannot be read."""
    numbers = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}  # dtype, shard, offset, size, checksum; 0 if absent
    shape: tuple[int, ...] = ()
    for field in _fields(message):
        if field.number == 7:
            return "it is partitioned. Save the checkpoint without a partitioner"
        if field.number == 2:
            shape = _shape(field.as_bytes)
        elif field.number in numbers:
            numbers[field.number] = field.as_int
    dtype, shard, offset, size, checksum = numbers.values()
    if dtype not in DTYPES:
        return f"its dtype is {OTHER_DTYPES.get(dtype, f'number {dtype} of TensorFlow')}"
    if size != math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize:
        raise _MalformedError(f"{name!r} has {size} bytes, which does not fit its shape {shape}. {DAMAGED}")
    if shard >= shards:
        raise _MalformedError(f"{name!r} is in data file {shard} of only {shards}. {DAMAGED}")
    path = prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}")
    return TensorEntry(np.dtype(DTYPES[dtype]).newbyteorder("<"), shape, path, offset, size, checksum)


def _shape(message: bytes) -> tuple[int, ...]:
    """Return the sizes in a TensorShapeProto: its repeated field 2 is a dimension, whose field 1 is the size."""
    sizes = []
    for field in _fields(message):
        if field.number == 2:
            sizes.append(sum(part.as_int for part in _fields(field.as_bytes) if part.number == 1))
        elif field.number == 3 and field.as_int:
            raise _MalformedError(f"a tensor has no rank. {DAMAGED}")
    if len(sizes) > 32 or math.prod(max(size, 1) for size in sizes) >= 2**60:  # more than numpy can express
        raise _MalformedError(f"a tensor has the shape {sizes}. {DAMAGED}")
    return tuple(sizes)
