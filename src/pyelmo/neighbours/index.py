"""Neighbours in context: text -> an index of every occurrence of its words -> those nearest to a word in a sentence.

    INDEX/manifest.json     what the index holds and of which model, and the checksum of every file
    INDEX/sentences.txt     the sentences that hold an occurrence, one a line
    INDEX/sentences.bin     for each of them: where it begins, and its file and line in the text
    INDEX/occurrences.bin   for each occurrence: its sentence, where it stands in it, and its word as a hash
    INDEX/vectors.f32, or index.faiss and owners.i4: the vectors of the occurrences, see nearest.py

An index is built in constant memory, beside its place, and takes its name when it is whole. All but the manifest is
mapped when it is read.

T tokens of a sentence, D vector.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.embed.files.inputs import InputSentence, read
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError, OutputError
from pyelmo.files import atomic_path, check_output
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import checksum
from pyelmo.neighbours import manifest, nearest
from pyelmo.text.tokens import TokenSpan, split_spans
from pyelmo.vectors.static import unit_vectors

TEXT, SENTENCES, OCCURRENCES = "sentences.txt", "sentences.bin", "occurrences.bin"
MARK = "*"
Layer = str | int | Sequence[float]

_SENTENCE = np.dtype([("start", "<i8"), ("bytes", "<i4"), ("file", "<i4"), ("line", "<i8")])
_OCCURRENCE = np.dtype([("sentence", "<i4"), ("start", "<i4"), ("end", "<i4"), ("word", "<u8")])


@dataclass(frozen=True)
class Neighbour:
    """An occurrence of a word, `sentence[start:end]`, and how near it is."""

    cosine: float
    word: str
    sentence: str
    start: int
    end: int
    source: str  # the file of the text, and its line from 1
    line: int

    @property
    def marked(self) -> str:
        """The sentence with the word between asterisks."""
        return f"{self.sentence[: self.start]}{MARK}{self.word}{MARK}{self.sentence[self.end :]}"


# --- build ---------------------------------------------------------------------------------------------------------


def build(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    model: str | Path,
    words: Iterable[str] | None = None,
    layer: Layer = "top",
    column: str | None = None,
    exact: bool = False,
    force: bool = False,
    advance: Callable[[int], object] = lambda sentences: None,
    **settings: Any,
) -> Index:
    """Index the occurrences of `words` (by default of all with a letter or a digit) in text, a sentence a line.

    Words are the same that differ in case alone. `layer` is "top", "average", a layer's index or the weights of a mix.
    `exact` compares a query with every vector, however many there are. `advance` hears of each line.
    """
    chosen = EmbedSettings(model=str(model), layers=layer, **settings)
    if layer == "all":
        raise InputError("an index is of one layer: 'top', 'average', an index or the weights of a mix")
    if chosen.pooling or chosen.keep_boundaries:
        raise InputError("an index holds one vector for each word: pooling and keep_boundaries cannot be set")
    nearest.import_faiss()
    _check_output(Path(output), force=force)
    pretrained = chosen.read_model()
    identity = checksum(pretrained)  # before an embedder changes the weights to the precision that it computes in
    embedder = chosen.build_embedder(pretrained)
    wanted = None if words is None else {word.casefold() for word in words}
    names = [str(path) for path in inputs]
    facts = {
        "words": "all" if wanted is None else sorted(wanted), "inputs": names,
        "layer": chosen.layers,
        "model": {"name": chosen.model, "options": chosen.options, "vocab": chosen.vocab, "sha256": identity},
        "precision": chosen.precision, "language": embedder.language, "tokenised": chosen.tokenised,
    }  # fmt: skip
    split = functools.partial(_spans, language=None if chosen.tokenised else embedder.language)
    found = _embedded(_found(names, column, split, wanted, advance), embedder, chosen)
    return write(found, output, dim=embedder.config.dim, facts=facts, exact=exact, force=force)


def write(
    found: Iterable[tuple[IndexedSentence, Float32Array]],
    output: str | Path,
    *,
    dim: int,
    facts: dict[str, Any],
    exact: bool = False,
    force: bool = False,
) -> Index:
    """An index of sentences with the vectors (T, D) of their words; `facts` tell the manifest where those are from."""
    _check_output(Path(output), force=force)
    with atomic_path(output, force=force) as folder:
        folder.mkdir()
        with _Writer(folder, dim) as writer:
            for sentence, vectors in found:
                writer.add(sentence, unit_vectors(vectors[sentence.places]))
            count = writer.vectors.count
            if not count:
                words = "word" if facts["words"] == "all" else " or ".join(facts["words"])
                raise InputError(f"{', '.join(facts['inputs'])}: no {words} in it to index")
            kind = writer.finish(exact=exact)
        counts = {"kind": kind, "occurrences": count, "sentences": writer.sentences, "dim": dim}
        manifest.write(folder, {**counts, **facts})
    return Index(output, verify=False)


@dataclass(frozen=True)
class IndexedSentence:
    """A sentence of the text and the words of it that are indexed."""

    text: str
    spans: list[TokenSpan]
    places: list[int]
    file: int
    line: int


def _found(
    names: Sequence[str],
    column: str | None,
    split: Callable[[InputSentence], list[TokenSpan]],
    wanted: set[str] | None,
    advance: Callable[[int], object],
) -> Iterator[IndexedSentence]:
    for file, name in enumerate(names):
        for line, sentence in enumerate(read([name], column), 1):
            spans = split(sentence)
            places = [place for place, span in enumerate(spans) if _is_wanted(span.word, wanted)]
            if places:
                yield IndexedSentence(sentence.text, spans, places, file, line)
            advance(1)


def _is_wanted(word: str, wanted: set[str] | None) -> bool:
    return any(map(str.isalnum, word)) if wanted is None else word.casefold() in wanted


def _embedded(
    found: Iterable[IndexedSentence], embedder: Embedder, settings: EmbedSettings
) -> Iterator[tuple[IndexedSentence, Float32Array]]:
    waiting: deque[IndexedSentence] = deque()

    def sentences() -> Iterator[list[str]]:
        for sentence in found:
            waiting.append(sentence)
            yield [span.word for span in sentence.spans]

    for vectors in settings.stream(embedder, sentences()):  # (T, D)
        yield waiting.popleft(), vectors


def _spans(sentence: InputSentence, language: str | None) -> list[TokenSpan]:
    """The words of a sentence with their places; without a language they stand between spaces."""
    if sentence.words is None and language is not None:
        return split_spans(sentence.text, language)
    spans, end = [], 0
    for word in sentence.text.split() if sentence.words is None else sentence.words:
        start = sentence.text.index(word, end)
        end = start + len(word)
        spans.append(TokenSpan(word, start, end))
    return spans


class _Writer(contextlib.AbstractContextManager["_Writer"]):
    """The files of an index, written as sentences come."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.vectors = nearest.VectorWriter(folder, dim)
        self.sentences = 0
        names = (TEXT, SENTENCES, OCCURRENCES)
        self._text, self._sentences, self._occurrences = (open(folder / name, "wb") for name in names)  # noqa: SIM115
        self._end = 0

    def add(self, found: IndexedSentence, vectors: Float32Array) -> None:
        text = found.text.encode("utf-8", "replace")
        self._text.write(text + b"\n")
        self._sentences.write(np.array((self._end, len(text), found.file, found.line), _SENTENCE).tobytes())
        spans = [found.spans[place] for place in found.places]
        rows = [(self.sentences, span.start, span.end, _hash(span.word)) for span in spans]
        self._occurrences.write(np.array(rows, _OCCURRENCE).tobytes())
        self.vectors.add(vectors)
        self._end += len(text) + 1
        self.sentences += 1

    def finish(self, *, exact: bool) -> str:
        self.__exit__()
        return self.vectors.finish(exact=exact)

    def __exit__(self, *error: object) -> None:
        for file in (self.vectors, self._text, self._sentences, self._occurrences):
            file.close()


