"""Embeddings files: what goes in comes back, and a write that fails changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest

from pyelmo.embed.files.store import FORMATS, format_of, open_writer, read_embeddings
from pyelmo.errors import FormatError, InputError, MissingExtraError, NotFoundError, OutputError

LAYERS = ("layer_0", "layer_1", "layer_2")
DIM = 5
SHAPES = {
    "all layers": {"layers": LAYERS, "pooled": False},
    "one layer": {"layers": None, "pooled": False},
    "a list of one layer": {"layers": ("layer_2",), "pooled": False},
    "all layers pooled": {"layers": LAYERS, "pooled": True},
    "one layer pooled": {"layers": None, "pooled": True},
}
SENTENCES = ["The cat sat", "", "한국어 문장 😀", "The cat sat", 'a "quote" \\ and\ttabs']
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits and devices")


def arrays_for(layers, pooled, sentences=SENTENCES, dim=DIM):
    random = np.random.default_rng(0)
    for sentence in sentences:
        shape = ([len(layers)] if layers else []) + [len(sentence.split())] * (not pooled) + [dim]
        yield random.standard_normal(shape).astype(np.float32)


def write(path, *, format, layers=LAYERS, pooled=False, sentences=SENTENCES, **options):
    arrays = list(arrays_for(layers, pooled, sentences))
    with open_writer(path, format=format, layers=layers, pooled=pooled, dim=DIM, **options) as writer:
        for sentence, array in zip(sentences, arrays, strict=True):
            writer.write(sentence, sentence.split(), array)
    return arrays


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", FORMATS)
def test_arrays_come_back_bit_for_bit_in_order(tmp_path, format, shape):
    path = tmp_path / "out"
    arrays = write(path, format=format, **SHAPES[shape])
    stored = list(read_embeddings(path))
    assert [row.index for row in stored] == list(range(len(SENTENCES)))
    for row, array in zip(stored, arrays, strict=True):
        assert row.vectors.dtype == np.float32
        assert row.vectors.shape == array.shape
        np.testing.assert_array_equal(row.vectors, array)


@pytest.mark.parametrize("format", ["npz", "parquet", "jsonl"])
def test_sentences_and_tokens_come_back(tmp_path, format):
    write(tmp_path / "out", format=format)
    stored = list(read_embeddings(tmp_path / "out"))
    assert [row.sentence for row in stored] == SENTENCES
    assert [row.tokens for row in stored] == [sentence.split() for sentence in SENTENCES]


@pytest.mark.parametrize("format", FORMATS)
def test_sentences_may_be_numbered_from_anywhere(tmp_path, format):
    arrays = write(tmp_path / "out", format=format, first=98)
    stored = list(read_embeddings(tmp_path / "out"))
    assert [row.index for row in stored] == list(range(98, 98 + len(SENTENCES)))
    np.testing.assert_array_equal(stored[4].vectors, arrays[4])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_without_sentences_is_a_file(tmp_path, format):
    write(tmp_path / "out", format=format, sentences=[])
    assert list(read_embeddings(tmp_path / "out")) == []


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_embeddings_give_the_same_bytes(tmp_path, format):
    for name in ("one", "two"):
        write(tmp_path / name, format=format)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("format", FORMATS)
def test_row_groups_and_batches_lose_nothing(tmp_path, format, monkeypatch):
    monkeypatch.setattr("pyelmo.embed.files.formats.ROW_GROUP_BYTES", 1000)
    sentences = ["w " * (i % 7) for i in range(300)]
    arrays = write(tmp_path / "out", format=format, sentences=sentences)
    for row, array in zip(read_embeddings(tmp_path / "out"), arrays, strict=True):
        np.testing.assert_array_equal(row.vectors, array)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("sentence", ["a\x00b", "lone \ud800 surrogate", "\udfff", "\U0010ffff", "line\u2028end\x85"])
def test_no_character_breaks_a_file(tmp_path, format, sentence):
    write(tmp_path / "out", format=format, sentences=[sentence])
    (row,) = read_embeddings(tmp_path / "out")
    expected = sentence
    if format == "parquet":
        expected = sentence.replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")
    assert row.sentence == expected


def test_hdf5_is_what_allennlp_wrote(tmp_path):
    arrays = write(tmp_path / "out.hdf5", format="hdf5")
    with h5py.File(tmp_path / "out.hdf5", "r") as file:
        assert set(file) == {"0", "1", "2", "3", "4", "sentence_to_index"}
        assert file["0"].dtype == np.float32
        np.testing.assert_array_equal(file["4"][()], arrays[4])
        index = file["sentence_to_index"]
        assert index.shape == (1,)
        assert tuple(h5py.check_string_dtype(index.dtype)) == ("utf-8", None)
        assert json.loads(index[0]) == {SENTENCES[0]: "3", "": "1", SENTENCES[2]: "2", SENTENCES[4]: "4"}


def test_npz_is_read_by_numpy_without_pickle(tmp_path):
    arrays = write(tmp_path / "out.npz", format="npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["2"], arrays[2])
        texts = json.loads(bytes(file["sentences"]))
    assert texts[2] == {"sentence": SENTENCES[2], "tokens": SENTENCES[2].split()}


def test_parquet_has_a_plain_column_for_each_layer(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrays = write(tmp_path / "out.parquet", format="parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["index", "sentence", "tokens", *LAYERS]
    assert str(table.schema.field("index").type) == "int64"
    assert str(table.schema.field("sentence").type) == "string"
    assert table["layer_1"].to_pylist()[2] == arrays[2][1].tolist()


def test_jsonl_is_one_strict_json_object_a_line(tmp_path):
    arrays = write(tmp_path / "out.jsonl", format="jsonl")
    lines = (tmp_path / "out.jsonl").read_bytes().decode("ascii").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[1]["shape"] == [3, 0, DIM]
    assert rows[1]["vectors"] == [[], [], []]
    np.testing.assert_array_equal(np.array(rows[0]["vectors"], np.float32), arrays[0])


def test_jsonl_keeps_every_number_a_float(tmp_path):
    values = np.array([0.0, 1.0, -3.0, 1e-30, 16777216.0], np.float32)
    with open_writer(tmp_path / "out", format="jsonl", dim=5, pooled=True) as writer:
        writer.write("a", ["a"], values)
    numbers = json.loads((tmp_path / "out").read_text())["vectors"]
    assert all(isinstance(number, float) for number in numbers)
    np.testing.assert_array_equal(np.array(numbers, np.float32), values)


@pytest.mark.parametrize("format", FORMATS)
def test_float16_stores_half_precision(tmp_path, format):
    arrays = write(tmp_path / "out", format=format, float16=True)
    for row, array in zip(read_embeddings(tmp_path / "out"), arrays, strict=True):
        np.testing.assert_array_equal(row.vectors.astype(np.float16), array.astype(np.float16))
        assert row.vectors.dtype == (np.float32 if format == "jsonl" else np.float16)


def test_a_value_beyond_float16_is_an_error(tmp_path):
    with (
        pytest.raises(InputError, match="too large for float16"),
        open_writer(tmp_path / "out", format="npz", dim=1, pooled=True, float16=True) as writer,
    ):
        writer.write("a", ["a"], np.array([1e6], np.float32))
    assert list(tmp_path.iterdir()) == []


def test_jsonl_refuses_what_json_cannot_hold(tmp_path):
    with (
        pytest.raises(InputError, match="NaN"),
        open_writer(tmp_path / "out", format="jsonl", dim=1, pooled=True) as writer,
    ):
        writer.write("a", ["a"], np.array([np.nan], np.float32))


def test_parquet_refuses_float16_of_an_old_pyarrow_and_clashing_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("pyarrow.__version__", "14.0.2")
    with pytest.raises(InputError, match="pyarrow 15"):
        write(tmp_path / "out", format="parquet", float16=True)
    with pytest.raises(InputError, match="column"):
        write(tmp_path / "out", format="parquet", layers=("index", "a", "b"))


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pyelmo\[parquet\]"):
        write(tmp_path / "out", format="parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_wrong_shape_is_an_error_that_says_both_shapes(tmp_path, format):
    with (
        pytest.raises(InputError, match=r"sentence 0 has shape \(2, 4, 5\), expected \(3, T, 5\)"),
        open_writer(tmp_path / "out", format=format, dim=5, layers=LAYERS) as writer,
    ):
        writer.write("a", ["a"], np.zeros((2, 4, 5), np.float32))


def test_a_file_that_misses_a_sentence_does_not_appear(tmp_path):
    def swallow():
        with open_writer(tmp_path / "out", format="npz", dim=5, layers=LAYERS) as writer:
            with pytest.raises(InputError):
                writer.write("a", ["a"], np.zeros((1, 1, 5), np.float32))
            writer.write("b", ["b"], np.zeros((3, 1, 5), np.float32))

    with pytest.raises(InputError):
        swallow()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [ValueError("broken"), KeyboardInterrupt(), SystemExit(1), OSError(5, "Input/output")]
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_block_that_fails_keeps_the_old_file(tmp_path, format, error):
    (tmp_path / "out").write_bytes(b"old")

    def fail_midway():
        with open_writer(tmp_path / "out", format=format, layers=LAYERS, dim=DIM, force=True) as writer:
            for array in arrays_for(LAYERS, False):
                writer.write("a", ["a"], array)
            raise error

    with pytest.raises(type(error)):
        fail_midway()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_an_input_that_fails_in_the_block_is_not_called_an_output(tmp_path):
    missing = tmp_path / "input.txt"
    with (
        pytest.raises(FileNotFoundError) as caught,
        open_writer(tmp_path / "out", format="npz", dim=5),
    ):
        missing.read_text()
    assert not isinstance(caught.value, OutputError)


@pytest.mark.parametrize("format", FORMATS)
def test_an_existing_file_needs_force(tmp_path, format):
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(OutputError, match="--force"):
        write(tmp_path / "out", format=format)
    assert (tmp_path / "out").read_bytes() == b"old"
    write(tmp_path / "out", format=format, force=True)
    assert len(list(read_embeddings(tmp_path / "out"))) == len(SENTENCES)


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_is_never_replaced_by_a_file(tmp_path, format):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("x")
    with pytest.raises(OutputError, match="folder"):
        write(tmp_path / "data", format=format, force=True)
    assert (tmp_path / "data" / "precious").read_text() == "x"


@posix
def test_a_device_is_never_replaced_by_a_file(tmp_path):
    with pytest.raises(OutputError, match="device"):
        write("/dev/null", format="jsonl", force=True)


def test_a_missing_folder_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        write(tmp_path / "none" / "out", format="npz")


def test_a_long_name_works(tmp_path):
    name = "한" * 80 + ".jsonl"
    write(tmp_path / name, format="jsonl")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_format_follows_the_suffix_unless_given():
    assert format_of("a/b.hdf5", None) == "hdf5"
    assert format_of("b.H5", None) == "hdf5"
    assert format_of(Path("b.npz"), None) == "npz"
    assert format_of("b.parquet", None) == "parquet"
    assert format_of("b.jsonl", None) == "jsonl"
    assert format_of("-", None) == "jsonl"
    assert format_of("b.npz", "jsonl") == "jsonl"
    with pytest.raises(InputError, match="--format"):
        format_of("b.txt", None)
    with pytest.raises(InputError, match="'csv' is none of"):
        format_of("b.npz", "csv")


def test_reading_a_missing_file_says_so(tmp_path):
    with pytest.raises(NotFoundError):
        read_embeddings(tmp_path / "none")


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_cut_short_is_a_format_error(tmp_path, format):
    write(tmp_path / "out", format=format)
    whole = (tmp_path / "out").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) - 40])
    with pytest.raises(FormatError, match="cut: cannot be read"):
        list(read_embeddings(tmp_path / "cut"))


def test_standard_output_takes_jsonl_alone(capsys):
    arrays = write("-", format="jsonl")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_array_equal(np.array(rows[2]["vectors"], np.float32), arrays[2])
    with pytest.raises(InputError, match="standard output"):
        write("-", format="npz")


def run(code, *arguments, **options):
    """Run code in a process of its own; `count`, `path`, `format` and so on come from its arguments."""
    prelude = """
        import sys
        import numpy as np
        from pyelmo.embed.files.store import open_writer
        from pyelmo.errors import OutputError
        """
    program = textwrap.dedent(prelude) + textwrap.dedent(code)
    command = [sys.executable, "-X", "dev", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output="stdout" not in options, text=True, timeout=120, **options)


LIMITED = """
import resource

