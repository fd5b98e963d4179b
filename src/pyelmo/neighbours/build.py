"""Text -> an index of every occurrence of its words.

    text files --> sentences with their word spans --embedder--> (T, D) --> unit vectors of the indexed words --> files

The index is built in constant memory in a temporary folder, which gets its final name when it is complete.

T tokens of a sentence, D vector.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.files.inputs import read
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError, OutputError
from pyelmo.files import atomic_path, check_output, check_replaceable
from pyelmo.formats.pretrained import checksum
from pyelmo.neighbours import layout
from pyelmo.neighbours.search import Index, word_spans
from pyelmo.neighbours.vector_index import VectorWriter, import_faiss
from pyelmo.text.normalisation import normalise
from pyelmo.text.rows import ReadOptions, TextRow
from pyelmo.text.tokens import TokenSpan
from pyelmo.vectors.static import unit_vectors


@dataclass(frozen=True)
class IndexedSentence:
    """A sentence of the text, and the positions of its words that are indexed."""

    text: str
    spans: list[TokenSpan]
    positions: list[int]
    file: int
    line: int
    lines: int = 1  # lines of the text from the indexed sentence before up to this one, for the progress


def build(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    model: str | Path,
    words: Iterable[str] | None = None,
    layer: str | int | Sequence[float] = "top",
    column: str | None = None,
    input_format: str = "auto",
    encoding: str | None = None,
    exact: bool = False,
    force: bool = False,
    advance: Callable[[int], object] = lambda sentences: None,
    **settings: Any,
) -> Index:
    """Index the occurrences of words in a text.

    Args:
        inputs: Text files with one sentence on each line, or csv, tsv, jsonl or Parquet files.
        output: The folder of the index.
        model: The ELMo model: a bundled name, a path or a Hub id.
        words: The words to index, in any case (default: all words with a letter or a digit).
        layer: The layer of the vectors: "top", "average", the number of a layer, or the weights of a mix of layers.
        column: The column with the text (default for Parquet files: the first of tokens, sentence, text).
        input_format: The format of the files: "text", "csv", "tsv", "jsonl" or "parquet" (default: by their names).
        encoding: The encoding of the files (default: UTF-8).
        exact: Compare queries with every vector. By default, an index of more than 100,000 occurrences is searched in
            inverted lists, which is faster and finds nearly all of the nearest.
        force: Replace an index that exists.
        advance: A callback that is called with the number of lines that were indexed since the last call; first with
            0, when the model is loaded.
        **settings: Other fields of `EmbedSettings`: options, vocab, language, tokenised, precision, device, batch_size,
            threads.

    Returns:
        The index, ready for queries.

    Raises:
        MissingExtraError: faiss is not installed.
        NotFoundError: A text file or the model does not exist.
        InputError: None of the words occurs in the text, or a setting is invalid.
        OutputError: The output exists and `force` is not set, or the output is not an index.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyelmo import neighbours
        >>> folder = Path(tempfile.mkdtemp())
        >>> lines = ["They sat on the bank of the river .", "He opened a bank account ."]
        >>> _ = (folder / "text.txt").write_text("\\n".join(lines))
        >>> index = neighbours.build([folder / "text.txt"], folder / "index", model="en", words=["bank"])
        >>> len(index)
        2
        >>> nearest = index.query(index.load_model(), "The *bank* gave them a loan .", count=1)
        >>> [neighbour.marked for neighbour in nearest]
        ['He opened a *bank* account .']
    """
    chosen = EmbedSettings(model=str(model), layers=layer, **settings)
    if layer == "all":
        raise InputError("an index holds one layer: 'top', 'average', the number of a layer, or the weights of a mix")
    if chosen.pooling or chosen.keep_boundaries or chosen.documents:
        raise InputError(
            "an index has one vector per word of a line: pooling, keep_boundaries and documents cannot be set"
        )
    import_faiss()
    _check_output(Path(output), force=force)
    pretrained = chosen.read_model()
    model_checksum = checksum(pretrained)  # before the embedder changes the weights to its precision
    embedder = chosen.build_embedder(pretrained)
    wanted = None if words is None else {normalise(word, embedder.language).casefold() for word in words}
    names = [str(path) for path in inputs]
    facts = {
        "words": "all" if wanted is None else sorted(wanted), "inputs": names, "layer": chosen.layers,
        "model": {"name": chosen.model, "options": chosen.options, "vocab": chosen.vocab, "sha256": model_checksum},
        "precision": chosen.precision, "language": embedder.language, "tokenised": chosen.tokenised,
    }  # fmt: skip
    advance(0)
    split = functools.partial(word_spans, language=None if chosen.tokenised else embedder.language)
    reading = ReadOptions(column=column, input_format=input_format, encoding=encoding)
    sentences = _read_sentences(names, reading, split, wanted, advance)
    embedded = _embed(sentences, embedder, chosen, advance)
    return write(embedded, output, dim=embedder.config.dim, facts=facts, exact=exact, force=force)


def write(
    sentences: Iterable[tuple[IndexedSentence, Float32Array]],
    output: str | Path,
    *,
    dim: int,
    facts: dict[str, Any],
    exact: bool = False,
    force: bool = False,
) -> Index:
    """Write an index of sentences with the vectors (T, D) of all their words. `facts` go into the manifest."""
    _check_output(Path(output), force=force)
    with atomic_path(output, force=force) as folder:
        folder.mkdir()
        with _Writer(folder, dim) as writer:
            for sentence, vectors in sentences:
                writer.add(sentence, unit_vectors(vectors[sentence.positions]))
            count = writer.vectors.count
            if not count:
                words = "words" if facts["words"] == "all" else f"occurrence of {' or '.join(facts['words'])}"
                raise InputError(f"{', '.join(facts['inputs'])}: no {words} to index. Check the text and the words.")
            kind = writer.finish(exact=exact)
        counts = {"kind": kind, "occurrences": count, "sentences": writer.sentences, "dim": dim}
        layout.write_manifest(folder, {**counts, **facts})
    return Index(output, verify=False)


def _read_sentences(
    names: Sequence[str],
    reading: ReadOptions,
    split: Callable[[TextRow], list[TokenSpan]],
    wanted: set[str] | None,
    advance: Callable[[int], object],
) -> Iterator[IndexedSentence]:
    """Return the sentences with a wanted word. Lines after the last one are counted here, the others when written."""
    lines = 0
    for file, name in enumerate(names):
        for line, row in enumerate(read([name], reading), 1):
            sentence = row._replace(text=row.text.replace("\n", " "))  # a row may have several lines
            spans = split(sentence)
            positions = [position for position, span in enumerate(spans) if _is_wanted(span.word, wanted)]
            lines += 1
            if positions:
                yield IndexedSentence(sentence.text, spans, positions, file, line, lines)
                lines = 0
    advance(lines)


def _is_wanted(word: str, wanted: set[str] | None) -> bool:
    return any(map(str.isalnum, word)) if wanted is None else word.casefold() in wanted


def _embed(
    sentences: Iterable[IndexedSentence],
    embedder: Embedder,
    settings: EmbedSettings,
    advance: Callable[[int], object],
) -> Iterator[tuple[IndexedSentence, Float32Array]]:
    waiting: deque[IndexedSentence] = deque()

    def tokens() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield [span.word for span in sentence.spans]

    for vectors in settings.stream(embedder, tokens()):  # (T, D)
        sentence = waiting.popleft()
        yield sentence, vectors
        advance(sentence.lines)  # now, not when it was read: the embedder reads far ahead


class _Writer(contextlib.AbstractContextManager["_Writer"]):
    """The files of an index, written sentence by sentence."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.vectors = VectorWriter(folder, dim)
        self.sentences = 0
        names = (layout.TEXT, layout.SENTENCES, layout.OCCURRENCES)
        self._text, self._sentences, self._occurrences = (open(folder / name, "wb") for name in names)  # noqa: SIM115
        self._offset = 0

    def add(self, sentence: IndexedSentence, vectors: Float32Array) -> None:
        text = sentence.text.encode("utf-8", "replace")
        self._text.write(text + b"\n")
        record = (self._offset, len(text), sentence.file, sentence.line)
        self._sentences.write(np.array(record, layout.SENTENCE).tobytes())
        spans = [sentence.spans[position] for position in sentence.positions]
        records = [(self.sentences, span.start, span.end, layout.word_hash(span.word)) for span in spans]
        self._occurrences.write(np.array(records, layout.OCCURRENCE).tobytes())
        self.vectors.add(vectors)
        self._offset += len(text) + 1
        self.sentences += 1

    def finish(self, *, exact: bool) -> str:
        self.__exit__()
        return self.vectors.finish(exact=exact)

    def __exit__(self, *error: object) -> None:
        for file in (self.vectors, self._text, self._sentences, self._occurrences):
            file.close()


def _check_output(path: Path, *, force: bool) -> None:
    check_output(path, force=force)
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not (path / layout.MANIFEST).is_file() and not is_empty:
        raise OutputError(f"{path}: not an index of neighbours, so --force does not replace it. Choose another name.")
    check_replaceable(path, layout.FILES)
