"""Misspelt words: how near does a word's vector stay to the right one's, by layer?

    a sentence --> one word of it misspelt by a slip of the hand --> its vector beside that of the word as it was

    swap        two neighbouring characters change places      house -> huose    학교에서 -> 학에교서
    drop        one is left out                                house -> hose
    double      one is written twice                           house -> housse
    neighbour   one becomes the key beside it                  house -> hpuse    (Hangul: one letter of a syllable)

Cosines of different encoders and layers are not on one scale, so the second figure is how often the misspelt word's
vector is nearest to the right word's among those of all the words that were misspelt. Both stand in the same sentence,
so a layer with context may know the word by its company as well as by its letters.

L layers, N words, D vector.
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
    """A word, and the same sentence with that word misspelt."""

    kind: str
    right: WordInContext
    wrong: WordInContext


@dataclass(frozen=True)
class TyposResult:
    """By kind ("all" is over all of them) and layer."""

    cosine: dict[str, tuple[float | None, ...]]  # mean over the words that have a vector both ways; None: none has
    found: dict[str, tuple[float, ...]]  # percent whose nearest right word is theirs; without a vector: not found
    without: dict[str, float]  # percent of the misspelt words that have no vector
    words: int  # misspelt words; those that have no vector when spelt right are left out
    left_out: int


def misspell(sentences: Sequence[list[str]], *, seed: int = 0) -> list[Typo]:
    """Every kind once for one word of each sentence: four letters or more, or three Hangul syllables."""
    lot = random.Random(seed)
    typos = []
    for words in sentences:
        places = [place for place, word in enumerate(words) if _is_plain(word)]
        if not places:
            continue
        place = lot.choice(places)
        for kind in KINDS:
            wrong = list(words)
            wrong[place] = slip(words[place], kind, lot)
            typos.append(Typo(kind, WordInContext(words, place), WordInContext(wrong, place)))
    return typos


def slip(word: str, kind: str, lot: random.Random) -> str:
    """The word misspelt in one way; always another word, unless all its characters are the same (aaaa)."""
    ways = {
        "swap": [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)],
        "drop": [word[:i] + word[i + 1 :] for i in range(len(word))],
        "double": [word[: i + 1] + word[i:] for i in range(len(word))],
        "neighbour": [
            word[:i] + other + word[i + 1 :] for i, character in enumerate(word) for other in _beside(character)
        ],
    }
    return lot.choice([way for way in ways[kind] if way != word] or [word])


def _is_plain(word: str) -> bool:
    hangul = all(ord(character) in _SYLLABLES for character in word)
    latin = word.isascii() and word.isalpha()
    return (hangul and len(word) >= 3) or (latin and len(word) >= 4)


def _beside(character: str) -> list[str]:
    """What the key beside gives: of a Hangul syllable every one that differs by one such letter."""
    code = ord(character) - _SYLLABLES[0]
    if ord(character) not in _SYLLABLES:
        found = _keys_beside(character.lower(), _ROWS)
        return [key.upper() if character.isupper() else key for key in found]
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
            place = row.index(key)
            return [*row[max(place - 1, 0) : place], *row[place + 1 : place + 2]]
    return []


def evaluate(embed: Encoder, typos: Sequence[Typo], *, knows: Callable[[str], bool] | None = None) -> TyposResult:
    """`knows` says which words have a vector, for an encoder whose vocabulary ends somewhere."""
    knows = knows or (lambda word: True)
    kept = [typo for typo in typos if knows(typo.right.words[typo.right.position])]
    if not kept:
        raise InputError("no word to misspell: no sentence has one of four letters (three syllables) with a vector")
    rights: dict[
        tuple[int, int], WordInContext
    ] = {}  # a word that is misspelt in several ways is embedded once as it was
    for typo in kept:
        rights.setdefault(_key(typo.right), typo.right)
    rows = {key: row for row, key in enumerate(rights)}
    right = np.stack(
        [unit_vectors(vector) for vector in vectors_in_context(embed, list(rights.values()))], axis=1
    )  # (L, R, D)
    names = np.array([place.words[place.position] for place in rights.values()])
    own = np.array([rows[_key(typo.right)] for typo in kept])
    known = np.array([knows(typo.wrong.words[typo.wrong.position]) for typo in kept])
    cosine = np.zeros((len(right), len(kept)))
    found = np.zeros(cosine.shape, dtype=bool)
    for number, vector in enumerate(vectors_in_context(embed, [typo.wrong for typo in kept])):
        cosines = _cosines(right, unit_vectors(vector))  # (L, R)
        cosine[:, number] = cosines[:, own[number]]
        same = names == names[own[number]]
        nearest = is_nearest(cosines)
        found[:, number] = known[number] & (nearest & same).any(1) & ~(nearest & ~same).any(1)
    kinds = np.array([typo.kind for typo in kept])
    chosen = {"all": np.ones(len(kept), dtype=bool), **{kind: kinds == kind for kind in KINDS if kind in kinds}}
    return TyposResult(
        cosine={kind: _mean(cosine[:, which & known]) for kind, which in chosen.items()},
        found={kind: tuple((100 * found[:, which].mean(1)).tolist()) for kind, which in chosen.items()},
        without={kind: 100 * float(1 - known[which].mean()) for kind, which in chosen.items()},
        words=len(kept),
        left_out=len(typos) - len(kept),
    )


def _key(place: WordInContext) -> tuple[int, int]:
    return id(place.words), place.position


def _cosines(right: Float32Array, vector: Float32Array) -> Float32Array:
    cosines: Float32Array = np.matmul(right, vector[:, :, None])[:, :, 0]
    return cosines


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float | None, ...]:
    return tuple(values.mean(1).tolist()) if values.shape[1] else (None,) * len(values)
