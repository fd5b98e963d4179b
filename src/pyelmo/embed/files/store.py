"""Embeddings files: write one array for each sentence, and read them back in order.

L layers, T tokens, D vector. An array is (L, T, D), or (T, D) for one layer; if pooled, (L, D) or (D,). The formats
themselves are in formats.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from pyelmo.embed.files.formats import (
    READERS,
    SINKS,
    JsonlSink,
    Layout,
    Sink,
    StoredSentence,
    parquet_takes_float16,
)
from pyelmo.errors import FormatError, InputError, MissingExtraError, OutputError, PyelmoError
from pyelmo.files import atomic_path, open_regular
from pyelmo.parsing import read_json
from pyelmo.text.parquet import pyarrow_parquet

FORMATS = ("hdf5", "npz", "parquet", "jsonl")
SUFFIXES = {".hdf5": "hdf5", ".h5": "hdf5", ".npz": "npz", ".parquet": "parquet", ".jsonl": "jsonl"}
STDOUT = "-"
# The description of a bulk job's folder. Programs that read folders of Parquet files skip names that begin with _.
JOB = "_job.json"


def format_of(path: str | Path, format: str | None) -> str:
    """Return `format` if it is given, else the format for the suffix of `path`. Standard output gets jsonl."""
    if format is not None:
        if format not in FORMATS:
            raise InputError(f"format {format!r} is none of {', '.join(FORMATS)}.")
        return format
    if str(path) == STDOUT:
        return "jsonl"
    try:
        return SUFFIXES[Path(path).suffix.lower()]
    except KeyError:
        known = ", ".join(SUFFIXES)
        raise InputError(
            f"{path}: the name ends in none of {known}. Choose such a name, or pass --format {'|'.join(FORMATS)}."
        ) from None


@contextlib.contextmanager
def open_writer(
    path: str | Path,
    *,
    format: str,
    dim: int,
    layers: Sequence[str] | None = None,
    pooled: bool = False,
    force: bool = False,
    float16: bool = False,
    first: int = 0,
    extra: Sequence[tuple[str, str]] = (),
) -> Iterator[EmbeddingsWriter]:
    """Open a file for one array per sentence. It gets its name when the block succeeds; otherwise nothing changes.

    `layers` are the names of the first axis (the columns of Parquet), or None for arrays of one layer without that
    axis. `pooled` arrays have no token axis. Sentences are numbered from `first` on. `extra` are
    the names and types of more columns, whose values `write` gets. The path "-" is standard output;
    if its reader closes the pipe, the block ends without an error.
    """
    columns = list(layers) if layers is not None else ["vectors"]
    layout = Layout(
        columns=columns, stacked=layers is not None, pooled=pooled, dim=dim, float16=float16, extra=extra
    )  # fmt: skip
    check_format(format_of(path, format), float16=float16)
    if format == "parquet":
        _check_columns(layers or [])
    if str(path) == STDOUT:
        if format != "jsonl":
            raise InputError(f"{format} cannot be written to standard output. Name a file, or pass --format jsonl.")
        with _standard_output(layout, first) as writer:
            yield writer
        return
    if Path(path).is_dir():
        raise OutputError(f"{path}: is a folder. Name a file inside it.")
    with atomic_path(path, force=force) as part:
        writer = EmbeddingsWriter(SINKS[format](part, layout), layout, str(path), first)
        try:
            yield writer
            writer.finish()
        except BaseException:
            writer.abandon()
            raise


def check_format(format: str, *, float16: bool) -> None:
    """Raise an error, before any work, if this machine cannot write a format."""
    if format == "parquet":
        pyarrow_parquet()
        if float16 and not parquet_takes_float16():
            raise InputError("float16 in Parquet needs pyarrow 15 or newer. Update it, or use hdf5, npz or jsonl.")


def _check_columns(layers: Sequence[str]) -> None:
    taken = ["index", "sentence", "tokens", "vectors", *layers]
    if len(set(taken)) < len(taken):
        raise InputError(f"Parquet needs a different column name for each layer, got {', '.join(layers)}.")


@contextlib.contextmanager
def _standard_output(layout: Layout, first: int) -> Iterator[EmbeddingsWriter]:
    writer = EmbeddingsWriter(JsonlSink(sys.stdout, layout), layout, "standard output", first)
    try:
        yield writer
        writer.finish()
    except OutputError as error:
        # Python flushes standard output again when it exits: redirect it to os.devnull, so that this cannot fail.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if error is writer.failure and isinstance(error.__cause__, BrokenPipeError):
            return
        raise


class EmbeddingsWriter:
    """Writes the sentences of one file in input order; `count` is how many it has written."""

    def __init__(self, sink: Sink, layout: Layout, name: str, first: int = 0) -> None:
        self.count = 0
        self._first = first
        self.failure: BaseException | None = None
        self._sink = sink
        self._layout = layout
        self._name = name
        self._dtype = np.float16 if layout.float16 else np.float32

    def write(self, sentence: str, tokens: Sequence[str], array: np.ndarray, extra: Sequence[object] = ()) -> None:
        with self._no_gaps():
            index = self._first + self.count
            self._sink.write(index, sentence, list(tokens), self._as_stored(array, index), extra)
        self.count += 1

    def finish(self) -> None:
        if self.failure is not None:
            raise self.failure
        with self._no_gaps():
            self._sink.finish()

    def abandon(self) -> None:
        # The first error is reported; errors from closing an incomplete file add nothing.
        with contextlib.suppress(Exception):
            self._sink.abandon()

    def _as_stored(self, array: np.ndarray, index: int) -> np.ndarray:
        array = np.asarray(array)
        if not self._layout.fits(array.shape):
            raise InputError(f"{self._name}: sentence {index} has shape {array.shape}, expected {self._layout}.")
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(array, dtype=self._dtype)
        if self._layout.float16 and np.isinf(stored).any():
            raise InputError(
                f"{self._name}: sentence {index} has the value {np.abs(array).max():.3g}, too large for float16. "
                "Store float32."
            )
        return stored

    @contextlib.contextmanager
    def _no_gaps(self) -> Iterator[None]:
        """Remember a failure, so that a file without one of its sentences is never finished."""
        try:
            yield
        except (OSError, RuntimeError) as error:  # h5py raises RuntimeError too
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            unchanged = "" if self._name == "standard output" else " Nothing was changed."
            self.failure = OutputError(f"{self._name}: cannot be written: {reason}.{unchanged}")
            raise self.failure from error
        except BaseException as error:
            self.failure = error
            raise


def part_name(number: int, format: str) -> str:
    """Return the file name of a part of a bulk job."""
    return f"part-{number:05d}.{format}"


def read_embeddings(path: str | Path) -> Iterator[StoredSentence]:
    """Read the sentences of an embeddings file, or of a folder that `embed_corpus` wrote, in order.

    One sentence is in memory at a time (of a pooled npz file, its matrix). The format is detected from the content.

    Args:
        path: A file that `elmo embed` wrote, or a folder of parts.

    Returns:
        An iterator over sentences with `index` (the number of the sentence), `sentence` and `tokens` (None if the file
        does not hold them), `vectors`: (L, T, D) for all layers, (T, D) for one layer, without T if pooled; and
        `extra`, a dictionary of the columns that were kept.

    Raises:
        NotFoundError: There is no such file.
        FormatError: The file is damaged, or parts of the folder are missing.

    Example:
        >>> import pathlib, pyelmo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = pathlib.Path(folder, "text.txt")
        ...     _ = text.write_text("A bank account.\\nThe river\\n")
        ...     _ = pyelmo.embed_corpus([text], f"{folder}/vectors", model="en", layers="top", format="hdf5")
        ...     for row in pyelmo.read_embeddings(f"{folder}/vectors"):
        ...         print(row.index, row.sentence, row.vectors.shape)
        0 A bank account. (4, 1024)
        1 The river (2, 1024)
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    with open_regular(path) as file:
        start = file.read(4)
    format = {b"\x89HDF": "hdf5", b"PK\x03\x04": "npz", b"PAR1": "parquet"}.get(start, "jsonl")
    return _read(path, format)


