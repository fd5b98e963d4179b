"""Labelled columns: the published formats give their sentences, and what is malformed is named by file and line."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.labels import columns
from pyelmo.tasks.labels.columns import LabelledSentence, PredicateSentence

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


@pytest.fixture
def write(tmp_path):
    def write(text, name="tiny.conll"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def test_conll_2003_is_read_from_iob1_without_its_document_marks(write):
    assert columns.read_conll2003(write(CONLL2003)) == [
        LabelledSentence(["EU", "rejects", "German", "British", "lamb"], ["B-ORG", "O", "B-MISC", "B-MISC", "O"]),
        LabelledSentence(["Peter", "Blackburn"], ["B-PER", "I-PER"]),
    ]


def test_tabs_may_stand_between_two_columns_and_a_lone_tab_between_sentences_as_in_wnut_17(write):
    path = write("#\tO\nParis\tB-location\n\t\nthe\tB-creative-work\nend\tI-creative-work\n\n\n")
    assert columns.read_labelled(path) == [
        LabelledSentence(["#", "Paris"], ["O", "B-location"]),
        LabelledSentence(["the", "end"], ["B-creative-work", "I-creative-work"]),
    ]


def test_columns_may_be_chosen_comments_left_out_and_rows_be_ragged_after_them(write):
    path = write("# text = Al ran\n1\tAl\tU-PER\t-\tx\n2\tran\tO\n")
    assert columns.read_labelled(path, word=1, label=2, scheme="bioul", comment="# ") == [
        LabelledSentence(["Al", "ran"], ["B-PER", "O"])
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tiny.conll: holds no sentences"),
        ("\n\n", "holds no sentences"),
        ("EU NNP O\nlamb\n", "tiny.conll, line 2: 1 columns, but 3 in the lines before"),
        ("EU NNP O\n\nrejects VBZ I-VP O\n", "line 3: 4 columns, but 3 in the lines before"),
        ("lamb\n", "tiny.conll, line 1: label 'lamb' is not of the scheme bio"),
        ("EU\tORG\n", "line 1: label 'ORG' is not of the scheme bio: expected O, or one of BI as in B-LOC"),
        ("EU\tU-ORG\n", "line 1: label 'U-ORG' is not of the scheme bio"),
        ("EU\tO\n\tO\n", "line 2: no word in column 1 of 2"),
        ("EU\tB-a,B-b\n", "line 1: 'B-a,B-b' is several labels"),
    ],
)
def test_a_malformed_file_is_one_clear_error(write, text, message):
    with pytest.raises(FormatError, match=message):
        columns.read_labelled(write(text))


def test_an_unknown_scheme_and_a_missing_file_are_told(write, tmp_path):
    with pytest.raises(InputError, match="scheme 'iobes' is not known"):
        columns.read_labelled(write("EU\tO\n"), scheme="iobes")
    with pytest.raises(NotFoundError, match="nowhere: not found"):
        columns.read_labelled(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="line 1: no label in column 3 of 2"):
        columns.read_labelled(write("EU\tO\n"), label=2)


def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path):
    path = tmp_path / "latin.conll"
    path.write_bytes(b"EU\tO\ncaf\xe9\tO\n")
    with pytest.raises(FormatError, match="latin.conll, line 2: not UTF-8"):
        columns.read_labelled(path)


def test_a_copy_that_is_cut_off_is_noticed(write):
    with pytest.raises(FormatError, match="1 sentences, expected 3,394 as published. Is the copy whole?"):
        columns.read_labelled(write("EU\tO\n", "wnut17train.conll"))


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
    assert columns.read_klue(write(KLUE)) == [
        LabelledSentence(["경찰은", "박씨", "3일"], ["B-OG", "B-PS", "B-QT"]),  # the second entity of 3일 is lost
        LabelledSentence(["서울", "시는"], ["B-LC", "I-LC"]),
    ]


def test_naver_has_a_sentence_a_line_and_the_letter_last(write):
    path = write("송인영은 5년 개최된\tPER-B DAT-B O\n한 스트로크\tNUM-B NUM-I\n")
    assert columns.read_naver(path) == [
        LabelledSentence(["송인영은", "5년", "개최된"], ["B-PER", "B-DAT", "O"]),
        LabelledSentence(["한", "스트로크"], ["B-NUM", "I-NUM"]),
    ]
    with pytest.raises(FormatError, match="line 1: expected words, a tab and a label for each word"):
        columns.read_naver(write("한 스트로크\tNUM-B\n"))


PROPBANK = """doc 0 0 -LRB- -LRB- (S* - - * *
doc 0 1 He PRP (NP*) - - (ARG0*) (ARG0*)
doc 0 2 went VBD (VP* go go.01 (V*) *
doc 0 3 to TO * - - (ARGM-PRP* *
doc 0 4 blow VB * blow blow_up.03 * (V*
doc 0 5 up RP * - - * *)
doc 0 6 1\\/2 CD *)) - - *) (ARG1*)

