"""Files of coreference: each published format gives its documents, and a malformed file is one clear error."""

from __future__ import annotations

import logging

import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.coref.data import CorefDocument, Mention, read_documents

CONLL2012 = """#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv/00/cctv_0000 0 0 John NNP (TOP(S(NP*) - - - Ann (PERSON) (ARG0*) (3)
bc/cctv/00/cctv_0000 0 1 saw VBD (VP* see 1 1 Ann * (V*) -
bc/cctv/00/cctv_0000 0 2 his PRP$ (NP* - - - Ann * (ARG1* (4|(3)
bc/cctv/00/cctv_0000 0 3 mother NN *)) - - - Ann * *) 4)

bc/cctv/00/cctv_0000 0 0 She PRP (TOP(S(NP*)) - - - - * (4)
bc/cctv/00/cctv_0000 0 1 -LRB- -LRB- * - - - - * -

#end document
#begin document (bc/cctv/00/cctv_0000); part 001
bc/cctv/00/cctv_0000 1 0 Yes UH (TOP*) - - - - * -
#end document
"""
ROW = "12_a_brat\t0\t{}\t{}" + "\t_" * 8 + "\t{}\n"
LITBANK = (
    "#begin document (12_a_brat); part 0\n"
    + ROW.format(0, "Red", "(0")
    + ROW.format(1, "Death", "(1)|0)")
    + "\n"
    + ROW.format(0, "it", "(0)")
    + "\n#end document\n"
)
ONTOGUM = "# begin document \n0\tThe\t(2\n1\tking\t2)\n2\tran\t_\n3\t.\t_\n4\tHe\t(5(2)\n5\tand\t_\n6\tshe\t5)\n# end document\n"


def test_conll_2012_has_documents_in_parts_with_speakers_and_a_genre(write):
    first, second = read_documents(write(CONLL2012))
    assert first == CorefDocument(
        "bc/cctv/00/cctv_0000; part 0",
        (("John", "saw", "his", "mother"), ("She", "(")),
        ((Mention(0, 1), Mention(2, 3)), (Mention(2, 4), Mention(4, 5))),
        ("Ann",) * 4 + ("",) * 2,
        "bc",
    )
    assert second == CorefDocument("bc/cctv/00/cctv_0000; part 1", (("Yes",),), (), (), "bc")


def test_litbank_has_empty_columns_and_single_mentions(write):
    (document,) = read_documents(write(LITBANK), "litbank")
    assert document.sentences == (("Red", "Death"), ("it",))
    assert document.clusters == ((Mention(0, 2), Mention(2, 3)), (Mention(1, 2),))
    assert (document.name, document.genre, document.speakers) == ("12_a_brat", "", ())


def test_ontogum_has_no_bars_and_its_sentences_are_split_by_rule(write):
    (document,) = read_documents(write(ONTOGUM, "GUM_fiction_king.conll"), "ontogum")
    assert document.sentences == (("The", "king", "ran", "."), ("He", "and", "she"))
    assert document.clusters == ((Mention(0, 2), Mention(4, 5)), (Mention(4, 7),))
    assert (document.name, document.genre) == ("GUM_fiction_king", "fiction")


def test_blanked_documents_are_left_out_with_a_warning(write, tmp_path, caplog):
    write(ONTOGUM, "docs/GUM_a_b.conll")
    blank = write("# begin document\n0\t___\t(1)\n1\t_\t_\n# end document\n", "docs/GUM_reddit_x.conll")
    with caplog.at_level(logging.WARNING, "pyelmo"):
        assert [document.name for document in read_documents(tmp_path / "docs", "ontogum")] == ["GUM_a_b"]
    assert "1 of 2 documents are left out, because their words are blank" in caplog.text
    with pytest.raises(FormatError, match="GUM_reddit_x.conll: holds no documents"):
        read_documents(blank, "ontogum")


