"""Text files -> a prepared corpus: its content, its errors, and that it survives being killed."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyelmo.corpus import chunks
from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.encoding import Progress
from pyelmo.corpus.prepare import prepare
from pyelmo.errors import InputError, NotFoundError, OutputError
from pyelmo.text.tokens import split_sentences, split_words
from pyelmo.text.vocabulary import Vocabulary

SMALL_CHUNKS = 3000


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", SMALL_CHUNKS)


def read_back(corpus: Corpus, split: str) -> list[list[str]]:
    return [[corpus.types[number] for number in sentence] for sentence in corpus.sentences(split)]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def sentences_of(text: str, language: str = "en") -> list[list[str]]:
    return [
        split_words(sentence, language) for line in text.split("\n") for sentence in split_sentences(line, language)
    ]


# --- what it holds -------------------------------------------------------------------------------------------------


def test_the_text_is_read_back_in_order(text: Path, tmp_path: Path) -> None:
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    assert read_back(corpus, "train") == sentences_of(text.read_text(encoding="utf-8"))
    assert read_back(corpus, "valid") == []


@pytest.mark.parametrize("tokenised", [False, True])
def test_text_in_another_unicode_form_becomes_the_same_corpus(tmp_path: Path, tokenised: bool) -> None:
    for name, line in {"nfc": "A café , \u200b 한국 .\n", "nfd": "A cafe\u0301\ufeff , \u200b 한국 .\n"}.items():
        (tmp_path / name).write_text(line * 20, encoding="utf-8")
        prepare(
            PrepareSettings(inputs=[tmp_path / name], language="general", valid_fraction=0, tokenised=tokenised),
            tmp_path / f"{name}-out",
        )
    corpora = [read_back(Corpus.open(tmp_path / f"{name}-out"), "train") for name in ("nfc", "nfd")]
    assert corpora[0] == corpora[1] == [["A", "café", ",", *["\u200b"] * tokenised, "한국", "."]] * 20


def test_types_are_sorted_by_falling_count_and_code_point(text: Path, tmp_path: Path) -> None:
    manifest = prepare(PrepareSettings(inputs=[text], language="en", vocab_size=50, valid_fraction=0), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    counts = Counter(word for sentence in sentences_of(text.read_text(encoding="utf-8")) for word in sentence)
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    assert corpus.types == ("<S>", "</S>", "<UNK>", *expected)
    assert corpus.counts.tolist() == [0, 0, 0, *(counts[word] for word in expected)]
    assert corpus.vocabulary == Vocabulary.load(tmp_path / "out" / "vocab.txt") == Vocabulary(corpus.types[:50])
    assert manifest.vocab_size == corpus.vocab_size == 50
    assert manifest.train.words == counts.total()
    assert manifest.train.unknown == sum(counts[word] for word in expected[47:])
    assert manifest.train.unknown_rate == manifest.train.unknown / manifest.train.words


def test_rare_words_are_left_out_of_the_vocabulary_and_of_the_types(text: Path, tmp_path: Path) -> None:
    prepare(
        PrepareSettings(inputs=[text], language="en", min_count=5, min_type_count=2, valid_fraction=0), tmp_path / "out"
    )
    corpus = Corpus.open(tmp_path / "out")
    assert min(corpus.counts[3:]) == 2
    assert min(corpus.counts[3 : corpus.vocab_size]) == 5
    assert corpus.counts[corpus.vocab_size] < 5
    words = [word for sentence in sentences_of(text.read_text(encoding="utf-8")) for word in sentence]
    assert np.count_nonzero(np.concatenate(corpus.shards()) == 2) == sum(
        word not in set(corpus.types) for word in words
    )


def test_the_number_of_types_is_bounded(text: Path, tmp_path: Path) -> None:
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0), tmp_path / "all")
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0, max_types=40), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    assert 3 < len(corpus.types) <= 43
    assert corpus.types[:20] == Corpus.open(tmp_path / "all").types[:20]


def test_shards_hold_whole_sentences_and_an_index(text: Path, tmp_path: Path) -> None:
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0.2), tmp_path / "one")
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0.2, shard_words=100), tmp_path / "many")
    one, many = Corpus.open(tmp_path / "one"), Corpus.open(tmp_path / "many")
    assert len(many.shards("train")) > 5
    for split in ("train", "valid"):
        for ids, starts in zip(many.shards(split), many.sentence_starts(split), strict=True):
            assert ids[-1] == 1
            assert starts.tolist() == [0, *(np.flatnonzero(ids == 1) + 1).tolist()]
            assert ids.dtype == np.dtype("<i4")
        assert all(len(ids) >= 100 for ids in many.shards(split)[:-1])
        assert np.array_equal(np.concatenate(many.shards(split)), np.concatenate(one.shards(split)))
    assert many.manifest.train == one.manifest.train


def test_whole_documents_are_held_out(text: Path, tmp_path: Path) -> None:
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0.2), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    documents = [sentences_of(document) for document in text.read_text(encoding="utf-8").split("\n\n")]
    valid = read_back(corpus, "valid")
    chosen = [document for document in documents if all(sentence in valid for sentence in document)]
    assert 4 < len(chosen) < 25
    assert list(itertools.chain(*chosen)) == valid
    rest = [document for document in documents if document not in chosen]
    assert read_back(corpus, "train") == list(itertools.chain(*rest))


def test_a_long_document_is_held_out_in_parts(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"a{number} b.\n" for number in range(30_000)))
    manifest = prepare(
        PrepareSettings(inputs=[tmp_path / "text.txt"], valid_fraction=0.2, tokenised=True), tmp_path / "out"
    )
    assert 2000 <= manifest.valid.sentences <= 12_000
    assert manifest.valid.sentences % 1000 == 0


def test_words_of_validation_text_alone_have_types_but_are_unknown_targets(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("b a a\n")
    (tmp_path / "valid.txt").write_text("a new\n")
    manifest = prepare(
        PrepareSettings(inputs=[tmp_path / "train.txt"], valid_inputs=[tmp_path / "valid.txt"], tokenised=True),
        tmp_path / "out",
    )
    corpus = Corpus.open(tmp_path / "out")
    assert corpus.types[3:] == ("a", "b", "new")
    assert corpus.vocabulary.words[3:] == ("a", "b")
    assert read_back(corpus, "train") == [["b", "a", "a"]]
    assert read_back(corpus, "valid") == [["a", "new"]]
    assert manifest.valid.unknown == 1


def test_tokenised_text_passes_through(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("do n't . stop\u00a0here\n\n<S> </S> <UNK> (x)\n", encoding="utf-8")
    prepare(PrepareSettings(inputs=[tmp_path / "text.txt"], tokenised=True, valid_fraction=0), tmp_path / "out")
    words = [["do", "n't", ".", "stop", "here"], ["<UNK>", "<UNK>", "<UNK>", "(x)"]]
    assert read_back(Corpus.open(tmp_path / "out"), "train") == words


def test_each_repeated_line_is_dropped_but_the_first(tmp_path: Path) -> None:
    lines = [f"line {number % 700} of text" for number in range(2000)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    options: dict[str, Any] = {"tokenised": True, "valid_fraction": 0, "drop_duplicates": True}
    prepare(PrepareSettings(inputs=[tmp_path / "text.txt"], **options), tmp_path / "out")
    assert read_back(Corpus.open(tmp_path / "out"), "train") == [line.split() for line in lines[:700]]


def test_records_of_several_files_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "First one.\\nThen two."}\n{"body": "Third."}\n')
    (tmp_path / "b.jsonl").write_text('{"body": "Last."}\n')
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    prepare(PrepareSettings(inputs=paths, language="en", column="body", valid_fraction=0), tmp_path / "out")
    words = [["First", "one", "."], ["Then", "two", "."], ["Third", "."], ["Last", "."]]
    assert read_back(Corpus.open(tmp_path / "out"), "train") == words


def test_standard_input_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BufferedReader(io.BytesIO(b"A text.\n"))

    monkeypatch.setattr("sys.stdin", Standard)
    prepare(PrepareSettings(inputs=["-"], language="en"), tmp_path / "out")
    assert read_back(Corpus.open(tmp_path / "out"), "train") == [["A", "text", "."]]


def test_progress_reaches_the_end(text: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    prepare(PrepareSettings(inputs=[text]), tmp_path / "out", progress=seen.append)
    assert len(seen) > 3
    assert [state.chunks for state in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].bytes_read == seen[-1].total_bytes == text.stat().st_size


def test_a_bar_is_drawn_on_stderr(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(PrepareSettings(inputs=[text]), tmp_path / "out", progress=True)
    captured = capsys.readouterr()
    assert "prepare: 100%" in captured.err
    assert captured.out == ""


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["", "\n\n \t\n"])
def test_an_empty_corpus_is_one_clear_error_and_leaves_nothing(tmp_path: Path, empty: str) -> None:
    (tmp_path / "text.txt").write_text(empty)
    with pytest.raises(InputError, match="no words to train on"):
        prepare(PrepareSettings(inputs=[tmp_path / "text.txt"]), tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["text.txt"]


def test_one_word_makes_a_corpus_of_one_word(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("word")
    manifest = prepare(PrepareSettings(inputs=[tmp_path / "text.txt"]), tmp_path / "out")
    assert (manifest.train.words, manifest.train.sentences, manifest.vocab_size) == (1, 1, 4)


def test_a_corpus_is_replaced_only_with_force_and_another_folder_never(text: Path, tmp_path: Path) -> None:
    prepare(PrepareSettings(inputs=[text]), tmp_path / "out")
    before = content(tmp_path / "out")
    with pytest.raises(OutputError, match="contains a corpus already. Pass --force"):
        prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out")
    assert content(tmp_path / "out") == before
    prepare(PrepareSettings(inputs=[text], language="en"), tmp_path / "out", force=True)
    assert content(tmp_path / "out") != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(OutputError, match="not a prepared corpus"):
        prepare(PrepareSettings(inputs=[text]), tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 3}, "vocab_size is 3; it must be at least 4"),
        ({"min_count": 0}, "min_count is 0"),
        ({"valid_fraction": 1.0}, "valid_fraction is 1.0"),
        ({"language": "xx"}, "'xx' is unknown"),
        ({"input_format": "xml"}, "'xml' is unknown"),
        ({"valid_inputs": "one.txt"}, "must be a list of files"),
    ],
)
def test_an_impossible_setting_is_one_clear_error(
    text: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        prepare(PrepareSettings(inputs=[text], **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_worker_is_one_clear_error(text: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers is 0"):
        prepare(PrepareSettings(inputs=[text]), tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


def test_the_manifest_names_the_column_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "First one."}\n')
    prepare(PrepareSettings(inputs=[tmp_path / "a.jsonl"], column="body"), tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]
    assert list(settings)[-3:] == ["text_column", "input_format", "shard_words"]
    assert Corpus.open(tmp_path / "out").manifest.settings.column == "body"


def test_a_missing_input_and_a_missing_folder_are_clear_errors(text: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"missing\.txt: not found"):
        prepare(PrepareSettings(inputs=[tmp_path / "missing.txt"]), tmp_path / "out")
    with pytest.raises(OutputError, match="does not exist. Create it first"):
        prepare(PrepareSettings(inputs=[text]), tmp_path / "no" / "out")
    with pytest.raises(InputError, match="no input"):
        prepare(PrepareSettings(inputs=[]), tmp_path / "out")


def test_of_a_text_with_too_few_documents_the_last_lines_are_held_out(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for lines, valid in ((9, []), (35, ["32", "33", "34"])):
        path.write_text("".join(f"line {number}\n" for number in range(lines)))
        prepare(PrepareSettings(inputs=[path], tokenised=True), tmp_path / "out", force=True)
        corpus = Corpus.open(tmp_path / "out")
        assert [corpus.types[ids[1]] for ids in corpus.sentences("valid")] == valid
        assert corpus.manifest.train.sentences == lines - len(valid)
