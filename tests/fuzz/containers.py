"""Mutations inside containers, with their lengths and checksums made right again: safetensors, HDF5, zip, npy, pickle,
TensorFlow tables, Parquet and compressed text.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import pickletools
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutations import BYTES, NUMBERS, VALUES, mutate_json, mutate_lines

DTYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1}
SHAPES = ("()", "(0,)", "(1,)", "(-1,)", f"({2**40},)", f"({2**63},)", f"({2**31}, {2**31})", "(3, 0)", "'x'", "(1.5,)")
DESCRIPTIONS = (
    "'<f4'",
    "'<f8'",
    "'<i8'",
    "'|O'",
    "'<U1000000'",
    "'|V8'",
    "'<c16'",
    "[('a', '<i4')]",
    "'>f4'",
    "3",
    "'<f2'",
)
CANARY = "touch fuzz-canary"  # the command that no reader may run; the worker's audit hook sees it anyway


def mutation_of(path: Path, data: bytes) -> Callable[[Path, Random], str] | None:
    """Return the mutation for a container, or None for another file."""
    if path.suffix == ".safetensors":
        return _safetensors
    if path.suffix == ".npy":
        return _npy_file
    if path.name.endswith(".index") and data[-8:] == b"\x57\xfb\x80\x8b\x24\x75\x47\xdb":
        return _table
    if path.suffix == ".gz":
        return _gzip
    for magic, mutation in {
        b"\x89HDF": _hdf5, b"PK\x03\x04": _zip, b"PAR1": _parquet, b"\x80\x02": _pickle_file, b"\x80\x03": _pickle_file,
        b"\x80\x04": _pickle_file, b"\x80\x05": _pickle_file,
    }.items():  # fmt: skip
        if data.startswith(magic):
            return mutation
    return None


# --- safetensors -----------------------------------------------------------------------------------------------------


def _safetensors(path: Path, random: Random) -> str:
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + size].decode("utf-8"), data[8 + size :]
    roll = random.random()
    if roll < 0.4:
        header = mutate_json(header, random)
        kind = "header"
    elif roll < 0.8:
        header, body = _other_tensors(json.loads(header), body, random)
        kind = "tensors"
    else:
        body = BYTES[random.choice(["overwrite", "flip"])](body, random)[: len(body)]
        kind = "values"
    encoded = header.encode("utf-8", "surrogatepass")
    encoded += b" " * (-len(encoded) % 8) if random.random() < 0.8 else b""  # also misaligned data
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + body)
    return f"safetensors {kind}"


def _other_tensors(header: dict[str, Any], body: bytes, random: Random) -> tuple[str, bytes]:
    """Rename, remove, reshape or reinterpret one tensor so that the file stays valid."""
    metadata = header.pop("__metadata__", None)
    if metadata and random.random() < 0.5:
        return json.dumps(
            {"__metadata__": json.loads(mutate_json(json.dumps(metadata), random, VALUES[20:25])), **header}
        ), body
    tensors = {
        name: [facts["dtype"], facts["shape"], body[slice(*facts["data_offsets"])]] for name, facts in header.items()
    }
    name = random.choice(list(tensors))
    dtype, shape, values = tensors[name]
    roll = random.random()
    if roll < 0.2:
        tensors[random.choice(["x", "", name + ".scale", name * 2])] = tensors.pop(name)
    elif roll < 0.35:
        del tensors[name]
    elif roll < 0.6:
        count = len(values) // DTYPES.get(dtype, 1)
        tensors[name][1] = random.choice([[count], [1, *shape], [*shape, 1], shape[::-1], [count, 1, 1]])
    elif roll < 0.85:
        new = random.choice(list(DTYPES))
        tensors[name] = [
            new,
            [len(values) // DTYPES[new]] if random.random() < 0.3 else _fitting(shape, dtype, new),
            values,
        ]
    else:
        tensors[name] = [dtype, [0], b""]
    return _packed(tensors, metadata)


def _fitting(shape: list[int], old: str, new: str) -> list[int]:
    """Return the shape that the same bytes have as another type, if the last axis allows it."""
    last = (shape[-1] if shape else 1) * DTYPES.get(old, 1) // DTYPES[new]
    return [*shape[:-1], last]


def _packed(tensors: dict[str, list[Any]], metadata: Any) -> tuple[str, bytes]:
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    body = b""
    for name, (dtype, shape, values) in tensors.items():
        size = DTYPES.get(dtype, 1)
        for axis in shape:
            size *= axis
        values = values[:size].ljust(size, b"\x00")
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + size]}
        body += values
    return json.dumps(header), body


# --- HDF5 ------------------------------------------------------------------------------------------------------------


def _hdf5(path: Path, random: Random) -> str:
    import h5py
    import numpy as np

    names: list[str] = []
    with h5py.File(path, "r+") as file:
        file.visit(names.append)
        name = random.choice(names)
        old = file[name]
        shape = getattr(old, "shape", None) or (1,)
        del file[name]
        kind = random.choice(
            ["gone", "shape", "type", "text", "huge", "null", "group", "soft", "external", "storage", "nan", "compound"]
        )
        if kind == "shape":
            file.create_dataset(
                name, data=np.zeros(random.choice([shape[::-1], shape[1:], (*shape, 1), (0,), (1, *shape)]), "<f4")
            )
        elif kind == "type":
            file.create_dataset(name, data=np.zeros(shape, random.choice(["<f8", "<f2", "<i8", "<c8", "|u1", "|b1"])))
        elif kind == "text":
            file.create_dataset(
                name,
                data=random.choice(["text", b"\xff\xfe", "[" * 200_000, "9" * 5000, '{"a": "x"}']),
                shape=random.choice([(), (1,)]),
            )
        elif kind == "huge":
            size = random.choice([(2**34,), (2**20, 2**20), (2**31, 4)])
            file.create_dataset(name, size, "<f4", chunks=(1,) * (len(size) - 1) + (1024,), compression="gzip")
        elif kind == "null":
            file.create_dataset(name, data=h5py.Empty("f"))
        elif kind == "group":
            file.create_group(name)["x"] = 1
        elif kind == "soft":
            file[name] = h5py.SoftLink(random.choice(["/nowhere", f"/{name}", "/"]))
        elif kind == "external":
            file[name] = h5py.ExternalLink(random.choice(["nothing.hdf5", str(path), "/etc/passwd"]), "/")
        elif kind == "storage":
            file.create_dataset(name, shape, "|u1", external=[("/etc/passwd", 0, 100)])
        elif kind == "nan":
            file.create_dataset(name, data=np.full(shape, random.choice([np.nan, np.inf, 1e30]), "<f4"))
        elif kind == "compound":
            file.create_dataset(name, shape, np.dtype([("a", "<f4"), ("b", "<i4")]))
    return f"HDF5 {kind}"


# --- zip, npy, pickle ------------------------------------------------------------------------------------------------


def _zip(path: Path, random: Random) -> str:
    with zipfile.ZipFile(path) as file:
        members = [(info.filename, file.read(info)) for info in file.infolist()]
    number = random.randrange(len(members))
    name, data = members[number]
    roll = random.random()
    if roll < 0.7:
        kind, data = _member(name, data, random)
        members[number] = (name, data)
    elif roll < 0.8:
        del members[number]
        kind = "without a member"
    elif roll < 0.9:
        members[number] = (random.choice(["x", "../x", "/x", name.upper(), "9" * 5000, "²"]), data)
        kind = "renamed member"
    else:
        members.append(members[number])
        kind = "repeated member"
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")
        for name, data in members:
            file.writestr(name, data, random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    return f"zip {kind}"


def _member(name: str, data: bytes, random: Random) -> tuple[str, bytes]:
    if data.startswith(b"\x93NUMPY"):
        return "npy", _npy(data, random)
    if name.endswith(".pkl"):
        return "pickle", _pickle(data, random)
    change = random.choice(list(BYTES))
    return change, BYTES[change](data, random)


def _npy(data: bytes, random: Random) -> bytes:
    """Give an array another type or shape, or change its bytes; text inside (JSON) is changed as text."""
    import numpy as np

    size = struct.unpack("<H", data[8:10])[0]
    header, body = data[10 : 10 + size].decode("latin-1"), data[10 + size :]
    facts = eval(header, {"__builtins__": {}})  # of this repository's own sample
    roll = random.random()
    if body[:1] in (b"[", b"{") and roll < 0.6:
        body = mutate_json(body.decode("utf-8"), random).encode("utf-8", "surrogatepass")
        facts["shape"] = (len(body),)
    elif roll < 0.8:
        count = int(np.prod(facts["shape"])) if facts["shape"] else 1
        shape = random.choice([*SHAPES, f"({count},)", f"({count}, 1)", repr(facts["shape"])])
        description = random.choice([repr(facts["descr"]), repr(facts["descr"]), *DESCRIPTIONS])
        order = random.choice(["False", "False", "True", "0"])
        header = f"{{'descr': {description}, 'fortran_order': {order}, 'shape': {shape}, }}"
        return _with_header(header, body)
    else:
        body = BYTES[random.choice(list(BYTES))](body, random)
    return _with_header(f"{{'descr': {facts['descr']!r}, 'fortran_order': False, 'shape': {facts['shape']!r}, }}", body)


def _with_header(header: str, body: bytes) -> bytes:
    encoded = header.encode("latin-1", "replace") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(encoded) % 65536) + encoded + body


def _npy_file(path: Path, random: Random) -> str:
    path.write_bytes(_npy(path.read_bytes(), random))
    return "npy"


def _pickle(data: bytes, random: Random) -> bytes:
    """Insert or replace instructions: a call of os.system, another name, another number."""
    call = random.choice([
        f"cos\nsystem\n(V{CANARY}\ntR0".encode(), f"cposix\nsystem\n(V{CANARY}\ntR0".encode(),
        b"cnumpy\ndtype\n(V<f8\nK\x00K\x01tR0", b"ccollections\nOrderedDict\n)R0", b"cbuiltins\neval\n(V1\ntR0",
        b"cnumpy\ndtype\n(VV8\nK\x00K\x01tR(K\x03V|\nN(K\x01tN}K\x08K\x01K\x1btb0", b"N0", b"]0", b"}0",
    ])  # fmt: skip
    if random.random() < 0.1:
        return b"\x80\x02" + call[:-1] + b"."
    places = [
        (operation.name, argument, position) for operation, argument, position in pickletools.genops(data)
        if position is not None
    ]  # fmt: skip
    starts = [position for _, _, position in places] + [len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(starts)]
    kept = [number for number, (name, _, _) in enumerate(places) if name != "FRAME"]
    number = random.choice(kept)
    roll = random.random()
    if roll < 0.4:
        pieces[number] = call + pieces[number]
    elif roll < 0.6:
        pieces[number] = b""
    elif roll < 0.75:
        other = random.choice(kept)
        pieces[number], pieces[other] = pieces[other], pieces[number]
    else:
        numbers = [place for place in kept if places[place][0] in ("BININT", "BININT1", "BININT2", "LONG1")]
        if numbers:
            value = random.choice([*NUMBERS, 10**4000])
            packed = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
            pieces[random.choice(numbers)] = b"\x8b" + struct.pack("<i", len(packed)) + packed
    return b"".join(piece for place, piece in enumerate(pieces) if places[place][0] != "FRAME")


def _pickle_file(path: Path, random: Random) -> str:
    path.write_bytes(_pickle(path.read_bytes(), random))
    return "pickle"


# --- the others ------------------------------------------------------------------------------------------------------


def _gzip(path: Path, random: Random) -> str:
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    changed = mutate_lines(text, random)
    if text.startswith("{") and random.random() < 0.7:
        lines = text.splitlines()
        lines[0] = mutate_json(lines[0], random)
        changed = "\n".join(lines)
    path.write_bytes(gzip.compress(changed.encode("utf-8", "surrogatepass"), 1))
    return "compressed text"


def _parquet(path: Path, random: Random) -> str:
    """Write the table again with one column of another type, with nulls, renamed or removed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    number = random.randrange(table.num_columns)
    name, rows = table.column_names[number], table.num_rows
    columns = {
        "numbers": pa.array(range(rows), pa.int64()),
        "nulls": pa.nulls(rows),
        "bytes": pa.array([b"\xff\xfe"] * rows, pa.binary()),
        "lists": pa.array([["a", None]] * rows),
        "nested": pa.array([[["a"], []]] * rows),
        "floats": pa.array([float("nan")] * rows),
        "long": pa.array(["x " * 10_000] * rows),
        "structs": pa.array([{"a": 1}] * rows),
        "decimals": pa.array([2**62] * rows, pa.uint64()),
    }
    kind = random.choice([*columns, "renamed", "removed", "empty"])
    if kind in columns:
        table = table.set_column(number, name, columns[kind])
    elif kind == "renamed":
        table = table.rename_columns(
            [other if other != name else random.choice(["x", "", "text"]) for other in table.column_names]
        )
    elif kind == "removed":
        table = table.drop_columns([name])
    else:
        table = table.slice(0, 0)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    path.write_bytes(buffer.getvalue())
    return f"Parquet {kind}"


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _blocks(data: bytes) -> list[tuple[int, int]]:
    """Return start and size of the blocks of a TensorFlow table: the data blocks, then meta index and index."""
    footer, handles, place = data[-48:], [], 0
    for _ in range(2):
        start, place = _varint(footer, place)
        size, place = _varint(footer, place)
        handles.append((start, size))
    start, size = handles[1]
    blocks, place = [], start
    restarts = struct.unpack("<I", data[start + size - 4 : start + size])[0]
    while place < start + size - 4 * (restarts + 1):
        _, place = _varint(data, place)
        fresh, place = _varint(data, place)
        length, place = _varint(data, place)
        value = data[place + fresh : place + fresh + length]
        block, after = _varint(value, 0)
        blocks.append((block, _varint(value, after)[0]))
        place += fresh + length
    return [*blocks, *handles]


def _table(path: Path, random: Random) -> str:
    """Change bytes of one block, and write the block's checksum again."""
    import numpy as np

    from pyelmo.formats.crc32c import crc32c, masked

    data = bytearray(path.read_bytes())
    start, size = random.choice(_blocks(bytes(data)))
    for _ in range(random.choice([1, 1, 2, 5])):
        place = start + random.randrange(max(size, 1))
        data[place] = random.choice([0, 1, 0x7F, 0x80, 0xFF, data[place] ^ 1 << random.randrange(8)])
    crc = masked(crc32c(np.frombuffer(bytes(data[start : start + size + 1]), np.uint8)))
    data[start + size + 1 : start + size + 5] = struct.pack("<I", crc)
    path.write_bytes(data)
    return "table"
