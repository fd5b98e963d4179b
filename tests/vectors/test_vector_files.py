"""Files of vectors: every format there and back, with gensim as the other side, and damage told in one line."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch
from support import TOLERANCE, worst

from pyelmo.errors import FormatError, InputError, NotFoundError, OutputError, PyelmoError, UnsafeFileError
from pyelmo.vectors import store
from pyelmo.vectors.static import StaticVectors
from pyelmo.vectors.train import VectorSettings, train

CLOSE = TOLERANCE[torch.float32]
PLAIN = {"word2vec": "a.vec", "word2vec-binary": "a.bin", "glove": "glove.txt", "gensim": "a.kv"}


@pytest.fixture
def random_vectors(royal):
    """Numbers that only nine digits bring back."""
    return StaticVectors(royal.words, np.random.default_rng(0).normal(size=(6, 7)).astype(np.float32))


@pytest.fixture(scope="module")
def with_subwords(corpus):
    pytest.importorskip("gensim")
    return train(corpus, VectorSettings(subwords=True, dim=8, epochs=1, buckets=500))


@pytest.mark.parametrize("kind", PLAIN)
def test_every_format_brings_the_same_words_and_bits_back(kind, random_vectors, tmp_path):
    if kind == "gensim":
        pytest.importorskip("gensim")
    path = tmp_path / PLAIN[kind]
    random_vectors.save(path, format=kind if kind == "glove" else None)
    assert store.kind_of(path) == kind
    back = StaticVectors.load(path)
    assert back.words == random_vectors.words
    np.testing.assert_array_equal(back.matrix, random_vectors.matrix)
    assert [child.name for child in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary", "glove", "gensim"])
def test_gensim_reads_what_is_written(kind, random_vectors, tmp_path):
    keyed_vectors = pytest.importorskip("gensim.models").KeyedVectors
    path = str(tmp_path / "file")
    random_vectors.save(path, format=kind)
    if kind == "gensim":
        keyed = keyed_vectors.load(path)
    else:
        keyed = keyed_vectors.load_word2vec_format(path, binary="binary" in kind, no_header=kind == "glove")
    assert tuple(keyed.index_to_key) == random_vectors.words
    np.testing.assert_array_equal(keyed.vectors, random_vectors.matrix)


@pytest.mark.parametrize("binary", [False, True])
def test_what_gensim_writes_is_read(binary, random_vectors, tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(7)
    keyed.add_vectors(list(random_vectors.words), random_vectors.matrix)
    keyed.save_word2vec_format(str(tmp_path / "file"), binary=binary)
    assert worst(StaticVectors.load(tmp_path / "file").matrix, random_vectors.matrix) < CLOSE


def test_a_fasttext_bin_gives_what_gensim_gives_for_known_and_unknown_words(with_subwords, tmp_path):
    load_facebook_vectors = pytest.importorskip("gensim.models.fasttext").load_facebook_vectors
    with_subwords.save(tmp_path / "a.bin")
    read, peer = StaticVectors.load(tmp_path / "a.bin"), load_facebook_vectors(str(tmp_path / "a.bin"))
    assert store.kind_of(tmp_path / "a.bin") == "fasttext"
    assert read.words == tuple(peer.index_to_key) == with_subwords.words
    assert worst(read.matrix, peer.vectors) < CLOSE
    assert worst(read.matrix, with_subwords.matrix) < CLOSE
    for word in ("cats", "고양이", "naïve", "x"):
        assert worst(read.vector(word), peer[word]) < CLOSE
        assert worst(with_subwords.vector(word), peer[word]) < CLOSE
    with pytest.raises(InputError, match="Copy the .bin"):
        read.save(tmp_path / "b.bin")
    read.save(tmp_path / "b.vec")
    np.testing.assert_array_equal(StaticVectors.load(tmp_path / "b.vec").matrix, read.matrix)


@pytest.mark.parametrize("limit", [10 * 1024**2, 0])  # arrays inside the pickle, and beside it
def test_gensim_s_own_files_are_read_whole_models_and_vectors_alone(with_subwords, limit, tmp_path):
    model = with_subwords.trained
    model.save(str(tmp_path / "model"), sep_limit=limit)
    model.wv.save(str(tmp_path / "vectors"), sep_limit=limit)
    for name in ("model", "vectors"):
        read = StaticVectors.load(tmp_path / name)
        assert read.words == with_subwords.words
        assert worst(read.matrix, with_subwords.matrix) < CLOSE
        assert worst(read.vector("cats"), model.wv["cats"]) < CLOSE
    if not limit:
        (tmp_path / "vectors.vectors_vocab.npy").unlink()
        with pytest.raises(NotFoundError, match=r"vectors\.vectors_vocab\.npy: not found"):
            StaticVectors.load(tmp_path / "vectors")


def forged(state, *, globals=("numpy", "dtype", "V8")) -> bytes:
    """A pickle of KeyedVectors with one vector of eight bytes, whose dtype has a state of the attacker's choice."""

    def code(value) -> bytes:  # the instructions that build a plain value
        return pickle.dumps(value, protocol=3)[2:-1]

    module, name, kind = globals
    dtype = f"c{module}\n{name}\n".encode() + code((kind, False, True)) + b"R" + (code(state) if state else b"") + b"b"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85C\x01b\x87R"
    array += b"(K\x01K\x01K\x01\x86" + (dtype if state else dtype[:-1]) + b"\x89C\x08AAAAAAAAtb"
    words = b"}" + code("index_to_key") + code(["a"]) + b"s" + code("vectors") + array + b"s"
    return b"\x80\x03cgensim.models.keyedvectors\nKeyedVectors\n)\x81" + words + b"b."