path, format, tokens, *limits = sys.argv[1:]
array = np.ones((3, int(tokens), 64), np.float32)
for limit in map(int, limits):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with open_writer(path, format=format, layers=["layer_0", "layer_1", "layer_2"], dim=64, force=True) as writer:
            for i in range(400):
                writer.write(f"sentence {i}", ["w"] * int(tokens), array)
    except OutputError as error:
        assert "cannot be written: File too large. Nothing was changed." in str(error), error
    else:
        sys.exit(f"{limit} bytes were enough")
"""


@posix
@pytest.mark.parametrize("tokens", [1, 30])  # small arrays stay in HDF5's buffers, large ones do not
@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_one_clear_error_and_keeps_the_old_file(tmp_path, format, tokens):
    """The kernel refuses to grow the file beyond each limit, from the first byte to the last of the footer."""
    write(tmp_path / "out", format=format)
    old = (tmp_path / "out").read_bytes()
    with open_writer(tmp_path / "whole", format=format, layers=LAYERS, dim=64) as writer:
        for i in range(400):
            writer.write(f"sentence {i}", ["w"] * tokens, np.ones((3, tokens, 64), np.float32))
    size = (tmp_path / "whole").stat().st_size
    (tmp_path / "whole").unlink()
    limits = [0, 1, 100, 5000, size // 3, size // 2, size - 20_000, size - 3000, size - 100, size - 1]
    result = run(LIMITED, tmp_path / "out", format, tokens, *limits)
    assert (result.returncode, result.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_bytes() == old


@posix
@pytest.mark.parametrize("format", FORMATS)
def test_an_interrupt_from_the_keyboard_leaves_nothing_behind(tmp_path, format):
    code = """
    import contextlib, os, signal, threading
    path, format = sys.argv[1:]
    with contextlib.suppress(ImportError):
        import pandas  # pyarrow imports it later, and an interrupted import prints a warning
    try:
        with open_writer(path, format=format, dim=64) as writer:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                writer.write("a", ["a"] * 3, np.ones((3, 64), np.float32))
    except KeyboardInterrupt:
        print("stopped")
    """
    result = run(code, tmp_path / "out", format)
    assert (result.returncode, result.stdout, result.stderr) == (0, "stopped\n", "")
    assert list(tmp_path.iterdir()) == []


STREAMED = """
try:
    with open_writer("-", format="jsonl", dim=64) as writer:
        for i in range(int(sys.argv[1])):
            writer.write("a", ["a"] * 3, np.ones((3, 64), np.float32))
