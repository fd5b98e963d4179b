"""Files of reviews: each published format gives its reviews, and a malformed line is one clear error."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError
from pyelmo.tasks.sentiment.data import Review, read_nsmc, read_sst

TREES = "(3 (2 It) (4 (2 's) (4 lovely)))\n(2 (1 -LRB-) (2 so\\/so))\n(0 bad)\n"


def test_a_tree_is_its_sentence_and_the_label_of_its_root(write):
    assert read_sst(write(TREES)) == [Review(["It", "'s", "lovely"], 3), Review(["(", "so/so"], 2), Review(["bad"], 0)]


def test_two_classes_leave_out_neutral_sentences(write):
    assert read_sst(write(TREES), binary=True) == [Review(["It", "'s", "lovely"], 1), Review(["bad"], 0)]


def test_phrases_are_examples_of_their_own(write):
    path = write(TREES.splitlines()[0])
    assert read_sst(path, phrases=True) == [
        Review(["It"], 2), Review(["'s"], 2), Review(["lovely"], 4), Review(["'s", "lovely"], 4),
        Review(["It", "'s", "lovely"], 3),
    ]  # fmt: skip
    assert read_sst(path, phrases=True, binary=True) == [
        Review(["lovely"], 1), Review(["'s", "lovely"], 1), Review(["It", "'s", "lovely"], 1)
    ]  # fmt: skip


def test_a_phrase_of_several_sentences_is_one_example(write):
    assert read_sst(write("(3 (2 A) (4 film))\n(1 (2 A) (1 film))\n"), phrases=True) == [
        Review(["A"], 2), Review(["film"], 4), Review(["A", "film"], 3), Review(["film"], 1), Review(["A", "film"], 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tiny.data: holds no sentences"),
        ("(3 good)\n\n", "tiny.data, line 2: the tree does not end"),
        ("(3 (2 It) (4 works)\n", "line 1: the tree does not end. Is the file complete?"),
        ("(3 good))\n", "line 1: not a tree such as .*, at '\\)'"),
        ("(3 good) (2 it)\n", "line 1: not a tree such as .*, at '\\(2 it\\)'"),
        ("(5 good)\n", "line 1: not a tree such as .*, at '\\(5 good\\)'"),
        ("good\n", "line 1: not a tree"),
        ("(3 ())\n", "line 1: not a tree"),
        ("(3 (2 ))\n", "line 1: not a tree"),
    ],
)
def test_a_line_that_is_not_a_tree_is_one_clear_error(write, text, message):
    with pytest.raises(FormatError, match=message):
        read_sst(write(text))


def test_nsmc_is_split_into_words_and_an_empty_review_stays(write):
    path = write("id\tdocument\tlabel\n1\t굳 ㅋ!\t1\n2\t\t0\n")
    assert read_nsmc(path) == [Review(["굳", "ㅋ", "!"], 1), Review([], 0)]
    assert read_nsmc(path, tokenised=True) == [Review(["굳", "ㅋ!"], 1), Review([], 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no reviews"),
        ("1\t굳\t1\n", "line 1: expected the header id, document, label"),
        ("id\tdocument\tlabel\n1\t굳\t2\n", "line 2: expected an id, a text and 0 or 1, found"),
        ("id\tdocument\tlabel\n1\t굳\n", "line 2: expected an id, a text and 0 or 1"),
    ],
)
def test_a_malformed_review_is_one_clear_error(write, text, message):
    with pytest.raises(FormatError, match=message):
        read_nsmc(write(text))


def test_an_incomplete_copy_of_a_published_file_is_noticed(write):
    with pytest.raises(FormatError, match="1 reviews, expected 150,000 as published"):
        read_nsmc(write("id\tdocument\tlabel\n1\t굳\t1\n", "ratings_train.txt"))