def _hash(word: str) -> int:
    """A word but for its case, in 64 bits: a table of all words would grow with the text."""
    return int.from_bytes(hashlib.blake2b(word.casefold().encode("utf-8", "replace"), digest_size=8).digest(), "little")


def _check_output(path: Path, *, force: bool) -> None:
    check_output(path, force=force)
    if path.exists() and not (path / manifest.MANIFEST).is_file() and not (path.is_dir() and not any(path.iterdir())):
        raise OutputError(
            f"{path}: is not an index of neighbours, so --force does not replace it. Choose another name."
        )


# --- query ---------------------------------------------------------------------------------------------------------


class Index:
    """A folder that `build` wrote. `verify` compares the checksum of every file, else only their sizes."""

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        folder = Path(path)
        nearest.import_faiss()
        self.manifest = manifest.read(folder)
        manifest.check_files(folder, self.manifest, verify=verify)
        self.path = folder
        self._search = nearest.SEARCHES[self.manifest["kind"]](folder, len(self), self.manifest["dim"])
        self._text: npt.NDArray[np.uint8] = np.memmap(folder / TEXT, dtype=np.uint8, mode="r")
        self._sentences: np.ndarray = np.memmap(folder / SENTENCES, dtype=_SENTENCE, mode="r")
        self._occurrences: np.ndarray = np.memmap(folder / OCCURRENCES, dtype=_OCCURRENCE, mode="r")

    def __len__(self) -> int:
        return int(self.manifest["occurrences"])

    def load_model(self, model: str | Path | None = None, *, threads: int | None = None) -> Embedder:
        """The index's model, from where it was or from another place; another model is an error."""
        facts = self.manifest["model"]
        if model is None:
            pretrained = resolve.read(facts["name"], options=facts["options"], vocab=facts["vocab"])
        else:
            pretrained = resolve.read(model)
        if (identity := checksum(pretrained)) != facts["sha256"]:
            raise InputError(
                f"{self.path}: the index is of another model ({facts['name']}, {facts['sha256'][:12]}) than "
                f"{pretrained.source} ({identity[:12]}). Name that one with --model, or build the index again."
            )
        precision: Precision = "int8" if self.manifest["precision"] == "int8" else "float32"  # bfloat16 is for a GPU
        return Embedder(pretrained, language=self.manifest["language"], precision=precision, threads=threads)

    def find(self, sentence: str, word: str | None = None) -> tuple[list[str], int]:
        """The words of a sentence, split as the text was, and the place of the one between asterisks, or of `word`."""
        return find_word(sentence, None if self.manifest["tokenised"] else self.manifest["language"], word)

    def query(
        self, embedder: Embedder, sentence: str, *, word: str | None = None, count: int = 10, same_word: bool = False
    ) -> list[Neighbour]:
        """The occurrences nearest to a word of a sentence: the one between asterisks, or `word`."""
        words, place = self.find(sentence, word)
        vector = embedder.embed([words], layers=self.manifest["layer"])[0][place]
        return self.nearest(vector, count=count, word=words[place] if same_word else None)

    def nearest(self, vector: Float32Array, *, count: int = 10, word: str | None = None) -> list[Neighbour]:
        """The occurrences nearest to a vector (D,), of any word or of one."""
        if count < 1:
            raise InputError(f"the number of neighbours is {count}; it must be at least 1")
        rows = None if word is None else np.flatnonzero(self._occurrences["word"] == _hash(word))
        if rows is not None and not len(rows):
            raise InputError(f"{self.path}: holds no occurrence of {word!r}. Ask without --same-word.")
        cosines, found = self._search.nearest(
            unit_vectors(np.asarray(vector, dtype=np.float32)), min(count, len(self)), rows
        )
        return [self._neighbour(row, cosine) for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True)]

    def _neighbour(self, row: int, cosine: float) -> Neighbour:
        number, start, end, _ = self._occurrences[row].tolist()
        offset, size, file, line = self._sentences[number].tolist()
        sentence = self._text[offset : offset + size].tobytes().decode("utf-8")
        name = self.manifest["inputs"][file]
        return Neighbour(cosine, sentence[start:end], sentence, start, end, name, line)


