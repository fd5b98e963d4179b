"""The formats of embeddings files: how each is written and read.

L layers, T tokens, D vector. An array is (L, T, D), or (T, D) for one layer; if pooled, (L, D) or (D,).

    hdf5     The layout of `allennlp elmo`: dataset "0", "1", ... for each line, and dataset "sentence_to_index", shape
             (1,), a string of JSON {sentence: "index"}, where a repeated sentence keeps its last index. No tokens.
    npz      Entry "0", "1", ... for each sentence, and entry "sentences", the bytes (uint8) of a JSON list of
             {"sentence": ..., "tokens": [...]}: json.loads(bytes(numpy.load(path)["sentences"])).
    parquet  One row for each sentence: index, sentence, tokens, and a column for each layer ("vectors" for one layer)
             of lists of D floats. Lone surrogates, which UTF-8 cannot encode, are stored as U+FFFD.
    jsonl    One line for each sentence: {"index", "sentence", "tokens", "shape", "vectors"}.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import h5py
import numpy as np

from pyelmo.arrays import read_npz_member
from pyelmo.errors import InputError
from pyelmo.hdf5 import Hdf5Writer
from pyelmo.parsing import parse_json
from pyelmo.text.parquet import pyarrow_parquet

ROW_GROUP_BYTES = 16 * 2**20  # a Parquet row group stays in memory until it is full
ROW_GROUP_ROWS = 10_000
LARGEST_ARRAY = 2**30  # bytes of one sentence in a file of any origin
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What all arrays of a file have in common."""

    columns: list[str]
    stacked: bool  # the first axis is L
    pooled: bool  # there is no axis T
    dim: int
    float16: bool = False

    def __post_init__(self) -> None:
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


class Sink(Protocol):
    """Writes one format. After the last array either `finish` or `abandon` is called."""

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


class Hdf5Sink:
    def __init__(self, part: Path, layout: Layout) -> None:
        self._hdf5 = Hdf5Writer(part)
        self._indexes: dict[str, str] = {}

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray) -> None:
        self._hdf5.write(str(index), array)
        self._indexes[sentence] = str(index)

    def finish(self) -> None:
        self._hdf5.write_text("sentence_to_index", json.dumps(self._indexes))
        self._hdf5.finish()

    def abandon(self) -> None:
        self._hdf5.abandon()


def _read_hdf5(path: Path) -> Iterator[StoredSentence]:
    with h5py.File(path, "r") as file:
        text = file["sentence_to_index"][0] if "sentence_to_index" in file else "{}"
        sentences = {int(index): sentence for sentence, index in parse_json(text, path).items()}
        index = 0 if "0" in file else min((int(name) for name in file if name.isdecimal()), default=0)
        while str(index) in file:
            yield StoredSentence(index, sentences.get(index), None, _read_dataset(file, str(index)))
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
        self._texts = tempfile.TemporaryFile(dir=part.parent)  # noqa: SIM115 -- lives as long as the sink
        self._separator = b"["

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray) -> None:
        with self._entry(str(index)) as entry:
            np.lib.format.write_array(entry, array, allow_pickle=False)
        self._texts.write(self._separator + json.dumps({"sentence": sentence, "tokens": tokens}).encode("ascii"))
        self._separator = b",\n"

    def finish(self) -> None:
        self._texts.write(b"]" if self._separator != b"[" else b"[]")
        header = {"descr": "|u1", "fortran_order": False, "shape": (self._texts.tell(),)}
        self._texts.seek(0)
        with self._entry("sentences") as entry:
            np.lib.format.write_array_header_1_0(entry, header)
            shutil.copyfileobj(self._texts, entry)
        self._texts.close()
        self._zip.close()

    def abandon(self) -> None:
        with self._texts:
            self._zip.close()

    def _entry(self, name: str) -> IO[bytes]:
        # The default ZipInfo has a fixed date, so the same embeddings give the same bytes.
        return self._zip.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


