"""Labels and spans convert into each other in three schemes, and are counted like the official scorers count."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.errors import InputError
from pyelmo.tasks.labels.spans import (
    SCHEMES,
    Span,
    SpanCounts,
    SpanCountsByLabel,
    convert,
    count_arguments,
    count_spans,
    to_labels,
    to_spans,
)

LOC, PER = "LOC", "PER"


@st.composite
def sentences(draw):
    """A length and spans that do not overlap, some of them side by side."""
    spans, place = [], draw(st.integers(0, 2))
    for length, gap, label in draw(
        st.lists(
            st.tuples(st.integers(1, 3), st.integers(0, 2), st.sampled_from([LOC, PER, "creative-work"])), max_size=6
        )
    ):
        spans.append(Span(place, place + length, label))
        place += length + gap
    return spans, place + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(sentence=sentences())
def test_labels_give_back_the_spans_they_were_made_from(scheme, sentence):
    spans, length = sentence
    labels = to_labels(spans, length, scheme)
    assert len(labels) == length
    assert to_spans(labels, scheme) == spans


def test_each_scheme_spells_neighbouring_spans_its_own_way():
    spans = [Span(0, 2, LOC), Span(2, 3, LOC), Span(3, 4, PER)]
    assert to_labels(spans, 5, "bio") == ["B-LOC", "I-LOC", "B-LOC", "B-PER", "O"]
    assert to_labels(spans, 5, "iob1") == ["I-LOC", "I-LOC", "B-LOC", "I-PER", "O"]
    assert to_labels(spans, 5, "bioul") == ["B-LOC", "L-LOC", "U-LOC", "U-PER", "O"]
    assert convert(["I-LOC", "B-LOC", "O"], "iob1", "bioul") == ["U-LOC", "U-LOC", "O"]


@pytest.mark.parametrize(
    ("labels", "scheme", "spans"),
    [
        # conlleval: a span begins at I after O, and wherever the label changes within one.
        (["O", "I-LOC", "I-LOC"], "bio", [Span(1, 3, LOC)]),
        (["B-LOC", "I-PER", "I-PER"], "bio", [Span(0, 1, LOC), Span(1, 3, PER)]),
        (["I-LOC", "O", "I-LOC"], "bio", [Span(0, 1, LOC), Span(2, 3, LOC)]),
        (["B-LOC", "B-LOC"], "iob1", [Span(0, 1, LOC), Span(1, 2, LOC)]),
        # Likewise where L or U is missing, or comes too early.
        (["B-LOC", "I-LOC", "O"], "bioul", [Span(0, 2, LOC)]),
        (["L-LOC", "I-LOC"], "bioul", [Span(0, 1, LOC), Span(1, 2, LOC)]),
        (["B-LOC", "U-LOC"], "bioul", [Span(0, 1, LOC), Span(1, 2, LOC)]),
        (["B-LOC", "L-PER"], "bioul", [Span(0, 1, LOC), Span(1, 2, PER)]),
        ([], "bio", []),
    ],
)
def test_sequences_that_are_not_valid_are_read_as_conlleval_reads_them(labels, scheme, spans):
    assert to_spans(labels, scheme) == spans


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["B-LOC"], "iobes", "unknown scheme 'iobes'. Use one of bio, iob1, bioul"),
        (["L-LOC"], "bio", "'L-LOC' is not valid in bio"),
        (["B-"], "bio", "'B-' is not valid in"),
        (["LOC"], "bioul", "'LOC' is not valid in"),
        (["-LOC"], "bio", "'-LOC' is not valid in"),
        ([""], "bio", "'' is not valid in"),
    ],
)
def test_a_label_of_another_scheme_is_one_clear_error(labels, scheme, message):
    with pytest.raises(InputError, match=message):
        to_spans(labels, scheme)


@pytest.mark.parametrize(
    "spans", [[Span(0, 2, LOC), Span(1, 3, PER)], [Span(0, 9, LOC)], [Span(1, 1, LOC)], [Span(-1, 1, LOC)]]
)
def test_spans_that_overlap_or_lie_outside_are_refused(spans):
    with pytest.raises(InputError, match="overlaps another span or lies outside of a sentence of 4 words"):
        to_labels(spans, 4)


def test_a_span_is_correct_with_its_bounds_and_its_label_and_sentences_add_up():
    # gold: LOC 0-2, PER 3-4, PER 5-7.  found: LOC 0-2 right, PER 3-5 wrong bounds, LOC 5-7 wrong label.
    first = count_spans(
        [Span(0, 2, LOC), Span(3, 4, PER), Span(5, 7, PER)], [Span(0, 2, LOC), Span(3, 5, PER), Span(5, 7, LOC)]
    )
    assert first.by_label == {LOC: SpanCounts(1, 2, 1), PER: SpanCounts(0, 1, 2)}
    second = count_spans([Span(0, 1, PER)], [Span(0, 1, PER)])
    total = first + second
    assert total.by_label == {LOC: SpanCounts(1, 2, 1), PER: SpanCounts(1, 2, 3)}
    assert total.all == SpanCounts(2, 4, 4)
    assert (total.all.precision, total.all.recall, total.all.f1) == (50.0, 50.0, 50.0)
    assert total.by_label[LOC].f1 == pytest.approx(200 * 0.5 / 1.5)
    assert sum([first, second], SpanCountsByLabel()) == total


def conlleval(gold, found):
    """Correct, predicted and gold spans by conlleval's own procedure: word by word, from pairs of neighbouring tags alone."""

    def begins(before, here):
        return here[0] == "B" or (here[0] == "I" and (before[0] == "O" or before[1:] != here[1:]))

    def ends(before, here):
        return before[0] != "O" and (here[0] in "BO" or before[1:] != here[1:])

    right = found_count = gold_count = 0
    inside = False  # of a span that agrees so far
    pairs = list(zip(["O", *gold, "O"], ["O", *found, "O"], strict=True))
    for (gold_before, found_before), (gold_here, found_here) in itertools.pairwise(pairs):
        gold_ends, found_ends = ends(gold_before, gold_here), ends(found_before, found_here)
        if inside and gold_ends and found_ends and gold_before[1:] == found_before[1:]:
            right, inside = right + 1, False
        elif inside and (gold_ends != found_ends or gold_here[1:] != found_here[1:]):
            inside = False
        gold_begins, found_begins = begins(gold_before, gold_here), begins(found_before, found_here)
        if gold_begins and found_begins and gold_here[1:] == found_here[1:]:
            inside = True
        gold_count, found_count = gold_count + gold_begins, found_count + found_begins
    return SpanCounts(right, found_count, gold_count)


