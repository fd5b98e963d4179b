"""Readers of the published files for word sense disambiguation: sentences whose annotated words have sense keys.

    SemCor 3.0        a folder of tag files: <wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>
    unified sets      NAME.data.xml and NAME.gold.key.txt (Raganato et al. 2017), train or test set
    WordNet 3.0       index.sense: every sense key with its number

A sense key is lemma%type:...; the type 1 is a noun, 2 a verb, 3 and 5 an adjective, 4 an adverb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from pyelmo.errors import FormatError
from pyelmo.files import read_regular
from pyelmo.parsing import MAX_BYTES
from pyelmo.text.lines import check_published, existing, numbered_lines

# The number of annotated words in the files as published, to detect incomplete copies. SemCor has 226,040 words whose
# sense number is not "0"; four of them have "0;0", so WordNet 3.0 has none of their senses.
SEMCOR_FOLDERS = {"brown1", "brown2", "brownv"}
SEMCOR_WORDS = 226_036
UNIFIED_WORDS = {
    "ALL": 7253, "senseval2": 2282, "senseval3": 1850, "semeval2007": 455, "semeval2013": 1644, "semeval2015": 1022,
    "semcor": SEMCOR_WORDS,
}  # fmt: skip

_TYPES = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_KEY_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_SENSE_KEY = re.compile(r"([^\s%]+)%([1-5]):\d\d:\d\d:[^\s:]*:(?:\d\d)?")
_SEMCOR_LINE = re.compile(r"<(?:wf(?P<settings>(?: [a-z]+=[^ <>]*)+)|punc)>(?P<text>[^<>]+)</(?:wf|punc)>")
_SEMCOR_TAG = re.compile(r"</?(?:contextfile|context|p|s)(?: [^<>]*)?>")
# The treebank spellings of quotes and brackets.
_PLAIN = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "&amp;": "&"}


class Lemma(NamedTuple):
    """A dictionary word and its part of speech (n, v, a, r), which determine the possible senses."""

    text: str
    pos: str


@dataclass(frozen=True)
class Instance:
    """An annotated word or expression of a sentence, `words[start:end]`, and its senses."""

    id: str
    lemma: Lemma
    start: int
    end: int
    senses: tuple[str, ...]


@dataclass(frozen=True)
class WsdSentence:
    """The words of a sentence and its annotated words."""

    words: list[str]
    instances: list[Instance]


def lemma_of(sense_key: str) -> Lemma:
    text, _, rest = sense_key.partition("%")
    return Lemma(text.lower(), _KEY_TYPES[rest[0]])


def read_senses(path: str | Path) -> list[WsdSentence]:
    """Read a folder of SemCor, or NAME.data.xml of the unified sets and NAME.gold.key.txt in the same folder."""
    path = existing(path)
    return read_semcor(path) if path.is_dir() else read_unified(path)


def read_semcor(folder: str | Path) -> list[WsdSentence]:
    """Read every tag file below a folder. Senses that are not in WordNet 3.0 (number 0) are skipped."""
    folder = existing(folder)
    files = sorted(folder.glob("**/tagfiles/br-*"))
    if not files:
        raise FormatError(f"{folder}: the folder contains no SemCor; expected files like brown1/tagfiles/br-a01")
    sentences = [sentence for file in files for sentence in _semcor_file(file)]
    if {file.parents[1].name for file in files} == SEMCOR_FOLDERS:
        check_published(folder, _annotated(sentences), SEMCOR_WORDS, "annotated words", exact=True)
    return sentences


def _semcor_file(path: Path) -> Iterator[WsdSentence]:
    sentence: WsdSentence | None = None
    for number, line in numbered_lines(path):
        match = _SEMCOR_LINE.fullmatch(line)
        if match is None:
            if line.strip() and not _SEMCOR_TAG.fullmatch(line):
                raise FormatError(f"{path}, line {number}: not a line of SemCor: {line[:60]!r}")
            if line.startswith("<s "):
                if sentence is not None:
                    raise FormatError(f"{path}, line {number}: a sentence begins before the end of the previous one")
                sentence = WsdSentence([], [])
            elif line == "</s>" and sentence is not None:
                yield sentence
                sentence = None
            continue
        if sentence is None:
            raise FormatError(f"{path}, line {number}: a word outside a sentence (<s snum=...>)")
        settings = dict(setting.split("=", 1) for setting in (match["settings"] or "").split())
        start = len(sentence.words)
        sentence.words.extend(_words(match["text"]))
        if senses := _semcor_senses(settings, f"{path}, line {number}"):
            name = f"{path.name}.{number}"
            sentence.instances.append(Instance(name, lemma_of(senses[0]), start, len(sentence.words), senses))
    if sentence is not None:
        raise FormatError(f"{path}, line {number}: the file ends within a sentence. Is it complete?")


def _semcor_senses(settings: Mapping[str, str], where: str) -> tuple[str, ...]:
    if "lexsn" not in settings:
        return ()
    if "lemma" not in settings or "wnsn" not in settings:
        raise FormatError(f"{where}: a word with lexsn= has no lemma= or no wnsn=")
    numbers, ends = settings["wnsn"].split(";"), settings["lexsn"].split(";")
    if len(numbers) != len(ends):
        raise FormatError(f"{where}: {len(numbers)} sense numbers but {len(ends)} sense keys")
    keys = [f"{settings['lemma']}%{end}" for end, number in zip(ends, numbers, strict=True) if number != "0"]
    return tuple(_checked_key(key, where) for key in keys)


def read_unified(data: str | Path, gold: str | Path | None = None) -> list[WsdSentence]:
    """Read a data set of the unified framework (default of `gold`: NAME.gold.key.txt in the same folder)."""
    data = existing(data)
    name = data.name.removesuffix(".data.xml")
    gold = Path(gold) if gold else data.with_name(f"{name}.gold.key.txt")
    reader = _UnifiedXml(data, _gold_keys(existing(gold)))
    sentences = reader.read()
    if unused := reader.keys.keys() - reader.seen:
        raise FormatError(f"{gold}: {len(unused)} instances are not in {data}, such as {min(unused)}")
    if name in UNIFIED_WORDS:
        check_published(data, _annotated(sentences), UNIFIED_WORDS[name], "annotated words", exact=True)
    return sentences


def _gold_keys(path: Path) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        name, *senses = line.split() or [""]
        if not senses:
            raise FormatError(f"{where}: expected an instance and its sense keys, got {line[:60]!r}")
        if name in keys:
            raise FormatError(f"{where}: the instance {name} is repeated")
        keys[name] = tuple(_checked_key(sense, where) for sense in senses)
    return keys


class _UnifiedXml:
    """The state of one pass over a data file. Unlike ElementTree, expat knows the line of each element."""

    def __init__(self, path: Path, keys: Mapping[str, tuple[str, ...]]) -> None:
        self.path, self.keys = path, keys
        self.seen: set[str] = set()
        self.sentences: list[WsdSentence] = []
        self.text = ""
        self.settings: dict[str, str] = {}
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters

    def read(self) -> list[WsdSentence]:
        try:
            self.parser.Parse(read_regular(self.path, limit=MAX_BYTES), True)
        except LookupError as error:  # an encoding that Python does not know
            raise FormatError(f"{self.path}: cannot be read: {error}") from error
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise FormatError(
                f"{self.path}, line {error.lineno}: invalid XML ({reason}). Is the file complete?"
            ) from error
        return self.sentences

    def start(self, tag: str, settings: dict[str, str]) -> None:
        self.text, self.settings = "", settings
        if tag == "sentence":
            self.sentences.append(WsdSentence([], []))

    def characters(self, text: str) -> None:
        self.text += text

    def end(self, tag: str) -> None:
        if tag not in ("wf", "instance"):
            return
        where = f"{self.path}, line {self.parser.CurrentLineNumber}"
        if not self.sentences or not self.text.strip():
            raise FormatError(f"{where}: <{tag}> is empty or outside a <sentence>")
        sentence = self.sentences[-1]
        start = len(sentence.words)
        sentence.words.extend(_words(self.text))
        if tag == "instance":
            name, lemma, pos = (self.settings.get(key, "") for key in ("id", "lemma", "pos"))
            if not lemma or pos not in _TYPES:
                raise FormatError(
                    f"{where}: instance {name!r} has lemma {lemma!r}, pos {pos!r}; expected one of {', '.join(_TYPES)}"
                )
            if name not in self.keys or name in self.seen:
                raise FormatError(f"{where}: instance {name!r} has no gold key, or is repeated")
            self.seen.add(name)
            key = Lemma(lemma.lower(), _TYPES[pos])
            sentence.instances.append(Instance(name, key, start, len(sentence.words), self.keys[name]))


def read_first_senses(index_sense: str | Path) -> dict[Lemma, str]:
    """Read the first sense of every lemma from the index.sense of WordNet."""
    first: dict[Lemma, str] = {}
    for number, line in numbered_lines(existing(index_sense)):
        where = f"{index_sense}, line {number}"
        fields = line.split()
        if len(fields) != 4 or not fields[2].isdigit():
            raise FormatError(f"{where}: expected a sense key, offset, sense number and count, got {line[:60]!r}")
        if fields[2] == "1":
            key = _checked_key(fields[0], where)
            first[lemma_of(key)] = key
    return first


def _words(text: str) -> list[str]:
    """Split an annotated expression: SemCor joins its words with underscores, the unified sets with spaces."""
    return [_PLAIN.get(word, word) for word in text.replace("_", " ").split()] or [text]


def _checked_key(key: str, where: str) -> str:
    if not _SENSE_KEY.fullmatch(key):
        raise FormatError(f"{where}: {key!r} is not a sense key like say%2:32:00::")
    return key


def _annotated(sentences: list[WsdSentence]) -> int:
    return sum(len(sentence.instances) for sentence in sentences)
