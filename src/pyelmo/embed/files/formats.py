"""The formats of embeddings files: how each is written and read.

L layers, T tokens, D vector. An array is (L, T, D), or (T, D) for one layer; if pooled, (L, D) or (D,).

    hdf5     The layout of `allennlp elmo`: dataset "0", "1", ... for each line, and dataset "sentence_to_index", shape
             (1,), a string of JSON {sentence: "index"}, where a repeated sentence keeps its last index. No tokens.
             With a kept column "id", the ids instead of "0", "1", ... ("/" becomes "_"), and "id_to_index" in order.
    npz      Entry "0", "1", ... for each sentence, and entry "sentences", the bytes (uint8) of a JSON list of
             {"sentence": ..., "tokens": [...]}: json.loads(bytes(numpy.load(path)["sentences"])). If pooled, instead of
             "0", "1", ... one matrix (N, D) of all N sentences for each layer ("vectors" for one layer), and "index",
             the number of each sentence.
    parquet  One row for each sentence: index, sentence, tokens, and a column for each layer ("vectors" for one layer)
             of lists of D floats. Lone surrogates, which UTF-8 cannot encode, are stored as U+FFFD.
    jsonl    One line for each sentence: {"index", "sentence", "tokens", "shape", "vectors"}.

All but hdf5 can hold other columns, such as the label of a sentence: columns of Parquet, fields of the JSON objects.
The pooled vector of a sentence without tokens is NaN, in jsonl null.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import h5py
import numpy as np

from pyelmo.arrays import read_npz_member
from pyelmo.errors import InputError
from pyelmo.hdf5 import Hdf5Writer
from pyelmo.parsing import parse_json
from pyelmo.text.fasta import ID
from pyelmo.text.parquet import pyarrow_parquet

ROW_GROUP_BYTES = 16 * 2**20  # a Parquet row group stays in memory until it is full
ROW_GROUP_ROWS = 10_000
LARGEST_ARRAY = 2**30  # bytes of one sentence in a file of any origin
_COLUMNS = ("index", "sentence", "tokens", "shape", "vectors")  # of every file; the layers follow
_EXTRA = b"pyelmo.extra"
_SENTENCES, _IDS = "sentence_to_index", "id_to_index"
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What all arrays of a file have in common."""

    columns: list[str]
    stacked: bool  # the first axis is L
    pooled: bool  # there is no axis T
    dim: int
    float16: bool = False
    extra: Sequence[tuple[str, str]] = ()  # more columns: their names, and their types in Parquet

    def __post_init__(self) -> None:
        for name, _ in self.extra:
            if name in (*_COLUMNS, *self.columns):
                raise InputError(f"the column {name!r} cannot be kept: the output has one of that name. Rename it.")
        if self.dim < 1 or not self.columns:
            raise InputError(f"embeddings need a layer and a dimension, got {len(self.columns)} and {self.dim}.")

    def fits(self, shape: tuple[int, ...]) -> bool:
        axes = self._axes()
        return len(shape) == len(axes) and all(axis in (size, "T") for axis, size in zip(axes, shape, strict=True))

    def __str__(self) -> str:
        axes = ", ".join(map(str, self._axes()))
        return f"({axes})" if len(self._axes()) > 1 else f"({axes},)"

    def _axes(self) -> list[int | str]:
        layers: list[int | str] = [len(self.columns)] if self.stacked else []
        tokens: list[int | str] = [] if self.pooled else ["T"]
        return [*layers, *tokens, self.dim]


@dataclass(frozen=True, eq=False)
class StoredSentence:
    """One sentence of an embeddings file. `sentence` and `tokens` are None if the file does not hold them."""

    index: int
    sentence: str | None
    tokens: list[str] | None
    vectors: np.ndarray
    extra: dict[str, Any] = field(default_factory=dict)


class Sink(Protocol):
    """Writes one format. After the last array either `finish` or `abandon` is called."""

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray, extra: Sequence[Any]) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


