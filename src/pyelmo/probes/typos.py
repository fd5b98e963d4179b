"""Misspelt words: how similar are the vectors of a misspelt word and of the original, by layer?

    a sentence --> the same sentence with one typing error --> cosine of the misspelt word and the original

    swap        two neighbouring characters are swapped      house -> huose    학교에서 -> 학에교서
    drop        a character is missing                       house -> hose
    double      a character is doubled                       house -> housse
    neighbour   a key next to the right one is hit           house -> hpuse    (Hangul: one letter of a syllable)

Cosines of different encoders and layers cannot be compared. So a second figure is how often a misspelt word is nearest
to its own original among the originals of all misspelt words. The sentence around both is the same, so a layer with
context can identify the word by its context as well as by its letters.

L layers, N misspelt words, R different original words, D vector.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder
from pyelmo.errors import InputError
from pyelmo.probes.in_context import WordInContext, is_nearest, vectors_in_context
from pyelmo.vectors.static import unit_vectors

KINDS = ("swap", "drop", "double", "neighbour")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_HANGUL_ROWS = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")
_INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_MEDIALS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
_SYLLABLES = range(0xAC00, 0xD7A4)


@dataclass(frozen=True)
class Typo:
    """A word in its sentence, and the same sentence with the word misspelt."""

    kind: str
    right: WordInContext
    wrong: WordInContext


@dataclass(frozen=True)
class TyposResult:
    """Results by kind of typing error ("all": over all kinds) and by layer."""

    cosine: dict[str, tuple[float | None, ...]]  # mean over words with a vector in both spellings; None: no such word
    found: dict[str, tuple[float, ...]]  # percent that are nearest to their own original and have a vector
    without: dict[str, float]  # percent of the misspelt words without a vector
    words: int  # misspelt words whose original has a vector
    left_out: int  # misspelt words whose original has none


def misspell(sentences: Sequence[list[str]], *, seed: int = 0) -> list[Typo]:
    """Misspell one random word of each sentence in every way; it has at least 4 letters or 3 Hangul syllables."""
    generator = random.Random(seed)
    typos = []
    for words in sentences:
        positions = [position for position, word in enumerate(words) if _is_plain(word)]
        if not positions:
            continue
        position = generator.choice(positions)
        for kind in KINDS:
            wrong = list(words)
            wrong[position] = slip(words[position], kind, generator)
            typos.append(Typo(kind, WordInContext(words, position), WordInContext(wrong, position)))
    return typos


def slip(word: str, kind: str, generator: random.Random) -> str:
    """Misspell a word in one way. The result differs from the word unless all its characters are equal (aaaa)."""
    ways = {
        "swap": [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)],
        "drop": [word[:i] + word[i + 1 :] for i in range(len(word))],
        "double": [word[: i + 1] + word[i:] for i in range(len(word))],
        "neighbour": [
            word[:i] + other + word[i + 1 :] for i, character in enumerate(word) for other in _beside(character)
        ],
    }
    return generator.choice([way for way in ways[kind] if way != word] or [word])


def _is_plain(word: str) -> bool:
    hangul = all(ord(character) in _SYLLABLES for character in word)
    latin = word.isascii() and word.isalpha()
    return (hangul and len(word) >= 3) or (latin and len(word) >= 4)


def _beside(character: str) -> list[str]:
    """Return the characters of neighbouring keys; for a Hangul syllable, those that differ by one such letter."""
    code = ord(character) - _SYLLABLES[0]
    if ord(character) not in _SYLLABLES:
        keys = _keys_beside(character.lower(), _ROWS)
        return [key.upper() if character.isupper() else key for key in keys]
    initial, rest = divmod(code, len(_MEDIALS) * len(_FINALS))
    medial, final = divmod(rest, len(_FINALS))
    letters = [(_INITIALS, initial), (_MEDIALS, medial), (_FINALS, final)]
    others = []
    for part, (alphabet, number) in enumerate(letters):
        for key in _keys_beside(alphabet[number], _HANGUL_ROWS):
            if key in alphabet:
                one, two, three = (alphabet.index(key) if part == other else letters[other][1] for other in range(3))
                others.append(chr(_SYLLABLES[0] + (one * len(_MEDIALS) + two) * len(_FINALS) + three))
    return others


def _keys_beside(key: str, rows: Sequence[str]) -> list[str]:
    for row in rows:
        if key in row:
            column = row.index(key)
            return [*row[max(column - 1, 0) : column], *row[column + 1 : column + 2]]
    return []


def evaluate(embed: Encoder, typos: Sequence[Typo], *, knows: Callable[[str], bool] | None = None) -> TyposResult:
    """Compare misspelt words with their originals.

    Args:
        embed: The encoder.
        typos: Misspelt words, from `misspell`.
        knows: Whether a word has a vector (default: every word has one).
    """
    knows = knows or (lambda word: True)
    kept = [typo for typo in typos if knows(typo.right.words[typo.right.position])]
    if not kept:
        raise InputError("no sentence has a word to misspell: at least 4 letters, or 3 Hangul syllables, and a vector")
    originals: dict[tuple[int, int], WordInContext] = {}  # each is embedded once, however often it is misspelt
    for typo in kept:
        originals.setdefault(_key(typo.right), typo.right)
    rows = {key: row for row, key in enumerate(originals)}
    vectors = vectors_in_context(embed, list(originals.values()))
    right = np.stack([unit_vectors(vector) for vector in vectors], axis=1)  # (L, R, D)
    names = np.array([original.words[original.position] for original in originals.values()])
    own = np.array([rows[_key(typo.right)] for typo in kept])
    known = np.array([knows(typo.wrong.words[typo.wrong.position]) for typo in kept])
    cosine = np.zeros((len(right), len(kept)))
    is_found = np.zeros(cosine.shape, dtype=bool)
    for number, vector in enumerate(vectors_in_context(embed, [typo.wrong for typo in kept])):
        cosines = _cosines(right, unit_vectors(vector))  # (L, R)
        cosine[:, number] = cosines[:, own[number]]
        same = names == names[own[number]]
        nearest = is_nearest(cosines)
        is_found[:, number] = known[number] & (nearest & same).any(1) & ~(nearest & ~same).any(1)
    kinds = np.array([typo.kind for typo in kept])
    chosen = {"all": np.ones(len(kept), dtype=bool), **{kind: kinds == kind for kind in KINDS if kind in kinds}}
    return TyposResult(
        cosine={kind: _mean(cosine[:, which & known]) for kind, which in chosen.items()},
        found={kind: tuple((100 * is_found[:, which].mean(1)).tolist()) for kind, which in chosen.items()},
        without={kind: 100 * float(1 - known[which].mean()) for kind, which in chosen.items()},
        words=len(kept),
        left_out=len(typos) - len(kept),
    )


def _key(occurrence: WordInContext) -> tuple[int, int]:
    return id(occurrence.words), occurrence.position


def _cosines(right: Float32Array, vector: Float32Array) -> Float32Array:
    cosines: Float32Array = np.matmul(right, vector[:, :, None])[:, :, 0]
    return cosines


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float | None, ...]:
    return tuple(values.mean(1).tolist()) if values.shape[1] else (None,) * len(values)
