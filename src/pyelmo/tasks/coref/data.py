"""Files of coreference as published (CoNLL-2012, LitBank, OntoGUM) -> documents with clusters of mentions.

    #begin document (bc/cctv/00/cctv_0000); part 000
    bc/cctv/00/cctv_0000  0  0  John    NNP  (TOP(S(NP*)  -    -  -  Ann  (PERSON)  (ARG0*)  (3)
    bc/cctv/00/cctv_0000  0  1  saw     VBD  (VP*         see  1  1  Ann  *         (V*)     -
    bc/cctv/00/cctv_0000  0  2  his     PRP$ (NP*         -    -  -  Ann  *         (ARG1*   (4|(3)
    bc/cctv/00/cctv_0000  0  3  mother  NN   *))          -    -  -  Ann  *         *)       4)
    #end document

The last column says which mentions open and close at a word, by the number of their cluster. LitBank has the same
columns, most of them empty. OntoGUM has three columns (number, word, mentions), no bars between mentions, and no
sentences, so they are split by rule here. A malformed line raises a FormatError that names the file and the line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.harness.settings import CHOOSE_FORMAT
from pyelmo.tasks.labels.columns import plain_word
from pyelmo.text.lines import existing, numbered_lines
from pyelmo.text.tokens import split_sentences

log = logging.getLogger("pyelmo")


class Mention(NamedTuple):
    """The words of a document from `start` to before `end`."""

    start: int
    end: int


Cluster = tuple[Mention, ...]


@dataclass(frozen=True)
class CorefDocument:
    """A text and its clusters of mentions that refer to the same thing, in the order of their words."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[Cluster, ...]
    speakers: tuple[str, ...] = ()  # one for each word, "" if not known; empty if no word has a speaker
    genre: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for sentence in self.sentences for word in sentence)


@dataclass(frozen=True)
class _ColumnLayout:
    """The columns of a format; mentions are in the last one."""

    word: int
    columns: tuple[int, int]  # the smallest and the largest number of columns
    speaker: int | None = None
    empty: str = ""  # replaces an empty word, which is an error if this is empty, too


LAYOUTS: Mapping[str, _ColumnLayout] = {
    "conll2012": _ColumnLayout(3, (12, 1000), speaker=9),
    "litbank": _ColumnLayout(3, (13, 13)),
    "ontogum": _ColumnLayout(1, (3, 3), empty="_"),  # the published GUM_news_iodine has an empty word
}
LISTS = (".ids", ".list", ".txt")  # endings of files that list documents, one name per line

_BEGIN = re.compile(r"#\s*begin document\s*(?:\((?P<name>.*?)\)\s*;?\s*(?:part\s+(?P<part>\d+))?)?\s*")
_END = re.compile(r"#\s*end document\s*")
_MENTION = re.compile(r"\((?P<single>[^\s()|]+)\)|\((?P<opened>[^\s()|]+)|(?P<closed>[^\s()|]+)\)")
_NOTHING = ("-", "_", "")
LONGEST_CELL = 1000  # characters of the mentions at one word


def read_documents(
    path: str | Path, format: str = "conll2012", *, folder: str | Path | None = None, language: str = "en"
) -> list[CorefDocument]:
    """Read documents, except those whose words are blanked out.

    Args:
        path: A file of documents; or a folder, for all its files whose names end in conll; or a list (.ids, .list or
            .txt) with the name of one document per line, of which everything after the first full stop is ignored.
        format: conll2012, litbank or ontogum.
        folder: The folder of the documents in a list, if it is not the folder of the list.
        language: The language by whose rules OntoGUM's documents are split into sentences.
    """
    if format not in LAYOUTS:
        raise InputError(f"unknown format {format!r}. Choose one of {', '.join(LAYOUTS)}.")
    documents = [document for file in document_files(path, folder) for document in _read_file(file, format)]
    readable = [document for document in documents if not is_blank(document)]
    if len(readable) < len(documents):
        blank = len(documents) - len(readable)
        log.warning("%s: %d of %d documents are left out, because their words are blank", path, blank, len(documents))
    if not readable:
        raise FormatError(f"{path}: holds no documents. Is it empty, or in another format than {format}?")
    if format == "ontogum":
        return [replace(item, sentences=group_by_sentence(item.words, language)) for item in readable]
    return readable


def document_files(path: str | Path, folder: str | Path | None = None) -> list[Path]:
    """Return the files that `read_documents` reads."""
    path = existing(path)
    if path.is_dir():
        files = _conll_files(path)
        if not files:
            raise NotFoundError(f"{path}: no file in it whose name ends in conll. Choose another folder.")
        return files
    if path.suffix not in LISTS:
        return [path]
    folder = existing(folder) if folder else path.parent
    file_of = {_stem(file.name): file for file in _conll_files(folder)}
    files = []
    for number, line in numbered_lines(path):
        if not (name := line.strip()):
            continue
        if _stem(name) not in file_of:
            raise NotFoundError(
                f"{path}, line {number}: no file of {name[:60]!r} in {folder}. "
                "Choose the folder of the documents with --set data.folder=..."
            )
        files.append(file_of[_stem(name)])
    return files


def is_blank(document: CorefDocument) -> bool:
    """Return whether all words are underscores, as in texts that may not be published (OntoGUM's from Reddit)."""
    return all(not word.strip("_") for word in document.words)


