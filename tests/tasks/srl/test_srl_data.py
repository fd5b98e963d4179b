"""Files of roles: each published format gives an example for each predicate, and an error names the line."""

from __future__ import annotations

import pytest

from pyelmo.errors import FormatError
from pyelmo.tasks.harness.task import find_task, unit_numbers
from pyelmo.tasks.srl import data
from pyelmo.tasks.srl.data import PredicateSentence
from pyelmo.tasks.srl.task import SrlDataSettings

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
    assert data.read_propbank(write(PROPBANK)) == EXAMPLES


def test_the_predicates_of_a_sentence_are_one_unit(write):
    examples = find_task("srl").read(write(PROPBANK + "\n\n" + PROPBANK), SrlDataSettings(), True)
    assert unit_numbers(examples) == [0, 0, 2, 2]  # sentence 1 has no predicate


def test_a_frame_beside_another_word_than_its_v_belongs_to_the_v(write):
    text = PROPBANK.replace("go go.01 (V*)", "- - (V*)").replace("to TO * - -", "to TO * go go.01")
    assert data.read_propbank(write(text)) == EXAMPLES
    without = PROPBANK.replace("(V*) *", "* *")
    assert data.read_propbank(write(without))[0].predicate == 2


def test_conll_2012_has_three_more_columns_before_the_arguments_and_coreference_after(write):
    lines = []
    for line in PROPBANK.splitlines():
        cells = line.split()
        lines.append(" ".join([*cells[:8], "1", "speaker", "(PER)", *cells[8:], "(3)"]) if cells else "")
    text = "#begin document (doc); part 000\n" + "\n".join(lines) + "\n#end document\n"
    assert data.read_conll2012(write(text)) == EXAMPLES


def test_conll_2005_has_words_and_propositions_in_two_files(write):
    rows = [line.split() for line in PROPBANK.splitlines()]
    words = write("\n".join(" ".join(row[3:5]) for row in rows), "words")
    props = write("\n".join("  ".join([row[6], *row[8:]]) if row else "" for row in rows), "props")
    assert data.read_conll2005(words, props) == EXAMPLES
    with pytest.raises(FormatError, match="props: 1 sentences, but .*words has 2"):
        data.read_conll2005(words, write("- \n", "props"))
    with pytest.raises(FormatError, match="props, line 1: a sentence of 1 words, but of 7 at .*words, line 1"):
        data.read_conll2005(words, write("-\n\n-\n", "props"))
    with pytest.raises(FormatError, match="props: holds no predicates"):
        data.read_conll2005(write("a\n", "words"), write("-\n", "props"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(ARGM-PRP* *\n", "(ARGM-PRP*\n", "line 4: 1 columns of arguments in a sentence of 2 predicates"),
        ("go go.01", "- -", "line 1: 2 columns of arguments in a sentence of 1 predicates"),
        ("(ARGM-PRP*", "ARGM-PRP*", "line 4: 'ARGM-PRP\\*' is not an argument"),
        ("(ARGM-PRP*", "(A(B*)", "line 4: '\\(A\\(B\\*\\)' is not an argument"),
        ("(ARGM-PRP*", "*", "line 7: '\\*\\)' closes an argument, but none is open"),
        ("(V*\n", "(V*)\n", "line 6: '\\*\\)' closes an argument, but none is open"),
        ("*) (ARG1*)", "* (ARG1*)", "line 7: the sentence ends inside the argument \\(ARGM-PRP\\*"),
        ("doc 0 3 to TO * - - (ARGM-PRP* *", "doc 0 3", "line 4: no word in column 4 of 3"),
    ],
)
def test_malformed_arguments_are_one_clear_error(write, old, new, message):
    assert old in PROPBANK
    with pytest.raises(FormatError, match=message):
        data.read_propbank(write(PROPBANK.replace(old, new, 1)))


def test_a_file_whose_sentences_have_no_predicate_is_an_error(write):
    with pytest.raises(FormatError, match="holds no predicates"):
        data.read_propbank(write("doc 0 0 Yes UH * - -\n"))
