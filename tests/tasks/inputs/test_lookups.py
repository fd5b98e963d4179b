"""Lookups of words: character features, symbols and ids, each computed once for a distinct word or text."""

from __future__ import annotations

import torch
from support import TOLERANCE

from pyelmo.tasks.harness.batching import WordIdCache
from pyelmo.tasks.inputs.characters import CharacterFeatures, SymbolTable
from pyelmo.tasks.inputs.embedding_table import WordIndex
from pyelmo.text.characters import Bytes, encode_rows


def test_a_word_has_the_same_features_at_every_position():
    torch.manual_seed(0)
    alphabet = Bytes(12)
    network = CharacterFeatures(alphabet).eval()
    rows = torch.from_numpy(encode_rows(alphabet, ["ran", "He", "ran", "away"])).long()
    flat, batch = network(rows), network(rows.view(2, 2, 12))
    assert batch.shape == (2, 2, 128)
    assert network.size == 128
    assert torch.allclose(batch.view(4, 128), flat, rtol=0, atol=TOLERANCE[torch.float32])
    assert torch.equal(flat[0], flat[2])
    assert not torch.equal(flat[0], flat[1])


def test_the_symbols_of_a_word_are_encoded_once_as_the_alphabet_encodes_them(monkeypatch):
    symbols = SymbolTable(Bytes(8))
    texts = [("to", "be"), ("or", "to")]
    for _ in range(2):
        table, numbers = symbols(texts)
        assert table.tolist() == encode_rows(Bytes(8), ["to", "be", "or"]).tolist()
        assert numbers.tolist() == [0, 1, 2, 0]
    monkeypatch.setattr("pyelmo.tasks.inputs.characters.encode_rows", lambda alphabet, new: [8 * [7]] * len(new))
    table, numbers = symbols([("new", "be")])  # in their order in these texts, whatever was before
    assert table.tolist() == [8 * [7], encode_rows(Bytes(8), ["be"])[0].tolist()]
    assert numbers.tolist() == [0, 1]
    monkeypatch.setattr("pyelmo.tasks.inputs.characters.CACHED_WORDS", 1)
    assert symbols([("be",)])[0].tolist() == [8 * [7]]  # forgotten


def test_a_word_is_looked_up_as_it_is_and_then_in_lower_case():
    index = WordIndex(["the", "Cat"])
    assert [index[word] for word in ("the", "The", "Cat", "cat", "dog")] == [1, 1, 2, 0, 0]


def test_the_ids_of_a_text_are_looked_up_once_until_the_cache_is_full(monkeypatch):
    asked: list[str] = []
    numbers = WordIdCache(lambda word: asked.append(word) or len(word))
    for _ in range(2):
        assert numbers([("The", "Cat"), ("is",), ("The", "Cat")]).tolist() == [3, 3, 2, 3, 3]
    assert asked == ["The", "Cat", "is"]
    monkeypatch.setattr("pyelmo.tasks.harness.batching.CACHED_WORDS", 2)
    assert numbers([("a",)]).tolist() == [1]
    assert (list(numbers.known), numbers.words) == ([("a",)], 1)  # the others are forgotten