def _read_npz(path: Path) -> Iterator[StoredSentence]:
    # Without numpy.load, which searches a list for each name: its time grows with the square of the sentences.
    with zipfile.ZipFile(path) as file:
        first = file.namelist()[0].removesuffix(".npy")  # the first sentence's number, or "sentences" if there are none
        for index, text in enumerate(
            parse_json(bytes(read_npz_member(file, "sentences")), path), int(first) if first.isdecimal() else 0
        ):
            yield StoredSentence(index, text["sentence"], text["tokens"], read_npz_member(file, str(index)))


class ParquetSink:
    def __init__(self, part: Path, layout: Layout) -> None:
        import pyarrow as pa

        vector = pa.list_(pa.float16() if layout.float16 else pa.float32(), layout.dim)
        column = vector if layout.pooled else pa.list_(vector)
        texts = [("index", pa.int64()), ("sentence", pa.string()), ("tokens", pa.list_(pa.string()))]
        self._pa = pa
        self._schema = pa.schema(texts + [(name, column) for name in layout.columns])
        self._layout = layout
        self._rows: list[tuple[int, str, list[str], np.ndarray]] = []
        self._bytes = 0
        self._file = open(part, "wb")  # noqa: SIM115 -- lives as long as the sink
        self._writer = pyarrow_parquet().ParquetWriter(
            self._file, self._schema, use_dictionary=False, write_statistics=["index"]
        )

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray) -> None:
        # A copy, because the caller's array may be a view that keeps a whole batch in memory.
        self._rows.append((index, _storable(sentence), [_storable(token) for token in tokens], array.copy()))
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
        indexes, sentences, tokens, arrays = zip(*self._rows, strict=True)
        types = self._schema.types[:3]
        texts = [self._pa.array(values, type) for values, type in zip((indexes, sentences, tokens), types, strict=True)]
        layers = zip(*arrays, strict=True) if self._layout.stacked else [arrays]
        columns = texts + [self._vectors(layer) for layer in layers]
        self._writer.write_table(self._pa.Table.from_arrays(columns, schema=self._schema))
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
        for batch in file.iter_batches(batch_size=64):
            texts = [batch.column(name).to_pylist() for name in ("index", "sentence", "tokens")]
            names = batch.schema.names[3:]
            for row, (index, sentence, tokens) in enumerate(zip(*texts, strict=True)):
                layers = [_numpy(batch.column(name)[row].values) for name in names]
                vectors = layers[0] if names == ["vectors"] else np.stack(layers)
                yield StoredSentence(index, sentence, tokens, vectors)


def _numpy(values: Any) -> np.ndarray:
    """Return floats as (D,), and lists of D floats as (T, D)."""
    if hasattr(values.type, "list_size"):
        flat: np.ndarray = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(values), values.type.list_size)
    array: np.ndarray = values.to_numpy(zero_copy_only=False)
    return array


def _storable(text: str) -> str:
    return LONE_SURROGATE.sub("\ufffd", text)


def parquet_takes_float16() -> bool:
    import pyarrow

    return int(pyarrow.__version__.partition(".")[0]) >= 15


class JsonlSink:
    def __init__(self, part: Path | IO[str], layout: Layout) -> None:
        self._owned = isinstance(part, Path)
        self._stream = open(part, "w", encoding="ascii", newline="\n") if isinstance(part, Path) else part  # noqa: SIM115

    def write(self, index: int, sentence: str, tokens: list[str], array: np.ndarray) -> None:
        if not np.isfinite(array).all():
            raise InputError(f"sentence {index}: a vector has NaN or infinity, which JSON cannot represent. Use hdf5.")
        fields = {"index": index, "sentence": sentence, "tokens": tokens, "shape": array.shape}
        self._stream.write(f'{json.dumps(fields)[:-1]}, "vectors": {_json_numbers(array)}}}\n')

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
            vectors = np.array(row["vectors"], dtype=np.float32).reshape(row["shape"])
            yield StoredSentence(row["index"], row["sentence"], row["tokens"], vectors)


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
