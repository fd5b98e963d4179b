"""Files of named entities as published -> sentences with a BIO label for each word.

    read_labelled     Paris  B-location            any columns in any scheme (WNUT-17, wikigold, UNER, ...)
    read_conll2003    EU NNP I-NP I-ORG            IOB1, with -DOCSTART- between documents
    read_klue         경  B-OG                     one character per line
    read_naver        송인영은 5년  PER-B DAT-B    one sentence per line
    read_table        {"tokens": [...], "tags": [...]}    JSON Lines or Parquet
    read_conllu_labels                             CoNLL-U, with labels in MISC or in a column of tags

A malformed line raises a FormatError that names the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from pyelmo.errors import FormatError, InputError
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.tasks.labels.columns import read_column, read_rows
from pyelmo.tasks.labels.spans import Span, convert, letters_of, split_label, to_labels, to_spans
from pyelmo.tasks.labels.tables import read_labelled_words
from pyelmo.text.lines import check_published, existing, numbered_lines
from pyelmo.text.rows import ReadOptions
from pyelmo.text.tokens import TokenSpan, split_spans

# Sentences in the published files (later releases may have a few more), so that an incomplete copy is noticed.
PUBLISHED = {
    "wnut17train.conll": 3394, "emerging.dev.conll": 1009, "emerging.test.annotated": 1287,
    "klue-ner-v1.1_dev.tsv": 5000,
}  # fmt: skip
_CONLLU_COLUMNS = 10
_CONLLU_TAGS = {"upos": 3, "xpos": 4}


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence with a BIO label for each word."""

    words: list[str]
    labels: list[str]


def read_labelled(
    path: str | Path, *, word: int = 0, label: int = -1, scheme: str = "bio", comment: str | None = None
) -> list[LabelledSentence]:
    """Read words and labels from two columns of a file with tabs or spaces between the columns.

    Args:
        path: The file. An empty line or -DOCSTART- ends a sentence.
        word: The column of the words, counted from 0, or from the end if negative.
        label: The column of the labels, counted in the same way.
        scheme: How the labels are written: bio, iob1 or bioul; or plain, if each is the label of one word.
        comment: Lines that begin with this text are skipped.
    """
    sentences: list[LabelledSentence] = []
    width = 0
    for rows in read_rows(path, comment):
        width = width or len(rows[0].columns)
        for row in rows:
            if min(word, label) < 0 and len(row.columns) != width:
                raise FormatError(
                    f"{row.where}: {len(row.columns)} columns, but {width} in the lines before. Choose columns that "
                    "are counted from the front with --set data.word=... and --set data.label=..."
                )
        words = [read_column(row, word, "word") for row in rows]
        labels = [(read_column(row, label, "label"), row.where) for row in rows]
        sentences.append(LabelledSentence(words, _to_bio(labels, scheme)))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def read_conll2003(path: str | Path) -> list[LabelledSentence]:
    """Read the entities of CoNLL-2003: word, part of speech, chunk and entity, in IOB1."""
    return read_labelled(path, scheme="iob1")


def read_klue(path: str | Path, language: str = "ko") -> list[LabelledSentence]:
    """Read the entities of KLUE, which label characters, as labels of words split by the rules of `language`.

    A word takes the label of the first entity that it overlaps, because Korean particles are written onto names. The
    spans are spans of words, so scores differ from those of KLUE's own scorer, which compares characters.
    """
    sentences = []
    for rows in read_rows(path, "##"):
        characters = [read_column(row, 0, "character") for row in rows]
        labels = [_checked_label(read_column(row, 1, "label"), "bio", row.where) for row in rows]
        offsets = list(accumulate(map(len, characters), initial=0))
        entities = [Span(offsets[start], offsets[end], name) for start, end, name in to_spans(labels)]
        words = split_spans("".join(characters), language)
        word_labels = to_labels(_word_spans(entities, words), len(words))
        sentences.append(LabelledSentence([word.word for word in words], word_labels))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def _word_spans(entities: Iterable[Span], words: Sequence[TokenSpan]) -> list[Span]:
    """Return the words that each span of characters overlaps; a word belongs to the first of its spans."""
    spans: list[Span] = []
    for start, end, name in entities:
        first = spans[-1].end if spans else 0
        covered = [n for n, word in enumerate(words) if n >= first and word.start < end and start < word.end]
        if covered:
            spans.append(Span(covered[0], covered[-1] + 1, name))
    return spans


