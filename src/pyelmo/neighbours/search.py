"""An index of neighbours, and queries: a word in a sentence -> its nearest occurrences in the indexed text.

All files but the manifest are memory-mapped.

D vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.errors import InputError
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import checksum
from pyelmo.neighbours import layout
from pyelmo.neighbours.vector_index import SEARCHES, RowNumbers, import_faiss, map_file
from pyelmo.text.normalisation import normalise
from pyelmo.text.rows import TextRow
from pyelmo.text.tokens import TokenSpan, split_spans
from pyelmo.vectors.static import unit_vectors

MARK = "*"


@dataclass(frozen=True)
class Neighbour:
    """An occurrence of a word, `sentence[start:end]`, and its similarity to the query.

    Attributes:
        cosine: The cosine of its vector and the query's.
        word: The word as it is written in the sentence.
        sentence: The whole sentence.
        start: The first character of the word in the sentence.
        end: The character after the word.
        source: The file of the text.
        line: The line in this file, from 1.

    Example:
        >>> from pyelmo.neighbours import Neighbour
        >>> Neighbour(0.9, "bank", "a bank account", 2, 6, "text.txt", 1).marked
        'a *bank* account'
        >>> Neighbour(0.9, "bank", "he opened a bank account today", 12, 16, "text.txt", 1).window(9)
        '… a *bank* account …'
    """

    cosine: float
    word: str
    sentence: str
    start: int
    end: int
    source: str
    line: int

    @property
    def marked(self) -> str:
        """The sentence with asterisks around the word."""
        return f"{self.sentence[: self.start]}{MARK}{self.word}{MARK}{self.sentence[self.end :]}"

    def window(self, size: int) -> str:
        """Return the word between asterisks with at most `size` characters of the sentence on each side.

        Args:
            size: The number of characters. Words are not cut, unless one alone is longer.

        Returns:
            A part of `marked`, with "…" where the sentence is cut.
        """
        before, after = self.sentence[: self.start], self.sentence[self.end :]
        if len(before) > size:
            before = before[-size:]
            before = "…" + (before[before.index(" ") :] if " " in before[:-1] else before)
        if len(after) > size:
            after = after[:size]
            after = (after[: after.rindex(" ") + 1] if " " in after[1:] else after) + "…"
        return f"{before}{MARK}{self.word}{MARK}{after}"


def load(path: str | Path, *, verify: bool = True) -> Index:
    """Open an index that `build` wrote.

    Args:
        path: The folder of the index.
        verify: Compare the checksum of every file; otherwise only their sizes.

    Returns:
        The index, ready for queries.

    Raises:
        MissingExtraError: faiss is not installed.
        NotFoundError: The folder does not exist.
        FormatError: The folder is not an index, or a file is damaged.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyelmo import neighbours
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "text.txt").write_text("He opened a bank account .")
        >>> _ = neighbours.build([folder / "text.txt"], folder / "index", model="en")
        >>> len(neighbours.load(folder / "index"))
        5
    """
    return Index(path, verify=verify)


class Index:
    """An index of words in their sentences. `len()` is the number of indexed occurrences.

    Attributes:
        path: The folder of the index.
        manifest: What the index holds: its model, layer, words, inputs and counts.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pyelmo import neighbours
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "text.txt").write_text("He opened a bank account .")
        >>> index = neighbours.build([folder / "text.txt"], folder / "index", model="en")
        >>> words, position = index.find("my *account*")
        >>> words, position
        (['my', 'account'], 1)
        >>> vectors = index.load_model().embed([words], layers="top")[0]
        >>> [neighbour.word for neighbour in index.nearest(vectors[position], count=1)]
        ['account']
        >>> index.vectors(index.rows("account")).shape
        (1, 1024)
        >>> index.occurrence(0).word
        'He'
    """

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        """Open an index; see `load` for the arguments and the errors."""
        self.path = Path(path)
        import_faiss()
        self.manifest = layout.read_manifest(self.path)
        layout.check_files(self.path, self.manifest, verify=verify)
        search = SEARCHES.get(self.manifest["kind"])
        if search is None:
            raise layout.damaged(self.path / layout.MANIFEST, f"its kind is {self.manifest['kind']!r}")
        self._search = search(self.path, len(self), self.manifest["dim"])
        self._text: npt.NDArray[np.uint8] = map_file(self.path / layout.TEXT, "u1")
        self._sentences = map_file(self.path / layout.SENTENCES, layout.SENTENCE)
        self._occurrences = map_file(self.path / layout.OCCURRENCES, layout.OCCURRENCE, len(self))

    def __len__(self) -> int:
        return int(self.manifest["occurrences"])

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, {len(self):,} occurrences)"

    def _fact(self, name: str) -> Any:
        """Return what the manifest says of how the index was built."""
        if name not in self.manifest:
            raise layout.damaged(self.path / layout.MANIFEST, f"{name!r} is missing")
        return self.manifest[name]

    def load_model(self, model: str | Path | None = None, *, threads: int | None = None) -> Embedder:
        """Load the model that built the index.

        Args:
            model: The current path of the model (default: its path when the index was built).
            threads: The number of CPU threads (default: the number that torch uses).

        Returns:
            The embedder, for `query`.

        Raises:
            NotFoundError: The model does not exist.
            InputError: The model is not the one that built the index.
        """
        facts = self._fact("model")
        if model is None:
            pretrained = resolve.read(facts["name"], options=facts["options"], vocab=facts["vocab"])
        else:
            pretrained = resolve.read(model)
        if (model_checksum := checksum(pretrained)) != facts["sha256"]:
            raise InputError(
                f"{self.path}: the index was built with another model ({facts['name']}, {facts['sha256'][:12]}) than "
                f"{pretrained.source} ({model_checksum[:12]}). Pass that model with --model, or build the index again."
            )
        precision: Precision = "int8" if self._fact("precision") == "int8" else "float32"  # bfloat16 needs a GPU
        return Embedder(pretrained, language=self._fact("language"), precision=precision, threads=threads)

    def find(self, sentence: str, word: str | None = None) -> tuple[list[str], int]:
        """Split a sentence like the indexed text, and find the queried word.

        Args:
            sentence: The sentence, with asterisks around the queried word unless `word` is given.
            word: The queried word.

        Returns:
            The words of the sentence, and the position of the queried word.

        Raises:
            InputError: The sentence does not show exactly one word.
        """
        return find_word(sentence, None if self._fact("tokenised") else self._fact("language"), word)

    def query(
        self, embedder: Embedder, sentence: str, *, word: str | None = None, count: int = 10, same_word: bool = False
    ) -> list[Neighbour]:
        """Return the occurrences nearest to a word in a sentence.

        Args:
            embedder: The model of the index, from `load_model`.
            sentence: The sentence, with asterisks around the word unless `word` is given: "a Broadway *play*".
            word: The word, which must occur once in the sentence.
            count: The number of neighbours.
            same_word: Return only occurrences of the same word.

        Returns:
            The neighbours, the nearest first.

        Raises:
            InputError: The sentence does not show exactly one word, `count` is less than 1, or the index does not hold
                the word and `same_word` is set.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from pyelmo import neighbours
            >>> folder = Path(tempfile.mkdtemp())
            >>> lines = ["They sat on the bank of the river .", "He opened a bank account ."]
            >>> _ = (folder / "text.txt").write_text("\\n".join(lines))
            >>> index = neighbours.build([folder / "text.txt"], folder / "index", model="en")
            >>> (nearest,) = index.query(index.load_model(), "My *bank* account is empty .", count=1)
            >>> nearest.word, nearest.line, nearest.marked
            ('bank', 2, 'He opened a *bank* account .')
        """
        words, position = self.find(sentence, word)
        vector = embedder.embed([words], layers=self._fact("layer"))[0][position]
        return self.nearest(vector, count=count, word=words[position] if same_word else None)

    def nearest(self, vector: Float32Array, *, count: int = 10, word: str | None = None) -> list[Neighbour]:
        """Return the occurrences nearest to a vector.

        Args:
            vector: An array (vector size,).
            count: The number of neighbours.
            word: Return only occurrences of this word, in any case (default: of all words).

        Returns:
            The neighbours, the nearest first.

        Raises:
            InputError: `count` is less than 1, or the index does not hold the word.
        """
        if count < 1:
            raise InputError(f"the number of neighbours is {count}; it must be at least 1")
        rows = None if word is None else self.rows(word)
        if rows is not None and not len(rows):
            raise InputError(f"{self.path}: the index holds no occurrence of {word!r}. Query without --same-word.")
        query = unit_vectors(np.asarray(vector, dtype=np.float32))
        cosines, nearest_rows = self._search.nearest(query, min(count, len(self)), rows)
        pairs = zip(nearest_rows.tolist(), cosines.tolist(), strict=True)
        return [self.occurrence(row, cosine) for row, cosine in pairs]

    def rows(self, word: str) -> RowNumbers:
        """Return the rows of all occurrences of a word.

        Args:
            word: The word, in any case.

        Returns:
            The numbers (N,) of its occurrences, in the order of the text; none if the index does not hold the word.
        """
        wanted = layout.word_hash(normalise(word, self.manifest.get("language", "general")))
        return np.flatnonzero(self._occurrences["word"] == wanted)

    def vectors(self, rows: RowNumbers) -> Float32Array:
        """Return the unit vectors of some rows.

        Args:
            rows: Numbers of occurrences (N,).

        Returns:
            An array (N, vector size).
        """
        return self._search.vectors(rows)

    def occurrence(self, row: int, cosine: float = 1.0) -> Neighbour:
        """Return the occurrence in a row.

        Args:
            row: The number of the occurrence.
            cosine: Its similarity to a query.

        Returns:
            The occurrence with its sentence.

        Raises:
            FormatError: The index is damaged.
        """
        try:
            number, start, end, _ = self._occurrences[row].tolist()
            offset, size, file, line = self._sentences[number].tolist()
            sentence = self._text[offset : offset + size].tobytes().decode("utf-8")
            name = self.manifest["inputs"][file]
            if min(number, offset, size, file, start) < 0 or not start <= end <= len(sentence):
                raise IndexError("a position is outside its sentence")
        except (IndexError, UnicodeDecodeError) as error:
            raise layout.damaged(self.path, f"occurrence {row} cannot be read ({error})") from error
        return Neighbour(cosine, sentence[start:end], sentence, start, end, name, line)


def word_spans(sentence: TextRow, language: str | None) -> list[TokenSpan]:
    """Return the words of a sentence and their characters; without a language, words are separated by white space."""
    if sentence.words is None and language is not None:
        return split_spans(sentence.text, language)
    spans, end = [], 0
    for word in sentence.text.split() if sentence.words is None else sentence.words:
        start = sentence.text.index(word, end)
        end = start + len(word)
        spans.append(TokenSpan(normalise(word) or word, start, end))
    return spans


def find_word(sentence: str, language: str | None, word: str | None = None) -> tuple[list[str], int]:
    """Return the words of a sentence and the position of `word`, or of the word between asterisks."""
    if word is not None:
        words = [span.word for span in word_spans(TextRow(sentence), language)]
        wanted = normalise(word, language or "general").casefold()
        positions = [position for position, other in enumerate(words) if other.casefold() == wanted]
        if len(positions) != 1:
            times = f"occurs {len(positions)} times" if positions else "does not occur"
            raise InputError(f"{word!r} {times} in the sentence {sentence!r}. Mark the word with asterisks instead.")
        return words, positions[0]
    before, *rest = sentence.split(MARK)
    if len(rest) != 2 or not rest[0].strip():
        raise InputError(f"{sentence!r}: expected one word between asterisks, such as: a Broadway *play*")
    marked, after = rest
    spans = word_spans(TextRow(before + marked + after), language)
    start = len(before) + len(marked) - len(marked.lstrip())
    end = len(before) + len(marked.rstrip())
    positions = [position for position, span in enumerate(spans) if span.start < end and span.end > start]
    # The word may extend beyond the asterisks. Of several morphemes with the same syllables, the first is meant.
    if not positions or any(spans[position].start > start for position in positions):
        words = [spans[position].word for position in positions]
        raise InputError(f"{marked!r} between the asterisks is not one word but {len(words)}: {', '.join(words)}")
    return [span.word for span in spans], positions[0]
