"""Word senses: the published files, and the nearest sense on vectors whose answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes import wsd
from pyelmo.probes.wsd_data import (
    Instance,
    Lemma,
    WsdSentence,
    read_first_senses,
    read_semcor,
    read_senses,
    read_unified,
)

RIVER, MONEY = "bank%1:17:01::", "bank%1:14:00::"
SEMCOR = """<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore rdf= pos=DT>The</wf>
<wf cmd=done pos=NN lemma=river_bank wnsn=1 lexsn=1:17:01::>river_bank</wf>
<wf cmd=done pos=VB lemma=establish wnsn=6;2 lexsn=2:35:00::;2:36:00::>rose</wf>
<wf cmd=done pos=JJ lemma=general wnsn=0;1 lexsn=5:00:00:national:01;3:00:00::>general</wf>
<wf cmd=done pos=VB lemma=need wnsn=0 lexsn=2:42:01::>needing</wf>
<punc>``</punc>
</s>
</p>
</context>
</contextfile>
"""
XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="tiny">
<text id="one.d000">
<sentence id="one.d000.s000">
<wf lemma="the" pos="DET">The</wf>
<instance id="one.d000.s000.t000" lemma="Bank" pos="NOUN">bank&apos;s side</instance>
<wf lemma="." pos=".">-LRB-</wf>
</sentence>
</text>
</corpus>
"""
GOLD = f"one.d000.s000.t000 {RIVER} {MONEY}\n"
INDEX = f"{MONEY} 08420278 1 20\n{RIVER} 09213565 2 15\nriver%1:17:00:: 09411430 1 25\nred%5:00:01:chromatic:00 1 1 0\n"


def semcor(folder: Path, text: str = SEMCOR) -> Path:
    tagfiles = folder / "brown1" / "tagfiles"
    tagfiles.mkdir(parents=True)
    (tagfiles / "br-a01").write_text(text, "utf-8")
    return folder


def unified(folder: Path, xml: str = XML, gold: str = GOLD, name: str = "one") -> Path:
    (folder / f"{name}.data.xml").write_text(xml, "utf-8")
    (folder / f"{name}.gold.key.txt").write_text(gold, "utf-8")
    return folder / f"{name}.data.xml"


def test_semcor_gives_words_and_the_senses_that_wordnet_has(tmp_path):
    (sentence,) = read_senses(semcor(tmp_path))
    assert sentence.words == ["The", "river", "bank", "rose", "general", "needing", '"']
    assert [(i.lemma, i.start, i.end, i.senses) for i in sentence.instances] == [
        (("river_bank", "n"), 1, 3, ("river_bank%1:17:01::",)),
        (("establish", "v"), 3, 4, ("establish%2:35:00::", "establish%2:36:00::")),
        (("general", "a"), 4, 5, ("general%3:00:00::",)),
    ]


def test_the_unified_sets_give_words_lemmas_and_gold_keys(tmp_path):
    (sentence,) = read_senses(unified(tmp_path))
    assert sentence.words == ["The", "bank's", "side", "("]
    assert sentence.instances == [Instance("one.d000.s000.t000", Lemma("bank", "n"), 1, 3, (RIVER, MONEY))]


def test_the_first_sense_of_a_lemma_is_number_one(tmp_path):
    (tmp_path / "index.sense").write_text(INDEX, "utf-8")
    assert read_first_senses(tmp_path / "index.sense") == {
        ("bank", "n"): MONEY,
        ("river", "n"): "river%1:17:00::",
        ("red", "a"): "red%5:00:01:chromatic:00",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<punc>``</punc>", "<punc>``", "br-a01, line 10: not a line of SemCor"),
        ("<s snum=1>\n", "", "br-a01, line 4: a word outside a sentence"),
        ("<punc>``</punc>", "<s snum=2>", "br-a01, line 10: a sentence begins before the end of the previous one"),
        ("wnsn=6;2", "wnsn=6", "br-a01, line 7: 1 sense numbers but 2 sense keys"),
        (" wnsn=1", "", "br-a01, line 6: a word with lexsn= has no lemma= or no wnsn="),
        ("1:17:01::", "1:17", "br-a01, line 6: 'river_bank%1:17' is not a sense key"),
        (SEMCOR[SEMCOR.index("</s>") :], "", "br-a01, line 10: the file ends within a sentence"),
    ],
)
def test_a_damaged_semcor_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        read_semcor(semcor(tmp_path, SEMCOR.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</text>\n", "", "one.data.xml, line 9: invalid XML .mismatched tag"),
        ('pos="NOUN"', 'pos="NAME"', "one.data.xml, line 6: instance .* pos 'NAME'"),
        ("t000", "t001", "one.data.xml, line 6: instance 'one.d000.s000.t001' has no gold key"),
        (">The<", "> <", "one.data.xml, line 5: <wf> is empty"),
    ],
)
def test_a_damaged_data_file_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        read_unified(unified(tmp_path, XML.replace(old, new)))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("one.d000.s000.t000\n", "gold.key.txt, line 1: expected an instance and its sense keys"),
        (GOLD + GOLD, "gold.key.txt, line 2: the instance one.d000.s000.t000 is repeated"),
        (GOLD + "other bank\n", "gold.key.txt, line 2: 'bank' is not a sense key"),
        (GOLD + f"other {RIVER}\n", "1 instances are not in .*, such as other"),
    ],
)
def test_damaged_gold_keys_name_the_file_and_the_line(tmp_path, gold, message):
    with pytest.raises(FormatError, match=message):
        read_unified(unified(tmp_path, gold=gold))