class ObjectDtype:
    """Pickled as the dtype of Python objects, whose values are addresses."""

    def __reduce__(self):
        return np.dtype, ("O8", False, True)


OBJECT_FIELD = (3, "|", None, ("a",), {"a": (ObjectDtype(), 0)}, 8, 1, 1)
REFERENCES = (3, "<", None, None, None, 8, 8, 1)  # NPY_ITEM_REFCOUNT
SUBARRAY = (3, "|", (ObjectDtype(), (1,)), None, None, 8, 8, 1)


@pytest.mark.parametrize("state", [OBJECT_FIELD, REFERENCES, SUBARRAY])
def test_a_pickle_cannot_make_an_array_of_addresses(state, tmp_path):
    (tmp_path / "a.kv").write_bytes(forged(state))
    with pytest.raises(FormatError, match="a gensim file without word vectors.*save_word2vec_format"):
        StaticVectors.load(tmp_path / "a.kv")


def test_a_forged_pickle_of_plain_numbers_would_be_read(tmp_path):
    (tmp_path / "a.kv").write_bytes(forged((3, ">", None, None, None, -1, -1, 0), globals=("numpy", "dtype", "f8")))
    assert StaticVectors.load(tmp_path / "a.kv").matrix.tolist() == [[pytest.approx(2261634.5098039214)]]


@pytest.mark.parametrize(
    "data",
    [
        b"\x8eAAAAAAA\x00.",  # BINBYTES8: a string of 2**54 bytes
        b"\x88r\xff\xff\xff\x7f.",  # LONG_BINPUT: the memo entry 2**31 - 1
        b"(cnumpy\ndtype\n}\x8c\x04nameK\x01s\x86b.",  # attributes of a class
        b"\x94\x93)\x81" * 10_000,
    ],
)
def test_a_hostile_pickle_takes_neither_memory_nor_effect(data, tmp_path):
    (tmp_path / "a.kv").write_bytes(GENSIM + b"\x94\x93)\x81" + data)
    with pytest.raises(FormatError):
        StaticVectors.load(tmp_path / "a.kv")


def test_a_gensim_array_beside_the_pickle_has_the_size_that_its_header_says(with_subwords, tmp_path):
    with_subwords.trained.wv.save(str(tmp_path / "vectors"), sep_limit=0)
    path = tmp_path / "vectors.vectors_vocab.npy"
    path.write_bytes(path.read_bytes().replace(b"'shape': (", b"'shape': (99", 1))
    with pytest.raises(FormatError, match="vectors_vocab.npy: not a complete numpy array"):
        StaticVectors.load(tmp_path / "vectors")


def test_a_fasttext_file_that_changes_while_it_is_used_is_an_error(with_subwords, tmp_path):
    with_subwords.save(tmp_path / "a.bin")
    vectors = StaticVectors.load(tmp_path / "a.bin")
    os.truncate(tmp_path / "a.bin", 100)
    with pytest.raises(FormatError, match=r"a\.bin: was changed or replaced"):
        vectors.vector("cats")


