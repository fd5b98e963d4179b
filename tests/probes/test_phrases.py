"""Short phrases: the lists in the package, and triples whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes import phrases


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_list_in_the_package_has_forty_triples_of_short_phrases(language):
    lines = phrases.list_path(language).read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) == len(phrases.read_triples(phrases.list_path(language), language)) == 40
    for line in lines:
        word, *three = line.split("\t")
        assert len({*three}) == 3
        assert all(2 <= len(phrase.split()) <= 6 and f"*{word}*" in phrase for phrase in three), line


def test_a_layer_is_right_where_the_same_sense_is_nearer(tmp_path):
    (tmp_path / "list.tsv").write_text("bank\ta *bank* loan\tthe *bank* lent\ta muddy *bank*\n" * 4, "utf-8")
    triples = phrases.read_triples(tmp_path / "list.tsv", "en")
    assert [word.words[word.position] for word in triples[0]] == ["bank"] * 3
    # Layer 0 does not see the phrase, layer 1 is right, layer 2 wrong.
    vectors = {"loan": [[1, 0], [1, 0], [1, 0]], "lent": [[1, 0], [2, 1], [0, 1]], "muddy": [[1, 0], [0, 1], [9, 1]]}

    def embed(sentences):
        for words in sentences:
            (cue,) = set(words) & set(vectors)
            yield np.repeat(np.array(vectors[cue], np.float32)[:, None], len(words), 1)

    result = phrases.evaluate(embed, triples)
    assert result.layers == (50.0, 100.0, 0.0)
    assert result.triples == 4
    assert result.substitutes is None


def test_substitutes_are_judged_like_a_layer(tmp_path):
    (tmp_path / "list.tsv").write_text("bank\ta *bank* loan\tthe *bank* lent\ta muddy *bank*\n", "utf-8")
    triples = phrases.read_triples(tmp_path / "list.tsv", "en")

    def substitutes(places):
        for words, position in places:
            assert words[position] == "bank"
            yield np.array([0, 1] if "muddy" in words else [1, 0], np.float32)

    def embed(sentences):
        return (np.ones((1, len(words), 2), np.float32) for words in sentences)

    assert phrases.evaluate(embed, triples, substitutes).substitutes == 100


def test_wrong_lists_are_one_clear_error(tmp_path):
    for text, message in [("bank\ta *bank*\n", "line 1: expected a word"), ("b\ta\t*b*\t*b*\n", "one word between")]:
        (tmp_path / "list.tsv").write_text(text, "utf-8")
        with pytest.raises(FormatError, match=message):
            phrases.read_triples(tmp_path / "list.tsv", "en")
    with pytest.raises(NotFoundError, match="no list of short phrases for the language 'de'"):
        phrases.list_path("de")
    with pytest.raises(InputError, match="empty"):
        phrases.evaluate(lambda sentences: iter(()), [])
