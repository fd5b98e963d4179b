"""Split text into sentences and sentences into words, with short and fast rules.

    paragraph --split_sentences--> sentences --split_words--> words

The text is normalised first (`normalisation.py`). It is not lower-cased and no visible character is dropped: the words
joined together are the normalised text without white space (except for "ko-morph", whose morphemes are dictionary
forms). White space always ends a word, so the rules look at one
*piece* at a time, the characters between two white spaces. With much text it saves time to store the words of each
piece (`piece_splitter`).

    en        separates punctuation, and clitics as in the Penn Treebank (do n't, it 's, we 'll); keeps 3.14, 1,000,
              U.S., e.g., Mr., well-known, O'Brien, AT&T, URLs and e-mail addresses as one word
    ko        separates punctuation from eojeol (the text between two spaces); keeps numbers as one word
    ko-morph  splits into morphemes with kiwipiepy (the extra `ko`)
    general   separates punctuation and symbols; keeps numbers as one word; each Han or kana character is a word
"""

from __future__ import annotations

import functools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from pyelmo.errors import InputError, missing_extra
from pyelmo.text.normalisation import align, normalise

LANGUAGES = ("en", "ko", "ko-morph", "general")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations before a name or a number: the full stop belongs to the word and does not end a sentence.
_TITLES = _listed(
    "Mr Mrs Ms Messrs Dr Prof Rev Hon St Mt Ft Gen Col Lt Sgt Capt Cmdr Maj Adm Gov Sen Rep Pres Mme Mlle "
    "Fig Figs Eq Eqs Vol Vols Nos pp eds vs cf viz ca approx dept"
)
# Abbreviations that may also end a sentence: the next word decides.
_ENDINGS = _listed(
    "Inc Ltd Co Corp Bros Jr Sr Esq etc Ave Blvd Rd Univ Assn Jan Feb Apr Jun Jul Aug Sept Sep Oct Nov Dec "
    "Tue Tues Thu Thurs"
)
# Ordinary words that are abbreviations only before a number ("No. 5", "Mar. 3"): their full stop is a separate word.
_BEFORE_NUMBERS = _listed("No Op op Art Ch ch Sec Mar Mon Wed Fri Sat Sun")
# Words that start a sentence far more often than they follow an abbreviation within a sentence.
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
    """Split a paragraph into sentences.

    Args:
        text: One paragraph.
        language: The rules to use: "en", "ko", "ko-morph" or "general".

    Returns:
        The sentences in order, as they are written in the text, without the white space around them.

    Raises:
        InputError: The language is unknown.

    Example:
        >>> split_sentences("Mr. Smith met Dr. Jones. They spoke.", "en")
        ['Mr. Smith met Dr. Jones.', 'They spoke.']
    """
    check_language(language)
    normal, original = align(text, language)
    starts = _sentence_starts(normal, language)
    # The original text may have invisible characters around a sentence.
    cuts = [0, *(original(start, start + 1)[0] for start in starts[1:]), len(text)]
    return [text[start:end].strip() for start, end in pairwise(cuts)] if starts else []


def normal_sentences(text: str, language: str) -> list[str]:
    """Split a paragraph into sentences in their normal form; for much text this is faster than `split_sentences`."""
    normal = normalise(text, language)
    starts = _sentence_starts(normal, language)
    return [normal[start:end].rstrip() for start, end in pairwise([*starts, len(normal)])]


def _sentence_starts(text: str, language: str) -> list[int]:
    is_end = _is_english_end if language == "en" else _is_general_end
    start, last = len(text) - len(text.lstrip()), len(text.rstrip())
    starts = [start] if start < last else []
    for match in _END.finditer(text, start, last):
        if is_end(text, start, match):
            start = match.end()
            starts.append(start)
    return starts