except OutputError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""


@posix
@pytest.mark.parametrize("count", [1, 1000])  # one that fails in the last flush, many that fail before
def test_a_full_standard_output_is_one_clear_error(count):
    with open("/dev/full", "w") as full:
        result = run(STREAMED, count, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 3
    assert result.stderr == "standard output: cannot be written: No space left on device.\n"


@posix
@pytest.mark.parametrize("count", [1, 1000])
def test_a_reader_that_goes_away_ends_the_block_quietly(count):
    reading, writing = os.pipe()
    os.close(reading)
    result = run(STREAMED, count, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory that Linux tells")
@pytest.mark.parametrize(("format", "count"), [("hdf5", 2000), ("npz", 2000), ("parquet", 2000), ("jsonl", 700)])
def test_memory_does_not_grow_with_the_file(tmp_path, format, count):
    code = r"""
    import pathlib, re
    path, format, count = sys.argv[1:]

    def write(path, count):
        with open_writer(path, format=format, layers=["a", "b", "c"], dim=256) as writer:
            for i in range(count):
                array = np.random.default_rng(i).standard_normal((3, 20, 256), np.float32)
                writer.write(f"sentence {i} " + "word " * 18, ["word"] * 20, array)
        # Not getrusage, whose peak starts from that of the process that started this one.
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1])

    before = write(path + "-first", 100)
    print(write(path, int(count)) - before)
    """
    result = run(code, tmp_path / "out", format, count)
    assert result.stderr == ""
    assert (tmp_path / "out").stat().st_size > 110e6
    assert int(result.stdout) < 60e6