def test_a_list_names_documents_of_its_own_or_of_another_folder_in_its_order(write, tmp_path):
    for name in ("1_a_brat", "2_b_brat", "3_c_brat"):
        write(LITBANK.replace("12_a_brat", name), f"texts/{name}.conll")
    names = write("3_c_brat.tsv\n1_a_brat.tsv\n\n", "fold/train.ids")
    read = read_documents(names, "litbank", folder=tmp_path / "texts")
    assert [document.name for document in read] == ["3_c_brat", "1_a_brat"]
    with pytest.raises(NotFoundError, match=r"train.ids, line 1: no file of '3_c_brat.tsv' in .*fold.*data.folder"):
        read_documents(names, "litbank")
    with pytest.raises(NotFoundError, match="gone: not found"):
        read_documents(names, "litbank", folder=tmp_path / "gone")
    assert len(read_documents(tmp_path / "texts", "litbank", folder=tmp_path / "gone")) == 3  # only lists need it
    with pytest.raises(NotFoundError, match="fold: no file in it whose name ends in conll"):
        read_documents(tmp_path / "fold", "litbank")


def test_a_mention_of_two_clusters_is_the_first_one_s(write):
    text = "# begin document\n0\tHe\t(1)(2)\n1\tran\t(1)\n2\tand\t(2)\n# end document\n"
    (document,) = read_documents(write(text), "ontogum")
    assert document.clusters == ((Mention(0, 1), Mention(1, 2)), (Mention(2, 3),))


def test_mentions_of_one_cluster_may_lie_within_each_other(write):
    text = "# begin document\n0\ta\t(1\n1\tb\t(1\n2\tc\t1)1)\n# end document\n"
    (document,) = read_documents(write(text), "ontogum")
    assert document.clusters == ((Mention(0, 3), Mention(1, 3)),)


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("conll2012", "", "tiny.data: holds no documents. Is it empty, or in another format than conll2012?"),
        ("conll2012", "\n\n", "holds no documents"),
        ("ontogum", "0\tHe\t_\n", "tiny.data, line 1: a word before '#begin document'"),
        ("ontogum", "# begin document\n0\tHe\t_\n", "line 1: the document has no #end document"),
        ("ontogum", "# begin document\n# begin document\n", "line 2: a document begins, but that of .*line 1 has no"),
        ("ontogum", "# end document\n", "line 1: a document ends, but none has begun"),
        ("ontogum", "# begin document\n# end document\n", "line 1: a document without words"),
        ("ontogum", "# begin document\n0\tHe\t(1\n# end document\n", r"line 2: the mention \(1 is never closed"),
        ("ontogum", "# begin document\n0\tHe\t1)\n", r"line 2: '1\)' closes a mention of 1, but none is open"),
        ("ontogum", "# begin document\n0\tHe\t(1)x\n", r"line 2: '\(1\)x' is not a mention such as \(3\)"),
        ("ontogum", "# begin document\n0\tHe\t12\n", "line 2: '12' is not a mention"),
        (
            "ontogum",
            "# begin document\n0\tHe\n",
            "line 2: 2 columns, expected 3. Choose the format with --set data.format=",
        ),
        ("litbank", "#begin document (a)\na\t0\t0\tHe\n", "line 2: 4 columns, expected 13"),
        ("litbank", "#begin document (a)\n" + ROW.format(0, "", ""), "line 2: no word in column 4"),
        ("conll2012", "#begin document (a)\na 0 0 He -\n", "line 2: 5 columns, expected 12 or more"),
        ("conll2012", f"#begin document (a)\n{'a ' * 13}-\n{'a ' * 12}-\n", "line 3: 13 columns, expected 14"),
    ],
)
def test_a_malformed_file_is_one_clear_error(write, format, text, message):
    with pytest.raises(FormatError, match=message):
        read_documents(write(text), format)


def test_an_unknown_format_and_a_missing_file_are_clear_errors(write, tmp_path):
    with pytest.raises(InputError, match="unknown format 'ace'. Choose one of conll2012, litbank, ontogum"):
        read_documents(write(ONTOGUM), "ace")
    with pytest.raises(NotFoundError, match="nowhere: not found"):
        read_documents(tmp_path / "nowhere")
