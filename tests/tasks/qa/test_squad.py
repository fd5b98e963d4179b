"""Files of SQuAD and KorQuAD: all spans of all answers, and one clear error for a file of another layout."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.harness.task import find_task, unit_numbers
from pyelmo.tasks.harness.texts import split_source, with_offsets
from pyelmo.tasks.qa.data import (
    AnswerSpan,
    make_passage,
    read_questions,
    split_passage,
    split_question,
    training_questions,
)
from pyelmo.tasks.qa.task import QaDataSettings
from pyelmo.text.tokens import TokenSpan

TEXT = "In 1952 Ann, 5, moved to Paris. Paris was far; she counted to 5."


def question(text="Where?", *answers, **more):
    return {"id": "q", "question": text, "answers": [{"text": answer, "answer_start": 0} for answer in answers], **more}


def write(path, *paragraphs):
    content = {"version": "1.1", "data": [{"title": "t", "paragraphs": list(paragraphs)}]}
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def texts(passage, answer):
    return [passage.text_of(*span) for span in passage.find(answer)]


def test_questions_are_read_with_all_spans_of_all_answers(tmp_path):
    path = write(tmp_path / "f.json", {"context": TEXT, "qas": [question("Where to?", "Paris", "to Paris", "Paris")]})
    (asked,) = read_questions(path)
    assert (asked.id, asked.words, asked.answers) == ("q", ("Where", "to", "?"), ("Paris", "to Paris"))
    assert [asked.passage.text_of(*span) for span in asked.spans] == ["to Paris", "Paris", "Paris"]
    assert asked.passage.words[asked.spans[0].first] == "to"


def test_the_questions_of_an_article_are_one_unit(tmp_path):
    paragraph = {"context": TEXT, "qas": [question("Where to?", "Paris"), question("Who?", "Ann")]}
    articles = [{"paragraphs": [paragraph, paragraph]}, {"paragraphs": [paragraph]}]
    (tmp_path / "f.json").write_text(json.dumps({"data": articles}))
    for training in (True, False):
        examples = find_task("qa").read(tmp_path / "f.json", QaDataSettings(language="en"), training)
        assert unit_numbers(examples) == [0, 0, 0, 0, 1, 1]


def test_an_answer_inside_a_word_counts_only_if_it_is_nowhere_a_whole_word():
    passage = split_passage(TEXT, "en")
    assert passage.find("5") == [AnswerSpan(4, 4), AnswerSpan(17, 17)]
    assert texts(passage, "95") == ["1952"]
    assert texts(passage, "nn, 5") == ["Ann, 5"]
    assert texts(passage, " Paris ") == ["Paris", "Paris"]


def test_an_answer_that_is_not_in_the_passage_has_no_span():
    passage = split_passage(TEXT, "en")
    assert [passage.find(answer) for answer in ("Rome", "paris", "", " ")] == [[], [], [], []]


def test_an_answer_may_cross_white_space_of_any_kind_if_it_is_written_so():
    passage = split_passage("one\n two \t three", "en")
    assert texts(passage, "two \t three") == ["two \t three"]
    assert passage.text_of(0, 1) == "one\n two"


def test_words_that_are_split_already_stay_so():
    passage = make_passage(split_source(["don't", "", "stop", "New York"], "en"))
    assert passage.words == ("don't", "", "stop", "New York")
    assert (passage.text, passage.text_of(2, 3)) == ("don't  stop New York", "stop New York")
    assert [passage.text[start:end] for start, end in zip(passage.starts, passage.ends, strict=True)] == list(
        passage.words
    )


def test_korean_answers_are_exact_by_morphemes_and_widened_by_eojeol():
    pytest.importorskip("kiwipiepy")
    text = "임종석은 임수경을 평양에 보냈다."
    assert texts(split_passage(text, "ko"), "임수경") == ["임수경을"]
    assert texts(split_passage(text, "ko-morph"), "평양") == ["평양"]


def test_a_morpheme_that_is_not_written_has_the_word_before_it():
    spans = [TokenSpan("의사", 0, 2), TokenSpan("이", 2, 2), TokenSpan("다", 2, 3)]
    passage = make_passage(with_offsets("의사다", spans))
    assert [passage.text_of(place, place) for place in range(3)] == ["의사", "의사", "다"]
    assert (passage.bounds(1, 1), passage.text_of(1, 2), passage.find("의사")) == ((0, 2), "다", [AnswerSpan(0, 0)])


@given(st.text(alphabet="ab 1.,'한글e\u0301\n", min_size=1, max_size=40), st.data())
def test_every_substring_is_inside_the_spans_that_are_found_for_it(text, data):
    if not text.strip():
        return
    passage = split_passage(text, "en")
    start = data.draw(st.integers(0, len(text) - 1))
    answer = text[start : data.draw(st.integers(start + 1, len(text)))].strip()
    if answer:
        spans = passage.find(answer)
        assert spans
        assert all(answer in passage.text_of(*span) for span in spans)


def test_a_passage_is_split_once_however_many_questions_share_it(tmp_path):
    paragraph = {"context": TEXT, "qas": [question("Who?", "Ann"), question("Where?", "Paris")]}
    questions = read_questions(write(tmp_path / "f.json", paragraph, paragraph))
    assert len(questions) == 4
    assert len({id(question.passage) for question in questions}) == 1
    assert len({id(question.passage) for question in training_questions(questions, 9)}) == 1


def test_training_leaves_out_questions_without_an_answer_and_logs_it_once(tmp_path, caplog):
    asked = [question("Who?", "Ann"), question("What?", "Rome"), question("Far?", "far"), question("None?")]
    questions = read_questions(write(tmp_path / "f.json", {"context": TEXT, "qas": asked}))
    assert len(questions) == 4  # evaluation counts them all
    with caplog.at_level(logging.WARNING, "pyelmo"):
        (kept,) = training_questions(questions, 9)
    assert (kept.words, len(kept.passage.words)) == (("Who", "?"), 9)
    assert kept.passage.text == "In 1952 Ann, 5, moved to Paris"
    (record,) = caplog.records
    assert (
        "3 of 4 questions are left out of training: 2 have no answer in their passage, 1 have it after the first 9"
        in (record.getMessage())
    )


def test_a_passage_within_the_limit_is_not_truncated(tmp_path):
    questions = read_questions(write(tmp_path / "f.json", {"context": TEXT, "qas": [question("Who?", "Ann")]}))
    assert training_questions(questions, 400)[0].passage is questions[0].passage


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a JSON file"),
        ("[]", "expected a JSON object"),
        ("{}", "no field 'data' with a list"),
        ('{"data": [3]}', r"data\[0\]: no field 'paragraphs'"),
        (
            '{"data": [{"paragraphs": [{"qas": []}]}]}',
            r"data\[0\].paragraphs\[0\]: no field 'context' with a string \(fields: qas\)",
        ),
        ('{"data": [{"paragraphs": [{"context": " ", "qas": []}]}]}', r"paragraphs\[0\].context: the passage has no"),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": 1}]}]}]}',
            "no field 'question' with a string",
        ),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": ""}]}]}]}', r"qas\[0\]: the question has no"),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "b"}]}]}]}',
            "no field 'answers' with a list",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "b", "answers": ["a"]}]}]}]}',
            r"qas\[0\].answers\[0\]: no field 'text'",
        ),
        ('{"data": []}', "holds no questions"),
    ],
)
def test_a_file_of_another_layout_is_one_clear_error(tmp_path, content, message):
    (tmp_path / "f.json").write_text(content, "utf-8")
    with pytest.raises(FormatError, match=rf"f\.json.*{message}"):
        read_questions(tmp_path / "f.json")


def test_an_incomplete_copy_of_a_published_file_is_noticed(tmp_path):
    path = write(tmp_path / "dev-v1.1.json", {"context": TEXT, "qas": [question("Who?", "Ann")]})
    with pytest.raises(FormatError, match="1 questions, expected 10,570 as published"):
        read_questions(path)
    with pytest.raises(NotFoundError):
        read_questions(tmp_path / "none.json")


def test_an_empty_passage_and_an_empty_question_are_clear_errors():
    with pytest.raises(InputError, match="the passage has no words"):
        split_passage(" \n", "en")
    with pytest.raises(InputError, match="the question has no words"):
        split_question("", "en")
