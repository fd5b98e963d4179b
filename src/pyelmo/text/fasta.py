"""FASTA files of proteins: a line of ">", the id and a description, then lines of residues as single letters.

Residues are read in upper case; gaps of alignments (- and .) and a final * are dropped, as SeqVec's readers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.errors import FormatError
from pyelmo.text.streams import bare_suffix

if TYPE_CHECKING:
    from pyelmo.text.rows import ReadOptions

SUFFIXES = (".fasta", ".fa", ".faa")
ID = "id"  # the column of the ids
_GAPS = str.maketrans("", "", "-. \t")
_OTHER = re.compile(r"[^A-Z]")


def read_fasta(path: str | Path) -> Iterator[tuple[str, list[str]]]:
    """Read the proteins of a FASTA file, compressed or not.

    Args:
        path: The file; "-" is standard input.

    Returns:
        An iterator over the id of each protein, the first word of its header, and its residues as a list of letters,
        which `Embedder.embed` takes as a sentence.

    Raises:
        NotFoundError: There is no such file.
        FormatError: The file is not FASTA, or has a character that is no residue.

    Example:
        >>> import pathlib, pyelmo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "proteins.fasta")
        ...     _ = path.write_text(">P69905 Hemoglobin\\nMVLSPADK\\nTNVK\\n>P01308 Insulin\\nMALW\\n")
        ...     [(name, "".join(residues)) for name, residues in pyelmo.read_fasta(path)]
        [('P69905', 'MVLSPADKTNVK'), ('P01308', 'MALW')]
    """
    from pyelmo.text.rows import ReadOptions, read_rows

    for row in read_rows(path, ReadOptions(input_format="fasta", keep=(ID,))):
        yield row.kept[0], row.words or []


def fasta_records(lines: Iterator[str], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each protein begins, and its residues, id and description."""
    header, start, residues = None, 0, ""
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line.startswith(">"):
            if header is not None:
                yield f"{name}, line {start}", _record(header, residues)
            header, start, residues = line[1:].strip(), number, ""
            if not header:
                raise FormatError(f"{name}, line {number}: a protein without an id. Write it after the >.")
        elif line and not line.startswith(";"):  # a comment
            if header is None:
                raise FormatError(f"{name}, line {number}: is not FASTA: expected > and an id, got {line[:40]!r}.")
            letters = line.upper().translate(_GAPS)
            if other := _OTHER.search(letters.removesuffix("*")):
                raise FormatError(
                    f"{name}, line {number}: {other[0]!r} is no residue; expected letters, - or a final *."
                )
            residues += letters.removesuffix("*")
    if header is not None:
        yield f"{name}, line {start}", _record(header, residues)


def _record(header: str, residues: str) -> dict[str, Any]:
    return {"residues": list(residues), ID: header.split()[0], "description": header}


def is_fasta(path: str | Path, options: ReadOptions) -> bool:
    """Return whether a file is read as FASTA, by its name or by the options."""
    if options.input_format == "auto":
        return bare_suffix(path) in SUFFIXES
    return options.input_format == "fasta"


def keep_ids(inputs: Sequence[str], options: ReadOptions) -> ReadOptions:
    """Return options that also keep the ids of proteins, if all inputs are FASTA files."""
    if ID in options.keep or not inputs or not all(is_fasta(path, options) for path in inputs):
        return options
    return replace(options, keep=(ID, *options.keep))
