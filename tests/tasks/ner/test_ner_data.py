"""Files of entities: each published format gives its sentences, and an error names the file and the line."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.ner import data
from pyelmo.tasks.ner.data import LabelledSentence

CONLL2003 = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
British JJ I-NP B-MISC
lamb NN I-NP O

-DOCSTART- -X- -X- O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def test_conll_2003_is_read_from_iob1_without_its_docstart_lines(write):
    assert data.read_conll2003(write(CONLL2003)) == [
        LabelledSentence(["EU", "rejects", "German", "British", "lamb"], ["B-ORG", "O", "B-MISC", "B-MISC", "O"]),
        LabelledSentence(["Peter", "Blackburn"], ["B-PER", "I-PER"]),
    ]


def test_tabs_may_separate_columns_and_a_lone_tab_sentences_as_in_wnut_17(write):
    path = write("#\tO\nParis\tB-location\n\t\nthe\tB-creative-work\nend\tI-creative-work\n\n\n")
    assert data.read_labelled(path) == [
        LabelledSentence(["#", "Paris"], ["O", "B-location"]),
        LabelledSentence(["the", "end"], ["B-creative-work", "I-creative-work"]),
    ]


def test_columns_are_chosen_comments_skipped_and_later_columns_may_differ_in_number(write):
    path = write("# text = Al ran\n1\tAl\tU-PER\t-\tx\n2\tran\tO\n")
    assert data.read_labelled(path, word=1, label=2, scheme="bioul", comment="# ") == [
        LabelledSentence(["Al", "ran"], ["B-PER", "O"])
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tiny.data: holds no sentences"),
        ("\n\n", "holds no sentences"),
        ("EU NNP O\nlamb\n", "tiny.data, line 2: 1 columns, but 3 in the lines before"),
        ("EU NNP O\n\nrejects VBZ I-VP O\n", "line 3: 4 columns, but 3 in the lines before"),
        ("lamb\n", "tiny.data, line 1: label 'lamb' is not valid in bio"),
        ("EU\tORG\n", "line 1: label 'ORG' is not valid in bio: expected O, or one of BI as in B-LOC"),
        ("EU\tU-ORG\n", "line 1: label 'U-ORG' is not valid in bio"),
        ("EU\tO\n\tO\n", "line 2: no word in column 1 of 2"),
        ("EU\tB-a,B-b\n", "line 1: several labels for one word \\('B-a,B-b'\\)"),
    ],
)
def test_a_malformed_file_is_one_clear_error(write, text, message):
    with pytest.raises(FormatError, match=message):
        data.read_labelled(write(text))


def test_an_unknown_scheme_and_a_missing_file_are_clear_errors(write, tmp_path):
    with pytest.raises(InputError, match="unknown scheme 'iobes'"):
        data.read_labelled(write("EU\tO\n"), scheme="iobes")
    with pytest.raises(NotFoundError, match="nowhere: not found"):
        data.read_labelled(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="line 1: no label in column 3 of 2"):
        data.read_labelled(write("EU\tO\n"), label=2)


def test_bytes_that_are_not_utf_8_are_an_error_with_their_line(tmp_path):
    path = tmp_path / "latin.conll"
    path.write_bytes(b"EU\tO\ncaf\xe9\tO\n")
    with pytest.raises(FormatError, match="latin.conll, line 2: not UTF-8"):
        data.read_labelled(path)


def test_an_incomplete_copy_of_a_published_file_is_noticed(write):
    with pytest.raises(FormatError, match="1 sentences, expected 3,394 as published"):
        data.read_labelled(write("EU\tO\n", "wnut17train.conll"))


KLUE = """## 컬럼명 : CHAR\tNE_TAG
## dev_00000\t<경찰:OG>은 <박:PS>씨 <3:QT><일:DT>
경\tB-OG
찰\tI-OG
은\tO
 \tO
박\tB-PS
씨\tO
 \tO
3\tB-QT
일\tB-DT

## dev_00001\t<서울 시:LC>는
서\tB-LC
울\tI-LC
 \tI-LC
시\tI-LC
는\tO
"""


def test_characters_of_klue_become_words_that_take_their_first_entity(write):
    assert data.read_klue(write(KLUE)) == [
        LabelledSentence(["경찰은", "박씨", "3일"], ["B-OG", "B-PS", "B-QT"]),  # the second entity of 3일 is lost
        LabelledSentence(["서울", "시는"], ["B-LC", "I-LC"]),
    ]


def test_naver_has_one_sentence_per_line_and_the_letter_last(write):
    path = write("송인영은 5년 개최된\tPER-B DAT-B O\n한 스트로크\tNUM-B NUM-I\n")
    assert data.read_naver(path) == [
        LabelledSentence(["송인영은", "5년", "개최된"], ["B-PER", "B-DAT", "O"]),
        LabelledSentence(["한", "스트로크"], ["B-NUM", "I-NUM"]),
    ]
    with pytest.raises(FormatError, match="line 1: expected words, a tab and a label for each word"):
        data.read_naver(write("한 스트로크\tNUM-B\n"))
