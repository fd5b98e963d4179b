"""The cache of layers: sentences are embedded once, runs share them, values are exact, damage is detected."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from support import file_size_limit

from pyelmo.encoders.base import LoadedEncoder, NamedEncoder
from pyelmo.errors import InputError, OutputError
from pyelmo.tasks.inputs.layer_cache import cached_layers
from pyelmo.tasks.inputs.layer_sources import live_layers, round_array

SENTENCES = [("a", "bc"), ("def",), ("a", "bc"), ("x", "y", "z")]


def counting(seen: list[list[str]], *, name: str = "m", scale: float = 1.0) -> NamedEncoder:
    """An encoder with two layers of size three: the length of a word, and its position."""

    def embed(sentences):
        for words in sentences:
            seen.append(words)
            lengths, places = np.array([len(word) for word in words]), np.arange(len(words))
            yield scale * np.stack([np.stack([row] * 3, -1) for row in (lengths, places)]).astype(np.float32)

    return NamedEncoder(name, {"model": name}, lambda: LoadedEncoder(embed=embed, layers=("one", "two")))


def open_cache(tmp_path, seen, **options):
    settings = {"language": "en", "precision": "float16", **options.pop("settings", {})}
    return cached_layers(counting(seen, **options), SENTENCES, tmp_path / "cache", **settings)


def test_distinct_sentences_are_embedded_once_for_all_runs(tmp_path):
    seen: list[list[str]] = []
    first = open_cache(tmp_path, seen)
    assert seen == [["a", "bc"], ["def"], ["x", "y", "z"]]
    second = open_cache(tmp_path, seen)
    assert len(seen) == 3
    found = second([("x", "y", "z"), ("a", "bc")])
    assert (found.shape, found.dtype) == ((2, 2, 3, 3), torch.float16)
    assert found[:, :, :, 0].tolist() == [[[1, 1, 1], [1, 2, 0]], [[0, 1, 2], [0, 1, 0]]]
    assert torch.equal(first(SENTENCES), second(SENTENCES))


def test_another_encoder_precision_or_sentence_is_another_entry(tmp_path):
    seen: list[list[str]] = []
    open_cache(tmp_path, seen)
    open_cache(tmp_path, seen, name="n")
    assert open_cache(tmp_path, seen, settings={"precision": "float32"})(SENTENCES).dtype == torch.float32
    cached_layers(counting(seen), SENTENCES[:1], tmp_path / "cache", language="en", precision="float16")
    assert (len(seen), len(list((tmp_path / "cache").iterdir()))) == (10, 4)


def test_folds_that_divide_the_same_sentences_share_an_entry(tmp_path):
    seen: list[list[str]] = []
    first = open_cache(tmp_path, seen)
    settings = {"language": "en", "precision": "float16"}
    second = cached_layers(counting(seen), SENTENCES[::-1], tmp_path / "cache", **settings)
    assert (len(seen), torch.equal(first(SENTENCES), second(SENTENCES))) == (3, True)


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_rounding_gives_the_bits_of_numpy_in_the_order_of_the_file(precision):
    values = np.random.default_rng(0).normal(0, 100, (3, 5, 7)).astype(np.float32)
    values[0, 0, :3] = 1e-8, -65519.99, 0.0
    values.setflags(write=False)
    rounded = round_array(values, precision)
    assert rounded.flags.c_contiguous
    assert rounded.tobytes() == values.astype(precision).swapaxes(0, 1).tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 65520.0])
def test_a_value_that_is_not_finite_after_rounding_is_an_error(value):
    values = np.zeros((2, 3, 4), np.float32)
    values[1, 2, 3] = value
    with pytest.raises(InputError, match="float16 cannot hold"):
        round_array(values, "float16")


@pytest.mark.parametrize("damage", ["flip", "cut", "header"])
def test_a_damaged_cache_is_reported_and_written_again(tmp_path, damage, caplog):
    seen: list[list[str]] = []
    before = open_cache(tmp_path, seen)(SENTENCES)
    (path,) = (tmp_path / "cache").glob("*/vectors.npy")
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-5] ^= 1
    path.write_bytes(data[:-4] if damage == "cut" else data)
    if damage == "header":
        path.with_name("cache.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        after = open_cache(tmp_path, seen)(SENTENCES)
    assert "this cache of vectors is damaged" in caplog.text
    assert (len(seen), torch.equal(before, after)) == (6, True)


def test_a_stopped_embedding_leaves_nothing(tmp_path):
    def embed(sentences):
        yield np.zeros((1, 2, 3), np.float32)
        raise KeyboardInterrupt

    broken = NamedEncoder("m", {"model": "m"}, lambda: LoadedEncoder(embed=embed, layers=("one",)))
    with pytest.raises(KeyboardInterrupt):
        cached_layers(broken, SENTENCES, tmp_path / "cache", language="en", precision="float16")
    assert not list((tmp_path / "cache").iterdir())


def test_a_full_disk_is_one_error_before_the_embedding_and_leaves_nothing(tmp_path, monkeypatch):
    seen: list[list[str]] = []
    # The header of the array has 128 bytes, the array 6 words of 2 layers of 3 numbers of 2 bytes.
    with file_size_limit(128 + 71), pytest.raises(OutputError, match="cannot be written: File too large"):
        open_cache(tmp_path, seen)
    assert len(seen) == 1  # not all three: the space is reserved first
    with monkeypatch.context() as patch:
        patch.delattr("os.posix_fallocate")
        with file_size_limit(128 + 71), pytest.raises(OutputError, match="cannot be written: File too large"):
            open_cache(tmp_path, seen)
    assert not list((tmp_path / "cache").iterdir())
    open_cache(tmp_path, seen)


def test_live_vectors_are_rounded_as_cached_ones(tmp_path):
    seen: list[list[str]] = []
    kept = open_cache(tmp_path, seen, scale=1 / 3)
    assert torch.equal(live_layers(counting(seen, scale=1 / 3), "en", "float16")(SENTENCES), kept(SENTENCES))
    with pytest.raises(InputError, match="float16 cannot hold. Use --set elmo.precision=float32"):
        live_layers(counting(seen, scale=1e6), "en", "float16")(SENTENCES)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("free", [0, 1 << 30])
def test_a_gpu_gets_the_same_layers_from_its_own_memory_and_from_the_host(tmp_path, monkeypatch, free):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, free))
    on_gpu = open_cache(tmp_path, [], settings={"device": "cuda"})(SENTENCES)
    assert on_gpu.device.type == "cuda"
    assert torch.equal(on_gpu.cpu(), open_cache(tmp_path, [])(SENTENCES))
