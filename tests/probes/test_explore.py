"""One word in several sentences: which word it is, how near its vectors are, and drawings that hold what they say."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from pyelmo import plots
from pyelmo.errors import InputError, OutputError
from pyelmo.probes import explore
from pyelmo.probes.in_context import WordInContext


def places(*sentences, language="en"):
    return [(place.words[place.position], place.position) for place in explore.find_places(sentences, language)]


def test_the_marked_words_are_found():
    assert places("the *bank* of it", "a *Bank*'s bank") == [("bank", 1), ("Bank", 1)]
    assert places("one *bank* by another *bank*") == [("bank", 1), ("bank", 4)]


def test_a_mark_may_be_left_out_where_one_word_is_common_or_marked_elsewhere():
    assert places("river bank.", "Bank account.") == [("bank", 1), ("Bank", 0)]
    assert places("the *bank* of it", "sat on the bank") == [("bank", 1), ("bank", 3)]
    assert places("나는 *배* 를", "배 가 아픈 나는", language="ko") == [("배", 1), ("배", 0)]


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (("the bank", "the bank account"), "which word is it in 'the bank' .the, bank"),
        (("a river", "the bank"), "which word is it in 'a river' .none is common"),
        (("the *banks*", "the bank"), "which word is it in 'the bank' .none is common"),
        (("a *bank*", "bank to bank"), "which word is it in 'bank to bank' .bank, bank"),
        (("a *bank*", "the *bank"), "an asterisk has no partner"),
        (("a *bank*",), "one occurrence has nothing to be compared with"),
    ],
)
def test_a_word_that_is_not_clear_is_asked_for(sentences, message):
    with pytest.raises(InputError, match=message):
        explore.find_places(sentences, "en")


OCCURRENCES = [
    WordInContext(["<i>", "bank", "&", "배"], 1),
    WordInContext(["bank"], 0),
    WordInContext(["a", "$b$", "bank"], 2),
]
VECTORS = np.array([[[1, 0], [0, 2], [3, 3]], [[1, 0], [1, 0], [1, 0]]], dtype=np.float32)  # (L, N, D)


def embed(sentences):
    for row, words in enumerate(sentences):
        yield np.repeat(VECTORS[:, row, None], len(words), axis=1)


def found(layer: int | None = 0):
    return explore.explore(embed, OCCURRENCES, layer, "bank <x>")


def test_cosines_are_of_the_layer_that_was_asked_for():
    half = 0.5**0.5
    assert found().cosines == pytest.approx(np.array([[1, 0, half], [0, 1, half], [half, half, 1]]), abs=1e-6)
    assert found(-1).cosines == pytest.approx(np.ones((3, 3)), abs=1e-6)
    assert found(None).cosines[0, 1] == pytest.approx(1 / 5**0.5)  # of (1, 0) and (0.5, 1)
    with pytest.raises(InputError, match="layer 2 is not there; the encoder has layers 0 to 1"):
        found(2)


def test_the_map_keeps_distances_where_two_dimensions_suffice():
    random = np.random.default_rng(0)
    flat = random.normal(size=(6, 2)) @ np.linalg.qr(random.normal(size=(5, 5)))[0][:2]
    points, shown = explore.project(flat.astype(np.float32))
    distances, wanted = (np.linalg.norm(rows[:, None] - rows, axis=2) for rows in (points, flat))
    assert distances == pytest.approx(wanted, abs=1e-5)
    assert shown == pytest.approx(1)
    assert (points[np.abs(points).argmax(0), [0, 1]] > 0).all()
    assert np.var(points[:, 0]) >= np.var(points[:, 1])
    points, shown = explore.project(np.eye(5, dtype=np.float32))
    assert shown == pytest.approx(0.5)  # two of the four dimensions that five equally far points have
    assert explore.project(np.ones((2, 3), np.float32))[0].tolist() == [[0, 0], [0, 0]]


def test_html_is_one_file_with_every_text_escaped_and_hangul_readable(tmp_path):
    explore.write_map(found(), tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text("utf-8")
    assert "<meta charset='utf-8'>" in text
    assert "&lt;i&gt; <b>bank</b> &amp; 배" in text
    assert "<i>" not in text
    assert "<x>" not in text
    assert not any(link in text for link in ("http", "src=", "href=", "url(", "@import"))
    assert text.count("<circle") == 3
    with pytest.raises(OutputError, match="exists already"):
        explore.write_map(found(), tmp_path / "map.html")


def test_svg_is_xml_that_names_every_sentence(tmp_path):
    explore.write_map(found(), tmp_path / "map.svg")
    root = ElementTree.fromstring((tmp_path / "map.svg").read_text("utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"bank <x>", "1 <i> *bank* & 배", "2 *bank*", "3 a $b$ bank"} <= set(texts)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match="a map ends in .html, .svg, .png"):
        explore.write_map(found(), tmp_path / "map.pdf")


def test_png_needs_an_extra_or_is_a_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"a map as PNG .* pip install 'pyelmo\[plots\]'"):
        explore.write_map(found(), tmp_path / "map.png")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    latin = explore.explore(embed, [*OCCURRENCES[1:], WordInContext(["x", "bank"], 1)], 0, "bank")
    explore.write_map(latin, tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_points_at_one_place_do_not_lie_on_each_other():
    drawn = ElementTree.fromstring(plots.point_map([(0, 0), (0, 0), (1, 1)], ["a", "b", "c"]))
    heights = sorted(float(text.get("y")) for text in drawn.iter("text"))
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 14


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([52.4, 53.1, 55.9, 50], (50, 56, 2)),
        ([0.1, 0.45], (0.1, 0.5, 0.1)),
        ([7, 7], (7, 7.5, 0.5)),
        ([-3, 90], (-50, 100, 50)),
    ],
)
def test_the_marks_of_an_axis_are_round_numbers(numbers, scale):
    assert plots._scale(numbers) == pytest.approx(scale)
