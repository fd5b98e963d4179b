"""Unit vectors in files -> the nearest of them: every one compared (exact), or those of the nearest lists (ivf).

    exact   vectors.f32   all vectors as float32; a query is compared with each
    ivf     index.faiss   float16, in lists around centres; a query is compared with those of the nearest centres
            owners.i4     the list of each vector

Both are written in constant memory, whatever their size: what is added lies in vectors.f32 until all of it is known.
Files are mapped, not read, and faiss compares.

N vectors, D vector, K neighbours.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, missing_extra

RowNumbers = npt.NDArray[np.int64]

VECTORS, INDEX, OWNERS = "vectors.f32", "index.faiss", "owners.i4"
EXACT_AT_MOST = 100_000  # vectors; more go into lists unless the caller wants them exact
CENTRES = 1024  # at most; benchmarks/speed/neighbours.py measures these three
LIST_ROWS = 256  # vectors of a list at least, on average
PROBES = 64  # lists that a query is compared with
SAMPLE = 64  # vectors for each centre, from which the centres are found
BLOCK = 1 << 15  # vectors in memory at a time


def import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("neighbours", "an index of neighbours") from error
    return faiss


class VectorWriter:
    """Takes unit vectors in order; `finish` makes them searchable and says what they became."""

    def __init__(self, folder: Path, dim: int) -> None:
        import_faiss()  # an error now, not at the end
        self.count = 0
        self._folder, self._dim = folder, dim
        self._file = open(folder / VECTORS, "wb", buffering=1 << 20)  # noqa: SIM115

    def add(self, vectors: Float32Array) -> None:  # (N, D)
        self._file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
        self.count += len(vectors)

    def close(self) -> None:
        self._file.close()

    def finish(self, *, exact: bool = False) -> str:
        self.close()
        if exact or self.count <= EXACT_AT_MOST:
            return "exact"
        _write_lists(self._folder, self.count, self._dim)
        (self._folder / VECTORS).unlink()
        return "ivf"


def _write_lists(folder: Path, count: int, dim: int) -> None:
    """Find the centres, give each vector to the nearest, and write the lists: two passes over all vectors."""
    faiss = import_faiss()
    centres = max(1, min(CENTRES, count // LIST_ROWS))
    index = faiss.index_factory(dim, f"IVF{centres},SQfp16", faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False  # so that a code is the vector itself in float16
    chosen = np.linspace(0, count - 1, min(count, SAMPLE * centres)).astype(np.int64)  # from all over the text
    index.train(_sample(folder, dim, chosen))
    owners: npt.NDArray[np.int32] = np.memmap(folder / OWNERS, dtype="<i4", mode="w+", shape=count)
    sizes = np.zeros(centres, dtype=np.int64)
    for start, block in _blocks(folder, dim):
        own = index.quantizer.search(block, 1)[1][:, 0]
        owners[start : start + len(block)] = own
        sizes += np.bincount(own, minlength=centres)
    index.ntotal = count
    with open(folder / INDEX, "wb") as file:
        file.write(_head(faiss.serialize_index(index).tobytes(), sizes, 2 * dim))
        # A list is its codes, then its rows.
        codes = file.tell() + np.cumsum(sizes * (2 * dim + 8)) - sizes * (2 * dim + 8)
        rows = codes + sizes * 2 * dim
        for start, block in _blocks(folder, dim):
            own = owners[start : start + len(block)]
            order = np.argsort(own, kind="stable")
            for places in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
                number = own[places[0]]
                for ends, values in ((codes, block[places].astype("<f2")), (rows, (places + start).astype("<i8"))):
                    file.seek(ends[number])
                    file.write(values.tobytes())
                    ends[number] += values.nbytes
    del owners


def _head(empty: bytes, sizes: npt.NDArray[np.int64], code: int) -> bytes:
    """faiss's file of an index up to its first list, from that of the index without any.

    faiss itself writes lists only from memory, or maps all of them while it writes.
    """
    before = empty[: empty.rindex(b"ilar")]
    return (
        before + b"ilar" + struct.pack("<QQ4sQ", len(sizes), code, b"full", len(sizes)) + sizes.astype("<u8").tobytes()
    )


def _sample(folder: Path, dim: int, rows: RowNumbers) -> Float32Array:
    """Some vectors, read one by one: of a map their neighbours would come into memory too."""
    found = np.empty((len(rows), dim), dtype="<f4")
    with open(folder / VECTORS, "rb", buffering=0) as file:
        for row, vector in zip(rows.tolist(), found, strict=True):
            file.seek(row * vector.nbytes)
            file.readinto(vector.data)
    return found


def _blocks(folder: Path, dim: int) -> Iterator[tuple[int, Float32Array]]:
    """All vectors, some at a time, each with the row of its first."""
    with open(folder / VECTORS, "rb") as file:
        start = 0
        while len(values := np.fromfile(file, "<f4", BLOCK * dim)):
            yield start, values.reshape(-1, dim)
            start += len(values) // dim


def _mapped(folder: Path, count: int, dim: int) -> Float32Array:
    return np.memmap(folder / VECTORS, dtype="<f4", mode="r", shape=(count, dim))


class ExactSearch:
    """Compares a query with every vector."""

    def __init__(self, folder: Path, count: int, dim: int) -> None:
        self._faiss = import_faiss()
        self._vectors = _mapped(folder, count, dim)

    def nearest(
        self, query: Float32Array, count: int, rows: RowNumbers | None = None
    ) -> tuple[Float32Array, RowNumbers]:
        """Cosines (K,) and rows (K,) of the vectors nearest to a query (D,), of all of them or of some rows."""
        cosines, found = [], []
        for start in range(0, len(self._vectors) if rows is None else len(rows), BLOCK):
            block = slice(start, start + BLOCK) if rows is None else rows[start : start + BLOCK]
            vectors = self._vectors[block]
            metric = self._faiss.METRIC_INNER_PRODUCT
            near, places = self._faiss.knn(query[None], vectors, min(count, len(vectors)), metric=metric)
            cosines.append(near[0])
            found.append(places[0] + start if isinstance(block, slice) else block[places[0]])
        return _in_order(np.concatenate(cosines), np.concatenate(found), count)


class ListSearch:
    """Compares a query with the vectors of the lists whose centres are nearest to it."""

    def __init__(self, folder: Path, count: int, dim: int) -> None:
        self._faiss = import_faiss()
        try:
            self._index = self._faiss.read_index(str(folder / INDEX), self._faiss.IO_FLAG_MMAP)
        except RuntimeError as error:  # faiss has one error for everything
            raise FormatError(f"{folder / INDEX}: cannot be read by faiss. Build the index again.") from error
        if (self._index.ntotal, self._index.d) != (count, dim):
            raise FormatError(
                f"{folder / INDEX}: holds {self._index.ntotal} vectors of {self._index.d}, not {count} of {dim}"
            )
        self._owners: npt.NDArray[np.int32] = np.memmap(folder / OWNERS, dtype="<i4", mode="r", shape=count)

    def nearest(
        self, query: Float32Array, count: int, rows: RowNumbers | None = None
    ) -> tuple[Float32Array, RowNumbers]:
        """Cosines (K,) and rows (K,) of the vectors nearest to a query (D,), of all of them or of some rows."""
        faiss, settings = self._faiss, {"nprobe": PROBES}
        if rows is not None:
            # Only lists that hold one of the rows; so many of them that they hold enough.
            lists = np.unique(self._owners[rows]).astype(np.int64)
            wanted = np.zeros(self._index.ntotal, dtype=bool)
            wanted[rows] = True
            settings = {
                "nprobe": min(len(lists), max(PROBES, count)),
                "sel": faiss.IDSelectorBitmap(np.packbits(wanted, bitorder="little")),
                "quantizer_params": faiss.SearchParameters(sel=faiss.IDSelectorBatch(lists)),
            }
        cosines, found = self._index.search(query[None], count, params=faiss.SearchParametersIVF(**settings))
        kept = found[0] >= 0  # -1 where there are fewer
        return _in_order(cosines[0][kept], found[0][kept], count)


SEARCHES: dict[str, type[ExactSearch] | type[ListSearch]] = {"exact": ExactSearch, "ivf": ListSearch}


def _in_order(cosines: Float32Array, rows: RowNumbers, count: int) -> tuple[Float32Array, RowNumbers]:
    """The nearest first; of equally near ones that of the earlier row."""
    order = np.lexsort((rows, -cosines))[:count]
    return cosines[order], rows[order]
