"""Files with a word a line and its labels in columns -> sentences, their labels in BIO.

    entities    EU NNP I-NP I-ORG             read_conll2003: IOB1, -DOCSTART- between documents
                Paris  B-location             read_labelled: any columns in any scheme (WNUT-17, wikigold, UNER, ...)
                경  B-OG                      read_klue: a character a line, made words here
                송인영은 5년  PER-B DAT-B     read_naver: a sentence a line
    roles       ... He PRP (S* - - (ARG0*)    read_propbank, read_conll2012, read_conll2005: an example for each
                ... ran VBD * run 01 (V*)     predicate, whose arguments stand in a column of brackets

What is malformed is one error that names the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyelmo.errors import FormatError, InputError
from pyelmo.tasks.labels.spans import Span, convert, letters_of, split_label, to_labels, to_spans
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.text.tokens import split_spans

# Examples in the files as published (later releases may have a few more), so that a cut copy is noticed.
PUBLISHED = {
    "wnut17train.conll": 3394, "emerging.dev.conll": 1009, "emerging.test.annotated": 1287,
    "klue-ner-v1.1_dev.tsv": 5000,
    "ewt-train.gold_conll": 40_429, "ewt-dev.gold_conll": 4952, "ewt-test.gold_conll": 4795,
}  # fmt: skip

# How treebanks write what no text has.
_PLAIN = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]",
    "/.": ".", "/?": "?",
}  # fmt: skip
_BRACKET = re.compile(r"(?:\((?P<label>[^\s()*]+))?\*(?P<end>\)?)")


@dataclass(frozen=True)
class LabelledSentence:
    words: list[str]
    labels: list[str]  # BIO


@dataclass(frozen=True)
class PredicateSentence:
    """A sentence and the arguments of one of its predicates."""

    words: list[str]
    predicate: int  # the place of its first word
    labels: list[str]  # BIO; V is the predicate itself


@dataclass(frozen=True)
class _Row:
    where: str  # file and line, for errors
    columns: list[str]


def plain_word(word: str) -> str:
    """A word as it is written in text: -LRB- is (, and 1\\/2 is 1/2."""
    return _PLAIN.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def read_labelled(
    path: str | Path, *, word: int = 0, label: int = -1, scheme: str = "bio", comment: str | None = None
) -> list[LabelledSentence]:
    """Words and labels from the named columns, with tabs or spaces between; an empty line ends a sentence.

    `comment` is how lines begin that are none of this. A line that begins with -DOCSTART- is no word.
    """
    letters_of(scheme)
    sentences: list[LabelledSentence] = []
    width = 0
    for rows in _sentences(path, comment):
        width = width or len(rows[0].columns)
        for row in rows:  # a column that is counted from the end would be another one
            if min(word, label) < 0 and len(row.columns) != width:
                raise FormatError(f"{row.where}: {len(row.columns)} columns, but {width} in the lines before")
        words = [_column(row, word, "word") for row in rows]
        labels = [_checked_label(_column(row, label, "label"), scheme, row.where) for row in rows]
        sentences.append(LabelledSentence(words, convert(labels, scheme, "bio")))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def read_conll2003(path: str | Path) -> list[LabelledSentence]:
    """Entities of CoNLL-2003: word, part of speech, chunk and entity, in IOB1."""
    return read_labelled(path, scheme="iob1")


def read_klue(path: str | Path, language: str = "ko") -> list[LabelledSentence]:
    """Entities of KLUE, whose bounds are characters, as labels of words in the given language's rules.

    A word takes the label of the first entity it shares a character with: Korean particles are written onto names. So
    spans are of words here, and scores are not those of KLUE's own scorer, which compares characters.
    """
    sentences = []
    for rows in _sentences(path, "##"):
        characters = [_column(row, 0, "character") for row in rows]
        labels = [_checked_label(_column(row, 1, "label"), "bio", row.where) for row in rows]
        text, starts = "".join(characters), [0]
        for character in characters:
            starts.append(starts[-1] + len(character))
        entities = [Span(starts[start], starts[end], name) for start, end, name in to_spans(labels)]
        words = split_spans(text, language)
        spans: list[Span] = []
        for start, end, name in entities:
            first = spans[-1].end if spans else 0
            places = [
                place for place, one in enumerate(words) if place >= first and one.start < end and start < one.end
            ]
            if places:
                spans.append(Span(places[0], places[-1] + 1, name))
        sentences.append(LabelledSentence([one.word for one in words], to_labels(spans, len(words))))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def read_naver(path: str | Path) -> list[LabelledSentence]:
    """Entities of Naver's Korean set: a sentence a line, a tab, and a label a word with its letter last (PER-B)."""
    sentences = []
    for number, line in numbered_lines(existing(path)):
        where = f"{path}, line {number}"
        text, tab, given = line.partition("\t")
        words, names = text.split(" "), given.split(" ")
        if not tab or len(words) != len(names) or not all(words):
            raise FormatError(f"{where}: expected words, a tab and a label for each word, got {line[:60]!r}")
        turned = ["-".join(reversed(name.rsplit("-", 1))) for name in names]  # PER-B -> B-PER
        labels = [_checked_label(name, "bio", where) for name in turned]
        sentences.append(LabelledSentence(words, convert(labels, "bio", "bio")))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def read_propbank(path: str | Path) -> list[PredicateSentence]:
    """PropBank's release with words (.gold_conll): eight columns, the frame last, then the arguments' columns."""
    return _read_frames(path)


def read_conll2012(path: str | Path) -> list[PredicateSentence]:
    """CoNLL-2012 (OntoNotes): as PropBank's, with sense, speaker and entity before the arguments, coreference after."""
    return _read_frames(path, skip=3, after=1)


def read_conll2005(words: str | Path, props: str | Path) -> list[PredicateSentence]:
    """CoNLL-2005: a file whose first column is the word, and one of predicates and their arguments, line by line."""
    examples: list[PredicateSentence] = []
    word_sentences, prop_sentences = list(_sentences(words)), list(_sentences(props))
    if len(word_sentences) != len(prop_sentences):
        raise FormatError(f"{props}: {len(prop_sentences):,} sentences, but {words} has {len(word_sentences):,}")
    for word_rows, prop_rows in zip(word_sentences, prop_sentences, strict=True):
        if len(word_rows) != len(prop_rows):
            raise FormatError(
                f"{prop_rows[0].where}: a sentence of {len(prop_rows)} words, "
                f"but of {len(word_rows)} at {word_rows[0].where}"
            )
        spelled = [plain_word(_column(row, 0, "word")) for row in word_rows]
        marks = [row.columns[0] for row in prop_rows]
        examples += _predicates(prop_rows, spelled, marks, [row.columns[1:] for row in prop_rows])
    check_published(props, len(examples), PUBLISHED.get(Path(props).name), "predicates")
    return examples


def _read_frames(path: str | Path, *, skip: int = 0, after: int = 0) -> list[PredicateSentence]:
    """Word in the fourth column, frame in the eighth, arguments after `skip` more and before the last `after`."""
    examples: list[PredicateSentence] = []
    for rows in _sentences(path, "#"):
        words = [plain_word(_column(row, 3, "word")) for row in rows]
        marks = [_column(row, 7, "frame") for row in rows]
        brackets = [row.columns[8 + skip : len(row.columns) - after] for row in rows]
        examples += _predicates(rows, words, marks, brackets)
    check_published(path, len(examples), PUBLISHED.get(Path(path).name), "predicates")
    return examples


def _predicates(
    rows: Sequence[_Row], words: list[str], marks: Sequence[str], brackets: Sequence[Sequence[str]]
) -> Iterator[PredicateSentence]:
    """An example for each word that is marked (by a lemma or frame, not -): the first one's column comes first."""
    places = [place for place, mark in enumerate(marks) if mark != "-"]
    for row, cells in zip(rows, brackets, strict=True):
        if len(cells) != len(places):
            raise FormatError(
                f"{row.where}: {len(cells)} columns of arguments in a sentence of {len(places)} predicates"
            )
    for number, marked in enumerate(places):
        spans = _bracket_spans(rows, [cells[number] for cells in brackets])
        # A few frames of PropBank stand beside another word than their V.
        predicate = next((span.start for span in spans if span.label == "V"), marked)
        yield PredicateSentence(words, predicate, to_labels(spans, len(words)))


def _bracket_spans(rows: Sequence[_Row], cells: Sequence[str]) -> list[Span]:
    """(ARG0*, *, *) -> a span of three words."""
    spans: list[Span] = []
    start, label = 0, ""
    for place, (row, cell) in enumerate(zip(rows, cells, strict=True)):
        match = _BRACKET.fullmatch(cell)
        if match is None or (match["label"] and label) or (match["end"] and not (label or match["label"])):
            raise FormatError(f"{row.where}: {cell!r} is no argument, or opens or closes one at the wrong place")
        if match["label"]:
            start, label = place, match["label"]
        if match["end"]:
            spans.append(Span(start, place + 1, label))
            label = ""
    if label:
        raise FormatError(f"{rows[-1].where}: the sentence ends within the argument ({label}*")
    return spans


def _sentences(path: str | Path, comment: str | None = None) -> Iterator[list[_Row]]:
    """The rows of each sentence."""
    rows: list[_Row] = []
    for number, line in numbered_lines(existing(path)):
        if comment and line.startswith(comment):
            continue
        columns = line.split("\t") if "\t" in line else [part for part in line.split(" ") if part]
        if not line.strip() or columns[0] == "-DOCSTART-":
            if rows:
                yield rows
            rows = []
            continue
        rows.append(_Row(f"{path}, line {number}", columns))
    if rows:
        yield rows


def _column(row: _Row, number: int, what: str) -> str:
    columns = row.columns
    if not -len(columns) <= number < len(columns) or not columns[number]:
        raise FormatError(f"{row.where}: no {what} in column {number + (number >= 0)} of {len(columns)}")
    return columns[number]


def _checked_label(label: str, scheme: str, where: str) -> str:
    if "," in label:
        raise FormatError(f"{where}: {label!r} is several labels. Name the file with one label a word.")
    try:
        split_label(label, scheme)
    except InputError as error:
        raise FormatError(f"{where}: {error}") from error
    return label
