"""Read the rows of a Parquet file, from the start or from the middle (the extra `parquet`)."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError, PyelmoError, missing_extra


def pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise missing_extra("parquet", "Parquet") from None
    return pyarrow.parquet


@contextlib.contextmanager
def open_parquet(file: str | Path | io.BufferedReader, name: str) -> Iterator[Any]:
    """Open a Parquet file; a damaged one is an error that names it."""
    parquet = pyarrow_parquet()
    try:
        with contextlib.ExitStack() as stack:
            if isinstance(file, io.BufferedReader) and not (file.seekable() and isinstance(file.raw, io.FileIO)):
                # Parquet is read from its end, so compressed or piped data is copied to a temporary file first.
                copy = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(file, copy)
                yield stack.enter_context(parquet.ParquetFile(copy))
            else:
                yield stack.enter_context(parquet.ParquetFile(file))
    except PyelmoError:
        raise
    except Exception as error:  # for a damaged file pyarrow raises its own errors and OSError
        reason = str(error).partition("\n")[0]
        raise FormatError(f"{name}: cannot be read as Parquet: {reason}. Is the file complete?") from error


def records_from(table: Any, columns: Sequence[str], first: int) -> Iterator[dict[str, Any]]:
    """Yield the values of columns from row `first` on; row groups before it are not read."""
    row = 0
    groups: list[int] = []
    for group in range(table.num_row_groups):
        rows = table.metadata.row_group(group).num_rows
        if row + rows > first or groups:
            groups.append(group)
        else:
            row += rows
    wanted = list(dict.fromkeys(columns))
    for batch in table.iter_batches(batch_size=256, row_groups=groups, columns=wanted):
        values = [batch.column(column).slice(max(0, first - row)).to_pylist() for column in wanted]
        for record in zip(*values, strict=True):
            yield dict(zip(wanted, record, strict=True))
        row += len(batch)
