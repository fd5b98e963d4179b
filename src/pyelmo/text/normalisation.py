"""One normalisation of text on the way in: characters that look alike, or that nobody sees, get the same vectors.

    text --normalise--> text that the models know        text --align--> the same, and offsets into the original text

    every language     NFC (a Hangul syllable or a letter with its accent is one character)
                       invisible characters are removed: byte-order mark, zero-width space, word joiner, soft hyphen
                       and direction marks
                       half-width jamo become letters (U+3131...), and so do conjoining initials and vowels without a
                       syllable; conjoining finals stay, because morphemes such as U+11AB are written with them
    en, ko, ko-morph   full-width letters and digits become ASCII; variation selectors and the zero-width non-joiner are
                       removed. For `general` they are ordinary text (Chinese, emoji, Persian), which the older programs
                       gave to their models as it is

All other characters stay: full-width punctuation, compatibility symbols and the zero-width joiner. White space of any
kind separates words, so it needs no change. The cards of the bundled models count each kind in their training text.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

# soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width space, direction marks, word joiner and
# invisible operators, byte-order mark
_INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
_HALF_WIDTH_JAMO = "\uffa1-\uffbe\uffc2-\uffc7\uffca-\uffcf\uffd2-\uffd7\uffda-\uffdc"
_FULL_WIDTH = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_SELECTORS = "\ufe00-\ufe0f"
_NON_JOINER = "\u200c"
_INITIALS, _VOWELS = "\u1100-\u1112", "\u1161-\u1175"  # modern jamo
# An initial before an old vowel, or a vowel after an old initial, belongs to a syllable that is no single character.
_SINGLE_JAMO = re.compile(
    f"[{_INITIALS}](?![\u1160-\u11a7\ud7b0-\ud7c6])|(?<![\u1100-\u11a7\ua960-\ua97c\ud7b0-\ud7c6])[{_VOWELS}]+"
)

Offsets = Callable[[int, int], tuple[int, int]]


def normalise(text: str, language: str = "general") -> str:
    """Return the text in the form that models read; normal text is returned as it is.

    Args:
        text: Any text: a sentence, a line or a word.
        language: The language whose rules split the text.

    Returns:
        The text in NFC, without invisible characters. It may be empty.

    Example:
        >>> normalise("cafe\\u0301"), normalise("\\ufeffbank"), normalise("Ｂａｎｋ", "en")
        ('café', 'bank', 'Bank')
    """
    if _is_normal(text, language):
        return text
    return _single_jamo(unicodedata.normalize("NFC", text.translate(_table(language))))


def normalise_words(words: Sequence[str], language: str = "general") -> list[str]:
    """Normalise each of a list of words. Their number stays: a word of invisible characters alone is kept as it is.

    Args:
        words: The words.
        language: The language whose rules split the text.

    Returns:
        As many words.

    Example:
        >>> normalise_words(["cafe\\u0301", "\\u200b", "bank\\ufeff"])
        ['café', '\\u200b', 'bank']
    """
    if _is_normal(" ".join(words), language):
        return list(words)
    return [normalise(word, language) or word for word in words]


def align(text: str, language: str = "general") -> tuple[str, Offsets]:
    """Normalise a text, and return a function from offsets in the result to offsets in the original text.

    Args:
        text: Any text.
        language: The language whose rules split the text.

    Returns:
        The normalised text, and a function: characters `start` to `end` of it are `original(start, end)` of the text.

    Example:
        >>> normal, original = align("un cafe\\u0301 noir")
        >>> normal[3:7], original(3, 7)
        ('café', (3, 8))
    """
    if _is_normal(text, language):
        return text, lambda start, end: (start, end)
    table = _table(language)
    parts: list[str] = []
    starts: list[int] = []  # of each character of the result: where its characters begin and end in the text
    ends: list[int] = []
    cluster, places = "", [0]  # characters that may become one, and their places in the text
    for place, character in enumerate([*text, ""]):
        kept = character.translate(table)
        if character and not kept:
            continue
        if cluster and not _joins(cluster, kept):
            composed = unicodedata.normalize("NFC", cluster)
            single = len(composed) == len(cluster)
            starts += places if single else places[:1] * len(composed)
            ends += [last + 1 for last in (places if single else places[-1:] * len(composed))]
            parts.append(composed)
            cluster, places = "", []
        cluster, places = (cluster + kept, [*places, place]) if cluster else (kept, [place])

    def original(start: int, end: int) -> tuple[int, int]:
        if start == end:  # between two characters
            place = ends[start - 1] if start else 0
            return place, place
        return starts[start], ends[end - 1]

    return _single_jamo("".join(parts)), original


def _is_normal(text: str, language: str) -> bool:
    return text.isascii() or (not _changed(language).search(text) and unicodedata.is_normalized("NFC", text))


def _joins(cluster: str, character: str) -> bool:
    """Return whether NFC can change a character together with those before it."""
    if character < "\u0300":
        return False
    if unicodedata.combining(character):
        return True
    normal = functools.partial(unicodedata.normalize, "NFC")
    return normal(cluster + character) != normal(cluster) + normal(character)


@functools.cache
def _changed(language: str) -> re.Pattern[str]:
    """Return the pattern of all characters that are changed, or may be."""
    own = "" if language == "general" else _FULL_WIDTH + _SELECTORS + _NON_JOINER
    return re.compile(f"[{_INVISIBLE}{_HALF_WIDTH_JAMO}{_INITIALS}{_VOWELS}{own}]")


@functools.cache
def _table(language: str) -> Mapping[int, int | None]:
    """Return the changes of single characters; None removes one."""
    changed = _changed(language)
    characters = filter(changed.match, map(chr, range(0x10000)))
    table: dict[int, int | None] = {}
    for character in characters:
        kind, _, wide = unicodedata.decomposition(character).partition(" ")
        if kind in ("<wide>", "<narrow>"):
            table[ord(character)] = int(wide, 16)
        elif not re.match(f"[{_INITIALS}{_VOWELS}]", character):
            table[ord(character)] = None
    return table


@functools.cache
def _letters() -> Mapping[str, str]:
    """Return the letter (U+3131...) of each conjoining initial and vowel."""
    letters = map(chr, range(0x3131, 0x3164))
    return {chr(int(unicodedata.decomposition(letter).split()[1], 16)): letter for letter in letters}


def _single_jamo(text: str) -> str:
    return _SINGLE_JAMO.sub(lambda match: "".join(map(_letters().__getitem__, match[0])), text)
