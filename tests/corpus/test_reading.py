"""Reading text files of every kind as lines."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from pyelmo.corpus.reading import TextReader
from pyelmo.errors import FormatError, InputError, NotFoundError, PyelmoError
from pyelmo.text import rows
from pyelmo.text.rows import ReadOptions

DOCUMENTS = ["One line.\nTwo línes, 한국어.", "Another document."]
LINES = ["One line.", "Two línes, 한국어.", "", "Another document.", ""]


def zst(data: bytes) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


def parquet(column: str = "text") -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(pyarrow.table({"number": [1, 2, 3], column: [DOCUMENTS[0], None, DOCUMENTS[1]]}), sink)
    return sink.getvalue()


def jsonl() -> bytes:
    records = [{"text": DOCUMENTS[0], "id": 1}, {"text": None}, {"text": DOCUMENTS[1]}]
    return "\n".join(json.dumps(record) for record in records).encode()


def csv(separator: str = ",") -> bytes:
    first, second = (f'"{document}"' if separator == "," else document for document in DOCUMENTS)
    rows = [("id", "text"), ("1", first), ("2", ""), ("3", second)]
    return "\n".join(separator.join(row) for row in rows).encode()


CONTENTS: dict[str, Callable[[], bytes]] = {
    "a.txt": lambda: "\n\n".join(DOCUMENTS).encode(),
    "a.csv": csv,
    "a.jsonl": jsonl,
    "a.parquet": parquet,
}
READING = {name: ReadOptions() if name == "a.txt" else ReadOptions(column="text") for name in CONTENTS}
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zst,
}


def squeezed(lines: list[str]) -> list[str]:
    """Return the lines with a single empty line at the end of each document."""
    return [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]


@pytest.mark.parametrize("compression", COMPRESSORS)
@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_in_every_compression_gives_the_same_lines(tmp_path: Path, name: str, compression: str) -> None:
    path = tmp_path / (name + compression)
    path.write_bytes(COMPRESSORS[compression](CONTENTS[name]()))
    reader = TextReader([path], READING[name])
    assert squeezed(list(reader)) == LINES
    assert reader.bytes_read == reader.total_bytes == path.stat().st_size


@pytest.mark.parametrize("compression", COMPRESSORS)
@pytest.mark.parametrize("name", CONTENTS)
def test_standard_input_is_read_in_every_compression(
    monkeypatch: pytest.MonkeyPatch, name: str, compression: str
) -> None:
    class Standard:
        buffer = io.BufferedReader(io.BytesIO(COMPRESSORS[compression](CONTENTS[name]())))

    monkeypatch.setattr("sys.stdin", Standard)
    reader = TextReader(["-"], READING[name])  # the format is recognised by the first lines
    assert squeezed(list(reader)) == LINES
    assert reader.total_bytes is None


def test_another_column_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet("body"))
    assert squeezed(list(TextReader([tmp_path / "a.parquet"], ReadOptions(column="body")))) == LINES


def test_odd_lines_are_read_as_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufefffirst\r\n \t \r\nseparator\u2028inside\nnul\0here".encode())
    assert list(TextReader([tmp_path / "a.txt"])) == ["first", "", "separator\u2028inside", "nul\ufffdhere", ""]


def test_half_a_character_in_json_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a\\ud800b\\u0000c"}')
    assert squeezed(list(TextReader([tmp_path / "a.jsonl"], ReadOptions(column="text")))) == ["a\ufffdb\ufffdc", ""]


def test_a_line_without_end_is_cut_at_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST_LINE", 100)
    words = [f"word{number}é" for number in range(1000)]
    (tmp_path / "a.txt").write_text(" ".join(words), encoding="utf-8")
    lines = list(TextReader([tmp_path / "a.txt"]))
    assert " ".join(lines).split() == words
    assert max(len(line.encode()) for line in lines) <= 200


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.txt", "gut\nschön".encode("latin-1"), FormatError, r"txt, line 2: not UTF-8 at byte 4 .*--encoding cp1252"),
        ("a.txt.gz", b"no gzip", FormatError, "not compressed as the name says"),
        ("a.txt.gz", gzip.compress(b"text " * 1000, mtime=0)[:40], FormatError, "compressed data is incomplete"),
        ("a.txt.gz", gzip.compress(b"text " * 1000, mtime=0)[:-8] + b"12345678", FormatError, "damaged"),
        ("a.txt.xz", lzma.compress(b"text " * 1000)[:60] + b"x" * 40, FormatError, "damaged|incomplete"),
        ("a.jsonl", b'{"text": "a"}\n{"text": ', FormatError, "line 2: is not JSON"),
        (
            "a.jsonl",
            b'{"body": "a"}',
            InputError,
            r"line 1: no column 'text' \(columns: body\)\. Choose with --column",
        ),
        ("a.jsonl", b'["a"]', FormatError, "line 1: expected an object with a field 'text', got a list"),
        ("a.jsonl", b'{"text": 3}', InputError, "line 1, column 'text': expected text or a list of words, got int 3"),
        ("a.parquet", b"PAR1 but no more", FormatError, "cannot be read as Parquet"),
        ("a.txt", b"PAR1....", FormatError, "cannot be read as Parquet"),
    ],
)
def test_a_bad_file_is_one_clear_error(
    tmp_path: Path, name: str, content: bytes, error: type[PyelmoError], message: str
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        list(TextReader([tmp_path / name], ReadOptions() if ".txt" in name else ReadOptions(column="text")))
    assert "\n" not in str(caught.value).strip()


def test_a_damaged_zst_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt.zst").write_bytes(zst(b"text " * 10_000)[:20] + b"damage")
    with pytest.raises(PyelmoError, match=r"a\.txt\.zst"):
        list(TextReader([tmp_path / "a.txt.zst"]))


def test_a_missing_file_a_folder_and_an_unknown_format_fail_before_any_reading(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="not found"):
        TextReader([tmp_path / "missing.txt"])
    with pytest.raises(InputError, match="is a folder"):
        TextReader([tmp_path])
    with pytest.raises(InputError, match="'xml' is unknown"):
        ReadOptions(input_format="xml")


def test_a_parquet_file_without_the_column_names_those_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet("body"))
    with pytest.raises(InputError, match="no column 'tokens or sentence or text' \\(columns: number, body\\)"):
        list(TextReader([tmp_path / "a.parquet"]))