def group_by_sentence(words: Sequence[str], language: str = "en") -> tuple[tuple[str, ...], ...]:
    """Group the words of a document into sentences by the rules of a language."""
    text = " ".join(re.sub(r"\s", "_", word) for word in words)
    sentences, start = [], 0
    for sentence in split_sentences(text, language) or filter(None, [text]):  # a word may be invisible
        end = start + len(sentence.split())
        sentences.append(tuple(words[start:end]))
        start = end
    return tuple(sentences)


def sorted_clusters(clusters: Iterable[Collection[Mention]], least: int = 1) -> tuple[Cluster, ...]:
    """Sort the clusters that have at least `least` mentions."""
    return tuple(sorted(tuple(sorted(set(cluster))) for cluster in clusters if len(set(cluster)) >= least))


def _conll_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*conll") if file.is_file())


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].partition(".")[0]


@dataclass
class _OpenDocument:
    """A document that is being read."""

    name: str
    where: str
    genre: str
    sentences: list[list[str]] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    opened: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # first word and line, by cluster
    width: int = 0  # columns of the sentence; 0 between two sentences

    def add(self, columns: list[str], layout: _ColumnLayout, where: str) -> None:
        fewest, most = layout.columns
        if not fewest <= len(columns) <= most or (self.width and len(columns) != self.width):
            expected = self.width or (fewest if fewest == most else f"{fewest} or more")
            raise FormatError(f"{where}: {len(columns)} columns, expected {expected}. {CHOOSE_FORMAT}")
        if not (word := columns[layout.word] or layout.empty):
            raise FormatError(f"{where}: no word in column {layout.word + 1} of {len(columns)}. {CHOOSE_FORMAT}")
        if not self.width:
            self.sentences.append([])
        self.width = len(columns)
        self.sentences[-1].append(word)
        speaker = columns[layout.speaker] if layout.speaker is not None else ""
        self.speakers.append("" if speaker in _NOTHING else speaker)
        self._add_mentions(columns[-1], where)

    def _add_mentions(self, cell: str, where: str) -> None:
        """Open and close mentions: (3|(4) opens one of cluster 3 and is one of cluster 4; the bar is optional."""
        position = len(self.speakers) - 1
        if cell in _NOTHING:
            return
        # The pattern takes quadratic time on a long cell, and no file has one.
        if len(cell) > LONGEST_CELL or _MENTION.sub("", cell).strip("|"):
            raise FormatError(f"{where}: {cell[:60]!r} is not a mention such as (3), (3 or 3). {CHOOSE_FORMAT}")
        for match in _MENTION.finditer(cell):
            single, opened, closed = match["single"], match["opened"], match["closed"]
            if not closed:
                self.opened.setdefault(single or opened, []).append((position, where))
            if not opened:
                name = single or closed
                if not self.opened.get(name):
                    raise FormatError(
                        f"{where}: {cell!r} closes a mention of {name}, but none is open. Correct the file."
                    )
                self.mentions.setdefault(name, []).append(Mention(self.opened[name].pop()[0], position + 1))

    def close(self) -> CorefDocument:
        for name, starts in self.opened.items():
            if starts:
                raise FormatError(f"{starts[-1][1]}: the mention ({name} is never closed. Is the file complete?")
        if not self.sentences:
            raise FormatError(f"{self.where}: a document without words. Is the file complete?")
        seen: set[Mention] = set()
        clusters = []
        for mentions in self.mentions.values():  # OntoGUM has 7 mentions in two clusters: they belong to the first
            clusters.append(set(mentions) - seen)
            seen.update(mentions)
        sentences = tuple(tuple(sentence) for sentence in self.sentences)
        speakers = tuple(self.speakers) if any(self.speakers) else ()
        return CorefDocument(self.name, sentences, sorted_clusters(clusters), speakers, self.genre)


def _read_file(path: Path, format: str) -> Iterator[CorefDocument]:
    layout = LAYOUTS[format]
    document: _OpenDocument | None = None
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        if begin := _BEGIN.fullmatch(line):
            if document:
                raise FormatError(
                    f"{where}: a document begins, but that of {document.where} has no #end document. Correct the file."
                )
            name, genre = _name_and_genre(begin, path, format)
            document = _OpenDocument(name, where, genre)
        elif _END.fullmatch(line):
            if not document:
                raise FormatError(f"{where}: a document ends, but none has begun. Is the file complete?")
            yield document.close()
            document = None
        elif not line.strip():
            if document:
                document.width = 0
        elif document:
            columns = line.split("\t") if "\t" in line else line.split()
            if format == "conll2012" and len(columns) > layout.word:
                columns[layout.word] = plain_word(columns[layout.word])
            document.add(columns, layout, where)
        elif not line.startswith("#"):
            raise FormatError(f"{where}: a word before '#begin document'. {CHOOSE_FORMAT}")
    if document:
        raise FormatError(f"{document.where}: the document has no #end document. Is the file complete?")


def _name_and_genre(begin: re.Match[str], path: Path, format: str) -> tuple[str, str]:
    """Return what CoNLL-2012's name bc/cctv/00/cctv_0000 or OntoGUM's file GUM_news_iodine.conll says."""
    name = begin["name"] or _stem(path.name)
    genre = ""
    if format == "ontogum":
        parts = name.split("_")
        genre = parts[1] if len(parts) > 2 else ""
    elif format == "conll2012":
        genre = name.split("/")[0] if "/" in name else ""
        name = f"{name}; part {int(begin['part'])}" if begin["part"] else name
    return name, genre