def read_naver(path: str | Path) -> list[LabelledSentence]:
    """Read Naver's Korean entities: one sentence per line, a tab, and a label such as PER-B for each word."""
    sentences = []
    for number, line in numbered_lines(existing(path)):
        where = f"{path}, line {number}"
        text, tab, annotation = line.partition("\t")
        words, names = text.split(" "), annotation.split(" ")
        if not tab or len(words) != len(names) or not all(words):
            raise FormatError(
                f"{where}: expected words, a tab and a label for each word, found {line[:60]!r}. {CHOOSE_FORMAT}"
            )
        labels = ["-".join(reversed(name.rsplit("-", 1))) for name in names]  # PER-B -> B-PER
        labels = [_checked_label(label, "bio", where) for label in labels]
        sentences.append(LabelledSentence(words, convert(labels, "bio", "bio")))
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def read_table(path: str | Path, options: ReadOptions, scheme: str = "bio") -> list[LabelledSentence]:
    """Read a table whose rows have a list of words and a list of labels, the column that the options keep."""
    sentences = [
        LabelledSentence(words, _to_bio([(name, where) for name in labels], scheme))
        for where, words, labels in read_labelled_words(path, options)
    ]
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "rows")
    return sentences


def read_conllu_labels(path: str | Path, label: str = "NER", scheme: str = "bio") -> list[LabelledSentence]:
    """Read a CoNLL-U file with a label for each syntactic word.

    Args:
        path: The file.
        label: upos or xpos, for the tags of words; or a key of the last column (MISC), such as NER in NER=B-PER. A word
            without the key has the label O.
        scheme: How the labels in MISC are written.
    """
    column = _CONLLU_TAGS.get(label.lower())
    sentences: list[LabelledSentence] = []
    is_labelled = False
    for rows in read_rows(path, "#"):
        words: list[str] = []
        labels: list[tuple[str, str]] = []
        for row in rows:
            if len(row.columns) != _CONLLU_COLUMNS:
                count = len(row.columns)
                raise FormatError(f"{row.where}: {count} columns, expected {_CONLLU_COLUMNS} with tabs between")
            if not row.columns[0].isdigit():  # 3-4 is a contraction, 8.1 an empty node
                continue
            words.append(read_column(row, 1, "word"))
            name = row.columns[column] if column is not None else _misc(row.columns[-1]).get(label, "")
            is_labelled = is_labelled or name not in ("", "_")
            labels.append(("O" if name in ("", "_") else name, row.where))
        sentences += (
            [LabelledSentence(words, _to_bio(labels, "plain" if column is not None else scheme))] if words else []
        )
    if sentences and not is_labelled:
        raise FormatError(
            f"{path}: no word has a label {label}=... in the last column (MISC). Choose the labels with --label: a key "
            "of that column, or upos or xpos."
        )
    check_published(path, len(sentences), PUBLISHED.get(Path(path).name), "sentences")
    return sentences


def _misc(cell: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in cell.split("|"))
    return {key: value for key, _, value in pairs}


def _to_bio(labels: Sequence[tuple[str, str]], scheme: str) -> list[str]:
    """Convert labels, each with the file and line for errors, to BIO; a plain label is a span of one word."""
    if scheme == "plain":
        return ["O" if label == "O" else f"B-{label}" for label, _ in labels]
    letters_of(scheme)
    return convert([_checked_label(label, scheme, where) for label, where in labels], scheme, "bio")


def _checked_label(label: str, scheme: str, where: str) -> str:
    if "," in label:
        raise FormatError(f"{where}: several labels for one word ({label[:60]!r}). Use a file with one label per word.")
    try:
        split_label(label, scheme)
    except InputError as error:
        raise FormatError(f"{where}: {error}, or --set data.scheme=plain for labels of words") from error
    return label
