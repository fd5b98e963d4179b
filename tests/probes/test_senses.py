"""Words with two senses: the lists in the package, and nearest neighbours whose senses are known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support import make_embedder

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.probes import senses

LIST = """bank\triver\tWe sat on the *bank*.
bank\triver\tThe *bank* was muddy.
bank\tmoney\tA *bank*'s money.
bank\tmoney\tMy *bank* is closed.
"""


def write(tmp_path, text):
    path = tmp_path / "tiny.tsv"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("held_out", [False, True])
def test_a_list_in_the_package_has_ten_sentences_a_sense_and_two_senses_a_word(language, held_out):
    found = senses.listed(language, held_out=held_out)
    counts = Counter((occurrence.word, occurrence.sense) for occurrence in found)
    assert len(found) >= 80
    assert set(counts.values()) == {10}
    assert set(Counter(word for word, _ in counts).values()) == {2}
    assert all(occurrence.word in occurrence.words[occurrence.position] for occurrence in found)


@pytest.mark.parametrize("held_out", [False, True])
def test_a_korean_word_stands_alone_among_morphemes(held_out):
    pytest.importorskip("kiwipiepy")
    found = senses.listed("ko", held_out=held_out, split="ko-morph")
    assert sum(occurrence.word == occurrence.words[occurrence.position] for occurrence in found) >= 0.95 * len(found)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_held_out_list_has_other_sentences(language):
    used, held_out = (senses.listed(language, held_out=choice) for choice in (False, True))
    assert not {" ".join(o.words) for o in used} & {" ".join(o.words) for o in held_out}


def test_the_marked_word_is_found_among_the_words(tmp_path):
    found = senses.read_occurrences(write(tmp_path, LIST), "en")
    assert [occurrence.position for occurrence in found] == [4, 1, 1, 1]
    assert found[2].words == ["A", "bank", "'s", "money", "."]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tThe", " The", "tiny.tsv, line 2: expected word, sense and sentence"),
        ("A *bank*", "A bank", "tiny.tsv, line 3: expected one word between asterisks"),
        ("A *bank*", "A *bank", "tiny.tsv, line 3: .*an asterisk has no partner"),
        ("A *bank*'s", "*A* *bank*'s", "tiny.tsv, line 3: expected one word between asterisks"),
        ("*bank*.", "bank* *.", "tiny.tsv, line 1: .*no word begins at an asterisk"),
        (LIST[-35:], "", "tiny.tsv: 'bank' needs at least two senses with two sentences each"),
    ],
)
def test_a_damaged_list_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        senses.read_occurrences(write(tmp_path, LIST.replace(old, new)), "en")


def test_a_language_without_a_list_is_one_clear_error():
    with pytest.raises(NotFoundError, match="no list of words with two senses for the language 'de'"):
        senses.listed("de")


def test_the_nearest_other_occurrence_is_found_by_cosine_in_each_layer(tmp_path):
    occurrences = senses.read_occurrences(write(tmp_path, LIST), "en")
    # The first layer knows the senses whatever the length; the second pairs the first with the third sentence.
    vectors = np.array([[[1, 0], [9, 1], [0, 1], [1, 9]], [[1, 0], [0, 1], [1, 0.1], [-1, 1]]], dtype=np.float32)

    def embed(sentences):
        for row, words in enumerate(sentences):
            yield np.repeat(vectors[:, row, None], len(words), axis=1)

    result = senses.evaluate(embed, occurrences)
    assert result.layers == (100.0, 0.0)
    assert result.mean == 75.0  # of the means (1, 0), (4.5, 1), (0.5, 0.55), (0, 5) the third is nearest to the second
    # The differences are (0, 0), (-9, 0), (1, -0.9), (-2, -8): the first has no nearest, the second's is wrong.
    assert result.added == pytest.approx(100 * (1 / 3 + 0 + 1 + 1) / 4)
    assert result.by_word == {"bank": 75.0}
    assert result.chance == pytest.approx(100 / 3)
    assert result.sentences == 4


def test_a_layer_without_context_is_no_better_than_chance(tmp_path):
    occurrences = senses.read_occurrences(write(tmp_path, LIST), "en")
    result = senses.evaluate(lambda sentences: (np.ones((1, len(words), 3)) for words in sentences), occurrences)
    assert result.layers == pytest.approx([result.chance])
    assert result.added is None


def test_an_embedder_is_an_encoder():
    result = senses.evaluate(make_embedder().stream, senses.listed("en"))
    assert len(result.layers) == 3
    assert result.sentences == 160
