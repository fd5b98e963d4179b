"""Files of semantic roles as published -> sentences with one predicate each and BIO labels of its arguments.

    ... He  PRP (NP*) -   -      (ARG0*)    read_propbank, read_conll2012, read_conll2005: one example for each
    ... ran VBD (VP*) run run.01 (V*)       predicate, whose arguments are a column of brackets

A malformed line raises a FormatError that names the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import FormatError
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.tasks.labels.columns import Row, plain_word, read_column, read_rows
from pyelmo.tasks.labels.spans import Span, to_labels
from pyelmo.text.lines import check_published

# Predicates in the published files (later releases may have a few more), so that an incomplete copy is noticed.
PUBLISHED = {"ewt-train.gold_conll": 40_429, "ewt-dev.gold_conll": 4952, "ewt-test.gold_conll": 4795}

_ARGUMENT = re.compile(r"(?:\((?P<label>[^\s()*]+))?\*(?P<end>\)?)")


@dataclass(frozen=True)
class PredicateSentence:
    """A sentence and the arguments of one of its predicates."""

    words: list[str]
    predicate: int  # the position of its first word
    labels: list[str]  # BIO; V is the predicate itself
    sentence: int = 0  # the number of the sentence in its file


def read_propbank(path: str | Path) -> list[PredicateSentence]:
    """Read PropBank's release with words (.gold_conll): eight columns, the frame last, then the arguments' columns."""
    return _read_frames(path)


def read_conll2012(path: str | Path) -> list[PredicateSentence]:
    """Read CoNLL-2012 (OntoNotes): PropBank's columns, then sense, speaker and entity, arguments, coreference."""
    return _read_frames(path, skip=3, after=1)


def read_conll2005(words: str | Path, props: str | Path) -> list[PredicateSentence]:
    """Read CoNLL-2005: a file with a word in its first column, and one with predicates and arguments, line by line."""
    examples: list[PredicateSentence] = []
    word_sentences, prop_sentences = list(read_rows(words)), list(read_rows(props))
    if len(word_sentences) != len(prop_sentences):
        raise FormatError(
            f"{props}: {len(prop_sentences):,} sentences, but {words} has {len(word_sentences):,}. "
            "The two files must have the same lines."
        )
    for number, (word_rows, prop_rows) in enumerate(zip(word_sentences, prop_sentences, strict=True)):
        if len(word_rows) != len(prop_rows):
            raise FormatError(
                f"{prop_rows[0].where}: a sentence of {len(prop_rows)} words, but of {len(word_rows)} at "
                f"{word_rows[0].where}. The two files must have the same lines."
            )
        spelled = [plain_word(read_column(row, 0, "word")) for row in word_rows]
        predicates = [row.columns[0] for row in prop_rows]
        examples += _examples(number, prop_rows, spelled, predicates, [row.columns[1:] for row in prop_rows])
    check_published(props, len(examples), PUBLISHED.get(Path(props).name), "predicates")
    return examples


def _read_frames(path: str | Path, *, skip: int = 0, after: int = 0) -> list[PredicateSentence]:
    """Read words from the fourth column, frames from the eighth, arguments after `skip` more until `after` are left."""
    examples: list[PredicateSentence] = []
    for number, rows in enumerate(read_rows(path, "#")):
        words = [plain_word(read_column(row, 3, "word")) for row in rows]
        frames = [read_column(row, 7, "frame") for row in rows]
        arguments = [row.columns[8 + skip : len(row.columns) - after] for row in rows]
        examples += _examples(number, rows, words, frames, arguments)
    check_published(path, len(examples), PUBLISHED.get(Path(path).name), "predicates")
    return examples


def _examples(
    sentence: int, rows: Sequence[Row], words: list[str], predicates: Sequence[str], arguments: Sequence[Sequence[str]]
) -> Iterator[PredicateSentence]:
    """Yield an example for each word with a lemma or frame instead of -; the n-th one has the n-th argument column."""
    positions = [position for position, predicate in enumerate(predicates) if predicate != "-"]
    for row, cells in zip(rows, arguments, strict=True):
        if len(cells) != len(positions):
            raise FormatError(
                f"{row.where}: {len(cells)} columns of arguments in a sentence of {len(positions)} predicates. "
                f"{CHOOSE_FORMAT}"
            )
    for number, marked in enumerate(positions):
        spans = _argument_spans(rows, [cells[number] for cells in arguments])
        # In PropBank a few frames are on another line than their V.
        predicate = next((span.start for span in spans if span.label == "V"), marked)
        yield PredicateSentence(words, predicate, to_labels(spans, len(words)), sentence)


def _argument_spans(rows: Sequence[Row], cells: Sequence[str]) -> list[Span]:
    """Return the spans of one column of brackets: (ARG0*, *, *) is a span of three words."""
    spans: list[Span] = []
    start, label = 0, ""
    for position, (row, cell) in enumerate(zip(rows, cells, strict=True)):
        match = _ARGUMENT.fullmatch(cell)
        if match is None:
            raise FormatError(
                f"{row.where}: {cell!r} is not an argument such as (LABEL*, *, *) or (LABEL*). {CHOOSE_FORMAT}"
            )
        if match["label"]:
            if label:
                raise FormatError(f"{row.where}: {cell!r} opens an argument inside ({label}*. Correct the file.")
            start, label = position, match["label"]
        if match["end"]:
            if not label:
                raise FormatError(f"{row.where}: {cell!r} closes an argument, but none is open. Correct the file.")
            spans.append(Span(start, position + 1, label))
            label = ""
    if label:
        raise FormatError(f"{rows[-1].where}: the sentence ends inside the argument ({label}*. Is the file complete?")
    return spans
