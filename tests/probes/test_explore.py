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


def occurrences(*sentences, language="en"):
    return [(found.words[found.position], found.position) for found in explore.find_occurrences(sentences, language)]


def test_the_marked_words_are_found():
    assert occurrences("the *bank* of it", "a *Bank*'s bank") == [("bank", 1), ("Bank", 1)]
    assert occurrences("one *bank* by another *bank*") == [("bank", 1), ("bank", 4)]


def test_a_mark_may_be_left_out_where_one_word_is_common_or_marked_elsewhere():
    assert occurrences("river bank.", "Bank account.") == [("bank", 1), ("Bank", 0)]
    assert occurrences("the *bank* of it", "sat on the bank") == [("bank", 1), ("bank", 3)]
    assert occurrences("나는 *배* 를", "배 가 아픈 나는", language="ko") == [("배", 1), ("배", 0)]


def test_sentences_are_shown_as_they_were_written(tmp_path):
    shown = [explore.marked(found) for found in explore.find_occurrences(["the *bank*, it's", "a  Bank"], "en")]
    assert shown == ["the *bank*, it's", "a  *Bank*"]


def test_text_in_another_unicode_form_is_compared_in_one_and_shown_as_written():
    found = explore.find_occurrences(["un *cafe\u0301*\u200b noir", "le *café*"], "en")
    assert [occurrence.words[occurrence.position] for occurrence in found] == ["café", "café"]
    assert explore.marked(found[0]) == "un *cafe\u0301*\u200b noir"


def test_morphemes_are_shown_by_their_syllables_without_conjoining_jamo(tmp_path):
    pytest.importorskip("kiwipiepy")
    found = explore.find_occurrences(["그건 *먹은* 배다.", "시원한 밥을 *먹*었다."], "ko-morph")
    assert any("\u11ab" in word for word in found[0].words)
    assert [explore.marked(occurrence) for occurrence in found] == ["그건 *먹*은 배다.", "시원한 밥을 *먹*었다."]
    explore.write_map([explore.Exploration("x", "top", found, np.eye(2), np.zeros((2, 2)), 1.0)], tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text("utf-8")
    assert "시원한 밥을 <b>먹</b>었다." in page
    assert not any("\u1100" <= character <= "\u11ff" for character in page)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (("the bank", "the bank account"), "'the bank': the word to compare is not clear .the, bank"),
        (("a river", "the bank"), "'a river': the word to compare is not clear .no word is common"),
        (("the *banks*", "the bank"), "'the bank': the word to compare is not clear .no word is common"),
        (("a *bank*", "bank to bank"), "'bank to bank': the word to compare is not clear .bank, bank"),
        (("a *bank*", "the *bank"), "an asterisk has no partner"),
        (("a *bank*",), "only one occurrence"),
    ],
)
def test_a_word_that_is_not_clear_is_asked_for(sentences, message):
    with pytest.raises(InputError, match=message):
        explore.find_occurrences(sentences, "en")


OCCURRENCES = [
    WordInContext(["<i>", "bank", "&", "배"], 1),
    WordInContext(["bank"], 0),
    WordInContext(["a", "$b$", "bank"], 2),
]
VECTORS = np.array([[[1, 0], [0, 2], [3, 3]], [[1, 0], [1, 0], [1, 0]]], dtype=np.float32)  # (L, N, D)


def embed(sentences):
    for row, words in enumerate(sentences):
        yield np.repeat(VECTORS[:, row, None], len(words), axis=1)


def explored(layer: int | None = 0):
    return explore.explore(embed, OCCURRENCES, {"a layer": layer}, "bank <x>")[0]


def test_cosines_are_of_the_layer_that_was_asked_for():
    half = 0.5**0.5
    assert explored().cosines == pytest.approx(np.array([[1, 0, half], [0, 1, half], [half, half, 1]]), abs=1e-6)
    assert explored(-1).cosines == pytest.approx(np.ones((3, 3)), abs=1e-6)
    assert explored(None).cosines[0, 1] == pytest.approx(1 / 5**0.5)  # of (1, 0) and (0.5, 1)
    with pytest.raises(InputError, match="layer 2 does not exist. The encoder has the layers 0 to 1"):
        explored(2)


def test_centred_vectors_show_what_the_contexts_add():
    shared = np.array([10, 10], dtype=np.float32)  # what all occurrences have in common makes every cosine high
    vectors = np.stack([np.stack([shared, shared, shared]), shared + np.array([[1, 0], [1, 0], [-2, 0]])])
    vectors = vectors.astype(np.float32)

    def lookup(sentences):
        for row, words in enumerate(sentences):
            yield np.repeat(vectors[:, row, None], len(words), axis=1)

    layers = {"token layer": 0, "top": 1}
    plain = explore.explore(lookup, OCCURRENCES, layers, "bank")
    assert [result.layer for result in plain] == ["token layer", "top"]
    assert plain[1].cosines.min() > 0.98
    without_context, top = explore.explore(lookup, OCCURRENCES, layers, "bank", centred=True)
    assert top.cosines == pytest.approx(np.array([[1, 1, -1], [1, 1, -1], [-1, -1, 1]]), abs=1e-6)
    assert not without_context.cosines.any()  # nothing is left of equal vectors
    with pytest.raises(InputError, match="at least three"):
        explore.explore(lookup, OCCURRENCES[:2], layers, "bank", centred=True)


