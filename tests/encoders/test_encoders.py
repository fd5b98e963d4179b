"""Encoders by name: an ELMo, static vectors, CoVe and a transformers model give arrays of one shape."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support import TOLERANCE, make_embedder, worst
from torch import nn

import pyelmo
from pyelmo.encoders import cove, open_encoder, open_encoders, static, transformer
from pyelmo.encoders.base import batches_by_length, encode
from pyelmo.errors import FormatError, InputError, NotFoundError, UnsafeFileError

SENTENCES = [["The", "bank", "of", "it"], ["money"], ["Bank", "unheard"]]
VECTORS = "the 1 0 2\nbank 0 1 0.5\nof 1 1 1\nit -1 0 0\nmoney 0 0 3\nMoney 5 5 5\n"


@pytest.fixture
def vectors(tmp_path):
    (tmp_path / "small.txt").write_text(VECTORS, "utf-8")
    return tmp_path / "small.txt"


@pytest.fixture
def lstm():
    torch.manual_seed(0)
    return nn.LSTM(3, 3, num_layers=2, bidirectional=True, batch_first=True)


def test_an_elmo_is_named_by_its_folder_and_read_when_needed(tmp_path):
    make_embedder().save(tmp_path / "mine")
    encoder = open_encoder(str(tmp_path / "mine"))
    assert (encoder.name, encoder.facts["model"], encoder.facts["precision"]) == ("mine", "mine", "float32")
    assert sorted(encoder.facts["sha256"]) == ["config.json", "model.safetensors"]
    assert "loaded" not in vars(encoder)
    assert encoder.layers == ("token", "LSTM 1", "LSTM 2")
    for got, want in zip(encode(encoder, SENTENCES), pyelmo.load(tmp_path / "mine").embed(SENTENCES), strict=True):
        assert worst(got, want) == 0


def test_a_model_of_morphemes_reads_whole_words(tmp_path):
    pytest.importorskip("kiwipiepy")
    make_embedder().save(tmp_path / "mine")
    encoder = open_encoder(f"ko={tmp_path / 'mine'}", language="ko-morph")
    words = ["나는", "학교에", "갔다", "."]
    (whole,) = encode(encoder, [words])
    (own,) = encode(encoder.embed_own_tokens, [words])
    assert encoder.name == "ko"
    assert whole.shape == own.shape
    assert worst(whole[0], own[0]) > TOLERANCE[torch.float32]  # of morphemes, and of words as they are
    assert encoder.loaded.language == "ko-morph"


def test_static_vectors_are_one_layer_and_zeros_where_there_is_none(vectors):
    encoder = open_encoder(str(vectors))
    first, second, third = encode(encoder, SENTENCES)
    assert (encoder.name, encoder.layers) == ("small", ("word",))
    assert first[0].tolist() == [[1, 0, 2], [0, 1, 0.5], [1, 1, 1], [-1, 0, 0]]
    assert second[0].tolist() == [[0, 0, 3]]
    assert third[0].tolist() == [[0, 1, 0.5], [0, 0, 0]]
    knows = encoder.loaded.knows
    assert [knows(word) for word in ("Bank", "Money", "MONEY", "unheard")] == [True, True, True, False]


@pytest.mark.parametrize("prefix", ["", "rnn."])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_cove_is_the_published_lstm_over_static_vectors(vectors, tmp_path, lstm, prefix, suffix):
    weights = {prefix + name: tensor.clone() for name, tensor in lstm.state_dict().items()}
    path = tmp_path / f"cove{suffix}"
    (save_file if suffix == ".safetensors" else torch.save)(weights, path)
    encoder = open_encoder(f"cove:{path}+{vectors}")
    assert (encoder.name, encoder.layers) == ("CoVe", ("static", "LSTM 1", "LSTM 2"))
    assert sorted(encoder.facts) == ["model", "precision", "sha256", "vectors"]
    for sentence, got in zip(SENTENCES, encode(encoder, SENTENCES), strict=True):
        inputs = torch.from_numpy(next(static.read_vectors(vectors)([sentence]))[0])
        with torch.no_grad():
            want = lstm(inputs[None])[0][0]
        assert got.shape == (3, len(sentence), 6)
        assert worst(got[0], torch.cat([inputs, inputs], 1)) == 0
        assert worst(got[2], want) <= TOLERANCE[torch.float32]
        assert worst(got[1], want) > 0.01
    assert [array.shape for array in encoder([[]])] == [(3, 0, 6)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("weight_hh_l1"), "layer 1 is not a biLSTM"),
        (lambda weights: weights.pop("weight_ih_l0"), "weight_ih_l0 is missing"),
        (lambda weights: weights.update(weight_ih_l2=torch.zeros(1)), "'weight_ih_l2' is not a weight of a two-layer"),
        (lambda weights: weights.update(weight_ih_l1=torch.zeros(12, 3)), "layer 1 is not a biLSTM"),
    ],
)
def test_weights_that_are_not_cove_s_are_refused(tmp_path, lstm, change, message):
    weights = dict(lstm.state_dict())
    change(weights)
    torch.save(weights, tmp_path / "cove.pth")
    with pytest.raises(FormatError, match=message):
        cove.read_layers(tmp_path / "cove.pth")


def test_cove_runs_no_code_and_wants_vectors_of_its_size(tmp_path, vectors, lstm):
    torch.save({"x": SimpleNamespace()}, tmp_path / "bad.pth")
    with pytest.raises(UnsafeFileError, match="could run code"):
        cove.read_layers(tmp_path / "bad.pth")
    torch.save(nn.LSTM(4, 4, num_layers=2, bidirectional=True).state_dict(), tmp_path / "cove.pth")
    with pytest.raises(FormatError, match="expects static vectors of size 4, but .* has vectors of size 3"):
        open_encoder(f"cove:{tmp_path / 'cove.pth'}+{vectors}").layers  # noqa: B018
    with pytest.raises(InputError, match="expected cove:WEIGHTS\\+VECTORS"):
        open_encoder(f"cove:{vectors}")


class Pieces:
    """A tokeniser whose pieces are characters, with a mark on either side."""

    def __call__(self, sentences, *, max_length=99, **options):
        if isinstance(sentences[0], str):
            return {"input_ids": [0, *"".join(sentences), 0]}
        rows = [[(None, "^"), *((n, c) for n, w in enumerate(words) for c in w)] for words in sentences]
        rows = [[*row[: max_length - 1], (None, "$")] for row in rows]
        width = max(map(len, rows))
        padded = [row + [(None, " ")] * (width - len(row)) for row in rows]

        class Inputs(dict):
            def to(self, device):
                return self

            def word_ids(self, row):
                return [owner for owner, _ in padded[row]]

        return Inputs(input_ids=torch.tensor([[ord(c) for _, c in row] for row in padded]))


def model(input_ids, output_hidden_states):
    codes = input_ids[:, :, None].float()
    return SimpleNamespace(hidden_states=(codes, 10 * codes))


def test_a_word_is_the_mean_of_its_pieces_in_every_layer_and_long_sentences_are_read_in_parts():
    encoder = transformer._TransformerEncoder(Pieces(), model, "cpu", 8)
    sentences = [["ab", "c", ""], ["abcdefgh"], ["abc", "abc", "abc", "a"]]
    first, second, third = encode(encoder, sentences)
    assert first[:, :, 0].tolist() == [[97.5, 99, 0], [975, 990, 0]]
    assert second[0, :, 0].tolist() == [99.5]  # cut after six of its pieces
    assert third[0, :, 0].tolist() == [98, 98, 98, 97]


def test_a_transformers_model_is_read_from_its_folder(tmp_path):
    transformers = pytest.importorskip("transformers")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "ba", "##nk", "of"]
    (tmp_path / "vocab.txt").write_text("\n".join(names), "utf-8")
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    bert = transformers.BertModel(
        transformers.BertConfig(vocab_size=len(names), max_position_embeddings=16, **sizes)
    ).eval()
    bert.save_pretrained(tmp_path)
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    encoder = open_encoder(str(tmp_path))
    assert encoder.layers == ("embedding", "layer 1", "layer 2")
    (got,) = encode(encoder, [["The", "bank", "of"]])
    with torch.no_grad():
        hidden = bert(torch.tensor([[2, 5, 6, 7, 8, 3]]), output_hidden_states=True).hidden_states
    want = torch.stack(hidden)[:, 0]
    assert worst(got[:, 1], want[:, 2:4].mean(1)) <= TOLERANCE[torch.float32]
    assert worst(got[:, 2], want[:, 4]) <= TOLERANCE[torch.float32]


def test_sentences_come_out_in_their_order():
    sentences = [["x"] * (number * 7 % 11) for number in range(50)]
    sizes = []

    def run(batch):
        sizes.append([len(words) for words in batch])
        return [np.full((1, len(words), 1), len(words), np.float32) for words in batch]

    found = list(batches_by_length(sentences, 2, run))
    assert [array.shape[1] for array in found] == [len(words) for words in sentences]
    assert all(size == sorted(size) for size in sizes)


def test_names_that_are_nothing_or_the_same_are_one_clear_error(vectors):
    with pytest.raises(NotFoundError, match="nothing.txt: not found"):
        open_encoder("nothing.txt")
    with pytest.raises(NotFoundError, match="nowhere: no such file or folder"):
        open_encoder("nowhere")
    with pytest.raises(InputError, match="two encoders have the name 'small'. Rename one of them: NAME="):
        open_encoders([str(vectors), str(vectors)])
    assert [e.name for e in open_encoders([str(vectors), f"again={vectors}"])] == ["small", "again"]