class Hdf5Sink:
    def __init__(self, part: Path, layout: Layout) -> None:
        names = [name for name, _ in layout.extra]
        if names not in ([], [ID]):
            others = ", ".join(name for name in names if name != ID)
            raise InputError(f"hdf5 has no place for the columns {others}. Write parquet, npz or jsonl.")
        self._hdf5 = Hdf5Writer(part)
        self._has_ids = names == [ID]
        self._indexes: dict[str, str] = {}
        self._ids: dict[str, int] = {}

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray, extra: Sequence[Any]) -> None:
        name = self._new_id(index, str(extra[0])) if self._has_ids else str(index)
        self._hdf5.write(name, array)
        self._indexes[sentence] = name

    def _new_id(self, index: int, given: str) -> str:
        name = given.replace("/", "_")  # HDF5 would make a group of it
        if name in self._ids or name in ("", ".", _SENTENCES, _IDS):
            raise InputError(f"sentence {index}: the id {given!r} occurs twice or cannot be the name of an array.")
        self._ids[name] = index
        return name

    def finish(self) -> None:
        self._hdf5.write_text(_SENTENCES, json.dumps(self._indexes))
        if self._has_ids:
            self._hdf5.write_text(_IDS, json.dumps(self._ids))
        self._hdf5.finish()

    def abandon(self) -> None:
        self._hdf5.abandon()


def _read_hdf5(path: Path) -> Iterator[StoredSentence]:
    with h5py.File(path, "r") as file:
        texts, ids = (parse_json(file[name][0] if name in file else "{}", path) for name in (_SENTENCES, _IDS))
        sentences = {name: sentence for sentence, name in texts.items()}
        for name, index in ids.items():
            yield StoredSentence(index, sentences.get(name), None, _read_dataset(file, name), {ID: name})
        if ids:
            return
        index = 0 if "0" in file else min((int(name) for name in file if name.isdecimal()), default=0)
        while str(index) in file:
            yield StoredSentence(index, sentences.get(str(index)), None, _read_dataset(file, str(index)))
            index += 1


def _read_dataset(file: h5py.File, name: str) -> np.ndarray:
    """Return an array of floats, after looking at its size: a small file may claim to hold terabytes."""
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or not dataset.shape or dataset.dtype.kind != "f" or dataset.is_virtual:
        raise ValueError(f"{name!r} is not an array of floats")
    if dataset.external or dataset.nbytes > LARGEST_ARRAY:
        raise ValueError(f"{name!r} has {dataset.nbytes:,} bytes or is stored in another file")
    array: np.ndarray = dataset[()]
    return array