def test_a_damaged_index_names_the_file_and_the_line(tmp_path):
    (tmp_path / "index.sense").write_text(INDEX + "bank n 1\n", "utf-8")
    with pytest.raises(FormatError, match="index.sense, line 5: expected a sense key"):
        read_first_senses(tmp_path / "index.sense")


def test_a_copy_that_is_not_whole_is_noticed(tmp_path):
    with pytest.raises(FormatError, match="1 annotated words, expected 7,253 as published"):
        read_unified(unified(tmp_path, name="ALL"))
    for name in ("brown2", "brownv"):
        semcor(tmp_path / "semcor" / name)
        (tmp_path / "semcor" / name / "brown1").rename(tmp_path / "semcor" / name / name)
    semcor(tmp_path / "semcor")
    with pytest.raises(FormatError, match="9 annotated words, expected 226,036 as published"):
        read_semcor(tmp_path / "semcor")


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(NotFoundError, match="nowhere: not found"):
        read_senses(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="contains no SemCor"):
        read_semcor(tmp_path)


# Two layers of two numbers for each word: the first layer puts "loan" near the river, the second near the money.
VECTORS = {
    "shore": ([1, 0], [1, 0]),
    "beach": ([3, 0.5], [2, 0]),
    "vault": ([0, 1], [0, 1]),
    "loan": ([1, 0.2], [0.1, 5]),
    "sand": ([9, 1], [2, 1]),
}


def made_up(sentences):
    for words in sentences:
        yield np.array([VECTORS[word] for word in words], dtype=np.float32).transpose(1, 0, 2)


def one_word(word: str, sense: str, name: str = "", lemma: str = "bank") -> WsdSentence:
    return WsdSentence([word], [Instance(name, Lemma(lemma, "n"), 0, 1, (sense,))])


def test_each_layer_chooses_the_nearest_sense_and_unseen_lemmas_get_the_first():
    training = [one_word("shore", RIVER), one_word("beach", RIVER), one_word("vault", MONEY)]
    test = [
        one_word("loan", MONEY, "a.1"),
        one_word("sand", RIVER, "a.2"),
        one_word("sand", "sand%1:27:00::", "b.1", "sand"),
        one_word("sand", "dune%1:17:00::", "b.2", "dune"),
    ]
    first = {Lemma("bank", "n"): MONEY, Lemma("sand", "n"): "sand%1:27:00::"}
    result = wsd.evaluate(made_up, training, test, first)
    assert result.f1 == (50.0, 75.0)
    assert result.by_set == {"a": (50.0, 100.0), "b": (50.0, 50.0)}
    assert result.by_pos == {"nouns": (50.0, 75.0)}
    assert result.first_sense == 50.0
    assert (result.words, result.unseen, result.senses, result.occurrences) == (4, 2, 2, 3)


def test_of_equally_near_senses_the_most_frequent_is_chosen():
    training = [one_word("vault", RIVER), one_word("vault", MONEY), one_word("vault", MONEY)]
    senses = wsd.sense_vectors(made_up, training)
    assert senses.nearest(Lemma("bank", "n"), np.array([[3, 1], [1, 7]], np.float32)) == [MONEY, MONEY]


def test_a_word_of_several_words_has_their_mean():
    training = [WsdSentence(["shore", "vault"], [Instance("", Lemma("bank", "n"), 0, 2, (RIVER,))])]
    senses = wsd.sense_vectors(made_up, training)
    assert senses.vectors[0] == pytest.approx(np.array([[0.5**0.5, 0.5**0.5]]), abs=1e-6)


def test_nothing_to_learn_from_or_to_test_is_an_error():
    known = [one_word("shore", RIVER)]
    with pytest.raises(InputError, match="the train set has no annotated word"):
        wsd.evaluate(made_up, [WsdSentence(["shore"], [])], known, {})
    with pytest.raises(InputError, match="the test set has no annotated word"):
        wsd.evaluate(made_up, known, [], {})


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda sentences: [], "returned 0 arrays for 1 sentences"),
        (lambda sentences: [np.zeros((2, 3, 4), np.float32)], "an array of shape .2, 3, 4. for sentence 0 of 1 words"),
        (lambda sentences: [*made_up(sentences), *made_up(sentences)], "returned more than 1 arrays"),
    ],
)
def test_an_encoder_that_does_not_fit_its_sentences_is_refused(broken, message):
    with pytest.raises(InputError, match=message):
        wsd.sense_vectors(broken, [one_word("shore", RIVER)])
