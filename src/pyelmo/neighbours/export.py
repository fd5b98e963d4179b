"""An index of neighbours -> one Parquet file, for DuckDB and for explorers of embeddings.

    word        the word as it is written in its sentence
    sentence    the whole sentence
    position    the first character of the word in the sentence, from 0
    source      the file of the text
    line        the line in this file, from 1
    vector      the unit vector of the occurrence, a list of D floats
    x, y        the first two principal components of all vectors

D vector.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.errors import InputError
from pyelmo.files import atomic_path, check_output
from pyelmo.neighbours.plane import fit_axes
from pyelmo.neighbours.search import Index
from pyelmo.text.parquet import pyarrow_parquet

ROWS = 4096  # of a row group, in memory until it is written


def export(
    index: Index,
    output: str | Path,
    *,
    force: bool = False,
    advance: Callable[[int], object] = lambda occurrences: None,
) -> None:
    """Write all occurrences of an index to a Parquet file.

    Args:
        index: The index, from `build` or `load`.
        output: The file to write; its name ends in .parquet.
        force: Replace a file that exists.
        advance: A callback that is called with the number of further occurrences that were written.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: The name of the output does not end in .parquet.
        OutputError: The output exists and `force` is not set, or it cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyelmo import neighbours
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "text.txt").write_text("He opened a bank account .")
        >>> index = neighbours.build([folder / "text.txt"], folder / "index", model="en")
        >>> neighbours.export(index, folder / "occurrences.parquet")
        >>> import pyarrow.parquet
        >>> pyarrow.parquet.read_table(folder / "occurrences.parquet").column_names
        ['word', 'sentence', 'position', 'source', 'line', 'vector', 'x', 'y']
    """
    path = Path(output)
    if path.suffix != ".parquet":
        raise InputError(f"{path}: unknown format {path.suffix!r}. An export ends in .parquet.")
    parquet = pyarrow_parquet()
    check_output(path, force=force)
    mean, axes = fit_axes(index)
    with atomic_path(path, force=force) as part:
        writer = parquet.ParquetWriter(part, _schema(index.manifest["dim"]), use_dictionary=["word", "source"])
        try:
            for start in range(0, len(index), ROWS):
                rows = np.arange(start, min(start + ROWS, len(index)))
                writer.write_table(_table(index, rows, mean, axes))
                advance(len(rows))
        finally:
            writer.close()


def _schema(dim: int) -> Any:
    import pyarrow as pa

    text = [("word", pa.string()), ("sentence", pa.string()), ("position", pa.int32())]
    origin = [("source", pa.string()), ("line", pa.int64())]
    numbers = [("vector", pa.list_(pa.float32(), dim)), ("x", pa.float32()), ("y", pa.float32())]
    return pa.schema([*text, *origin, *numbers])


def _table(index: Index, rows: Any, mean: Any, axes: Any) -> Any:
    import pyarrow as pa

    vectors = index.vectors(rows)
    points = ((vectors - mean) @ axes).astype(np.float32)
    occurrences = [index.occurrence(row) for row in rows.tolist()]
    columns = {
        "word": [occurrence.word for occurrence in occurrences],
        "sentence": [occurrence.sentence for occurrence in occurrences],
        "position": [occurrence.start for occurrence in occurrences],
        "source": [occurrence.source for occurrence in occurrences],
        "line": [occurrence.line for occurrence in occurrences],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
        "x": points[:, 0],
        "y": points[:, 1],
    }
    return pa.table(columns, schema=_schema(vectors.shape[1]))
