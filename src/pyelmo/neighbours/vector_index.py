"""Unit vectors in files, and the search for the nearest of them: exact, or in inverted lists (ivf).

    exact   vectors.f32          all vectors as float32; a query is compared with each of them
    ivf     index.faiss          the centroids of the inverted lists
            lists-00000.faiss    the inverted lists of the first PART vectors as float16; then of the next ones, ...
            owners.i4            the number of the list of each vector

Both kinds are written in constant memory: added vectors go to vectors.f32 first, and faiss writes the inverted lists in
parts. All files but the centroids are memory-mapped when they are searched. An index of an earlier version, with
centroids and lists in index.faiss, can be searched too.

N vectors, D vector, K neighbours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, missing_extra

RowNumbers = npt.NDArray[np.int64]
Float16Array = npt.NDArray[np.float16]

VECTORS, INDEX, LISTS, OWNERS = "vectors.f32", "index.faiss", "lists-{:05}.faiss", "owners.i4"
EXACT_AT_MOST = 100_000  # vectors; more vectors are stored in inverted lists unless the caller asks for exact search
CENTROIDS = 1024  # at most; benchmarks/speed/neighbours.py measures the effect of these three numbers
LIST_ROWS = 256  # minimal mean number of vectors in a list
PROBES = 64  # lists that a query is compared with
SAMPLE = 64  # training vectors for each centroid
BLOCK = 1 << 13  # vectors in memory at a time, when lists are written
SCAN = 1 << 15  # vectors that an exact search compares at a time
PART = 1 << 15  # vectors in one file of lists; they are in memory until it is written


def map_file(path: Path, dtype: np.dtype[Any] | str, count: int | None = None) -> npt.NDArray[Any]:
    """Map a file of records; its size must be that of `count` records, or of any whole number of them."""
    size, item = path.stat().st_size if path.is_file() else 0, np.dtype(dtype).itemsize
    if not size or size % item or (count is not None and size != count * item):
        expected = "records" if count is None else f"{count:,} records"
        raise FormatError(
            f"{path}: the index is damaged: {size:,} bytes, expected {expected} of {item} bytes. Copy it again, or "
            "build it again."
        )
    array: npt.NDArray[Any] = np.memmap(path, dtype=dtype, mode="r")
    return array


def import_faiss() -> Any:
    """Import faiss, or raise an error that names the extra to install."""
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("neighbours", "an index of neighbours") from error
    return faiss


class VectorWriter:
    """A writer of unit vectors. `finish` makes them searchable and returns the kind of the index."""

    def __init__(self, folder: Path, dim: int) -> None:
        import_faiss()  # a missing faiss must be an error now, not after the work
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
    """Train the centroids, then add each vector to the list of its nearest centroid."""
    faiss = import_faiss()
    from faiss.contrib.ivf_tools import add_preassigned

    centroids = max(1, min(CENTROIDS, count // LIST_ROWS))
    index = faiss.index_factory(dim, f"IVF{centroids},SQfp16", faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False  # a code is then the vector itself in float16
    chosen = np.linspace(0, count - 1, min(count, SAMPLE * centroids)).astype(np.int64)  # spread over the whole text
    index.train(_sample(folder, dim, chosen))
    with _faiss_writer(folder / INDEX) as writer:
        faiss.write_index(index, writer)
    parts = 0
    # Files are written by calls, not through a memory map: on a full disk, a map ends the process with a signal.
    with open(folder / OWNERS, "wb") as owners:
        for start, block in _blocks(folder, dim):
            rows = np.arange(start, start + len(block))
            own = index.quantizer.search(block, 1)[1][:, 0]
            owners.write(own.astype("<i4").tobytes())
            # numpy rounds a tie to even and faiss away from zero: rounded here, codes are those of earlier versions.
            rounded = block.astype(np.float16).astype(np.float32)
            add_preassigned(index, rounded, own, rows)
            if index.ntotal >= PART or start + len(block) == count:
                with _faiss_writer(folder / LISTS.format(parts)) as writer:
                    faiss.write_InvertedLists(index.invlists, writer)
                index.reset()
                parts += 1


@contextlib.contextmanager
def _faiss_writer(path: Path) -> Iterator[Any]:
    """Yield a writer for faiss. faiss's own one does not report that the end of a file could not be written."""
    with open(path, "wb") as file:
        yield import_faiss().PyCallbackIOWriter(file.write)


def _sample(folder: Path, dim: int, rows: RowNumbers) -> Float32Array:
    """Read some vectors one by one: a memory map would load their neighbours as well."""
    vectors = np.empty((len(rows), dim), dtype="<f4")
    with open(folder / VECTORS, "rb", buffering=0) as file:
        for row, vector in zip(rows.tolist(), vectors, strict=True):
            file.seek(row * vector.nbytes)
            file.readinto(vector.data)
    return vectors


def _blocks(folder: Path, dim: int) -> Iterator[tuple[int, Float32Array]]:
    """Return all vectors in blocks, each with the row of its first vector."""
    with open(folder / VECTORS, "rb") as file:
        start = 0
        while len(values := np.fromfile(file, "<f4", BLOCK * dim)):
            yield start, values.reshape(-1, dim)
            start += len(values) // dim


