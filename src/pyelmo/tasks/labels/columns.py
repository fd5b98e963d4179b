"""Files with one word per line and its annotations in columns: what the readers of entities and of roles share.

EU NNP I-NP I-ORG
rejects VBZ I-VP O
                          an empty line ends a sentence
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import FormatError
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.text.lines import existing, numbered_lines

# Treebanks escape brackets, quotation marks and a few other words.
_PLAIN = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]",
    "/.": ".", "/?": "?",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """The columns of one line; `where` names the file and the line in errors."""

    where: str
    columns: list[str]


def plain_word(word: str) -> str:
    """Return a treebank's word as it is written in text: -LRB- becomes (, and 1\\/2 becomes 1/2."""
    return _PLAIN.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def read_rows(path: str | Path, comment: str | None = None) -> Iterator[list[Row]]:
    """Yield the rows of each sentence, with tabs or spaces between the columns.

    Lines that begin with `comment` are skipped. An empty line or -DOCSTART- ends a sentence.
    """
    rows: list[Row] = []
    for number, line in numbered_lines(existing(path)):
        if comment and line.startswith(comment):
            continue
        columns = line.split("\t") if "\t" in line else [part for part in line.split(" ") if part]
        if not line.strip() or columns[0] == "-DOCSTART-":
            if rows:
                yield rows
            rows = []
            continue
        rows.append(Row(f"{path}, line {number}", columns))
    if rows:
        yield rows


def read_column(row: Row, number: int, what: str) -> str:
    """Return a column counted from 0, or from the end if negative; `what` says in errors what it should hold."""
    columns = row.columns
    if not -len(columns) <= number < len(columns) or not columns[number]:
        position = number + 1 if number >= 0 else number
        raise FormatError(f"{row.where}: no {what} in column {position} of {len(columns)}. {CHOOSE_FORMAT}")
    return columns[number]
