"""Files of natural language inference as published -> pairs of texts with a label.

    jsonl    {"sentence1": ..., "sentence2": ..., "gold_label": ...}    SNLI, MultiNLI; LingNLI with other field names
    json     [{"premise": ..., "hypothesis": ..., "gold_label": ...}]   KLUE-NLI
    tsv      a header, then columns with tabs between                   SICK, KorNLI, counterfactual SNLI
    csv      a header, then columns with commas between                 e-SNLI
    lines    s1.dev, s2.dev and labels.dev in one folder                e-SNLI as text; the path is that of s1.dev

Labels are entailment, neutral and contradiction. Pairs on which the annotators did not agree (label -) are left out.
A malformed record raises a FormatError that names the file and the line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError
from pyelmo.files import read_regular
from pyelmo.parsing import MAX_BYTES, parse_json
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.text.tokens import split_words

LABELS = ("contradiction", "entailment", "neutral")
UNDECIDED = "-"
# The names of the fields in the published sets.
PREMISE = ("sentence1", "premise", "sentence_A")
HYPOTHESIS = ("sentence2", "hypothesis", "sentence_B")
LABEL = ("gold_label", "label", "entailment_judgment", "entailment_label")
# Pairs in the published files, so that an incomplete copy is noticed.
PUBLISHED = {
    "snli_1.0_train.jsonl": 549_367, "snli_1.0_dev.jsonl": 9842, "snli_1.0_test.jsonl": 9824,
    "multinli_1.0_train.jsonl": 392_702, "multinli_1.0_dev_matched.jsonl": 9815,
    "multinli_1.0_dev_mismatched.jsonl": 9832, "s1.dev": 9842, "s1.test": 9824,
    "SICK_train.txt": 4500, "SICK_trial.txt": 500, "SICK_test_annotated.txt": 4927,
    "klue-nli-v1.1_dev.json": 3000, "xnli.dev.ko.tsv": 2490, "xnli.test.ko.tsv": 5010,
}  # fmt: skip

_Record = tuple[str, Mapping[str, Any]]  # file and line for errors, and the fields


@dataclass(frozen=True)
class SentencePair:
    """A premise, a hypothesis, which may have no words, and their label."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str


def read_pairs(path: str | Path, form: str, language: str = "en", *, tokenised: bool = False) -> list[SentencePair]:
    """Read the pairs of a file.

    Args:
        path: The file.
        form: Its format: jsonl, json, tsv, csv or lines.
        language: The language by whose rules the texts are split into words.
        tokenised: The texts are already split, with spaces between the words.
    """
    path = existing(path)
    texts: dict[str, tuple[str, ...]] = {}  # many pairs share a premise
    pairs: list[SentencePair] = []
    for where, record in _RECORDS[form](path):
        premise, hypothesis, label = (_field(record, names, where) for names in (PREMISE, HYPOTHESIS, LABEL))
        label = label.lower()
        if label == UNDECIDED:
            continue
        if label not in LABELS:
            raise FormatError(
                f"{where}: unknown label {label[:60]!r} (labels: {', '.join(LABELS)}, {UNDECIDED}). Correct the file."
            )
        for text in (premise, hypothesis):
            if text not in texts:
                texts[text] = tuple(text.split() if tokenised else split_words(text, language))
        pairs.append(SentencePair(texts[premise], texts[hypothesis], label))
    check_published(path, len(pairs), PUBLISHED.get(path.name), "labelled pairs")
    return pairs


def _json_lines(path: Path) -> Iterator[_Record]:
    for number, line in _filled_lines(path):
        where = f"{path}, line {number}"
        try:
            record = parse_json(line, where)
        except FormatError as error:
            raise FormatError(f"{error}. Every line must be an object. {CHOOSE_FORMAT}") from error
        yield where, _object(record, where)


def _json_list(path: Path) -> Iterator[_Record]:
    try:
        records = parse_json(read_regular(path, limit=MAX_BYTES), path)
    except FormatError as error:
        raise FormatError(f"{error}. Is the copy complete?") from error
    if not isinstance(records, list):
        raise FormatError(f"{path}: expected a list of pairs, found {type(records).__name__}. {CHOOSE_FORMAT}")
    for number, record in enumerate(records, 1):
        where = f"{path}, pair {number}"
        yield where, _object(record, where)


def _object(record: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(record, dict):
        raise FormatError(f"{where}: expected a JSON object, found {str(record)[:40]!r}. {CHOOSE_FORMAT}")
    return record


def _tabs(path: Path) -> Iterator[_Record]:
    return _columns(path, ((number, list(map(_unquoted, line.split("\t")))) for number, line in _filled_lines(path)))


def _commas(path: Path) -> Iterator[_Record]:
    lines = csv.reader(line + "\n" for _, line in numbered_lines(path))
    try:
        yield from _columns(path, ((lines.line_num, row) for row in lines))
    except csv.Error as error:
        raise FormatError(f"{path}, line {lines.line_num}: not a CSV table ({error}). {CHOOSE_FORMAT}") from error


def _filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in numbered_lines(path) if line.strip())


def _unquoted(cell: str) -> str:
    """Remove the quotation marks around a cell that has doubled ones inside."""
    inside = cell[1:-1]
    if cell[:1] == cell[-1:] == '"' and '""' in inside and '"' not in inside.replace('""', ""):
        return inside.replace('""', '"')
    return cell


def _columns(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[_Record]:
    header: list[str] = []
    for number, row in rows:
        if not header:
            header = [name[:1].lower() + name[1:] for name in row]  # e-SNLI writes Sentence1
            continue
        where = f"{path}, line {number}"
        if len(row) != len(header):
            raise FormatError(f"{where}: {len(row)} columns, but the header has {len(header)}. {CHOOSE_FORMAT}")
        yield where, dict(zip(header, row, strict=True))


def _parallel_files(path: Path) -> Iterator[_Record]:
    """Read premises from s1.X, hypotheses from s2.X and labels from labels.X, line by line."""
    first, dot, part = path.name.partition(".")
    if first != "s1" or not dot:
        raise FormatError(f"{path}: not a file of premises. Give the file s1.X; s2.X and labels.X are read beside it.")
    files = [path, *(existing(path.with_name(f"{name}.{part}")) for name in ("s2", "labels"))]
    columns = [[line for _, line in numbered_lines(file)] for file in files]
    for file, column in zip(files, columns, strict=True):
        if len(column) != len(columns[0]):
            raise FormatError(
                f"{file}: {len(column):,} lines, but {path} has {len(columns[0]):,}. Is the copy complete?"
            )
    for number, row in enumerate(zip(*columns, strict=True), 1):
        yield f"{path}, line {number}", dict(zip((PREMISE[0], HYPOTHESIS[0], LABEL[0]), row, strict=True))


def _field(record: Mapping[str, Any], names: tuple[str, ...], where: str) -> str:
    for name in names:
        if name in record:
            if not isinstance(record[name], str):
                raise FormatError(f"{where}: field {name!r} is {record[name]!r}, expected a string. Correct the file.")
            return str(record[name])
    alternatives = " or ".join(map(repr, names))
    raise FormatError(
        f"{where}: no field {alternatives} (fields: {', '.join(record)[:200] or 'none'}). {CHOOSE_FORMAT}"
    )


_RECORDS = {
    "auto": _json_lines,
    "jsonl": _json_lines,
    "json": _json_list,
    "tsv": _tabs,
    "csv": _commas,
    "lines": _parallel_files,
}
