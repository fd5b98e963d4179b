"""Convert a block of text to the ids of its words.

    text --_edges--> pieces --_hash--> piece numbers --_word_ids_of--> word ids

A piece is a sequence of characters between two white spaces. A text has few distinct pieces, so the rules of the
language split each distinct piece only once. After that, a piece is looked up by a 64-bit hash, which numpy computes
for all pieces of a block at once (measured: five times as fast as a dictionary of strings). In a corpus with a million
distinct pieces, the probability that two of them have the same hash is about 3e-8.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array
from pyelmo.text.vocabulary import BEGIN, END, UNKNOWN

_Positions = npt.NDArray[np.intp]
_Hashes = npt.NDArray[np.uint64]

SPECIAL_TOKENS = (BEGIN, END, UNKNOWN)
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)
END_PIECE = "\0"  # the piece that represents the end of a sentence

_SLOT_BITS = 21
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_LAST_SPACE = 0x3000


def _table(characters: str) -> npt.NDArray[np.bool_]:
    """Return a flag for each code point up to the last white space; the last flag is for all higher code points."""
    flags = np.zeros(_LAST_SPACE + 2, bool)
    flags[[ord(character) for character in characters]] = True
    return flags


_SPACES = _table("".join(chr(code) for code in range(_LAST_SPACE + 1) if chr(code).isspace()))
# Every language separates this punctuation at the end or at the start of a piece. Cutting it off here leaves fewer
# distinct pieces to split and does not change the words.
_CLOSING = _table(',;:)"')
_OPENING = _table('("')


class PieceTable:
    """Assigns ids to words in the order of their first occurrence.

    `words` lists the words by id, starting with the three special tokens.
    """

    def __init__(self, split_piece: Callable[[str], list[str]], *, cuts_punctuation: bool) -> None:
        self.words = list(SPECIAL_TOKENS)
        # A word of the text that is spelled like a special token becomes <UNK>: it must not act as a special token.
        self._word_ids = dict.fromkeys(SPECIAL_TOKENS, UNKNOWN_ID)
        self._split_piece = split_piece
        self._cuts_punctuation = cuts_punctuation
        self._pieces = {END_PIECE: 0}
        self._piece_words = array("i", [END_ID])  # word ids of piece p: from starts[p] to starts[p + 1]
        self._starts = array("i", [0, 1])
        # A hash table with one entry per slot: the hash and the number of the last piece that used the slot.
        self._slot_hashes = np.zeros(1 << _SLOT_BITS, np.uint64)
        self._slot_numbers = np.zeros(1 << _SLOT_BITS, np.int32)
        self._powers, self._inverses = _powers(_FACTOR, 1), _powers(pow(_FACTOR, -1, 2**64), 1)

    def __len__(self) -> int:
        return len(self._pieces)

    def ids(self, text: str) -> Int32Array:
        """Return the word ids of a text."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        starts, ends = _edges(codes, self._cuts_punctuation)
        hashes = self._hash(codes, starts, ends)
        slots = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.intp)
        numbers = self._slot_numbers[slots]
        missing = np.flatnonzero(self._slot_hashes[slots] != hashes)
        if len(missing):
            _, first, inverse = np.unique(hashes[missing], return_index=True, return_inverse=True)
            first = missing[first]
            spans = zip(starts[first].tolist(), ends[first].tolist(), strict=True)
            new_numbers = np.fromiter((self._number(text[start:end]) for start, end in spans), np.int32, len(first))
            numbers[missing] = new_numbers[inverse]
            self._slot_hashes[slots[first]] = hashes[first]
            self._slot_numbers[slots[first]] = new_numbers
        return self._word_ids_of(numbers)

    def _number(self, piece: str) -> int:
        number = self._pieces.get(piece)
        if number is None:
            word_ids, words = self._word_ids, self.words
            for word in self._split_piece(piece):
                word_id = word_ids.get(word)
                if word_id is None:
                    word_id = word_ids[word] = len(words)
                    words.append(word)
                self._piece_words.append(word_id)
            number = self._pieces[piece] = len(self._pieces)
            self._starts.append(len(self._piece_words))
        return number

    def _hash(self, codes: npt.NDArray[np.uint32], starts: _Positions, ends: _Positions) -> _Hashes:
        """Return for each piece a polynomial hash: the sum of its mixed codes times rising powers of a factor.

        Prefix sums over the whole block, multiplied by inverse powers, give the hash of every piece at once.
        """
        if len(self._powers) < len(codes):
            self._powers = _powers(_FACTOR, 2 * len(codes))
            self._inverses = _powers(pow(_FACTOR, -1, 2**64), 2 * len(codes))
        mixed = (codes + np.uint64(1)) * _MIX
        mixed ^= mixed >> np.uint64(31)
        mixed *= self._powers[: len(codes)]
        sums = np.zeros(len(codes) + 1, np.uint64)
        np.cumsum(mixed, out=sums[1:])
        hashes: _Hashes = (sums[ends] - sums[starts]) * self._inverses[starts]
        return hashes

    def _word_ids_of(self, numbers: Int32Array) -> Int32Array:
        starts: Int32Array = np.array(self._starts, np.int32)
        words: Int32Array = np.array(self._piece_words, np.int32)
        first = starts[numbers]
        lengths = starts[numbers + 1] - first
        before = np.cumsum(lengths) - lengths
        ids: Int32Array = words[np.repeat(first - before, lengths) + np.arange(lengths.sum())]
        return ids


def _powers(factor: int, count: int) -> _Hashes:
    powers = np.full(count, np.uint64(factor))
    powers[0] = 1
    return np.cumprod(powers)


def _edges(codes: npt.NDArray[np.uint32], cuts_punctuation: bool) -> tuple[_Positions, _Positions]:
    """Return the start and the end of each piece: at white space, and at punctuation that is always cut off."""
    space = np.ones(len(codes) + 2, bool)
    np.take(_SPACES, codes, mode="clip", out=space[1:-1])
    inside = ~space
    begins, ends = inside[1:-1] & space[:-2], inside[1:-1] & space[2:]
    if cuts_punctuation:
        closing = np.take(_CLOSING, codes, mode="clip") & ends & ~begins
        opening = np.take(_OPENING, codes, mode="clip") & begins & ~ends
        begins |= closing
        ends[:-1] |= closing[1:]
        ends |= opening
        begins[1:] |= opening[:-1]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1
