"""One line from sentences to vectors, the same in any batch."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import GOLDEN, make_embedder, worst

import pyelmo
from pyelmo.embed import embedder as embedder_module
from pyelmo.errors import InputError
from pyelmo.model.scalar_mix import ScalarMix

SENTENCES = [["the", "bank", "of", "a", "river"], ["a", "bank"], [], ["Hello"]]
CLIP = pyelmo.load(GOLDEN / "allennlp-outputs" / "models" / "clip")
words = st.text(st.characters(), max_size=12)  # any Unicode, lone surrogates and NUL included
sentences_of_words = st.lists(st.lists(words, max_size=9), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sentences_of_words, st.integers(1, 9), st.randoms(use_true_random=False))
def test_batch_size_order_and_batch_mates_never_change_a_vector(sentences, batch_size, random):
    alone = [CLIP.embed([sentence])[0] for sentence in sentences]
    order = list(range(len(sentences)))
    random.shuffle(order)
    together = CLIP.embed([sentences[place] for place in order], batch_size=batch_size)
    for place, vectors in zip(order, together, strict=True):
        assert worst(vectors, alone[place]) <= 1e-6
    again = list(CLIP.stream(sentences, batch_size=batch_size))
    for vectors, want in zip(again, alone, strict=True):
        assert worst(vectors, want) <= 1e-6


@pytest.mark.parametrize("threads", [1, 2])
def test_with_one_thread_or_two_batch_mates_change_no_bit(threads, golden_inputs):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sentences = [sentence for batch in golden_inputs.values() for sentence in batch]
        together = CLIP.embed(sentences)
        for sentence, vectors in zip(sentences, together, strict=True):
            assert np.array_equal(CLIP.embed([sentence])[0], vectors)
    finally:
        torch.set_num_threads(before)


def test_history_never_changes_a_vector():
    before = CLIP.embed([["bank"]])[0]
    CLIP.embed([["something", "else"]] * 5)
    assert np.array_equal(CLIP.embed([["bank"]])[0], before)


def test_shapes_follow_layers_and_pooling(tiny):
    assert [a.shape for a in tiny.embed(SENTENCES)] == [(3, 5, 16), (3, 2, 16), (3, 0, 16), (3, 1, 16)]
    assert [a.shape for a in tiny.embed(SENTENCES, layers="top")] == [(5, 16), (2, 16), (0, 16), (1, 16)]
    assert [a.shape for a in tiny.embed(SENTENCES, layers=1, pooling="mean")] == [(16,)] * 4
    assert [a.shape for a in tiny.embed(SENTENCES, pooling="max")] == [(3, 16)] * 4
    assert [a.shape[1] for a in tiny.embed(SENTENCES, keep_boundaries=True)] == [7, 4, 2, 3]
    assert all(a.dtype == np.float32 for a in tiny.embed(SENTENCES))
    assert all(isinstance(a, torch.Tensor) for a in tiny.embed(SENTENCES, output="torch"))


def test_every_choice_of_layers_is_made_of_all_layers(tiny):
    everything = tiny.embed(SENTENCES)
    choices = {
        "top": lambda a: a[-1],
        "average": lambda a: a.mean(0),
        0: lambda a: a[0],
        -2: lambda a: a[1],
        (0.5, 0.0, 2.0): lambda a: 0.5 * a[0] + 2 * a[2],
        (1.0, 0.0, 0.0, 0.0, 3.0): lambda a: np.concatenate([a[0, :, :8], a[0, :, 8:] + 3 * a[2, :, 8:]], -1),
    }
    for choice, make in choices.items():
        for got, layers in zip(tiny.embed(SENTENCES, layers=choice), everything, strict=True):
            assert worst(got, make(layers)) < 1e-6, choice
    mix = ScalarMix(3, weights=[0.1, 0.2, 0.3], gamma=0.5)
    weights = np.exp([0.1, 0.2, 0.3]) / np.exp([0.1, 0.2, 0.3]).sum() * 0.5
    got = tiny.embed(SENTENCES, layers=mix)[0]
    assert worst(got, np.einsum("l,ltd->td", weights, everything[0])) < 1e-6


def test_pooling_never_counts_padding_or_boundary_tokens(tiny):
    everything = tiny.embed(SENTENCES, layers="top")
    for name, make in {
        "mean": lambda a: a.mean(0),
        "max": lambda a: a.max(0),
        "first": lambda a: a[0],
        "last": lambda a: a[-1],
    }.items():
        for got, vectors in zip(tiny.embed(SENTENCES, layers="top", pooling=name), everything, strict=True):
            if len(vectors):
                assert worst(got, make(vectors)) < 1e-6, name
            else:
                assert np.isnan(got).all()


def test_strings_are_split_and_never_lower_cased(tiny):
    got = tiny.embed(["The bank, yes.", ["The", "bank", ",", "yes", "."]])
    assert np.array_equal(got[0], got[1])
    assert not np.allclose(tiny.embed([["The"]])[0], tiny.embed([["the"]])[0])


def test_odd_input_is_no_accident(tiny):
    assert tiny.embed([]) == []
    assert tiny.embed([""])[0].shape == (3, 0, 16)
    odd = [["x" * 10_000, "\ud800", "a\x00b", "", "\n", "👩‍👩‍👧‍👦"]]
    assert np.isfinite(tiny.embed(odd)[0]).all()
    assert tiny.embed([["word"] * 3000], layers="top")[0].shape == (3000, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sentences": "one string"}, r"embed\(\[sentence\]\)"),
        ({"sentences": [["a", 3]]}, "sentence 0, word 1: expected a string, got int 3"),
        ({"sentences": [["a"], [*"abcdefghijkl", None]]}, "sentence 1, word 12: expected a string, got NoneType None"),
        ({"sentences": [["a"], [*"abcdefghijkl", ["b"]]]}, "sentence 1, word 12: expected a string, got list"),
        ({"sentences": [["a"], 7]}, "sentence 1: expected a string or a list of words, got int"),
        ({"layers": "bottom"}, "'bottom' is none of"),
        ({"layers": 3}, "the model has layers 0 to 2"),
        ({"layers": [1.0, 2.0]}, "has 2 weights, but a mix of this model has 3 or 5"),
        ({"layers": [0.0, 1e176, 0.0]}, r"expected weights between -1e\+12 and 1e\+12"),
        ({"layers": [0.0, math.nan, 0.0]}, r"expected weights between -1e\+12 and 1e\+12"),
        ({"layers": ScalarMix(2)}, "for 2 layers, but the model has 3"),
        ({"layers": ScalarMix(3, layer_norm="batch")}, "depend on the other sentences of the batch"),
        ({"pooling": "sum"}, "'sum' is none of mean"),
        ({"batch_size": 0}, "at least 1"),
        ({"output": "jax"}, "none of 'numpy', 'torch'"),
        ({"device": "nowhere"}, "device 'nowhere' cannot be used"),
    ],
)
def test_a_wrong_argument_is_one_clear_error(tiny, arguments, message):
    with pytest.raises(InputError, match=message):
        tiny.embed(**{"sentences": SENTENCES, **arguments})


def test_an_unknown_language_is_an_error_at_once():
    with pytest.raises(InputError, match="klingon"):
        pyelmo.load(GOLDEN / "allennlp-outputs" / "models" / "clip", language="klingon")


def test_a_stream_asks_for_no_more_than_it_needs(monkeypatch):
    monkeypatch.setattr(embedder_module, "WINDOW_BYTES", 1)
    embedder, taken = make_embedder(), []
    embedder.threads = 1  # more of them work on the next window, too
    embedder.word_table().add(["a"])
    embedder.word_table().engine.window_tokens = 96

    def endless():
        while True:
            taken.append(1)
            yield ["a"]

    next(embedder.stream(endless()))
    assert len(taken) == 4  # of three tokens each, with boundary tokens: an eighth of a window


def test_a_batch_splits_strings_as_embed_does(tiny):
    strings, words = tiny.batch(["Hello world.", "A bank"]), tiny.batch([["Hello", "world", "."], ["A", "bank"]])
    assert torch.equal(strings.index, words.index)
    assert torch.equal(strings.mask, words.mask)
    with pytest.raises(InputError, match="sentences is one string"):
        tiny.batch("Hello world.")


def test_elmo_takes_sentences_as_embed_does(tiny):
    elmo = tiny.elmo(mixes=2, dropout=0.0)
    words = [["Hello", "world", "."], ["A", "bank"]]
    want = elmo(tiny.batch(words))
    for sentences in (["Hello world.", "A bank"], words):
        got = elmo(sentences)
        assert torch.equal(got.mask, want.mask)
        assert all(map(torch.equal, got.representations, want.representations))
    assert elmo.bilm is tiny.bilm  # training the module trains the model
    copied = copy.deepcopy(elmo)
    assert torch.equal(copied(words).representations[0], want.representations[0])
    with pytest.raises(InputError, match="sentences is one string"):
        elmo("Hello world.")
    with pytest.raises(InputError, match=r"cannot read list; use Embedder\.elmo"):
        pyelmo.Elmo(tiny.bilm)(["Hello world."])


def test_encode_returns_one_matrix(tiny):
    sentences = ["The bank, yes.", "A river", ""]
    matrix = tiny.encode(sentences)
    assert np.array_equal(matrix[:2], np.stack(tiny.embed(sentences[:2], layers="average", pooling="mean")))
    assert np.isnan(matrix[2]).all()
    assert np.array_equal(tiny.encode("A river"), matrix[1])
    assert tiny.encode([]).shape == (0, 16)
    lengths = np.linalg.norm(tiny.encode(sentences, normalize_embeddings=True), axis=1)
    assert lengths == pytest.approx([1, 1, np.nan], abs=1e-6, nan_ok=True)
    assert torch.equal(tiny.encode(sentences[:2], convert_to_tensor=True), torch.from_numpy(matrix[:2]))
    with pytest.raises(InputError, match="needs a pooling"):
        tiny.encode(sentences, layers="all")


def test_a_model_moves_to_a_device(tiny):
    assert tiny.to("cpu") is tiny
    with pytest.raises(InputError, match="device 'nowhere' cannot be used"):
        tiny.to("nowhere")
    assert tiny.device == "cpu"
