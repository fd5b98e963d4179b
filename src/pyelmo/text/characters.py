"""Convert words to symbol ids, the input of the character CNN.

    word -> [begin of word, at most C - 2 symbols of the word, end of word, padding ...]    (C,)

C is `max_length`. A boundary token (<S> or </S>) has one special symbol between begin and end of word. All ids are
below `size`, for any word.

    Bytes        UTF-8 bytes, with the ids of AllenNLP and bilm-tf
    Jamo         Hangul letters (two or three symbols per syllable), and UTF-8 bytes for all other characters
    Dictionary   Unicode characters listed in a file, with the ids of ELMoForManyLangs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError

# Bytes and Jamo: 0 is the padding token, byte b is 1 + b, the special symbols follow.
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
BYTE_SYMBOLS = 262
BOUNDARY_TOKENS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}

# Jamo: 19 initials, 21 medials, 27 finals and the 51 letters U+3131..U+3163 follow the bytes.
INITIALS, MEDIALS, FINALS, LETTERS = 19, 21, 27, 51
_INITIAL = BYTE_SYMBOLS
_MEDIAL = _INITIAL + INITIALS
_FINAL = _MEDIAL + MEDIALS - 1  # finals are numbered from 1
_LETTER = _FINAL + 1 + FINALS
JAMO_SYMBOLS = _LETTER + LETTERS

ROWS_AT_ONCE = 1 << 14  # bounds the memory: lists of numbers take ten times the memory of an array


class Alphabet(Protocol):
    """Converts a word to `max_length` symbol ids, each below `size`."""

    @property
    def max_length(self) -> int: ...

    @property
    def size(self) -> int: ...

    def row(self, word: str) -> list[int]: ...


def encode_rows(alphabet: Alphabet, words: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return the symbol ids of N words as one array (N, C)."""
    rows = np.empty((len(words), alphabet.max_length), dtype=np.int32)
    for start in range(0, len(words), ROWS_AT_ONCE):
        block = words[start : start + ROWS_AT_ONCE]
        if isinstance(alphabet, Bytes):
            rows[start : start + len(block)] = _byte_rows(alphabet, block)
        else:
            rows[start : start + len(block)] = [alphabet.row(word) for word in block]
    return rows


@dataclass(frozen=True)
class Bytes:
    """UTF-8 bytes. A long word is cut after a byte, perhaps inside a character, as in AllenNLP and bilm-tf."""

    max_length: int = 50

    @property
    def size(self) -> int:
        return BYTE_SYMBOLS

    def row(self, word: str) -> list[int]:
        boundary = BOUNDARY_TOKENS.get(word)
        return _padded([boundary] if boundary else _bytes(word, self.max_length - 2), self.max_length)


@dataclass(frozen=True)
class Jamo:
    """Hangul letters and bytes. Composed and decomposed Hangul have the same symbols."""

    max_length: int = 50

    @property
    def size(self) -> int:
        return JAMO_SYMBOLS

    def row(self, word: str) -> list[int]:
        boundary = BOUNDARY_TOKENS.get(word)
        if boundary:
            return _padded([boundary], self.max_length)
        room = self.max_length - 2
        symbols: list[int] = []
        for character in word:
            symbols += _jamo(ord(character)) or _bytes(character, room)
            if len(symbols) >= room:
                break
        return _padded(symbols[:room], self.max_length)


@dataclass(frozen=True)
class Dictionary:
    """Characters of a list, in the order of their ids. A character that is not in the list becomes `<oov>`."""

    symbols: tuple[str, ...]
    max_length: int = 50

    def __post_init__(self) -> None:
        ids: Mapping[str, int] = {symbol: index for index, symbol in enumerate(self.symbols)}
        for symbol in ("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>"):
            if symbol not in ids:
                raise FormatError(f"character dictionary: the special symbol {symbol!r} is missing")
        object.__setattr__(self, "_ids", ids)

    @property
    def size(self) -> int:
        return len(self.symbols)

    def row(self, word: str) -> list[int]:
        ids: Mapping[str, int] = self._ids  # type: ignore[attr-defined]
        unknown = ids["<oov>"]
        # ELMoForManyLangs was trained with these two swapped: a word begins with the id of <eow>.
        begin, end, padding = ids["<eow>"], ids["<bow>"], ids["<pad>"]
        symbols = [ids[word]] if word in ("<bos>", "<eos>") else [ids.get(c, unknown) for c in self.cut(word)]
        return [begin, *symbols, end] + [padding] * (self.max_length - 2 - len(symbols))

    def cut(self, word: str) -> str:
        """Return the characters that fit; ELMoForManyLangs also looks words up in this form."""
        return word[: self.max_length - 2]


def _padded(symbols: list[int], max_length: int) -> list[int]:
    return [BEGIN_WORD, *symbols, END_WORD] + [PADDING] * (max_length - 2 - len(symbols))


def _byte_rows(alphabet: Bytes, words: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return `alphabet.row` of every word as one array (N, C), without Python lists of numbers."""
    count, room = len(words), alphabet.max_length - 2
    encoded = [word.encode("utf-8", "ignore")[:room] for word in words]
    sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=count)
    rows = np.full((count, alphabet.max_length), PADDING, dtype=np.int32)
    rows[:, 0] = BEGIN_WORD
    rows[:, 1:-1][np.arange(room) < sizes[:, None]] = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(int) + 1
    rows[np.arange(count), sizes + 1] = END_WORD
    for index, word in enumerate(words):
        if word in BOUNDARY_TOKENS:
            rows[index] = alphabet.row(word)
    return rows


def _bytes(text: str, room: int) -> list[int]:
    # Lone surrogates have no UTF-8 encoding and are skipped, as in AllenNLP.
    return [1 + byte for byte in text.encode("utf-8", "ignore")[:room]]


def _jamo(code: int) -> list[int]:
    """Return the letters of a Hangul syllable (U+AC00..), conjoining (U+1100..) or compatibility letter (U+3131..)."""
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
