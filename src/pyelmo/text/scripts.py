"""Warn about text in a script that a model hardly saw in training, by the letters of its vocabulary.

A script is the first word of a character's Unicode name: LATIN, HANGUL, CYRILLIC, CJK, ...
"""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from pyelmo.errors import ScriptWarning
from pyelmo.text.vocabulary import Vocabulary

FEWEST_WORDS, MOST_WORDS = 1000, 50_000  # a smaller vocabulary says little; of a larger one the first words are read
FIRST_WORDS = 10  # the words of a sentence that are looked at; more would take time in much text
SMALL_SHARE = 0.0005  # of the letters of a vocabulary: en has 0.008 % Greek, ko 0.13 % Chinese characters
_MODELS = {"HANGUL": "ko", "LATIN": "en"}


class ScriptCheck:
    """Warns once about words whose letters are mostly of a script that the vocabulary hardly has."""

    def __init__(self, name: str, vocab: Vocabulary | None) -> None:
        self.name = name
        self.active = vocab is not None and len(vocab) >= FEWEST_WORDS
        self._harmless: set[str] = set()  # characters that are no letters, or of a familiar script
        self._strange: set[str] = set()
        self._vocab = vocab
        self._scripts: set[str] | None = None

    def check(self, words: Sequence[str]) -> None:
        if not self.active:
            return
        text = "".join(words[:FIRST_WORDS])
        if (text.isascii() and "LATIN" in self._familiar()) or self._harmless.issuperset(text):
            return
        for character in set(text) - self._harmless - self._strange:
            familiar = not character.isalpha() or script(character) in self._familiar()
            (self._harmless if familiar else self._strange).add(character)
        letters = list(filter(str.isalpha, text))
        strange = [letter for letter in letters if letter in self._strange]
        if 2 * len(strange) > len(letters):
            self.active = False
            kind = Counter(map(script, strange)).most_common(1)[0][0]
            other = f" For this text use the model {_MODELS[kind]}." if kind in _MODELS else ""
            start = " ".join(words)[:40]
            warnings.warn(
                f"{self.name} hardly saw {kind.capitalize()} script in training, so its answers for text such as "
                f"{start!r} mean little.{other}",
                ScriptWarning,
                stacklevel=3,
            )

    def _familiar(self) -> set[str]:
        if self._scripts is None:
            counts: Counter[str] = Counter()
            for character, count in Counter("".join(islice(self._vocab or (), MOST_WORDS))).items():
                if character.isalpha():
                    counts[script(character)] += count
            self._scripts = {name for name, count in counts.items() if count >= SMALL_SHARE * counts.total()}
        return self._scripts


def script(letter: str) -> str:
    name = unicodedata.name(letter, "UNKNOWN").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    return name.partition(" ")[0]
