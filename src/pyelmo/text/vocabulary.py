"""The words a model knows by number: for its softmax, and for its input where it reads words.

A file holds one word a line; the line number is the id. Three words have a meaning of their own: the begin mark,
the end mark, and the one that stands for every word that is not in the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError
from pyelmo.files import atomic_path

BEGIN, END, UNKNOWN = "<S>", "</S>", "<UNK>"


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their ids."""

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
            raise FormatError(f"vocabulary: {word!r} stands at lines {index + 1} and {second + 1}; remove one")
        for mark in (self.begin, self.end, self.unknown):
            if mark not in ids:
                raise FormatError(f"vocabulary: the mark {mark!r} is missing; add it as a line of its own")
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.ids

    def __getitem__(self, word: str) -> int:
        """The id of a word; that of the unknown mark for a word that is not in the list."""
        return self.ids.get(word, self.ids[self.unknown])

    def encode(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        unknown = self.ids[self.unknown]
        return np.fromiter((self.ids.get(word, unknown) for word in words), dtype=np.int32)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, size: int | None = None, min_count: int = 1) -> Vocabulary:
        """The marks, then words by falling count (ties by code point), at most `size` in all."""
        marks = (BEGIN, END, UNKNOWN)
        kept = sorted(
            (word for word, count in counts.items() if count >= min_count and word not in marks),
            key=lambda word: (-counts[word], word),
        )
        return cls((*marks, *kept)[:size])

    @classmethod
    def load(cls, path: str | Path, *, begin: str = BEGIN, end: str = END, unknown: str = UNKNOWN) -> Vocabulary:
        """Read a file of one word a line (split at line feeds alone: a word may hold any other character)."""
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{path}: not UTF-8 at byte {error.start}; a vocabulary is UTF-8, one word a line"
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
        with atomic_path(path) as part:
            part.write_bytes("".join(f"{word}\n" for word in self.words).encode("utf-8"))


class WordNumbers(dict[str, int]):
    """Words by number: a new word gets the next one."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
