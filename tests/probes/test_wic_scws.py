"""WiC and SCWS: the files as published, and what is found in vectors whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.errors import FormatError, InputError
from pyelmo.probes import scws, wic
from pyelmo.probes.in_context import WordInContext

DATA = "bank\tN\t1-0\tThe bank .\tBanks lend .\ngo\tV\t0-2\tGo on .\tThey will go\n"
RATED = "1\tbank\tn\tshore\tn\tthe <b> bank </b> of\ta <b> shore </b>\t4.5\t" + "\t".join(["4", "5"] * 5) + "\n"


def write_wic(folder, data=DATA, gold="T\nF\n", name="small"):
    (folder / f"{name}.data.txt").write_text(data, "utf-8")
    (folder / f"{name}.gold.txt").write_text(gold, "utf-8")
    return folder / f"{name}.data.txt"


def write_scws(folder, text=RATED, name="small.txt"):
    (folder / name).write_text(text, "utf-8")
    return folder / name


def by_number(sentences):
    """A word is an angle in degrees; the second layer is the first turned about by nothing at all."""
    for words in sentences:
        angles = np.radians([float(word) for word in words])
        yield np.stack([np.stack([np.cos(angles), np.sin(angles)], 1), np.ones((len(words), 2))]).astype(np.float32)


def pair(first, second, same=True):
    return wic.WicPair("", WordInContext([str(first)], 0), WordInContext(["45", str(second)], 1), same)


def test_wic_has_two_positions_and_an_answer(tmp_path):
    first, second = wic.read_wic(write_wic(tmp_path))
    assert first == wic.WicPair(
        "bank", WordInContext(["The", "bank", "."], 1), WordInContext(["Banks", "lend", "."], 0), True
    )
    assert (second.word, second.second.position, second.same) == ("go", 2, False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tN\t", " N ", "small.data.txt, line 1: 3 columns"),
        ("1-0", "1", "small.data.txt, line 1: expected two positions like 2-5, got '1'"),
        ("0-2", "0-3", "small.data.txt, line 2: a position of 0-3 is outside its sentence"),
        ("go\tV", "\ngo\tV", "small.data.txt, line 2: 1 columns"),
    ],
)
def test_a_damaged_wic_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        wic.read_wic(write_wic(tmp_path, DATA.replace(old, new)))


def test_answers_that_do_not_fit_the_pairs_are_noticed(tmp_path):
    with pytest.raises(FormatError, match=r"line 2: line 2 of small.gold.txt is neither T nor F"):
        wic.read_wic(write_wic(tmp_path, gold="T\n"))
    with pytest.raises(FormatError, match="2 pairs, but small.gold.txt has 3 answers"):
        wic.read_wic(write_wic(tmp_path, gold="T\nF\nF\n"))
    with pytest.raises(FormatError, match="2 pairs, expected 638 as published"):
        wic.read_wic(write_wic(tmp_path, name="dev"))


def test_the_threshold_is_fitted_on_the_train_set_for_each_layer():
    train = [pair(0, 10), pair(0, 20), pair(0, 80, False), pair(0, 90, False), pair(5, 25)]
    dev, test = [pair(0, 30), pair(0, 70)], [pair(0, 60, False), pair(0, 5, False)]
    found = wic.evaluate(by_number, train, dev, test)
    assert (found.train, found.dev, found.test) == ((100.0, 60.0), (50.0, 100.0), (50.0, 0.0))
    assert found.thresholds[0] == pytest.approx((np.cos(np.radians(20)) + np.cos(np.radians(80))) / 2, abs=1e-6)
    assert found.thresholds[1] < 1  # all are as near: the most frequent answer is the best
    assert found.pairs == {"train": 5, "dev": 2, "test": 2}
    with pytest.raises(InputError, match="set has no pairs"):
        wic.evaluate(by_number, train, dev, [])


@pytest.mark.parametrize(
    ("cosines", "same", "threshold"),
    [
        ([0.1, 0.5, 0.9], [True, True, True], -0.9),
        ([0.1, 0.5, 0.9], [False, False, False], 1.9),
        ([0.5, 0.5, 0.9, 0.1], [True, False, True, False], 0.3),
        ([0.1, 0.4, 0.6, 0.9], [False, True, False, True], 0.25),
    ],
)
def test_a_threshold_is_right_most_often(cosines, same, threshold):
    assert wic.fit_threshold(np.array(cosines), np.array(same)) == pytest.approx(threshold)


def test_scws_has_the_words_between_the_tags(tmp_path):
    (found,) = scws.read_scws(write_scws(tmp_path))
    assert found == scws.RatedPair(WordInContext(["the", "bank", "of"], 1), WordInContext(["a", "shore"], 1), 4.5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tn\tthe", " n the", "small.txt, line 1: 16 columns, expected 18"),
        ("4.5", "4.6", "small.txt, line 1: 4.6 is not the mean of"),
        ("4.5", "many", "small.txt, line 1: expected eleven numbers"),
        ("<b> shore </b>", "<b> </b> shore", "small.txt, line 1: expected one word between <b> and </b>"),
        ("<b> bank", "bank", "small.txt, line 1: expected one word between <b> and </b>"),
    ],
)
def test_a_damaged_scws_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        scws.read_scws(write_scws(tmp_path, RATED.replace(old, new)))


def test_a_copy_of_scws_that_is_not_whole_is_noticed(tmp_path):
    with pytest.raises(FormatError, match="1 pairs, expected 2,003 as published"):
        scws.read_scws(write_scws(tmp_path, name="ratings.txt"))


def test_scws_ranks_cosines_beside_ratings_in_each_layer():
    def rated(second, rating):
        return scws.RatedPair(WordInContext(["0"], 0), WordInContext([str(second)], 0), rating)

    pairs = [rated(10, 9.0), rated(30, 5.0), rated(20, 4.0), rated(90, 0.0)]
    found = scws.evaluate(by_number, pairs)
    assert found.spearman == pytest.approx((80.0, 0.0))  # ranks 4 2 3 1 beside 4 3 2 1; all equal
    assert (found.pairs, found.without) == (4, 0)
    unknown = scws.evaluate(lambda sentences: (np.zeros((1, len(words), 3), np.float32) for words in sentences), pairs)
    assert (unknown.spearman, unknown.without) == ((0.0,), 4)


def test_equal_values_share_their_mean_rank():
    assert scws.spearman(np.array([1, 2, 2, 3]), np.array([1, 2, 3, 4])) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_wic_by_substitutes_has_a_threshold_of_its_own():
    def substitutes(places):
        for words, position in places:
            angle = np.radians(2 * float(words[position]))
            yield np.array([np.cos(angle), np.sin(angle)], np.float32)

    pairs = [pair(0, 10), pair(0, 40, False)]
    result = wic.evaluate(by_number, pairs, pairs, pairs, substitutes)
    assert result.substitutes.test == (100.0,)
    assert np.cos(np.radians(80)) < result.substitutes.thresholds[0] < np.cos(np.radians(20))
    assert wic.evaluate(by_number, pairs, pairs, pairs).substitutes is None