class NpzSink:
    def __init__(self, part: Path, layout: Layout) -> None:
        self._zip = zipfile.ZipFile(part, "w")
        self._layout = layout
        self._texts = tempfile.TemporaryFile(dir=part.parent)  # noqa: SIM115 -- lives as long as the sink
        columns = layout.columns if layout.pooled else []
        self._matrices = [tempfile.TemporaryFile(dir=part.parent) for _ in columns]  # noqa: SIM115
        self._separator = b"["
        self._first, self._count = 0, 0

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray, extra: Sequence[Any]) -> None:
        if not self._count:
            self._first = index
        self._count += 1
        if self._layout.pooled:
            for matrix, row in zip(self._matrices, array if self._layout.stacked else [array], strict=True):
                matrix.write(row.tobytes())
        else:
            with self._entry(str(index)) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        names = [name for name, _ in self._layout.extra]
        fields = {"sentence": sentence, "tokens": tokens, **dict(zip(names, extra, strict=True))}
        self._texts.write(self._separator + json.dumps(fields, default=str).encode("ascii"))
        self._separator = b",\n"

    def finish(self) -> None:
        shape, dtype = (self._count, self._layout.dim), np.dtype(np.float16 if self._layout.float16 else np.float32)
        for name, matrix in zip(self._layout.columns, self._matrices, strict=False):
            self._copy(name, matrix, dtype, shape)
        if self._matrices:
            with self._entry("index") as entry:
                np.lib.format.write_array(entry, np.arange(self._first, self._first + self._count))
        self._texts.write(b"]" if self._separator != b"[" else b"[]")
        self._copy("sentences", self._texts, np.dtype(np.uint8), (self._texts.tell(),))
        self._zip.close()

    def abandon(self) -> None:
        with self._texts:
            self._zip.close()
        for matrix in self._matrices:
            matrix.close()

    def _copy(self, name: str, data: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Write an entry from a temporary file, as its length is known only at the end."""
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        data.seek(0)
        with self._entry(name) as entry, data:
            np.lib.format.write_array_header_1_0(entry, header)
            shutil.copyfileobj(data, entry)

    def _entry(self, name: str) -> IO[bytes]:
        # The default ZipInfo has a fixed date, so the same embeddings give the same bytes.
        return self._zip.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


def _read_npz(path: Path) -> Iterator[StoredSentence]:
    # Without numpy.load, which searches a list for each name: its time grows with the square of the sentences.
    with zipfile.ZipFile(path) as file:
        names = [name.removesuffix(".npy") for name in file.namelist()]
        texts = parse_json(bytes(read_npz_member(file, "sentences")), path)
        if "index" in names:  # pooled: the matrices come first
            columns = names[: names.index("index")]
            matrices = [read_npz_member(file, name) for name in columns]
            pooled = matrices[0] if columns == ["vectors"] else np.stack(matrices, 1)
            indexes = read_npz_member(file, "index").tolist()
            rows: Iterable[Any] = zip(indexes, texts, pooled, strict=True)
        else:
            first = int(names[0]) if names[0].isdecimal() else 0  # the number of the first sentence
            rows = ((index, text, read_npz_member(file, str(index))) for index, text in enumerate(texts, first))
        for index, text, vectors in rows:
            yield StoredSentence(index, text.pop("sentence"), text.pop("tokens"), vectors, text)


class ParquetSink:
    def __init__(self, part: Path, layout: Layout) -> None:
        import pyarrow as pa

        vector = pa.list_(pa.float16() if layout.float16 else pa.float32(), layout.dim)
        column = vector if layout.pooled else pa.list_(vector)
        texts = [("index", pa.int64()), ("sentence", pa.string()), ("tokens", pa.list_(pa.string()))]
        self._pa = pa
        extra = [(name, pa.type_for_alias(kind)) for name, kind in layout.extra]
        # The names of the extra columns are in the metadata; all other columns are layers.
        names = {_EXTRA: json.dumps([name for name, _ in layout.extra])} if layout.extra else None
        self._schema = pa.schema(texts + extra + [(name, column) for name in layout.columns], metadata=names)
        self._layout = layout
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._file = open(part, "wb")  # noqa: SIM115 -- lives as long as the sink
        self._writer = pyarrow_parquet().ParquetWriter(
            self._file, self._schema, use_dictionary=False, write_statistics=["index"]
        )

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray, extra: Sequence[Any]) -> None:
        # A copy, because the caller's array may be a view that keeps a whole batch in memory.
        values = [_typed(value, kind) for value, (_, kind) in zip(extra, self._layout.extra, strict=True)]
        self._rows.append((index, _storable(sentence), [_storable(token) for token in tokens], *values, array.copy()))
        self._bytes += array.nbytes
        if self._bytes >= ROW_GROUP_BYTES or len(self._rows) >= ROW_GROUP_ROWS:
            self._flush()

    def finish(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        self._writer.is_open = False  # otherwise it writes its footer when it is garbage-collected
        self._file.close()

    def _flush(self) -> None:
        *columns, arrays = zip(*self._rows, strict=True)
        types = self._schema.types[: len(columns)]
        texts = [self._pa.array(values, type) for values, type in zip(columns, types, strict=True)]
        layers = zip(*arrays, strict=True) if self._layout.stacked else [arrays]
        vectors = [self._vectors(layer) for layer in layers]
        self._writer.write_table(self._pa.Table.from_arrays(texts + vectors, schema=self._schema))
        self._rows, self._bytes = [], 0

    def _vectors(self, arrays: Sequence[np.ndarray]) -> Any:
        flat = np.concatenate([array.reshape(-1) for array in arrays])
        vectors = self._pa.FixedSizeListArray.from_arrays(self._pa.array(flat), self._layout.dim)
        if self._layout.pooled:
            return vectors
        starts = np.cumsum([0] + [len(array) for array in arrays], dtype=np.int32)
        return self._pa.ListArray.from_arrays(self._pa.array(starts), vectors)


def _read_parquet(path: Path) -> Iterator[StoredSentence]:
    with pyarrow_parquet().ParquetFile(path) as file:
        extra = parse_json((file.schema_arrow.metadata or {}).get(_EXTRA, b"[]"), path)
        for batch in file.iter_batches(batch_size=64):
            texts = [batch.column(name).to_pylist() for name in ("index", "sentence", "tokens", *extra)]
            names = batch.schema.names[3 + len(extra) :]
            for row, (index, sentence, tokens, *values) in enumerate(zip(*texts, strict=True)):
                layers = [_numpy(batch.column(name)[row].values) for name in names]
                vectors = layers[0] if names == ["vectors"] else np.stack(layers)
                yield StoredSentence(index, sentence, tokens, vectors, dict(zip(extra, values, strict=True)))


def _numpy(values: Any) -> np.ndarray:
    """Return floats as (D,), and lists of D floats as (T, D)."""
    if hasattr(values.type, "list_size"):
        flat: np.ndarray = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(values), values.type.list_size)
    array: np.ndarray = values.to_numpy(zero_copy_only=False)
    return array


def _typed(value: Any, kind: str) -> Any:
    """Return the value of an extra column as its type can store it; in a column of text, other values become JSON."""
    if kind != "string" or value is None:
        return value
    return _storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _storable(text: str) -> str:
    return LONE_SURROGATE.sub("\ufffd", text)


def parquet_takes_float16() -> bool:
    import pyarrow

    return int(pyarrow.__version__.partition(".")[0]) >= 15


class JsonlSink:
    def __init__(self, part: Path | IO[str], layout: Layout) -> None:
        self._owned = isinstance(part, Path)
        self._layout = layout
        self._stream = open(part, "w", encoding="ascii", newline="\n") if isinstance(part, Path) else part  # noqa: SIM115

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray, extra: Sequence[Any]) -> None:
        blank = self._layout.pooled and not tokens and np.isnan(array).all()
        if not blank and not np.isfinite(array).all():
            raise InputError(f"sentence {index}: a vector has NaN or infinity, which JSON cannot represent. Use hdf5.")
        names = [name for name, _ in self._layout.extra]
        fields = {"index": index, "sentence": sentence, "tokens": tokens, **dict(zip(names, extra, strict=True))}
        text = json.dumps({**fields, "shape": array.shape}, default=str)[:-1]
        self._stream.write(f'{text}, "vectors": {"null" if blank else _json_numbers(array)}}}\n')

    def finish(self) -> None:
        self._stream.flush()
        if self._owned:
            self._stream.close()

    def abandon(self) -> None:
        if self._owned:
            self._stream.close()


def _read_jsonl(path: Path) -> Iterator[StoredSentence]:
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = parse_json(line, path)
            numbers, shape = row.pop("vectors"), row.pop("shape")
            vectors = np.full(shape, np.nan) if numbers is None else np.array(numbers).reshape(shape)
            index, sentence, tokens = (row.pop(name) for name in ("index", "sentence", "tokens"))
            yield StoredSentence(index, sentence, tokens, vectors.astype(np.float32), row)


def _json_numbers(array: np.ndarray) -> str:
    """Return nested lists with as few digits as restore the same numbers: 40 % shorter than json.dumps, and faster."""
    if array.ndim > 1:
        return f"[{','.join(map(_json_numbers, array))}]"
    number = "%#.9g" if array.dtype == np.float32 else "%#.5g"  # the # keeps the decimal point, so that all are floats
    return f"[{','.join([number] * len(array)) % tuple(array.tolist())}]"


SINKS: dict[str, Callable[[Path, Layout], Sink]] = {
    "hdf5": Hdf5Sink,
    "npz": NpzSink,
    "parquet": ParquetSink,
    "jsonl": JsonlSink,
}

READERS: dict[str, Callable[[Path], Iterator[StoredSentence]]] = {
    "hdf5": _read_hdf5,
    "npz": _read_npz,
    "parquet": _read_parquet,
    "jsonl": _read_jsonl,
}
