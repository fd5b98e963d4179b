"""Text -> sentences -> words, by rules that are short, fast and the same on every machine.

    paragraph --split_sentences--> sentences --split_words--> words

Nothing is lower-cased and nothing is lost: the words put together are the text without its white space (but for
"ko-morph", whose morphemes are dictionary forms). White space always ends a word, so a rule looks at one *piece*, the
characters between two spaces, and a caller with much text may keep the words of each piece (`piece_splitter`).

    en        punctuation apart; clitics as in the Penn Treebank (do n't, it 's, we 'll); 3.14, 1,000, U.S., e.g.,
              Mr., well-known, O'Brien, AT&T, addresses of pages and mail in one word
    ko        eojeol (what stands between spaces), punctuation apart, numbers in one word
    ko-morph  morphemes, found by kiwipiepy (the extra `ko`)
    general   punctuation and symbols apart, numbers in one word, each Han or kana character a word
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

from pyelmo.errors import InputError, missing_extra

LANGUAGES = ("en", "ko", "ko-morph", "general")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations that stand before a name or a number: the full stop belongs to the word and no sentence ends there.
_TITLES = _listed(
    "Mr Mrs Ms Messrs Dr Prof Rev Hon St Mt Ft Gen Col Lt Sgt Capt Cmdr Maj Adm Gov Sen Rep Pres Mme Mlle "
    "Fig Figs Eq Eqs Vol Vols Nos pp eds vs cf viz ca approx dept"
)
# Abbreviations that may also be the last word of a sentence: then the next word decides.
_ENDINGS = _listed(
    "Inc Ltd Co Corp Bros Jr Sr Esq etc Ave Blvd Rd Univ Assn Jan Feb Apr Jun Jul Aug Sept Sep Oct Nov Dec "
    "Tue Tues Thu Thurs"
)
# Plain words that shorten only before a number ("No. 5", "Mar. 3"): their full stop stands apart as a word.
_BEFORE_NUMBERS = _listed("No Op op Art Ch ch Sec Mar Mon Wed Fri Sat Sun")
# Words that open a sentence far more often than they follow an abbreviation within one.
_OPENERS = _listed(
    "The A An He She It They We I You This That These Those There His Her Its Their Our My In On At As By For From "
    "With After Before During Since Until While When Where Why How What Who If But And Or So Yet However Although "
    "Though Because Then Thus Also Both Each Some Many Most All No Not Another One Two According Despite Under"
)

_ENDS = ".?!…。！？｡؟।॥"
_ENDS_WITHOUT_SPACE = "。！？｡"
_CLOSERS = "\"'”’»›)]}）］｝」』】〉》〕"
_LEADING = "\"'“‘«‹([{（「『【〈《¿¡*-–—"

_HAN_AND_KANA = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)


def split_sentences(text: str, language: str = "general") -> list[str]:
    """The sentences of one paragraph; only the white space around them goes."""
    check_language(language)
    is_end = _is_english_end if language == "en" else _is_general_end
    text = text.strip()
    sentences = []
    start = 0
    for match in _END.finditer(text):
        if is_end(text, start, match):
            sentences.append(text[start : match.start(1)])
            start = match.end()
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def split_words(text: str, language: str = "general") -> list[str]:
    """The words of a text by the rules of its language."""
    if language == "ko-morph":
        return [span.word for span in _morphemes(text)]
    split_piece = _remembering_splitter(language)
    words: list[str] = []
    for piece in text.split():
        words += split_piece(piece)
    return words


class TokenSpan(NamedTuple):
    """A word and where it stands: `text[start:end]` is the word, or what is written for a morpheme."""

    word: str
    start: int
    end: int


def split_spans(text: str, language: str = "general") -> list[TokenSpan]:
    """The words of a text with their places; morphemes within one syllable share it."""
    if language == "ko-morph":
        return _morphemes(text)
    spans: list[TokenSpan] = []
    end = 0
    for word in split_words(text, language):  # in order, and nothing but white space between them
        start = text.index(word, end)
        end = start + len(word)
        spans.append(TokenSpan(word, start, end))
    return spans


@functools.cache
def piece_splitter(language: str) -> Callable[[str], list[str]]:
    """The function that splits one piece (text without white space) of a language whose words never cross a space."""
    check_language(language)
    if language == "ko-morph":
        raise InputError("language 'ko-morph' splits whole sentences, not pieces. Use split_words.")
    find = _PATTERNS[language]().findall
    if language == "general":  # where a Han or kana character is a word, and alphanumeric too
        return lambda piece: [piece] if piece.isalnum() and piece.isascii() else find(piece)
    return lambda piece: [piece] if piece.isalnum() else find(piece)


@functools.cache
def _remembering_splitter(language: str) -> Callable[[str], list[str]]:
    """The same, remembering the pieces seen lately: most of a text is the same few pieces, and a look-up is cheap."""
    split_piece = piece_splitter(language)
    remember = functools.lru_cache(maxsize=1 << 16)(split_piece)
    return lambda piece: remember(piece) if len(piece) <= 32 else split_piece(piece)


def check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise InputError(f"language {language!r} is unknown. Use one of {', '.join(LANGUAGES)}.")


# --- words ---------------------------------------------------------------------------------------------------------


@functools.cache
def _classes() -> tuple[str, str]:
    """The insides of two regex classes: letters, and marks (punctuation and symbols). The rest is white space.

    `\\w` will not do for letters: it leaves out the vowel signs of Devanagari, Thai and others, and would break their
    words. The ranges are written out, without `\\s` or a negation, because the regex engine then finds a letter in one
    step; otherwise it walks through all the ranges (measured: 20 times slower).
    """
    # No punctuation is assigned beyond the second plane. Each step is one call over all characters: a loop over them
    # would take longer than all else that a short text needs.
    characters = "".join(map(chr, range(0x20000)))
    categories = list("".join(map(unicodedata.category, characters))[::2])  # the first letter of two
    for space in re.finditer(r"\s", characters):
        categories[space.start()] = " "
    kinds = "".join(categories)
    letters, marks = (
        "".join(f"{_literal(found.start())}-{_literal(found.end() - 1)}" for found in re.finditer(pattern, kinds))
        for pattern in ("[^PS ]+", "[PS]+")
    )
    letters += f"{_literal(0x20000)}-{_literal(0x10FFFF)}"
    return letters, marks


def _literal(code: int) -> str:
    """A character in a regex class; written as it is where it means nothing else there, which is read soonest."""
    return chr(code) if code > 0x7F else f"\\x{code:02x}"


def _parts() -> dict[str, str]:
    """The named bits of which the patterns are made. Every repetition that may fail late is bounded."""
    letters, marks = _classes()
    return {
        "letter": f"[{letters}]",
        "page": r"(?:https?://|ftp://|www\.)[^\s<>\"“”]*[^\s<>\"“”.,;:!?'’)\]}]",
        "mail": r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
        "runs": r"\.{2,}|-{2,}|={2,}|\*{2,}|~{2,}|_{2,}|#{2,}|``|''",
        # A symbol with what modifies it (emoji: variation selectors, skin tones, joined emoji), else one character.
        "symbol": rf"[!-~]|[{marks}](?:[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[{marks}])*|\S",
    }


def _english() -> re.Pattern[str]:
    bits = _parts()
    letter = bits["letter"]
    clitic = rf"['’](?:[sS]|[lL][lL]|[rR][eE]|[vV][eE]|[dD]|[mM])(?!{letter})"
    negation = rf"[nN]['’][tT](?!{letter})"
    titles = "|".join(sorted(_TITLES | _ENDINGS, key=lambda word: (-len(word), word)))
    # What may stand inside a word: marks in numbers, hyphens, ampersands, apostrophes that begin no clitic.
    inner = rf"(?:(?<=\d)[.,:/](?=\d)|[-‐‑&](?={letter})|(?!{clitic})['’](?={letter}))"
    rest = rf"(?:{inner}{letter}+)*"
    return re.compile(
        "|".join(
            [
                r"[A-Za-z]+(?=[,;!?)\]\"”]|\Z)|[A-Za-z]{7,}(?=\.\Z)",  # what no rule below would change, first: quick
                bits["page"],
                bits["mail"],
                r"(?:[A-Za-z0-9-]{1,63}\.){1,8}(?:com|org|net|edu|gov)(?:/[^\s<>\"“”]*[^\s<>\"“”.,;:!?'’)\]}])?"
                rf"(?!{letter})",
                negation,
                clitic,
                rf"(?={letter}+['’][tT]){letter}{{1,40}}?(?={negation})",  # the guard is quick, the lazy search is not
                rf"[A-Za-z](?:\.[A-Za-z](?!{letter}))+(?:\.(?!\.))?(?:[-‐‑]{letter}+{rest})?",  # U.S., e.g., U.S.-led
                rf"(?:{titles}|Ph\.D|[A-HJ-Z])\.(?!\.)",
                rf"{letter}+{rest}",
                bits["runs"],
                bits["symbol"],
            ]
        )
    )


def _korean() -> re.Pattern[str]:
    bits = _parts()
    word = rf"{bits['letter']}+(?:(?<=\d)[.,:](?=\d){bits['letter']}+)*"
    return re.compile("|".join([bits["page"], bits["mail"], word, bits["runs"], bits["symbol"]]))


def _general() -> re.Pattern[str]:
    bits = _parts()
    single = rf"[{_HAN_AND_KANA}][\u0300-\u036f\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef]*"
    letter = rf"(?:(?![{_HAN_AND_KANA}]){bits['letter']})"
    # Inside a word: marks in numbers, and the marks that only ever join letters (Catalan, Hebrew).
    word = rf"{letter}+(?:(?:(?<=\d)[.,:](?=\d)|[·״׳](?={letter})){letter}+)*"
    return re.compile("|".join([bits["page"], bits["mail"], single, word, bits["runs"], bits["symbol"]]))


_PATTERNS: dict[str, Callable[[], re.Pattern[str]]] = {"en": _english, "ko": _korean, "general": _general}


@functools.cache
def _kiwi() -> Any:
    try:
        from kiwipiepy import Kiwi
    except ImportError as error:
        raise missing_extra("ko", "splitting Korean into morphemes") from error
    return Kiwi(num_workers=1)


def _morphemes(text: str) -> list[TokenSpan]:
    clean = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return [
        TokenSpan(word, token.start, token.start + token.len)
        for token in _kiwi().tokenize(clean)
        for word in token.form.split()
    ]


# --- sentences -----------------------------------------------------------------------------------------------------


# The marks that end a sentence with what closes after them, and the white space (1) up to no small letter. It begins
# with one class of characters because the regex engine can then skip to the next of them.
_AFTER_END = rf"[{_ENDS}{re.escape(_CLOSERS)}]{{0,8}}"
_END = re.compile(rf"[{_ENDS}](?:(?<=[{_ENDS_WITHOUT_SPACE}]){_AFTER_END}|{_AFTER_END}(?=\s))(\s*)(?=[^\sa-z])")
_NEXT_WORD = re.compile(rf"[{re.escape(_LEADING)}]*(\S{{0,32}})")


def _next_word(text: str, position: int) -> str:
    """The word at a position, without the quotes, brackets and dashes that may stand before it."""
    match = _NEXT_WORD.match(text, position)
    return match.group(1) if match else ""


def _last_word(text: str, start: int, end: int) -> str:
    """The word before a position, no further back than `start`, without quotes and brackets before it."""
    words = text[max(start, end - 40) : end].rsplit(None, 1)
    return words[-1].lstrip(_LEADING) if words else ""


def _is_general_end(text: str, start: int, match: re.Match[str]) -> bool:
    following = _next_word(text, match.end())
    if following[:1].islower():
        return False
    mark = match.start()
    if text[mark] != ".":
        return True
    word = _last_word(text, start, mark)
    is_list_number = word.isdigit() and mark - start == len(word)
    is_initial = len(word) == 1 and word.isupper()
    return not (is_list_number or is_initial)


def _is_english_end(text: str, start: int, match: re.Match[str]) -> bool:
    mark, end = match.start(), match.end()
    following = text[end]
    if not following.isalnum():
        following = _next_word(text, end)[:1]
    if following.islower():
        return False
    # Most sentences end after a word of seven letters or more, as no abbreviation has.
    if text[mark] != "." or text[mark + 1] == "." or (mark - 7 >= start and text[mark - 7 : mark].isalpha()):
        return True
    word = _last_word(text, start, mark)
    if word.isdigit():
        return mark - start > len(word)  # else the number of a list
    if word in _BEFORE_NUMBERS:
        return not following.isdigit()
    if word in _TITLES or word.lower() in ("e.g", "i.e"):
        return False
    if word in _ENDINGS or "." in word or (len(word) == 1 and word.isalpha() and word != "I"):
        return re.split("[,'’]", _next_word(text, end), maxsplit=1)[0] in _OPENERS
    return True
