"""Parts of speech: treebanks as published, and a probe that finds what vectors hold."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.probes import linear, pos, suite

TREEBANK = """# sent_id = 1
# text = Don't go.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
3.1\tgone\tgo\tVERB\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\t가\t가\tNOUN\tncn\t_\t0\troot\t_\t_

"""


def write(tmp_path, text):
    path = tmp_path / "tiny.conllu"
    path.write_text(text, "utf-8")
    return path


def test_a_treebank_gives_its_syntactic_words_and_universal_tags(tmp_path):
    first, second = pos.read_conllu(write(tmp_path, TREEBANK))
    assert first == pos.TaggedSentence(["Do", "n't", "go", "."], ["AUX", "PART", "VERB", "PUNCT"])
    assert second == pos.TaggedSentence(["가"], ["NOUN"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tdo\t", " do ", "tiny.conllu, line 4: 8 columns, expected 10"),
        ("2\tn't", "3\tn't", "tiny.conllu, line 5: expected word 2 with a tag"),
        ("VERB\tVB", "_\tVB", "tiny.conllu, line 6: expected word 3 with a tag"),
        (TREEBANK, "# nothing\n", "tiny.conllu: holds no sentence"),
    ],
)
def test_a_damaged_treebank_names_the_file_and_the_line(tmp_path, old, new, message):
    with pytest.raises(FormatError, match=message):
        pos.read_conllu(write(tmp_path, TREEBANK.replace(old, new)))


def test_a_treebank_in_another_encoding_names_the_line(tmp_path):
    (tmp_path / "tiny.conllu").write_bytes(TREEBANK.encode("cp949"))
    with pytest.raises(FormatError, match="tiny.conllu, line 11: not UTF-8"):
        pos.read_conllu(tmp_path / "tiny.conllu")


def test_a_probe_separates_what_is_linearly_separable_and_gives_the_same_each_time():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 600)
    vectors = (random.normal(size=(600, 5)) * 0.1 + 100 * np.eye(3, 5)[labels]).astype(np.float32)
    settings = linear.ProbeSettings(epochs=20, lr=0.05)
    one, two = (linear.fit(vectors[:500], labels[:500], 3, settings) for _ in range(2))
    assert one.accuracy(vectors[500:], labels[500:]) == 100.0
    assert (one.weight == two.weight).all()


def test_labels_that_do_not_fit_the_vectors_are_refused():
    with pytest.raises(InputError, match=r"got the shapes \(4, 2\) and \(3,\)"):
        linear.fit(np.zeros((4, 2), np.float32), np.zeros(3, np.int64), 2)


def test_only_the_layer_that_knows_the_tag_finds_it():
    random = np.random.default_rng(0)
    words = [f"{kind}{number}" for number in range(60) for kind in ("N", "V")]
    tagged = [pos.TaggedSentence([word], ["NOUN" if word[0] == "N" else "VERB"]) for word in words]

    def embed(sentences):
        for (word,) in sentences:
            noise = random.normal(size=3)
            yield np.array([[noise], [[word[0] == "N", *noise[:2]]]], dtype=np.float32)

    settings = linear.ProbeSettings(epochs=100, lr=0.05, batch_size=20)
    result = pos.evaluate(embed, tagged[:80], [*tagged[80:], pos.TaggedSentence(["N1"], ["X"])], settings)
    assert result.accuracy[1] == pytest.approx(100 * 40 / 41)  # a tag that was never seen is never right
    assert result.accuracy[0] < 80
    assert result.baseline == pytest.approx(100 * 20 / 41)
    assert (result.tags, result.train_words, result.test_words) == (("NOUN", "VERB"), 80, 41)


def test_a_control_task_is_learnt_word_by_word_and_no_further():
    """Vectors that only name their word: the tags of known words are learnt, and the random labels as well."""
    words = [f"{kind}{number}" for number in range(20) for kind in ("N", "V")]
    tagged = [pos.TaggedSentence([word], ["NOUN" if word[0] == "N" else "VERB"]) for word in words]

    def embed(sentences):
        for (word,) in sentences:
            names = np.eye(len(words))[words.index(word)]
            yield np.array([[names], [[(word[0] == "N") - 0.5] * len(words)]], dtype=np.float32)

    settings = linear.ProbeSettings(epochs=50, lr=0.05, batch_size=8)
    result = pos.evaluate(embed, tagged * 2, tagged, settings, control=True)
    again = pos.evaluate(embed, tagged * 2, tagged, settings, control=True)
    assert result == again
    assert result.accuracy == (100.0, 100.0)
    assert result.control[0] == 100.0  # by heart
    assert result.control[1] < 80  # two vectors cannot tell forty words apart
    assert result.selectivity == (0.0, 100.0 - result.control[1])
    assert pos.evaluate(embed, tagged, tagged, settings).control is None


def test_a_treebank_that_is_not_whole_is_read_with_a_warning(tmp_path, caplog):
    path = tmp_path / "ko_gsd-ud-test.conllu"
    path.write_text(TREEBANK[:-1], "utf-8")
    assert len(pos.read_conllu(path)) == 2
    assert "2 sentences, 989 as published" in caplog.text
    assert "no empty line after the last sentence" in caplog.text
    assert pos.count_missing(path) == 987


def test_another_treebank_is_used_with_a_warning(tmp_path, caplog):
    with pytest.raises(NotFoundError, match="UD English EWT: no en_ewt-ud-train.conllu below"):
        suite.find_treebanks("en", [tmp_path])
    for name in ("de_gsd", "en_gum"):
        for part in ("train", "test"):
            (tmp_path / f"{name}-ud-{part}.conllu").write_text(TREEBANK, "utf-8")
    [(name, files, facts)] = suite.find_treebanks("en", [tmp_path])
    assert (name, [file.name for file in files]) == ("UD en_gum", ["en_gum-ud-train.conllu", "en_gum-ud-test.conllu"])
    assert set(facts["files"]) == {file.name for file in files}  # another file is another figure
    assert "UD English EWT is not there, UD en_gum is used" in caplog.text
    assert suite.find_treebanks("ko", [tmp_path])[0][0] == "UD de_gsd"
    for part in ("train", "test"):
        (tmp_path / f"en_ewt-ud-{part}.conllu").write_text(TREEBANK, "utf-8")
    [(name, _, facts)] = suite.find_treebanks("en", [tmp_path])
    assert (name, facts) == ("UD English EWT", {"missing_sentences": [12_541, 2075]})
