"""One reader for every kind of text file."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from pyelmo.errors import FormatError, InputError, MissingExtraError, PyelmoError
from pyelmo.text.encodings import likely_encoding
from pyelmo.text.rows import ReadOptions, read_rows

TEXTS = ['She said "go", then left.', "두 번째 문장.", "", "third\nline"]
RECORDS = [{"id": number, "text": text, "label": "pos"} for number, text in enumerate(TEXTS)]
BY_TEXT = ReadOptions(column="text", keep=("label", "id"))


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def table(name: str) -> bytes:
    if name == "jsonl":
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in RECORDS).encode()
    if name == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        sink = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(RECORDS), sink)
        return sink.getvalue()
    quoted = [[str(record["id"]), '"' + str(record["text"]).replace('"', '""') + '"', "pos"] for record in RECORDS]
    return "\r\n".join([";".join(row) for row in [["id", "text", "label"], *quoted]]).encode("utf-8-sig")


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_a_table_is_read_by_column(tmp_path: Path, kind: str, compression: str, named: bool) -> None:
    data = table(kind)
    if compression == ".gz":
        data = gzip.compress(data)
    if compression == ".zst":
        data = bytes(pytest.importorskip("pyarrow").compress(data, codec="zstd", asbytes=True))
    path = write(tmp_path / (f"a.{kind}{compression}" if named else f"a.txt{compression}"), data)
    rows = list(read_rows(path, BY_TEXT))
    assert [row.text for row in rows] == TEXTS
    assert [(row.kept[0], int(row.kept[1])) for row in rows] == [("pos", 0), ("pos", 1), ("pos", 2), ("pos", 3)]


def test_quotes_in_tsv_are_ordinary_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 'id\tdocument\tlabel\n1\t"good\t1\n2\tbad "\t0\n')
    assert [row.text for row in read_rows(path, ReadOptions(column="document"))] == ['"good', 'bad "']


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\nGood,1\n"),
        ("a.tsv", "text\tlabel\nGood\t1\n"),
        ("a.jsonl", '{"text": "Good", "label": 1}\n'),
        ("a.json", '{"text": "Good", "label": 1}\n'),
        ("ratings.txt", "text\tlabel\nGood\t1\nBad\t0\n"),
        ("a.txt", '{"text": "Good", "label": 1}\n'),
        ("a", 'text,label\n"Good, really",1\nBad,0\n'),
    ],
)
def test_a_table_without_the_name_of_a_column_is_refused(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(InputError, match=r"none is named\. Columns: text, label\. Choose one with --column"):
        list(read_rows(path))
    assert len(list(read_rows(path, ReadOptions(column="text")))) == content.count("\n") - ("{" not in content)
    assert len(list(read_rows(path, ReadOptions(input_format="text")))) == content.count("\n")


@pytest.mark.parametrize("text", ["Hello, world\nBye, moon\n", "[1] A note.\n", "{curly}\nbraces\n", "a,b\n", "one\n"])
def test_ordinary_text_is_no_table(tmp_path: Path, text: str) -> None:
    assert [row.text for row in read_rows(write(tmp_path / "a.txt", text))] == text.splitlines()


def test_a_column_of_plain_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is plain text, which has no columns, but --column text is set"):
        list(read_rows(write(tmp_path / "a.txt", "Only text.\n"), ReadOptions(column="text")))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n1,one\n2,a,b\n", r"a.csv, line 3: 3 fields, expected 2"),
        ("a.csv", 'id,text\n1,"never closed\n2,b\n', r"a.csv, line 2: is not csv"),
        ("a.csv", "id,body\n1,one\n", r"no column 'text' \(columns: id, body\)"),
        ("a.csv", "text,text\n1,one\n", "exists twice"),
        ("a.csv", "", "no column 'text'"),
        ("a.jsonl", '{"text": "a"}\n[1]\n', r"line 2: expected an object"),
        ("a.jsonl", '{"text": ' + "[" * 100_000, r"line 1: is not JSON"),
        ("a.jsonl", '{"text": "a", "n": ' + "9" * 5000 + "}", r"line 1: is not JSON"),
        ("a.json", '[\n{"text": "a"}\n]\n', r"line 1: is not JSON .* jq"),
    ],
)
def test_a_bad_table_is_one_clear_error(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(PyelmoError, match=message):
        list(read_rows(write(tmp_path / name, content), ReadOptions(column="text")))


def test_zst_without_a_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("compression", "zstandard", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pyelmo\[zst\]"):
        list(read_rows(write(tmp_path / "a.txt.zst", b"\x28\xb5\x2f\xfdrest")))


# --- encodings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "cp949", "euc-kr", "utf-16", "utf-16-le", "utf-32"])
def test_text_in_a_named_encoding_has_no_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    lines = ["첫 줄", "", "둘째 줄 abc"]
    path = write(tmp_path / "a.txt", "\r\n".join(lines), encoding)
    assert [row.text for row in read_rows(path, ReadOptions(encoding=encoding))] == lines


def test_a_byte_order_mark_is_no_word(tmp_path: Path) -> None:
    assert [row.text for row in read_rows(write(tmp_path / "a.txt", "\ufeffHello\n"))] == ["Hello"]


@pytest.mark.parametrize(
    ("text", "encoding", "likely"),
    [
        ("안녕하세요. 한국어입니다", "cp949", "cp949"),
        ("안녕", "euc-kr", "cp949"),
        ("Hello", "utf-16", "utf-16"),
        ("Hello", "utf-32", "utf-32"),
        ("Hello there", "utf-16-le", "utf-16-le"),
        ("안녕하세요 세계", "utf-16-be", "utf-16-be"),
        ("café", "latin-1", "cp1252"),
        ("日本語のテキスト", "cp932", "cp932"),
    ],
)
def test_the_error_names_the_likely_encoding(tmp_path: Path, text: str, encoding: str, likely: str) -> None:
    path = write(tmp_path / "a.txt", f"{text}\n", encoding)
    with pytest.raises(FormatError, match=f"a.txt.*not UTF-8.*Pass --encoding {likely} ") as caught:
        list(read_rows(path))
    assert "iconv" not in str(caught.value)
    assert [row.text for row in read_rows(path, ReadOptions(encoding=likely))] == [text]


def test_damaged_utf8_is_not_called_another_encoding(tmp_path: Path) -> None:
    line = "한국어 문장이 여기에 있습니다".encode() + b"\xff"
    assert likely_encoding(line) is None
    with pytest.raises(FormatError, match="line 2: not UTF-8 at byte 43 .* Is the file damaged"):
        list(read_rows(write(tmp_path / "a.txt", b"ok\n" + line)))


def test_a_wrong_or_unknown_encoding_is_one_clear_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "ok\n한국어\n")
    with pytest.raises(FormatError, match=r"a.txt, line 2: byte 0x.. is not cp949 .* Change --encoding"):
        list(read_rows(path, ReadOptions(encoding="cp949")))
    with pytest.raises(FormatError, match="is not utf-16 .* Try utf-16-le"):
        list(read_rows(path, ReadOptions(encoding="utf-16")))
    for name in ("klingon", "base64"):
        with pytest.raises(InputError, match=f"encoding '{name}' is unknown"):
            ReadOptions(encoding=name)