TAGS = st.sampled_from(["O", "B-LOC", "I-LOC", "B-PER", "I-PER"])


@given(st.lists(st.tuples(TAGS, TAGS), max_size=12))
def test_any_tags_are_counted_as_conlleval_counts_them_word_by_word(pairs):
    gold, found = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert count_spans(to_spans(gold), to_spans(found)).all == conlleval(gold, found)
    assert count_spans(to_spans(gold, "iob1"), to_spans(found, "iob1")).all == conlleval(gold, found)


def test_no_predicted_and_no_gold_spans_score_zero():
    assert (SpanCounts().precision, SpanCounts().recall, SpanCounts().f1) == (0.0, 0.0, 0.0)
    assert count_spans([], []).all == SpanCounts()


def spans(text):
    """A row of labels in BIO as spans: "A0 V A1+ A1" is B-A0 B-V B-A1 I-A1, and "." is O."""
    labels, inside = [], False
    for word in text.split():
        name = word.rstrip("+")
        labels.append("O" if name == "." else f"{'I' if inside else 'B'}-{name}")
        inside = word.endswith("+")
    return to_spans(labels)


@pytest.mark.parametrize(
    ("gold", "found", "right", "found_count", "gold_count"),
    [
        # The predicate is not counted: A0 and A1 are all there is.
        ("A0 V A1+ A1", "A0 V A1+ A1", 2, 2, 2),
        ("A0 V A1+ A1", "A0 A1 A1+ A1", 2, 3, 2),  # an argument where V stood is one too many
        # A1 goes on as C-A1: one argument of two pieces, right only if both are.
        ("A1 A0 V C-A1", "A1 A0 V C-A1", 2, 2, 2),
        ("A1 A0 V C-A1", "A1 A0 V .", 1, 2, 2),  # A1 with a piece missing is wrong
        ("A1 A0 V C-A1", "A1 A0 V A1", 1, 3, 2),  # two A1 instead of one in two pieces
        ("A1 A0 V .", "A1 A0 V C-A1", 1, 2, 2),  # a piece too many makes A1 wrong
        # A C-X without an X before it is an X.
        ("A0 V A1", "A0 V C-A1", 2, 2, 2),
        ("A0 V C-A1 . C-A1", "A0 V A1 . C-A1", 2, 2, 2),
        # It belongs to the last X, not to the first: pieces (0) and (2, 4) against (0, 4) and (2).
        ("A1 V A1 . C-A1", "A1 V A1 . C-A1", 2, 2, 2),
        ("A1 V A2 . C-A1", "A1 V A1 . C-A1", 0, 2, 2),
        # C-V is part of the predicate.
        ("A0 V A1 C-V", "A0 V A1 .", 2, 2, 2),
        # R-X is a label of its own, and neither joins X nor counts as it.
        ("A0 R-A0 V", "A0 R-A0 V", 2, 2, 2),
        ("A0 R-A0 V", "A0 A0 V", 1, 2, 2),
        ("A0 R-A0 V C-A0", "A0 R-A0 V C-A0", 2, 2, 2),
        # Bounds and labels both have to be right.
        ("A0+ A0 V A1", ". A0 V A2", 0, 2, 2),
        ("V .", "V .", 0, 0, 0),
    ],
)
def test_arguments_are_counted_as_the_scorer_of_conll_2005_counts_them(gold, found, right, found_count, gold_count):
    assert count_arguments(spans(gold), spans(found)).all == SpanCounts(right, found_count, gold_count)


def test_arguments_are_told_apart_by_label_and_an_argument_in_pieces_counts_for_its_label():
    counts = count_arguments(spans("A1 R-A1 V C-A1 AM-TMP"), spans("A1 R-A1 V C-A1 AM-LOC"))
    assert counts.by_label == {
        "A1": SpanCounts(1, 1, 1), "AM-LOC": SpanCounts(0, 1, 0), "AM-TMP": SpanCounts(0, 0, 1), "R-A1": SpanCounts(1, 1, 1)
    }  # fmt: skip
