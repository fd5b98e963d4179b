"""TensorFlow checkpoints read without TensorFlow: the arrays it wrote, or one clear error."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_support import (
    DTYPES,
    HEADER,
    block,
    entry,
    field,
    masked,
    plain_crc32c,
    shape_message,
    table,
    varint,
    write_checkpoint,
)

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.formats.crc32c import crc32c
from pyelmo.formats.tensorflow_bundle import read_bundle

GOLDEN = Path(__file__).parents[1] / "golden" / "bilm-tf-training"
MODELS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
PREFIX = "model.ckpt-180"


@pytest.fixture
def small(tmp_path):
    """A copy of the smallest checkpoint, to be damaged."""
    shutil.copytree(GOLDEN / "lm_unidirectional_words", tmp_path / "model")
    return tmp_path / "model" / PREFIX


def expected_arrays(model: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / model / "checkpoint_as_npz.npz") as file:
        return {name.replace("|", "/"): file[name] for name in file.files}


@pytest.mark.parametrize("model", MODELS)
def test_arrays_are_those_that_tensorflow_reads(model):
    bundle = read_bundle(GOLDEN / model / PREFIX)
    expected = expected_arrays(model)
    assert sorted(bundle) == sorted(expected)
    for name, array in expected.items():
        assert bundle[name].dtype == array.dtype
        assert bundle.shape(name) == array.shape
        np.testing.assert_array_equal(bundle[name], array)


@pytest.mark.parametrize("suffix", ["", ".index", ".data-00000-of-00001"])
def test_any_file_of_the_checkpoint_names_it(suffix):
    assert "lm/embedding" in read_bundle(GOLDEN / "lm_unidirectional_words" / (PREFIX + suffix))


def test_shapes_are_known_without_reading_data(small):
    bundle = read_bundle(small)
    data = small.with_name(PREFIX + ".data-00000-of-00001")
    data.write_bytes(bytes(data.stat().st_size))
    assert bundle.tensors["lm/embedding"].shape == (32, 8)
    assert bundle.tensors["lm/embedding"].dtype == np.float32


def test_arrays_are_in_memory_and_never_change_the_file(small):
    data = small.with_name(PREFIX + ".data-00000-of-00001")
    before = data.read_bytes()
    array = read_bundle(small)["lm/embedding"]
    array[:] = 0
    assert data.read_bytes() == before


def test_a_name_that_is_not_there_is_a_key_error():
    bundle = read_bundle(GOLDEN / "lm_unidirectional_words" / PREFIX)
    assert "nothing" not in bundle
    with pytest.raises(KeyError):
        bundle["nothing"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_every_dtype_and_rank_at_an_odd_offset(tmp_path, dtype, shape):
    array = np.arange(24, dtype=dtype)[: int(np.prod(shape))].reshape(shape)
    items = {b"": HEADER, b"x": entry(array, offset=3)}
    bundle = read_bundle(write_checkpoint(tmp_path, items, {"00000-of-00001": b"???" + array.tobytes()}))
    assert bundle["x"].dtype == dtype
    assert bundle["x"].shape == shape
    assert bundle["x"].flags.aligned
    np.testing.assert_array_equal(bundle["x"], array)


def test_tensors_may_be_in_several_shards(tmp_path):
    a, b = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.int64)
    items = {b"": field(1, 2), b"a": entry(a, shard=0), b"b": entry(b, shard=1)}
    shards = {"00000-of-00002": a.tobytes(), "00001-of-00002": b.tobytes()}
    bundle = read_bundle(write_checkpoint(tmp_path, items, shards))
    np.testing.assert_array_equal(bundle["a"], a)
    np.testing.assert_array_equal(bundle["b"], b)
    (tmp_path / "model.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(FormatError, match=r"model\.ckpt\.data-00001-of-00002: no such file"):
        read_bundle(tmp_path / "model.ckpt")


def test_what_cannot_be_read_is_left_out_and_says_why(tmp_path):
    array = np.arange(3, dtype=np.float32)
    items = {
        b"": HEADER,
        b"\0\1slice": field(1, 1),
        b"graph": field(1, 7) + field(5, 10),
        b"parts": field(1, 1) + field(2, shape_message([4])) + field(7, b""),
        b"x": entry(array),
    }
    bundle = read_bundle(write_checkpoint(tmp_path, items, {"00000-of-00001": array.tobytes()}))
    assert list(bundle) == ["x"]
    assert "graph" not in bundle
    with pytest.raises(FormatError, match=r"'graph'.*string"):
        bundle["graph"]
    with pytest.raises(FormatError, match=r"'parts'.*partitioned"):
        bundle["parts"]


def test_a_missing_checkpoint_says_what_to_give(tmp_path):
    with pytest.raises(NotFoundError, match=r"before '\.index'"):
        read_bundle(tmp_path / "model.ckpt")
    for folder in (tmp_path, ".", "/"):
        with pytest.raises(NotFoundError):
            read_bundle(folder)


def test_a_v1_checkpoint_says_to_save_it_again(tmp_path):
    (tmp_path / "model.ckpt").write_bytes(b"old")
    with pytest.raises(FormatError, match="V2"):
        read_bundle(tmp_path / "model.ckpt")


def test_a_missing_data_file_is_named(small):
    small.with_name(PREFIX + ".data-00000-of-00001").unlink()
    with pytest.raises(FormatError, match=r"data-00000-of-00001: no such file.*Copy all files"):
        read_bundle(small)


def test_a_data_file_cut_short_is_found_before_reading(small):
    data = small.with_name(PREFIX + ".data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(FormatError, match="23815 bytes, expected 23816"):
        read_bundle(small)


def test_a_damaged_tensor_is_found_by_its_checksum(small):
    bundle = read_bundle(small)
    position = bundle.tensors["lm/embedding"].offset + 7
    data = small.with_name(PREFIX + ".data-00000-of-00001")
    damaged = bytearray(data.read_bytes())
    damaged[position] ^= 1
    data.write_bytes(damaged)
    with pytest.raises(FormatError, match="checksum mismatch in 'lm/embedding'"):
        read_bundle(small)["lm/embedding"]


def test_another_file_is_not_an_index(small):
    small.with_name(PREFIX + ".index").write_bytes(b"PK\x03\x04" * 100)
    with pytest.raises(FormatError, match=r"\.index: not the index of a TensorFlow V2 checkpoint"):
        read_bundle(small)


def test_compressed_blocks_say_to_save_again(tmp_path):
    with pytest.raises(FormatError, match=r"Snappy.*Save the checkpoint again"):
        read_bundle(write_checkpoint(tmp_path, {b"": HEADER}, compression=1))


def test_big_endian_says_to_save_again(tmp_path):
    with pytest.raises(FormatError, match="big-endian"):
        read_bundle(write_checkpoint(tmp_path, {b"": HEADER + field(2, 1)}))


@pytest.mark.parametrize(
    "shape",
    [[3, 2**62], [2**63 - 1], [0, 2**62, 2**62], [1] * 70, [2**64 - 1]],
    ids=["large", "max", "zero", "rank", "-1"],
)
def test_an_impossible_shape_is_a_format_error(tmp_path, shape):
    with pytest.raises(FormatError):
        read_bundle(write_checkpoint(tmp_path, {b"": HEADER, b"x": field(1, 1) + field(2, shape_message(shape))}))


@pytest.mark.parametrize("size", [0, 1, 9, 2047, 2048, 2049, 8192, 100_003])
def test_the_fast_checksum_is_the_plain_one(size):
    data = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    assert crc32c(data) == plain_crc32c(data.tobytes())


def test_the_checksum_of_several_pieces_is_that_of_the_whole(monkeypatch):
    data = np.random.default_rng(0).integers(0, 256, 30_000).astype(np.uint8)
    monkeypatch.setattr("pyelmo.formats.crc32c.PIECE", 9_001)
    assert crc32c(data) == plain_crc32c(data.tobytes())


def test_the_checksum_is_castagnolis():
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283


def read_all(prefix: Path) -> dict[str, np.ndarray] | None:
    """All arrays, or None where the checkpoint is refused; any other exception fails the test."""
    try:
        return dict(read_bundle(prefix))
    except FormatError:
        return None


def test_a_truncated_index_is_a_format_error_wherever_it_ends(small):
    index = small.with_name(PREFIX + ".index")
    whole = index.read_bytes()
    for size in range(len(whole)):
        index.write_bytes(whole[:size])
        assert read_all(small) is None


def test_a_flipped_bit_gives_an_error_or_the_same_arrays(small):
    index = small.with_name(PREFIX + ".index")
    whole = index.read_bytes()
    expected = expected_arrays("lm_unidirectional_words")
    flips = [(position, random.Random(position).randrange(8)) for position in range(len(whole))]
    footer = [(position, bit) for position in range(len(whole) - 48, len(whole)) for bit in range(8)]
    for position, bit in flips + footer:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        index.write_bytes(damaged)
        arrays = read_all(small)
        if arrays is not None:
            assert arrays.keys() == expected.keys()
            assert all(np.array_equal(arrays[name], expected[name]) for name in expected)


keys = st.sampled_from([b"", b"\0", b"a", b"b", b"\xff", b"a/b"])
numbers = st.integers(0, 12) | st.integers(0, 2**64 - 1)
messages = st.recursive(
    st.binary(max_size=12)
    | st.lists(st.tuples(st.integers(0, 9), numbers), max_size=6).map(
        lambda pairs: b"".join(field(*pair) for pair in pairs)
    ),
    lambda inner: st.lists(st.tuples(st.integers(0, 9), inner | numbers), max_size=6).map(
        lambda pairs: b"".join(field(*pair) for pair in pairs)
    ),
    max_leaves=8,
)
same_folder = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@same_folder
@given(items=st.dictionaries(keys, messages, max_size=4), header=st.booleans())
def test_garbage_with_right_checksums_raises_nothing_else(tmp_path, items, header):
    if header:
        items[b""] = HEADER
    read_all(write_checkpoint(tmp_path, dict(sorted(items.items())), {"00000-of-00001": bytes(64)}))


@same_folder
@given(body=st.binary(max_size=60))
def test_garbage_blocks_with_right_checksums_raise_nothing_else(tmp_path, body):
    data = body + b"\0"
    data += struct.pack("<I", masked(data))
    index = block({b"~": varint(0) + varint(len(body))})
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    whole = data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    (tmp_path / "model.ckpt.index").write_bytes(whole)
    read_all(tmp_path / "model.ckpt")


def test_reading_takes_the_memory_of_a_tensor_once(tmp_path):
    """64 MB of zeros, read and checked, take little more than 64 MB of allocations."""
    import tracemalloc

    size = 64 * 2**20
    with open(tmp_path / "model.ckpt.data-00000-of-00001", "wb") as file:
        file.truncate(size)
    checksum = crc32c(np.zeros(size, np.uint8))
    checksum = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    where = field(1, 1) + field(2, shape_message([size // 4])) + field(5, size)
    item = where + varint(6 << 3 | 5) + struct.pack("<I", checksum)
    (tmp_path / "model.ckpt.index").write_bytes(table({b"": HEADER, b"x": item}))
    tracemalloc.start()
    try:
        array = read_bundle(tmp_path / "model.ckpt")["x"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert array.nbytes == size
    assert peak < 1.2 * size


def test_tensors_that_overlap_are_refused(tmp_path):
    array = np.ones(4, np.float32)
    items = {b"": HEADER, b"x": entry(array), b"y": entry(array, offset=8)}
    with pytest.raises(FormatError, match="'y' overlaps another tensor"):
        read_bundle(write_checkpoint(tmp_path, items, {"00000-of-00001": array.tobytes() * 2}))
