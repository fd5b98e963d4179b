"""Documents with their mentions grouped by what they mean: CoNLL-2012, LitBank and OntoGUM as published.

    #begin document (bc/cctv/00/cctv_0000); part 000
    bc/cctv/00/cctv_0000  0  0  John    NNP  (TOP(S(NP*)  -    -  -  Ann  (PERSON)  (ARG0*)  (3)
    bc/cctv/00/cctv_0000  0  1  saw     VBD  (VP*         see  1  1  Ann  *         (V*)     -
    bc/cctv/00/cctv_0000  0  2  his     PRP$ (NP*         -    -  -  Ann  *         (ARG1*   (4|(3)
    bc/cctv/00/cctv_0000  0  3  mother  NN   *))          -    -  -  Ann  *         *)       4)
    #end document

The last column has the mentions that open and close at a word, by the number of their cluster. LitBank has these
columns too, most of them empty; OntoGUM has three (number, word, mentions), no bars between mentions, and no sentences:
they are split by rule here. What is malformed is one error that names the file and the line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pyelmo.errors import FormatError, InputError, NotFoundError
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
class Document:
    """A text and which of its mentions mean the same; mentions and clusters stand in the order of their words."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[Cluster, ...]
    speakers: tuple[str, ...] = ()  # one a word, "" where not known; none at all where no word has one
    genre: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for sentence in self.sentences for word in sentence)


@dataclass(frozen=True)
class _Layout:
    """Where a format has what; mentions are in its last column."""

    word: int
    columns: tuple[int, int]  # the fewest and the most
    speaker: int | None = None
    empty: str = ""  # stands for a word that is empty; an error where there is nothing


LAYOUTS: Mapping[str, _Layout] = {
    "conll2012": _Layout(3, (12, 1000), speaker=9),
    "litbank": _Layout(3, (13, 13)),
    "ontogum": _Layout(1, (3, 3), empty="_"),  # as published, GUM_news_iodine has one
}
LISTS = (".ids", ".list", ".txt")  # how files end that name documents, one a line

_BEGIN = re.compile(r"#\s*begin document\s*(?:\((?P<name>.*?)\)\s*;?\s*(?:part\s+(?P<part>\d+))?)?\s*")
_END = re.compile(r"#\s*end document\s*")
_MARK = re.compile(r"\((?P<single>[^\s()|]+)\)|\((?P<opened>[^\s()|]+)|(?P<closed>[^\s()|]+)\)")
_NOTHING = ("-", "_", "")


def read_documents(
    path: str | Path, format: str = "conll2012", *, folder: str | Path | None = None, language: str = "en"
) -> list[Document]:
    """The documents of a file, of all files of a folder whose names end in conll, or of those that a list names.

    A list (.ids, .list or .txt) has a document's name a line, whatever stands after its first full stop; `folder` is
    where the documents lie, if not beside the list. Documents whose words are blanked out are left out.
    """
    if format not in LAYOUTS:
        raise InputError(f"format {format!r} is not known. Use one of {', '.join(LAYOUTS)}.")
    found = [document for file in document_files(path, folder) for document in _read_file(file, format)]
    kept = [document for document in found if not is_blank(document)]
    if len(kept) < len(found):
        blank = len(found) - len(kept)
        log.warning("%s: %d of %d documents have blanks for words and are left out", path, blank, len(found))
    if not kept:
        raise FormatError(f"{path}: holds no documents. Is it empty, or of another format than {format}?")
    return [split(document, language) for document in kept] if format == "ontogum" else kept


def document_files(path: str | Path, folder: str | Path | None = None) -> list[Path]:
    """The files that `read_documents` reads."""
    path = existing(path)
    if path.is_dir():
        found = _below(path)
        if not found:
            raise NotFoundError(f"{path}: no file in it whose name ends in conll")
        return found
    if path.suffix not in LISTS:
        return [path]
    place = existing(folder) if folder else path.parent
    known = {_stem(file.name): file for file in _below(place)}
    files = []
    for number, line in numbered_lines(path):
        if not (name := line.strip()):
            continue
        if _stem(name) not in known:
            raise NotFoundError(
                f"{path}, line {number}: no file of {name!r} in {place}. Name the folder of the documents with "
                "--set data.folder=..."
            )
        files.append(known[_stem(name)])
    return files


def is_blank(document: Document) -> bool:
    """Whether every letter is an underscore, as in texts that may not be given away (OntoGUM's of Reddit)."""
    return all(not word.strip("_") for word in document.words)


