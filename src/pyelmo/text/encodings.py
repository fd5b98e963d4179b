"""Character encodings of text files: text in another encoding is read as UTF-8, and a likely encoding is named.

bytes in any encoding --as_utf8--> bytes in UTF-8 without a byte-order mark --decode_line--> str
"""

from __future__ import annotations

import codecs
import io
import re
from typing import IO

from pyelmo.errors import FormatError, InputError

BLOCK = 1 << 16
_UTF8_MARK = b"\xef\xbb\xbf"
_MARKS = {  # the longer marks first: one begins like a shorter one
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# Encodings that a text may have, and the characters that most of such a text consists of, apart from ASCII.
_CANDIDATES = (
    ("cp949", "[가-힣ㄱ-ㅣ]", 0.8),
    ("cp932", "[ぁ-ヿ]", 0.3),
    ("euc_jp", "[ぁ-ヿ]", 0.3),
    ("cp1251", "[а-яё]", 0.7),
    ("gb18030", "[一-鿿]", 0.8),
    ("big5", "[一-鿿]", 0.8),
)


def check_encoding(encoding: str | None) -> None:
    """Raise an error if Python has no text encoding of this name."""
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        raise InputError(
            f"encoding {encoding!r} is unknown. Use a name such as utf-8, cp949, euc-kr, utf-16 or cp1252."
        ) from None


def as_utf8(file: io.BufferedReader, name: str, encoding: str | None) -> io.BufferedReader:
    """Return the text of a file as a stream of UTF-8 without a byte-order mark.

    Raises:
        InputError: No text encoding has this name.
        FormatError: No encoding is named, and the text is in UTF-16 or UTF-32.
    """
    check_encoding(encoding)
    if encoding is not None and codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
        file = io.BufferedReader(_Transcoded(file, name, encoding), BLOCK)
    elif wide := _wide_encoding(file.peek(BLOCK)[:BLOCK]):
        raise FormatError(f"{name}: not UTF-8, but probably {wide}. Pass --encoding {wide} (encoding={wide!r}).")
    if file.peek(len(_UTF8_MARK)).startswith(_UTF8_MARK):
        file.read(len(_UTF8_MARK))
    return file


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Return a line of UTF-8 as text; an error names the encoding that the line probably has."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{name}, line {number}: not UTF-8 at byte {error.start + 1} of the line ({raw[error.start]:#04x})"
        likely = likely_encoding(raw[max(0, error.start - BLOCK) : error.start + BLOCK])
        if likely is None:
            raise FormatError(f"{where}, although the rest is. Is the file damaged? Correct that line.") from error
        advice = f"Is it {likely}? Pass --encoding {likely} (encoding={likely!r}), or convert the file to UTF-8."
        raise FormatError(f"{where}. {advice}") from error


def likely_encoding(sample: bytes) -> str | None:
    """Return the encoding that bytes which are not UTF-8 probably have; None if they are UTF-8 with a few errors."""
    if wide := _wide_encoding(sample):
        return wide
    replaced = sample.decode("utf-8", "replace")
    errors = replaced.count("\ufffd")
    if sum(not character.isascii() for character in replaced) > 5 * errors:
        return None
    single = sum(len(run) == 1 for run in re.findall(b"[\x80-\xff]+", sample))
    # In the text of a European language, bytes beyond ASCII stand alone between letters.
    east_asian = 2 * single <= sum(byte > 127 for byte in sample)
    for encoding, typical, share in _CANDIDATES if east_asian else ():
        others = [character for character in _decoded(sample, encoding) if not character.isascii()]
        if others and sum(1 for character in others if re.match(typical, character)) >= share * len(others):
            return encoding
    return "cp1252" if _decoded(sample, "cp1252") else "latin-1"


def _decoded(sample: bytes, encoding: str) -> str:
    """Return the text of a sample, whose last character may be cut; "" if it has another encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return ""


def _wide_encoding(start: bytes) -> str | None:
    """Return the encoding of text in UTF-16 or UTF-32: by its mark, or by its NUL bytes, which UTF-8 has not."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    even, odd = start[::2].count(0), start[1::2].count(0)
    # A space, a digit or a line end has one NUL byte in UTF-16; a stray NUL in other text is far rarer.
    if even + odd < max(2, len(start) / 50):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


class _Transcoded(io.RawIOBase):
    """A stream of text in another encoding, read as UTF-8."""

    def __init__(self, file: IO[bytes], name: str, encoding: str) -> None:
        self._file, self._name, self._encoding = file, name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._rest = b""
        self._line = 1
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest and not self._ended:
            self._rest = self._next_block()
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next_block(self) -> bytes:
        raw = self._file.read(BLOCK)
        self._ended = not raw
        try:
            text = self._decoder.decode(raw, final=self._ended)
        except UnicodeError as error:
            raise FormatError(f"{self._name}{self._describe(error)}") from error
        self._line += text.count("\n")
        return text.encode("utf-8", "replace")

    def _describe(self, error: UnicodeError) -> str:
        if "BOM" in str(error):  # a UnicodeDecodeError from Python 3.13 on
            advice = f"Is this the encoding of the file? Try {self._encoding}-le."
            return f": is not {self._encoding} (no byte-order mark). {advice}"
        if not isinstance(error, UnicodeDecodeError):  # a stateful encoding
            return f": is not {self._encoding} ({error})."
        line = self._line + error.object[: error.start].decode(self._encoding, "ignore").count("\n")
        problem = f"byte {error.object[error.start]:#04x} is not {self._encoding} ({error.reason})"
        return f", line {line}: {problem}. Is this the encoding of the file? Change --encoding."
