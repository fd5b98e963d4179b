"""A word <-> a fixed row of symbol ids: what the character CNN reads.

A row is [begin word, the word's symbols cut to max_length - 2, end word, padding ...]. The two sentence marks are rows
of their own with one special symbol. No word can give an id outside the table.

    Bytes        UTF-8 bytes, as AllenNLP and bilm-tf number them
    Jamo         Hangul by its letters (a syllable is two or three symbols), everything else by its UTF-8 bytes
    Dictionary   Unicode characters listed in a file, as ELMoForManyLangs numbers them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError

# Bytes and Jamo: 0 is the padding token; byte b is 1 + b; then the marks.
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
BYTE_SYMBOLS = 262
SENTENCE_MARKS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}

# Jamo: after the bytes come 19 initials, 21 medials, 27 finals and the 51 letters of U+3131..U+3163.
INITIALS, MEDIALS, FINALS, LETTERS = 19, 21, 27, 51
_INITIAL = BYTE_SYMBOLS
_MEDIAL = _INITIAL + INITIALS
_FINAL = _MEDIAL + MEDIALS - 1  # a final's own number starts at 1
_LETTER = _FINAL + 1 + FINALS
JAMO_SYMBOLS = _LETTER + LETTERS

ROWS_AT_ONCE = 1 << 14  # lists of numbers take ten times the memory of an array: millions of words, part by part


class Alphabet(Protocol):
    """Rows of `max_length` symbol ids, each below `size`."""

    @property
    def max_length(self) -> int: ...

    @property
    def size(self) -> int: ...

    def row(self, word: str) -> list[int]: ...


def encode_rows(alphabet: Alphabet, words: Sequence[str]) -> npt.NDArray[np.int32]:
    """The rows of some words as one array (N, C)."""
    rows = np.empty((len(words), alphabet.max_length), dtype=np.int32)
    for start in range(0, len(words), ROWS_AT_ONCE):
        part = words[start : start + ROWS_AT_ONCE]
        found = _byte_rows(alphabet, part) if isinstance(alphabet, Bytes) else [alphabet.row(word) for word in part]
        rows[start : start + len(part)] = found
    return rows


@dataclass(frozen=True)
class Bytes:
    """UTF-8 bytes; a long word is cut at a byte, perhaps inside a character, as the old programs do."""

    max_length: int = 50

    @property
    def size(self) -> int:
        return BYTE_SYMBOLS

    def row(self, word: str) -> list[int]:
        mark = SENTENCE_MARKS.get(word)
        return _marked([mark] if mark else _bytes(word, self.max_length - 2), self.max_length)


@dataclass(frozen=True)
class Jamo:
    """Hangul letters and bytes: composed and decomposed Hangul give the same row."""

    max_length: int = 50

    @property
    def size(self) -> int:
        return JAMO_SYMBOLS

    def row(self, word: str) -> list[int]:
        mark = SENTENCE_MARKS.get(word)
        if mark:
            return _marked([mark], self.max_length)
        room = self.max_length - 2
        symbols: list[int] = []
        for character in word:
            symbols += _jamo(ord(character)) or _bytes(character, room)
            if len(symbols) >= room:
                break
        return _marked(symbols[:room], self.max_length)


@dataclass(frozen=True)
class Dictionary:
    """Characters from a list; one that is not in it is `<oov>`. Symbols are in the order of their ids."""

    symbols: tuple[str, ...]
    max_length: int = 50

    def __post_init__(self) -> None:
        ids: Mapping[str, int] = {symbol: index for index, symbol in enumerate(self.symbols)}
        for mark in ("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>"):
            if mark not in ids:
                raise FormatError(f"character dictionary: the mark {mark!r} is missing")
        object.__setattr__(self, "_ids", ids)

    @property
    def size(self) -> int:
        return len(self.symbols)

    def row(self, word: str) -> list[int]:
        ids: Mapping[str, int] = self._ids  # type: ignore[attr-defined]
        unknown = ids["<oov>"]
        # ELMoForManyLangs was trained with the two word marks swapped: a word begins with the id of <eow>.
        begin, end, padding = ids["<eow>"], ids["<bow>"], ids["<pad>"]
        symbols = [ids[word]] if word in ("<bos>", "<eos>") else [ids.get(c, unknown) for c in self.cut(word)]
        return [begin, *symbols, end] + [padding] * (self.max_length - 2 - len(symbols))

    def cut(self, word: str) -> str:
        """The part of a word that fits; ELMoForManyLangs looks it up in the word list, too."""
        return word[: self.max_length - 2]


def _marked(symbols: list[int], max_length: int) -> list[int]:
    return [BEGIN_WORD, *symbols, END_WORD] + [PADDING] * (max_length - 2 - len(symbols))


def _byte_rows(alphabet: Bytes, words: Sequence[str]) -> npt.NDArray[np.int32]:
    """`alphabet.row` of every word (N, C), without a list of numbers for each."""
    count, room = len(words), alphabet.max_length - 2
    spelled = [word.encode("utf-8", "ignore")[:room] for word in words]
    sizes = np.fromiter(map(len, spelled), dtype=np.int64, count=count)
    rows = np.full((count, alphabet.max_length), PADDING, dtype=np.int32)
    rows[:, 0] = BEGIN_WORD
    rows[:, 1:-1][np.arange(room) < sizes[:, None]] = np.frombuffer(b"".join(spelled), dtype=np.uint8).astype(int) + 1
    rows[np.arange(count), sizes + 1] = END_WORD
    for place, word in enumerate(words):
        if word in SENTENCE_MARKS:
            rows[place] = alphabet.row(word)
    return rows


def _bytes(text: str, room: int) -> list[int]:
    # Lone surrogates have no UTF-8 form and are left out, as in AllenNLP.
    return [1 + byte for byte in text.encode("utf-8", "ignore")[:room]]


def _jamo(code: int) -> list[int]:
    """The letters of one Hangul character, composed (U+AC00..), conjoining (U+1100..) or alone (U+3131..)."""
    if 0xAC00 <= code <= 0xD7A3:
        initial, rest = divmod(code - 0xAC00, MEDIALS * (FINALS + 1))
        medial, final = divmod(rest, FINALS + 1)
        return [_INITIAL + initial, _MEDIAL + medial] + ([_FINAL + final] if final else [])
    if 0x1100 <= code < 0x1100 + INITIALS:
        return [_INITIAL + code - 0x1100]
    if 0x1161 <= code < 0x1161 + MEDIALS:
        return [_MEDIAL + code - 0x1161]
    if 0x11A8 <= code < 0x11A8 + FINALS:
        return [_FINAL + 1 + code - 0x11A8]
    if 0x3131 <= code < 0x3131 + LETTERS:
        return [_LETTER + code - 0x3131]
    return []
