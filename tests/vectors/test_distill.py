"""Static vectors from ELMo: means over occurrences, the same for the same seed, in every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import worst

from pyelmo.cli import main
from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.errors import ConfigError, FormatError, InputError
from pyelmo.vectors.distill import DistillSettings, distill, mean_vectors
from pyelmo.vectors.static import StaticVectors

TEXT = Path(__file__).parents[1] / "banks.txt"
ALL = DistillSettings(occurrences=1_000_000, vocab_size=1_000_000, min_count=1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distill") / "corpus"
    prepare(PrepareSettings(inputs=(str(TEXT),), tokenised=True, valid_fraction=0), folder)
    return folder


def test_with_all_occurrences_a_vector_is_the_mean_over_the_text(corpus, tiny):
    sentences = [line.split() for line in TEXT.read_text("utf-8").splitlines() if line.strip()]
    words, means = mean_vectors(tiny, corpus, ALL)
    assert set(words) == {word for sentence in sentences for word in sentence}
    embedded = tiny.embed(sentences)
    for word in ("bank", "the", "river"):
        rows = [
            array[:, place]
            for sentence, array in zip(sentences, embedded, strict=True)
            for place, other in enumerate(sentence)
            if other == word
        ]
        assert worst(means[:, words.index(word)], np.mean(rows, axis=0)) < 1e-5


def test_a_layer_is_that_of_all_layers_and_a_mix_their_mix(corpus, tiny):
    words, means = mean_vectors(tiny, corpus, ALL)
    for layers, wanted in ((1, means[1]), ("average", means.mean(0)), ([0.5, 0.0, 0.5], (means[0] + means[2]) / 2)):
        vectors = distill(tiny, corpus, ALL, layers=layers)
        assert vectors.words == tuple(words)
        assert worst(vectors.matrix, wanted) < 1e-5


def test_the_seed_decides_the_sample(corpus, tiny):
    few = DistillSettings(occurrences=2, vocab_size=20, min_count=1)
    first, again = distill(tiny, corpus, few), distill(tiny, corpus, few)
    assert len(first) == 20
    assert np.array_equal(first.matrix, again.matrix)
    other = distill(tiny, corpus, DistillSettings(occurrences=2, vocab_size=20, min_count=1, seed=2))
    assert first.words == other.words
    assert not np.array_equal(first.matrix, other.matrix)


def test_frequent_words_come_first_and_rare_ones_have_no_vector(corpus, tiny):
    counts = dict(zip(Corpus.open(corpus).types, Corpus.open(corpus).counts.tolist(), strict=True))
    vectors = distill(tiny, corpus, DistillSettings(occurrences=1, min_count=4))
    assert [counts[word] for word in vectors.words] == sorted((n for n in counts.values() if n >= 4), reverse=True)
    with pytest.raises(InputError, match="no word occurs 100000 times"):
        distill(tiny, corpus, DistillSettings(min_count=100_000))


def test_wrong_settings_are_errors(corpus, tiny):
    with pytest.raises(ConfigError, match="occurrences is 0"):
        DistillSettings(occurrences=0)
    with pytest.raises(InputError, match="static vectors have one layer"):
        distill(tiny, corpus, layers="all")


def test_a_corpus_with_unknown_ids_is_damaged(corpus, tiny, tmp_path):
    import shutil

    shutil.copytree(corpus, tmp_path / "corpus")
    ids = np.memmap(tmp_path / "corpus" / "train-00000.bin", np.int32, "r+")
    ids[:-1] = 1_000_000
    ids.flush()
    with pytest.raises(FormatError, match="not in types.txt"):
        distill(tiny, tmp_path / "corpus", ALL)


@pytest.mark.parametrize("suffix", ["bin", "vec", "txt"])
def test_the_command_writes_a_file_that_gensim_reads(corpus, tiny, tmp_path, suffix):
    tiny.save(tmp_path / "model")
    output = tmp_path / f"static.{suffix}"
    command = ["vectors", "distill", str(tmp_path / "model"), str(corpus), "-o", str(output), "-q"]
    assert main([*command, "--layers", "1", "--vocab-size", "30", "--occurrences", "4", "--min-count", "2"]) == 0
    settings = DistillSettings(occurrences=4, vocab_size=30, min_count=2)
    assert np.array_equal(StaticVectors.load(output).matrix, distill(tiny, corpus, settings, layers=1).matrix)
    keyed = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(output, binary=suffix == "bin")
    assert keyed.index_to_key == list(StaticVectors.load(output).words)


def test_the_command_reads_a_text_with_the_language_of_the_model(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    (tmp_path / "text.txt").write_text("The bank. The river.\n" * 5)
    command = ["vectors", "distill", str(tmp_path / "model"), str(tmp_path / "text.txt"), "--min-count", "1", "-q"]
    assert main([*command, "-o", str(tmp_path / "static.vec"), "--language", "en"]) == 0
    assert set(StaticVectors.load(tmp_path / "static.vec").words) == {"The", "bank", "river", "."}
    assert main([*command, "-o", str(tmp_path / "none.bin"), "--layers", "all"]) == 1
    assert not (tmp_path / "none.bin").exists()
