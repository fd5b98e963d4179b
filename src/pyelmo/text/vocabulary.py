"""A vocabulary: the words of a softmax or of an embedding table, and their ids.

A vocabulary file has one word per line; the line number, starting at 0, is the id. Three words are special tokens: the
boundary tokens at the begin and the end of a sentence, and the token for all out-of-vocabulary words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError
from pyelmo.files import atomic_path, read_regular

MAX_BYTES = 1 << 30
BEGIN, END, UNKNOWN = "<S>", "</S>", "<UNK>"


@dataclass(frozen=True)
class Vocabulary:
    """The words of a model in the order of their ids.

    Args:
        words: All words, including the three special tokens.
        begin: The boundary token at the begin of a sentence.
        end: The boundary token at the end of a sentence.
        unknown: The token that replaces out-of-vocabulary words.

    Raises:
        FormatError: A word occurs twice, or a special token is missing.

    Example:
        >>> vocab = Vocabulary(("<S>", "</S>", "<UNK>", "bank", "river"))
        >>> vocab["river"], vocab["ocean"]
        (4, 2)
        >>> vocab.encode(["river", "bank", "ocean"])
        array([4, 3, 2], dtype=int32)
    """

    words: tuple[str, ...]
    begin: str = BEGIN
    end: str = END
    unknown: str = UNKNOWN
    ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = dict(zip(self.words, range(len(self.words)), strict=True))
        if len(ids) < len(self.words):
            index, word = next((index, word) for index, word in enumerate(self.words) if ids[word] != index)
            second = self.words.index(word, index + 1)
            raise FormatError(f"vocabulary: {word!r} occurs on lines {index + 1} and {second + 1}; remove one of them")
        for token in (self.begin, self.end, self.unknown):
            if token not in ids:
                raise FormatError(f"vocabulary: the special token {token!r} is missing; add it on a separate line")
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.ids

    def __getitem__(self, word: str) -> int:
        """Return the id of a word, or the id of `unknown` for an out-of-vocabulary word."""
        return self.ids.get(word, self.ids[self.unknown])

    def encode(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        """Return the ids of words; that of `unknown` for an out-of-vocabulary word.

        Args:
            words: N words.

        Returns:
            The ids (N,).
        """
        unknown = self.ids[self.unknown]
        return np.fromiter((self.ids.get(word, unknown) for word in words), dtype=np.int32)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, size: int | None = None, min_count: int = 1) -> Vocabulary:
        """Build a vocabulary from word counts: the special tokens, then words by falling count, ties by code point.

        Args:
            counts: The count of each word.
            size: The maximum size of the vocabulary, including the three special tokens; None for all words.
            min_count: The minimum count of a word.

        Returns:
            The vocabulary.

        Example:
            >>> Vocabulary.from_counts({"a": 2, "c": 5, "rare": 1}, min_count=2).words
            ('<S>', '</S>', '<UNK>', 'c', 'a')
        """
        special = (BEGIN, END, UNKNOWN)
        words = sorted(
            (word for word, count in counts.items() if count >= min_count and word not in special),
            key=lambda word: (-counts[word], word),
        )
        return cls((*special, *words)[:size])

    @classmethod
    def load(cls, path: str | Path, *, begin: str = BEGIN, end: str = END, unknown: str = UNKNOWN) -> Vocabulary:
        """Read a vocabulary file: UTF-8, one word per line.

        Args:
            path: The file. Lines end with line feeds only, so that a word can contain any other character.
            begin: The boundary token at the begin of a sentence.
            end: The boundary token at the end of a sentence.
            unknown: The token that replaces out-of-vocabulary words.

        Returns:
            The vocabulary.

        Raises:
            FormatError: The file is not a regular UTF-8 file, a word occurs twice, or a special token is missing.
            NotFoundError: The file does not exist.

        Example:
            >>> import pathlib, pyelmo
            >>> len(Vocabulary.load(pathlib.Path(pyelmo.__file__).parent / "models" / "en" / "vocab.txt"))
            20000
        """
        try:
            text = read_regular(path, limit=MAX_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{path}: not UTF-8 at byte {error.start}. A vocabulary file is UTF-8 with one word per line."
            ) from error
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        try:
            words = (line.removesuffix("\r") for line in lines) if "\r" in text else lines
            return cls(tuple(words), begin, end, unknown)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write a vocabulary file that `load` reads.

        Args:
            path: The file to write.

        Raises:
            OutputError: The file cannot be written.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Vocabulary(("<S>", "</S>", "<UNK>", "bank")).save(f"{folder}/vocab.txt")
            ...     len(Vocabulary.load(f"{folder}/vocab.txt"))
            4
        """
        with atomic_path(path) as part:
            part.write_bytes("".join(f"{word}\n" for word in self.words).encode("utf-8"))


class WordNumbers(dict[str, int]):
    """A dictionary from words to numbers, in which a new word gets the next number."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