def split_words(text: str, language: str = "general") -> list[str]:
    """Split a text into words.

    Args:
        text: A sentence, or any other text.
        language: The rules to use: "en", "ko", "ko-morph" (morphemes) or "general" (any language).

    Returns:
        The words in order. Joined together they are the normalised text without white space, except for "ko-morph",
        which returns morphemes in their dictionary form.

    Raises:
        InputError: The language is unknown.
        MissingExtraError: The language is "ko-morph" and the extra `ko` is not installed.

    Example:
        >>> split_words("I don't think it's Bob's.", "en")
        ['I', 'do', "n't", 'think', 'it', "'s", 'Bob', "'s", '.']
        >>> split_words("한국(韓國)은 크다.", "ko")
        ['한국', '(', '韓國', ')', '은', '크다', '.']
    """
    text = normalise(text, language)
    if language == "ko-morph":
        return [span.word for span in _morphemes(text)]
    split_piece = _cached_splitter(language)
    words: list[str] = []
    for piece in text.split():
        words += split_piece(piece)
    return words


class TokenSpan(NamedTuple):
    """A word and its position in a text: `text[start:end]` is the word as it is written there."""

    word: str
    start: int
    end: int


def split_spans(text: str, language: str = "general", gap: tuple[int, int] | None = None) -> list[TokenSpan]:
    """Split a text into words with their positions in it; morphemes of the same syllable have the same position.

    `gap` is the start and the end of a placeholder for a missing word, in normalised text. ko-morph keeps it as one
    unknown morpheme.
    """
    normal, original = align(text, language)
    if language == "ko-morph":
        return [TokenSpan(word, *original(start, end)) for word, start, end in _morphemes(normal, gap)]
    spans: list[TokenSpan] = []
    end = 0
    for word in split_words(normal, language):  # only white space is between two words
        start = normal.index(word, end)
        end = start + len(word)
        spans.append(TokenSpan(word, *original(start, end)))
    return spans


def written_words(text: str, language: str) -> list[str]:
    """Return the words between white space as they are written (Korean eojeols), without invisible ones."""
    return [word for word in text.split() if normalise(word, language)]