doc 1 0 Yes UH * - - """.replace("- - \n", "- -\n").rstrip()

WORDS = ["(", "He", "went", "to", "blow", "up", "1/2"]
EXAMPLES = [
    PredicateSentence(WORDS, 2, ["O", "B-ARG0", "B-V", "B-ARGM-PRP", "I-ARGM-PRP", "I-ARGM-PRP", "I-ARGM-PRP"]),
    PredicateSentence(WORDS, 4, ["O", "B-ARG0", "O", "O", "B-V", "I-V", "B-ARG1"]),
]


def test_propbank_gives_an_example_for_each_predicate(write):
    assert columns.read_propbank(write(PROPBANK)) == EXAMPLES


def test_a_frame_beside_another_word_than_its_v_belongs_to_the_v(write):
    text = PROPBANK.replace("go go.01 (V*)", "- - (V*)").replace("to TO * - -", "to TO * go go.01")
    assert columns.read_propbank(write(text)) == EXAMPLES
    without = PROPBANK.replace("(V*) *", "* *")
    assert columns.read_propbank(write(without))[0].predicate == 2


def test_conll_2012_has_three_more_columns_before_the_arguments_and_coreference_after(write):
    lines = []
    for line in PROPBANK.splitlines():
        cells = line.split()
        lines.append(" ".join([*cells[:8], "1", "speaker", "(PER)", *cells[8:], "(3)"]) if cells else "")
    text = "#begin document (doc); part 000\n" + "\n".join(lines) + "\n#end document\n"
    assert columns.read_conll2012(write(text)) == EXAMPLES


def test_conll_2005_has_words_and_propositions_in_two_files(write):
    rows = [line.split() for line in PROPBANK.splitlines()]
    words = write("\n".join(" ".join(row[3:5]) for row in rows), "words")
    props = write("\n".join("  ".join([row[6], *row[8:]]) if row else "" for row in rows), "props")
    assert columns.read_conll2005(words, props) == EXAMPLES
    with pytest.raises(FormatError, match="props: 1 sentences, but .*words has 2"):
        columns.read_conll2005(words, write("- \n", "props"))
    with pytest.raises(FormatError, match="props, line 1: a sentence of 1 words, but of 7 at .*words, line 1"):
        columns.read_conll2005(words, write("-\n\n-\n", "props"))
    with pytest.raises(FormatError, match="props: holds no predicates"):
        columns.read_conll2005(write("a\n", "words"), write("-\n", "props"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(ARGM-PRP* *\n", "(ARGM-PRP*\n", "line 4: 1 columns of arguments in a sentence of 2 predicates"),
        ("go go.01", "- -", "line 1: 2 columns of arguments in a sentence of 1 predicates"),
        ("(ARGM-PRP*", "ARGM-PRP*", "line 4: 'ARGM-PRP\\*' is no argument"),
        ("(ARGM-PRP*", "(A(B*)", "line 4: '\\(A\\(B\\*\\)' is no argument"),
        ("(ARGM-PRP*", "*", "line 7: '\\*\\)' is no argument, or opens or closes one at the wrong place"),
        ("(V*\n", "(V*)\n", "line 6: '\\*\\)' is no argument"),
        ("*) (ARG1*)", "* (ARG1*)", "line 7: the sentence ends within the argument \\(ARGM-PRP\\*"),
        ("doc 0 3 to TO * - - (ARGM-PRP* *", "doc 0 3", "line 4: no word in column 4 of 3"),
    ],
)
def test_malformed_arguments_are_one_clear_error(write, old, new, message):
    assert old in PROPBANK
    with pytest.raises(FormatError, match=message):
        columns.read_propbank(write(PROPBANK.replace(old, new, 1)))


def test_sentences_without_a_predicate_alone_are_no_data(write):
    with pytest.raises(FormatError, match="holds no predicates"):
        columns.read_propbank(write("doc 0 0 Yes UH * - -\n"))
