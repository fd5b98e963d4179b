"""Text -> ids of its words, a whole block of text at a time.

    text --edges--> pieces --hash--> numbers of pieces --words of each--> ids

A piece is what stands between two spaces. A text is made of few distinct pieces, so the language's rules split each
piece once; from then on it is known by a 64-bit hash, which numpy computes for all pieces of a block together
(measured: five times as fast as a dictionary of strings). Two pieces of a corpus with a million distinct ones share a
hash with a probability of about 3e-8.
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

MARKS = (BEGIN, END, UNKNOWN)
BEGIN_ID, END_ID, UNKNOWN_ID = range(3)
END_PIECE = "\0"  # stands among the pieces of a text for the end of a sentence

_SLOT_BITS = 21
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_LAST_SPACE = 0x3000


def _table(characters: str) -> npt.NDArray[np.bool_]:
    """For each code point up to the last white space whether it is one of these; the last entry is for all above."""
    flags = np.zeros(_LAST_SPACE + 2, bool)
    flags[[ord(character) for character in characters]] = True
    return flags


_SPACES = _table("".join(chr(code) for code in range(_LAST_SPACE + 1) if chr(code).isspace()))
# Marks that every language sets apart at the end or at the beginning of a piece: cutting them off here leaves fewer
# distinct pieces to split, and changes no words.
_CLOSING = _table(',;:)"')
_OPENING = _table('("')


class PieceTable:
    """Numbers the words of a text in the order in which they first came; `words` lists them, the three marks first."""

    def __init__(self, split_piece: Callable[[str], list[str]], *, cuts_marks: bool) -> None:
        self.words = list(MARKS)
        # A word of the text that looks like a mark must not act as one.
        self._word_ids = dict.fromkeys(MARKS, UNKNOWN_ID)
        self._split_piece = split_piece
        self._cuts_marks = cuts_marks
        self._pieces = {END_PIECE: 0}
        self._piece_words = array("i", [END_ID])  # the words of piece p are these from starts[p] to starts[p + 1]
        self._starts = array("i", [0, 1])
        self._known = np.zeros(1 << _SLOT_BITS, np.uint64)  # hash and number of the last piece that used a slot
        self._numbers = np.zeros(1 << _SLOT_BITS, np.int32)
        self._powers, self._inverses = _powers(_FACTOR, 1), _powers(pow(_FACTOR, -1, 2**64), 1)

    def __len__(self) -> int:
        return len(self._pieces)

    def ids(self, text: str) -> Int32Array:
        """The ids of the words of a text."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        starts, ends = _edges(codes, self._cuts_marks)
        hashes = self._hash(codes, starts, ends)
        slots = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.intp)
        numbers = self._numbers[slots]
        strange = np.flatnonzero(self._known[slots] != hashes)
        if len(strange):
            _, first, which = np.unique(hashes[strange], return_index=True, return_inverse=True)
            first = strange[first]
            spans = zip(starts[first].tolist(), ends[first].tolist(), strict=True)
            found = np.fromiter((self._number(text[start:end]) for start, end in spans), np.int32, len(first))
            numbers[strange] = found[which]
            self._known[slots[first]] = hashes[first]
            self._numbers[slots[first]] = found
        return self._words_of(numbers)

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
        """For each piece the sum of mixed codes times powers of a factor, the first power that of its first letter."""
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

    def _words_of(self, numbers: Int32Array) -> Int32Array:
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


def _edges(codes: npt.NDArray[np.uint32], cuts_marks: bool) -> tuple[_Positions, _Positions]:
    """Where each piece begins and ends: at white space, and at marks that are always cut off."""
    space = np.ones(len(codes) + 2, bool)
    np.take(_SPACES, codes, mode="clip", out=space[1:-1])
    inside = ~space
    before, here, after = space[:-2], inside[1:-1], space[2:]
    begins, ends = here & before, here & after
    if cuts_marks:
        closing = np.take(_CLOSING, codes, mode="clip") & ends & ~begins
        opening = np.take(_OPENING, codes, mode="clip") & begins & ~ends
        begins |= closing
        ends[:-1] |= closing[1:]
        ends |= opening
        begins[1:] |= opening[:-1]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1