def split_within(words: Sequence[str], language: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Split the words of a sentence into smaller ones; return these, and the first and the end of those of each word.

    A smaller word belongs to the word in which it begins. A word in which none begins has the one that extends into it.
    """
    spans = split_spans(" ".join(words), language)
    starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
    owners = [bisect_right(starts, span.start) - 1 for span in spans]  # increasing
    firsts = [bisect_left(owners, position) for position in range(len(words) + 1)]
    groups = [
        (first, end) if first < end else (max(end - 1, 0), min(max(end, 1), len(spans)))
        for first, end in pairwise(firsts)
    ]
    return [span.word for span in spans], groups


@functools.cache
def piece_splitter(language: str) -> Callable[[str], list[str]]:
    """Return the function that splits one piece (a text without white space) into words."""
    check_language(language)
    if language == "ko-morph":
        raise InputError("language 'ko-morph' can split only whole sentences. Use split_words.")
    find = _PATTERNS[language]().findall
    if language == "general":  # Han and kana characters are alphanumeric, but each is a word
        return lambda piece: [piece] if piece.isalnum() and piece.isascii() else find(piece)
    return lambda piece: [piece] if piece.isalnum() else find(piece)


@functools.cache
def _cached_splitter(language: str) -> Callable[[str], list[str]]:
    """Return a piece splitter with a cache, as most of a text consists of the same few pieces."""
    split_piece = piece_splitter(language)
    cached = functools.lru_cache(maxsize=1 << 16)(split_piece)
    return lambda piece: cached(piece) if len(piece) <= 32 else split_piece(piece)


def check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise InputError(f"language {language!r} is unknown. Use one of {', '.join(LANGUAGES)}.")


# --- words ---------------------------------------------------------------------------------------------------------


@functools.cache
def _classes() -> tuple[str, str]:
    """Return the content of two regex classes: letters, and symbols (with punctuation). The rest is white space.

    `\\w` does not match the vowel signs of Devanagari, Thai and others, and would break their words. The ranges are
    written out, without `\\s` or a negation, so that the regex engine tests a character in one step and does not walk
    through all ranges (measured: 20 times slower).
    """
    # Unicode has no punctuation beyond the second plane. Each step is one call over all characters, as a Python loop
    # over them would take longer than splitting a short text.
    characters = "".join(map(chr, range(0x20000)))
    categories = list("".join(map(unicodedata.category, characters))[::2])  # the first letter of two
    for space in re.finditer(r"\s", characters):
        categories[space.start()] = " "
    kinds = "".join(categories)
    letters, symbols = (
        "".join(f"{_literal(run.start())}-{_literal(run.end() - 1)}" for run in re.finditer(pattern, kinds))
        for pattern in ("[^PS ]+", "[PS]+")
    )
    letters += f"{_literal(0x20000)}-{_literal(0x10FFFF)}"
    return letters, symbols


def _literal(code: int) -> str:
    """Return a character of a regex class, escaped only where it could have another meaning: that compiles faster."""
    return chr(code) if code > 0x7F else f"\\x{code:02x}"


def _subpatterns() -> dict[str, str]:
    """Return the parts that all patterns share. Repetitions that may fail late are bounded, to keep the time linear."""
    letters, symbols = _classes()
    return {
        "letter": f"[{letters}]",
        "url": r"(?:https?://|ftp://|www\.)[^\s<>\"“”]*[^\s<>\"“”.,;:!?'’)\]}]",
        "email": r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
        "runs": r"\.{2,}|-{2,}|={2,}|\*{2,}|~{2,}|_{2,}|#{2,}|``|''",
        # A symbol with its modifiers (emoji: variation selectors, skin tones, joined emoji), or one character.
        "symbol": rf"[!-~]|[{symbols}](?:[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[{symbols}])*|\S",
    }


def _english() -> re.Pattern[str]:
    shared = _subpatterns()
    letter = shared["letter"]
    clitic = rf"['’](?:[sS]|[lL][lL]|[rR][eE]|[vV][eE]|[dD]|[mM])(?!{letter})"
    negation = rf"[nN]['’][tT](?!{letter})"
    titles = "|".join(sorted(_TITLES | _ENDINGS, key=lambda word: (-len(word), word)))
    # Allowed inside a word: punctuation in numbers, hyphens, ampersands, apostrophes that do not start a clitic.
    inner = rf"(?:(?<=\d)[.,:/](?=\d)|[-‐‑&](?={letter})|(?!{clitic})['’](?={letter}))"
    rest = rf"(?:{inner}{letter}+)*"
    return re.compile(
        "|".join(
            [
                r"[A-Za-z]+(?=[,;!?)\]\"”]|\Z)|[A-Za-z]{7,}(?=\.\Z)",  # no other rule changes these; for speed
                shared["url"],
                shared["email"],
                r"(?:[A-Za-z0-9-]{1,63}\.){1,8}(?:com|org|net|edu|gov)(?:/[^\s<>\"“”]*[^\s<>\"“”.,;:!?'’)\]}])?"
                rf"(?!{letter})",
                negation,
                clitic,
                rf"(?={letter}+['’][tT]){letter}{{1,40}}?(?={negation})",  # the first lookahead is for speed
                rf"[A-Za-z](?:\.[A-Za-z](?!{letter}))+(?:\.(?!\.))?(?:[-‐‑]{letter}+{rest})?",  # U.S., e.g., U.S.-led
                rf"(?:{titles}|Ph\.D|[A-HJ-Z])\.(?!\.)",
                rf"{letter}+{rest}",
                shared["runs"],
                shared["symbol"],
            ]
        )
    )


def _korean() -> re.Pattern[str]:
    shared = _subpatterns()
    word = rf"{shared['letter']}+(?:(?<=\d)[.,:](?=\d){shared['letter']}+)*"
    return re.compile("|".join([shared["url"], shared["email"], word, shared["runs"], shared["symbol"]]))


def _general() -> re.Pattern[str]:
    shared = _subpatterns()
    single = rf"[{_HAN_AND_KANA}][\u0300-\u036f\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef]*"
    letter = rf"(?:(?![{_HAN_AND_KANA}]){shared['letter']})"
    # Allowed inside a word: punctuation in numbers, and punctuation that only joins letters (Catalan, Hebrew).
    word = rf"{letter}+(?:(?:(?<=\d)[.,:](?=\d)|[·״׳](?={letter})){letter}+)*"
    return re.compile("|".join([shared["url"], shared["email"], single, word, shared["runs"], shared["symbol"]]))


_PATTERNS: dict[str, Callable[[], re.Pattern[str]]] = {"en": _english, "ko": _korean, "general": _general}


@functools.cache
def _kiwi() -> Any:
    try:
        from kiwipiepy import Kiwi
    except ImportError as error:
        raise missing_extra("ko", "splitting Korean into morphemes") from error
    return Kiwi(num_workers=1)


def _morphemes(text: str, gap: tuple[int, int] | None = None) -> list[TokenSpan]:
    clean = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    # UN is Kiwi's tag of an unknown morpheme. Measured on 1,200 sentences of Wikipedia: it leaves the other morphemes
    # as they are with the missing one in 89 %, without a tag in 85 %, the two sides split apart in 82 %.
    fixed = None if gap is None else [(*gap, "UN")]
    return [
        TokenSpan(word, token.start, token.start + token.len)
        for token in _kiwi().tokenize(clean, pretokenized=fixed)
        for word in token.form.split()
    ]


# --- sentences -----------------------------------------------------------------------------------------------------


# Punctuation that ends a sentence, closing quotes and brackets, and white space (group 1) not before a lower-case
# letter. The pattern begins with one character class, so that the regex engine can skip to the next match quickly.
_AFTER_END = rf"[{_ENDS}{re.escape(_CLOSERS)}]{{0,8}}"
_END = re.compile(rf"[{_ENDS}](?:(?<=[{_ENDS_WITHOUT_SPACE}]){_AFTER_END}|{_AFTER_END}(?=\s))(\s*)(?=[^\sa-z])")
_NEXT_WORD = re.compile(rf"[{re.escape(_LEADING)}]*(\S{{0,32}})")


def _next_word(text: str, position: int) -> str:
    """Return the word at a position, without the quotes, brackets and dashes before it."""
    match = _NEXT_WORD.match(text, position)
    return match.group(1) if match else ""


def _last_word(text: str, start: int, end: int) -> str:
    """Return the word before `end`, but after `start`, without the quotes and brackets before it."""
    words = text[max(start, end - 40) : end].rsplit(None, 1)
    return words[-1].lstrip(_LEADING) if words else ""


def _is_general_end(text: str, start: int, match: re.Match[str]) -> bool:
    following = _next_word(text, match.end())
    if following[:1].islower():
        return False
    stop = match.start()
    if text[stop] != ".":
        return True
    word = _last_word(text, start, stop)
    is_list_number = word.isdigit() and stop - start == len(word)
    is_initial = len(word) == 1 and word.isupper()
    return not (is_list_number or is_initial)


def _is_english_end(text: str, start: int, match: re.Match[str]) -> bool:
    stop, end = match.start(), match.end()
    following = text[end]
    if not following.isalnum():
        following = _next_word(text, end)[:1]
    if following.islower():
        return False
    # No abbreviation has seven letters or more.
    if text[stop] != "." or text[stop + 1] == "." or (stop - 7 >= start and text[stop - 7 : stop].isalpha()):
        return True
    word = _last_word(text, start, stop)
    if word.isdigit():
        return stop - start > len(word)  # otherwise it is the number of a list item
    if word in _BEFORE_NUMBERS:
        return not following.isdigit()
    if word in _TITLES or word.lower() in ("e.g", "i.e"):
        return False
    if word in _ENDINGS or "." in word or (len(word) == 1 and word.isalpha() and word != "I"):
        return re.split("[,'’]", _next_word(text, end), maxsplit=1)[0] in _OPENERS
    return True