def find_word(sentence: str, language: str | None, word: str | None = None) -> tuple[list[str], int]:
    """The words of a sentence, split by the rules of a language (None: at spaces), and the place of the one meant.

    That is `word`, or else the one between asterisks.
    """
    if word is not None:
        words = [span.word for span in _spans(InputSentence(sentence), language)]
        places = [place for place, other in enumerate(words) if other.casefold() == word.casefold()]
        if len(places) != 1:
            stands = f"stands {len(places)} times" if places else "does not stand"
            raise InputError(f"{word!r} {stands} in the sentence {sentence!r}. Mark the word with asterisks instead.")
        return words, places[0]
    before, *rest = sentence.split(MARK)
    if len(rest) != 2 or not rest[0].strip():
        raise InputError(f"{sentence!r}: one word must stand between asterisks, such as: a Broadway *play*")
    marked, after = rest
    spans = _spans(InputSentence(before + marked + after), language)
    start = len(before) + len(marked) - len(marked.lstrip())
    end = len(before) + len(marked.rstrip())
    places = [place for place, span in enumerate(spans) if span.start < end and span.end > start]
    # The word may hold more than what is marked. Of morphemes that share their syllables it is the first.
    if not places or any(spans[place].start > start for place in places):
        words = [spans[place].word for place in places]
        raise InputError(f"{marked!r} between the asterisks is not one word but {len(words)}: {', '.join(words)}")
    return [span.word for span in spans], places[0]