def _read_folder(folder: Path) -> Iterator[StoredSentence]:
    try:
        job = read_json(folder / JOB)
    except PyelmoError as error:
        raise FormatError(f"{folder}: is not a folder of embeddings ({error})") from error
    format, count = job.get("format"), job.get("parts")
    if format not in FORMATS or not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise FormatError(f"{folder / JOB}: not the description of a bulk job: format {format!r}, parts {count!r}")
    written = sum(1 for _ in folder.glob(f"part-*.{format}"))
    if written < count:  # so that no long list is made of a wrong number
        names = (part_name(number, format) for number in range(count))
        first = next(name for name in names if not (folder / name).is_file())
        raise FormatError(
            f"{folder}: {count - written} of {count} parts are missing, the first is {first}. Run the command "
            "that wrote the folder again to resume."
        )
    parts = [folder / part_name(number, format) for number in range(count)]
    return chain.from_iterable(map(read_embeddings, parts))


def _read(path: Path, format: str) -> Iterator[StoredSentence]:
    try:
        yield from READERS[format](path)
    except MissingExtraError:
        raise
    except Exception as error:  # each library raises its own errors for a damaged file
        raise FormatError(
            f"{path}: cannot be read as embeddings ({format}): {type(error).__name__}: {error}. Is the file complete?"
        ) from error