class ExactSearch:
    """A search that compares a query with every vector."""

    def __init__(self, folder: Path, count: int, dim: int) -> None:
        self._faiss = import_faiss()
        self._vectors: Float32Array = map_file(folder / VECTORS, "<f4", count * dim).reshape(count, dim)

    def nearest(
        self, query: Float32Array, count: int, rows: RowNumbers | None = None
    ) -> tuple[Float32Array, RowNumbers]:
        """Return the cosines (K,) and rows (K,) of the vectors nearest to a query (D,), of all or of some rows."""
        cosines, nearest_rows = [], []
        for start in range(0, len(self._vectors) if rows is None else len(rows), SCAN):
            block = slice(start, start + SCAN) if rows is None else rows[start : start + SCAN]
            vectors = self._vectors[block]
            metric = self._faiss.METRIC_INNER_PRODUCT
            near, positions = self._faiss.knn(query[None], vectors, min(count, len(vectors)), metric=metric)
            cosines.append(near[0])
            nearest_rows.append(positions[0] + start if isinstance(block, slice) else block[positions[0]])
        return _in_order(np.concatenate(cosines), np.concatenate(nearest_rows), count)

    def vectors(self, rows: RowNumbers) -> Float32Array:
        """Return the vectors (N, D) of some rows."""
        return np.array(self._vectors[rows])


class ListSearch:
    """A search that compares a query with the vectors of the lists whose centroids are nearest to it."""

    def __init__(self, folder: Path, count: int, dim: int) -> None:
        self._faiss = faiss = import_faiss()
        try:
            index = faiss.read_index(str(folder / INDEX), faiss.IO_FLAG_MMAP)
            names = sorted(folder.glob(LISTS.replace("{:05}", "*")))
            self._parts = [_with_lists(index, path) for path in names] or [index]
        except RuntimeError as error:  # the only error type of faiss
            raise FormatError(f"{folder}: faiss cannot read the inverted lists. Build the index again.") from error
        total = sum(part.ntotal for part in self._parts)
        if (total, index.d) != (count, dim):
            raise FormatError(
                f"{folder}: the inverted lists hold {total} vectors of {index.d} numbers, expected {count} of {dim}. "
                "Build the index again."
            )
        self._index = index  # owns the centroids of all parts
        self._owners: npt.NDArray[np.int32] = map_file(folder / OWNERS, "<i4", count)

    def nearest(
        self, query: Float32Array, count: int, rows: RowNumbers | None = None
    ) -> tuple[Float32Array, RowNumbers]:
        """Return the cosines (K,) and rows (K,) of the vectors nearest to a query (D,), of all or of some rows."""
        faiss, settings = self._faiss, {"nprobe": PROBES}
        if rows is not None:
            # Only lists that hold one of the rows, and at least as many lists as neighbours.
            lists = np.unique(self._owners[rows]).astype(np.int64)
            wanted = np.zeros(len(self._owners), dtype=bool)
            wanted[rows] = True
            settings = {
                "nprobe": min(len(lists), max(PROBES, count)),
                "sel": faiss.IDSelectorBitmap(np.packbits(wanted, bitorder="little")),
                "quantizer_params": faiss.SearchParameters(sel=faiss.IDSelectorBatch(lists)),
            }
        params = faiss.SearchParametersIVF(**settings)
        results = [part.search(query[None], count, params=params) for part in self._parts]
        cosines, nearest_rows = (np.concatenate([result[side][0] for result in results]) for side in (0, 1))
        exists = nearest_rows >= 0  # faiss fills up with -1
        return _in_order(cosines[exists], nearest_rows[exists], count)

    def vectors(self, rows: RowNumbers) -> Float32Array:
        """Return the vectors (N, D) of some rows, as they are stored in float16."""
        wanted, places = np.unique(rows, return_inverse=True)
        vectors = np.zeros((len(wanted), self._index.d), dtype=np.float32)
        first = 0
        for part in self._parts:  # each holds consecutive rows
            begin, end = np.searchsorted(wanted, (first, first + part.ntotal)).tolist()
            first += part.ntotal
            for number in np.unique(self._owners[wanted[begin:end]]).tolist():
                ids, codes = _list_of(part, number)
                at = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
                found = wanted[at] == ids
                vectors[at[found]] = codes[found]
        return vectors[places]


def _list_of(part: Any, number: int) -> tuple[RowNumbers, Float16Array]:
    """Return copies of the rows (N,) and vectors (N, D) of one inverted list."""
    faiss, lists = import_faiss(), part.invlists
    size, width = lists.list_size(number), lists.code_size
    if not size:
        return np.zeros(0, np.int64), np.zeros((0, part.d), np.float16)
    # The pointers are into the mapped file, which stays open as long as the part.
    ids = faiss.rev_swig_ptr(lists.get_ids(number), size).copy()
    codes = faiss.rev_swig_ptr(lists.get_codes(number), size * width).copy()
    return ids, codes.view(np.float16).reshape(size, part.d)


def _with_lists(index: Any, path: Path) -> Any:
    """Return an index with the centroids of `index` and the lists of a file."""
    faiss = import_faiss()
    kind, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    part = faiss.IndexIVFScalarQuantizer(index.quantizer, index.d, index.nlist, kind, metric, False)
    lists = faiss.read_InvertedLists(faiss.FileIOReader(str(path)), faiss.IO_FLAG_MMAP)
    lists.prefetch_nthread = 0  # faiss would start 32 threads for each part of each query, which takes longer
    part.replace_invlists(lists, True)
    part.is_trained, part.ntotal = True, lists.compute_ntotal()
    return part


SEARCHES: dict[str, type[ExactSearch] | type[ListSearch]] = {"exact": ExactSearch, "ivf": ListSearch}


def _in_order(cosines: Float32Array, rows: RowNumbers, count: int) -> tuple[Float32Array, RowNumbers]:
    """Sort by cosine, the nearest first; equally near vectors by row."""
    order = np.lexsort((rows, -cosines))[:count]
    return cosines[order], rows[order]