def test_html_shows_all_layers_side_by_side(tmp_path):
    explore.write_map([explored(0), explored(1)], tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text("utf-8")
    assert text.count("<table>") == 1
    assert text.count("<td style=") == 2 * 9
    assert text.count("<circle") == 2 * 3


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
    explore.write_map([explored()], tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text("utf-8")
    assert "<meta charset='utf-8'>" in text
    assert "&lt;i&gt; <b>bank</b> &amp; 배" in text
    assert "<i>" not in text
    assert "<x>" not in text
    assert not any(link in text for link in ("http", "src=", "href=", "url(", "@import"))
    assert text.count("<circle") == 3
    with pytest.raises(OutputError, match="exists already"):
        explore.write_map([explored()], tmp_path / "map.html")


def test_svg_is_xml_that_names_every_sentence(tmp_path):
    explore.write_map([explored()], tmp_path / "map.svg")
    root = ElementTree.fromstring((tmp_path / "map.svg").read_text("utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"bank <x>, a layer", "1 <i> *bank* & 배", "2 *bank*", "3 a $b$ bank"} <= set(texts)
    assert "first principal component" in texts
    assert "second principal component (both: 100% of the variance)" in texts


@pytest.mark.parametrize("ending", [".pdf", ".png"])
def test_another_ending_is_refused(tmp_path, ending):
    with pytest.raises(InputError, match="unknown format .* A map ends in .html or .svg"):
        explore.write_map([explored()], tmp_path / f"map{ending}")
    assert not list(tmp_path.iterdir())


def test_a_logarithmic_axis_has_ticks_at_1_2_and_5():
    assert plots._log_ticks(3.07, 680) == [5, 10, 20, 50, 100, 200, 500]
    drawn = ElementTree.fromstring(
        plots.curves([plots.Curve("a", [(x, x) for x in range(1, 21)])], "x", "y", log_y=True)
    )
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["1", "2", "5", "10", "20", "1", "2", "5", "10", "20", "a", "across: x; up: y"]


def test_labels_of_equal_points_do_not_overlap():
    labels = [("", name, "") for name in "abc"]
    drawn = ElementTree.fromstring(plots.point_map([(0, 0), (0, 0), (1, 1)], labels))
    heights = sorted(float(text.get("y")) for text in drawn.iter("text") if "".join(text.itertext())[:1] in set("123"))
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 14


@pytest.mark.parametrize("count", [3, 60])
def test_labels_stay_inside_the_frame_and_keep_the_word_in_view(count):
    random = np.random.default_rng(0)
    points = [(x, y) for x, y in random.normal(size=(count, 2)).tolist()]
    points[0] = (5.0, 0.0)  # at the right edge
    labels = [("왼쪽 글이 아주 길다 " * 6, "bank", " and a long text on the right" * 3)] * count
    drawn = ElementTree.fromstring(plots.point_map(points, labels, [labels[0]], across="one", up="two"))
    _, _, width, height = map(float, drawn.get("viewBox").split())
    texts = [text for text in drawn.iter("text") if text.get("transform") is None]
    assert [text.find("tspan").text for text in texts if text.find("tspan") is not None] == ["bank"] * count
    for text in texts:
        assert 12 <= float(text.get("y")) <= height
        if text.get("text-anchor") is None:
            content = "".join(text.itertext())
            assert "bank" in content
            assert 0 <= float(text.get("x")) <= float(text.get("x")) + plots.text_width(content) <= width
    assert {circle.get("fill") for circle in drawn.iter("circle")} == {plots.COLOURS[0]}  # colours mean nothing here


def test_a_text_is_shortened_around_its_word():
    assert plots.fit(("a ", "bank", " b"), 100) == ("a ", "bank", " b")
    before, word, after = plots.fit(("long " * 9, "bank", " b"), 100)
    assert (before[0], word, after) == ("…", "bank", " b")
    assert plots.text_width(before + word + after) <= 100
    assert plots.fit(("a", "b" * 50, "c"), 50)[1].startswith("bbb")


def test_text_is_readable_on_every_shade():
    def luminance(colour):
        values = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour]
        return float(np.dot((0.2126, 0.7152, 0.0722), values))

    dark, plain = [int(plots.COLOURS[0][at : at + 2], 16) / 255 for at in (1, 3, 5)], {"#fff": 1.0, "#222": 0.1333}
    for share in np.linspace(0, 1, 21).tolist():
        cell = luminance([channel * share + 1 - share for channel in dark])
        text = luminance([plain[plots.text_on(share)]] * 3)
        high, low = max(cell, text), min(cell, text)
        assert (high + 0.05) / (low + 0.05) > 3.9


def test_a_chart_by_layer_says_what_its_axes_show():
    drawn = plots.line_chart([plots.Line("en", [1.0, 2.0])], {}, "accuracy, %")
    texts = {text.text: text for text in ElementTree.fromstring(drawn).iter("text")}
    assert {"first layer", "last layer"} <= set(texts)
    assert float(texts["accuracy, %"].get("y")) < 20  # above the axis that it names


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([52.4, 53.1, 55.9, 50], (50, 56, 2)),
        ([0.1, 0.45], (0.1, 0.5, 0.1)),
        ([7, 7], (7, 7.5, 0.5)),
        ([-3, 90], (-50, 100, 50)),
    ],
)
def test_the_ticks_of_an_axis_are_round_numbers(numbers, scale):
    assert plots._scale(numbers) == pytest.approx(scale)
