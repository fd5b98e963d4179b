"""The old names give the old shapes; what broke there does not break here."""

from __future__ import annotations

import io
import json

import h5py
import numpy as np
import pytest
import torch
from support import worst

import pyelmo
from pyelmo.compat.allennlp import Elmo, ElmoEmbedder, batch_to_ids
from pyelmo.errors import InputError

SENTENCES = [["First", "sentence", "."], ["Another", "."], []]


@pytest.fixture
def files(clip_model):
    return str(clip_model / "options.json"), str(clip_model / "weights.hdf5")


def test_elmo_returns_the_old_dict(files):
    elmo = Elmo(*files, 2, dropout=0)
    assert elmo.get_output_dim() == 32
    output = elmo(batch_to_ids(SENTENCES))
    assert [tuple(values.shape) for values in output["elmo_representations"]] == [(3, 3, 32)] * 2
    assert output["mask"].sum(1).tolist() == [3, 2, 0]
    want = pyelmo.load(files[1]).embed(SENTENCES, layers="average")
    assert worst(output["elmo_representations"][0][0].detach(), want[0]) < 1e-5


def test_the_same_batch_gives_the_same_vectors_unless_state_is_asked_for(files):
    ids = batch_to_ids(SENTENCES)
    elmo, carrying = Elmo(*files, 1, dropout=0), Elmo(*files, 1, dropout=0, stateful=True)

    def run(module):
        return module(ids)["elmo_representations"][0].detach()

    assert torch.equal(run(elmo), run(elmo))
    first = run(carrying)
    assert torch.equal(first, run(elmo))
    assert not torch.allclose(first, run(carrying))
    carrying.reset_states()
    assert torch.equal(first, run(carrying))


def test_what_crashed_in_allennlp_does_not_crash_here(files):
    elmo = Elmo(*files, 1, dropout=0, keep_sentence_boundaries=True)
    assert elmo(torch.zeros(0, 0, 50, dtype=torch.long))["elmo_representations"][0].shape == (0, 2, 32)
    assert elmo(batch_to_ids([[]]))["mask"].tolist() == [[True, True]]
    deep = batch_to_ids(SENTENCES)[None].repeat(2, 1, 1, 1)
    assert elmo(deep)["elmo_representations"][0].shape == (2, 3, 5, 32)
    assert elmo(deep)["mask"].shape == (2, 3, 5)
    growing = Elmo(*files, 1, stateful=True)
    for size in (1, 3, 2):
        growing(batch_to_ids([["a", "b"]] * size))


def test_the_token_cache_never_changes_a_vector(files):
    vocab = ["@@PADDING@@", "@@UNKNOWN@@", "First", ".", "Another"]
    numbers = torch.tensor([[vocab.index(w) if w in vocab else 1 for w in s] + [0] * (3 - len(s)) for s in SENTENCES])
    ids = batch_to_ids(SENTENCES)
    cached, plain = Elmo(*files, 1, dropout=0, vocab_to_cache=vocab), Elmo(*files, 1, dropout=0)
    got = cached(ids, numbers)["elmo_representations"][0]
    assert worst(got.detach(), plain(ids)["elmo_representations"][0].detach()) < 1e-6


def test_given_mix_parameters_are_frozen(files):
    elmo = Elmo(*files, 1, scalar_mix_parameters=[-9e10, 1.0, -9e10], dropout=0)
    want = pyelmo.load(files[1]).embed([SENTENCES[0]], layers=1)[0]
    assert worst(elmo(batch_to_ids([SENTENCES[0]]))["elmo_representations"][0][0], want) < 1e-5
    assert not any(parameter.requires_grad for parameter in elmo.parameters())


def test_requires_grad_trains_the_bilm(files):
    for wanted in (False, True):
        elmo = Elmo(*files, 1, requires_grad=wanted)
        elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].sum().backward()
        grads = [parameter.grad is not None for parameter in elmo._elmo.bilm.parameters()]
        assert all(grads) if wanted else not any(grads)


def test_embedder_methods(files):
    embedder = ElmoEmbedder(*files)
    want = pyelmo.load(files[1]).embed(SENTENCES)
    assert worst(embedder.embed_sentence(SENTENCES[0]), want[0]) < 1e-6
    assert embedder.embed_sentence([]).shape == (3, 0, 32)
    assert embedder.embed_batch([]) == []
    for got, layers in zip(embedder.embed_sentences(iter(SENTENCES), batch_size=2), want, strict=True):
        assert worst(got, layers) < 1e-6
    values, mask = embedder.batch_to_embeddings(SENTENCES)
    assert values.shape == (3, 3, 3, 32)
    assert mask.sum(1).tolist() == [3, 2, 0]


@pytest.mark.parametrize(("output_format", "shape"), [("all", (3, 2, 32)), ("top", (2, 32)), ("average", (2, 32))])
def test_embed_file_writes_the_old_file(files, tmp_path, output_format, shape):
    ElmoEmbedder(*files).embed_file(io.StringIO("A b\nc d e\n"), tmp_path / "out.hdf5", output_format)
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["0"].shape == shape
        assert json.loads(file["sentence_to_index"][0]) == {"A b": "0", "c d e": "1"}


def test_embed_file_keys_and_blank_lines(files, tmp_path):
    embedder = ElmoEmbedder(*files)
    embedder.embed_file(io.StringIO("A b\nc\n"), tmp_path / "out.hdf5", use_sentence_keys=True)
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert sorted(file) == ["A b", "c"]
    with pytest.raises(InputError, match=r"blank lines at \[1\]"):
        embedder.embed_file(io.StringIO("A b\n\nc\n"), tmp_path / "two.hdf5")
    assert not (tmp_path / "two.hdf5").exists()


def test_a_missing_weight_file_is_said():
    with pytest.raises(InputError, match="weight_file"):
        Elmo(None, None, 1)
    assert np.array_equal(batch_to_ids([]).shape, (0, 0, 50))