def test_a_pipe_is_no_file_of_vectors(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="is a pipe or a device"):
        StaticVectors.load(tmp_path / "pipe")


def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    (tmp_path / "evil").write_bytes(GENSIM + b"\x940" + pickle.dumps(Evil())[2:])
    with pytest.raises(UnsafeFileError, match=r"evil: the file asks for builtins\.print"):
        StaticVectors.load(tmp_path / "evil")


def test_words_with_spaces_are_read_from_glove(tmp_path):
    (tmp_path / "glove").write_text("a 1 2\nat name@domain.com 3 4\n. . 5 6\n\u00a0 7 8\n")
    vectors = StaticVectors.load(tmp_path / "glove")
    assert vectors.words == ("a", "at name@domain.com", ". .", "\u00a0")
    assert vectors.matrix.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_of_a_word_that_comes_twice_the_first_counts(tmp_path, caplog):
    (tmp_path / "a").write_text("3 2\na 1 2\nb 3 4\na 5 6\n")
    vectors = StaticVectors.load(tmp_path / "a")
    assert (vectors.words, vectors.matrix.tolist()) == (("a", "b"), [[1, 2], [3, 4]])
    assert "1 words are repeated" in caplog.text


BINARY = b"2 2\na " + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 3, 4) + b"\n"
GENSIM = pickle.dumps("gensim.models.keyedvectors", 4)[:-2] + b"\x94\x8c\x0cKeyedVectors"
FASTTEXT = store.fasttext.MAGIC + struct.pack("<i12id", 12, 2, 5, 1, 1, 5, 1, 2, 2, 10, 3, 6, 100, 1e-4)
DAMAGED = {
    "empty": (b"", "is empty"),
    "prose": (b"The bank of a river.\n", "line 1: expected a word and 4 numbers, got 'The bank"),
    "an image": (b"\x89PNG\r\n\x1a\n\0\0\0", "line 1: not UTF-8 at byte 0"),
    "gzip": (b"\x1f\x8b\x08\0", "compressed with gzip"),
    "a column missing": (b"2 2\na 1 2\nb 3\n", "line 3: expected a word and 2 numbers, got 1"),
    "a column too many": (b"2 2\na 1 2\nb 3 4 5\n", "line 3: expected a word and 2 numbers, got 3"),
    "a column too many without a first line": (b"a 1 2\nb 3 4 5\n", "line 2: expected a word and 2 numbers, got 3"),
    "no number": (b"a 1 2\nb 3 x\n", "line 2: expected a word and 2 numbers, got 'b 3 x"),
    "not finite": (b"a 1 2\nb 3 nan\n", "line 2: the vector of 'b' contains NaN or infinity"),
    "no word": (b"2 2\na 1 2\n 3 4\n", "line 3: expected a word"),
    "not UTF-8": (b"a 1 2\n\xff 3 4\n", "line 2: not UTF-8"),
    "lines missing": (b"3 2\na 1 2\nb 3 4\n", "line 3: 2 words, but line 1 says 3"),
    "lines too many": (b"1 2\na 1 2\nb 3 4\n", "line 3: 2 words, but line 1 says 1"),
    "cut within a number": (b"a 1 2.5\nb 3 4.", "line 2: the line end is missing"),
    "a first line that promises too much": (b"999999999 999999999\na 1 2\n", "line 1: 999999999 words"),
    "no words": (b"0 100\n", "line 1: 0 words"),
    "binary cut off": (BINARY[:-3], "word 2 of 2: the file ends"),
    "binary with more": (BINARY + b"c ", "after the last of 2 words"),
    "binary without a word": (BINARY.replace(b"b ", b" "), "word 2 of 2: no word"),
    "binary not finite": (BINARY.replace(struct.pack("<f", 3), struct.pack("<f", np.inf)), "word 2 of 2: no word, or"),
    "fastText cut in its settings": (FASTTEXT[:20], "ends before its vectors"),
    "fastText cut in a word": (
        FASTTEXT + struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"a",
        "word 1 of 1: the word has no end",
    ),
    "fastText cut in its vectors": (
        FASTTEXT + struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"a\0" + struct.pack("<qb?2q", 9, 0, False, 11, 2),
        "but the vectors end at byte",
    ),
    "fastText with long n-grams": (
        FASTTEXT[:-16] + struct.pack("<i", 10**9) + FASTTEXT[-12:] + struct.pack("<3i2q", 1, 1, 0, 9, -1),
        "n-grams of 3 to 1000000000 characters",
    ),
    "fastText with too many words": (
        FASTTEXT + struct.pack("<3i2q", 2**31 - 1, 2**31 - 1, 0, 9, -1),
        "2147483647 words",
    ),
    "fastText with too many n-grams": (
        FASTTEXT[:40]
        + struct.pack("<i", 2**31 - 1)
        + FASTTEXT[44:]
        + struct.pack("<3i2q", 1, 1, 0, 9, -1)
        + b"a\0"
        + struct.pack("<qb?2q", 9, 0, False, 2**31, 2),
        "but the vectors end at byte 17,179,869,304",
    ),
    "fastText with shapes over 2^63": (
        FASTTEXT + struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"a\0" + struct.pack("<qb?2q", 9, 0, False, 2**62, 2**62),
        "4611686018427387904 x 4611686018427387904 vectors, expected",
    ),
    "a classifier": (FASTTEXT + struct.pack("<3i2q", 2, 1, 1, 9, -1), "a fastText classifier"),
    "quantised": (
        FASTTEXT + struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"a\0" + struct.pack("<qb?2q", 9, 0, True, 11, 2),
        "quantised",
    ),
    "a pickle cut off": (GENSIM + b"\x94}", "not a complete gensim file"),
    "a pickle of something else": (pickle.dumps({"a": 1}), "perhaps a pickle of another program"),
    "gensim without words": (GENSIM + b"\x94\x93)\x81.", "without word vectors"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_or_foreign_file_is_one_clear_error(case, tmp_path):
    data, message = DAMAGED[case]
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(FormatError) as caught:
        StaticVectors.load(tmp_path / "file")
    assert str(caught.value).startswith(str(tmp_path / "file"))
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary", "glove"])
def test_a_file_cut_anywhere_is_never_read_as_whole(kind, random_vectors, tmp_path):
    random_vectors.save(tmp_path / "whole", format=kind)
    data = (tmp_path / "whole").read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(data) - 1):
        if kind == "glove" and data[:length].endswith(b"\n"):
            continue  # without a first line nothing says how many there should be
        cut.write_bytes(data[:length])
        if kind == "word2vec" and length >= data.rindex(b" "):
            continue  # digits of the very last number: still a whole file of other numbers
        with pytest.raises(FormatError):
            StaticVectors.load(cut)


def test_nothing_is_overwritten_or_half_written(random_vectors, tmp_path, monkeypatch):
    path = tmp_path / "a.vec"
    path.write_text("old")
    with pytest.raises(OutputError, match="exists already"):
        random_vectors.save(path)
    monkeypatch.setattr(store, "_lines", lambda *_: iter([b"new", None]))
    with pytest.raises(TypeError):
        random_vectors.save(path, force=True)
    assert path.read_text() == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["a.vec"]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("a.what", None, "Use one of .txt, .vec, .bin, .kv"),
        ("a.vec", "hdf5", "format 'hdf5' is unknown"),
        ("a.bin", "fasttext", "these vectors have no n-grams"),
    ],
)
def test_a_format_that_cannot_be_written_is_an_error(name, kind, message, royal, tmp_path):
    with pytest.raises(InputError, match=message):
        royal.save(tmp_path / name, format=kind)


def test_a_word_that_a_format_cannot_hold_is_an_error(tmp_path):
    vectors = StaticVectors(["New York"], np.ones((1, 2), dtype=np.float32))
    with pytest.raises(InputError, match="'New York' is empty or contains white space"):
        vectors.save(tmp_path / "a.vec")


def test_without_gensim_everything_is_read_and_the_extra_is_named(tmp_path, random_vectors, corpus, monkeypatch):
    random_vectors.save(tmp_path / "a.vec")
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert len(StaticVectors.load(tmp_path / "a.vec")) == 6
    for call in (lambda: random_vectors.save(tmp_path / "a.kv"), lambda: train(corpus)):
        with pytest.raises(PyelmoError, match=r"pip install 'pyelmo\[vectors\]'"):
            call()


def test_importing_loads_neither_gensim_nor_torch():
    code = (
        "import sys, pyelmo.vectors.train, pyelmo.vectors.evaluate; assert not {'gensim', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