def split(document: Document, language: str = "en") -> Document:
    """The same words in sentences that the language's rules find."""
    words = document.words
    text = " ".join(re.sub(r"\s", "_", word) for word in words)
    sentences, start = [], 0
    for sentence in split_sentences(text, language):
        end = start + len(sentence.split())
        sentences.append(words[start:end])
        start = end
    return replace(document, sentences=tuple(sentences))


def sorted_clusters(clusters: Iterable[Collection[Mention]], least: int = 1) -> tuple[Cluster, ...]:
    """Those of at least so many mentions, in order."""
    return tuple(sorted(tuple(sorted(set(cluster))) for cluster in clusters if len(set(cluster)) >= least))


def _below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*conll") if file.is_file())


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].partition(".")[0]


@dataclass
class _Open:
    """A document that is being read."""

    name: str
    where: str
    genre: str
    sentences: list[list[str]] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    opened: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # of a cluster: first words and lines
    width: int = 0  # columns of this sentence; 0 between two

    def add(self, columns: list[str], layout: _Layout, where: str) -> None:
        fewest, most = layout.columns
        if not fewest <= len(columns) <= most or (self.width and len(columns) != self.width):
            wanted = self.width or (fewest if fewest == most else f"{fewest} or more")
            raise FormatError(f"{where}: {len(columns)} columns, expected {wanted}. Is data.format right?")
        if not (word := columns[layout.word] or layout.empty):
            raise FormatError(f"{where}: no word in column {layout.word + 1}")
        if not self.width:
            self.sentences.append([])
        self.width = len(columns)
        self.sentences[-1].append(word)
        speaker = columns[layout.speaker] if layout.speaker is not None else ""
        self.speakers.append("" if speaker in _NOTHING else speaker)
        self._mark(columns[-1], where)

    def _mark(self, cell: str, where: str) -> None:
        """(3|(4) opens and closes a mention of cluster 4 and opens one of 3; bars may be left out."""
        place = len(self.speakers) - 1
        if cell in _NOTHING:
            return
        if _MARK.sub("", cell).strip("|"):
            raise FormatError(f"{where}: {cell!r} is no mention such as (3), (3 or 3). Is it the right column?")
        for match in _MARK.finditer(cell):
            single, opened, closed = match["single"], match["opened"], match["closed"]
            if not closed:
                self.opened.setdefault(single or opened, []).append((place, where))
            if not opened:
                name = single or closed
                if not self.opened.get(name):
                    raise FormatError(f"{where}: {cell!r} closes a mention of {name}, but none is open")
                self.mentions.setdefault(name, []).append(Mention(self.opened[name].pop()[0], place + 1))

    def closed(self) -> Document:
        for name, starts in self.opened.items():
            if starts:
                raise FormatError(f"{starts[-1][1]}: the mention ({name} is never closed")
        if not self.sentences:
            raise FormatError(f"{self.where}: a document without words")
        seen: set[Mention] = set()
        clusters = []
        for mentions in self.mentions.values():  # what stands in two clusters (OntoGUM: 7 mentions) is the first one's
            clusters.append(set(mentions) - seen)
            seen.update(mentions)
        sentences = tuple(tuple(sentence) for sentence in self.sentences)
        speakers = tuple(self.speakers) if any(self.speakers) else ()
        return Document(self.name, sentences, sorted_clusters(clusters), speakers, self.genre)


def _read_file(path: Path, format: str) -> Iterator[Document]:
    layout = LAYOUTS[format]
    document: _Open | None = None
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        if begin := _BEGIN.fullmatch(line):
            if document:
                raise FormatError(f"{where}: a document begins, but that of {document.where} has no #end document")
            document = _Open(*_name(begin, path, where, format))
        elif _END.fullmatch(line):
            if not document:
                raise FormatError(f"{where}: a document ends, but none has begun")
            yield document.closed()
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
            raise FormatError(f"{where}: a word before '#begin document'. Is data.format right?")
    if document:
        raise FormatError(f"{document.where}: the document that begins here has no #end document. Is the copy whole?")


def _name(begin: re.Match[str], path: Path, where: str, format: str) -> tuple[str, str, str]:
    """Name, place and genre of a document: CoNLL-2012's bc/cctv/00/cctv_0000, OntoGUM's file GUM_news_iodine.conll."""
    name = begin["name"] or _stem(path.name)
    parts = name.split("_" if format == "ontogum" else "/")
    genre = ""
    if format == "ontogum" and len(parts) > 2:
        genre = parts[1]
    elif format == "conll2012" and len(parts) > 1:
        genre = parts[0]
    return f"{name}; part {int(begin['part'])}" if begin["part"] and format == "conll2012" else name, where, genre
