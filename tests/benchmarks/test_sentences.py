"""benchmarks/models/sentences.py reads the data sets, and compares cosines with judgements."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support import make_embedder
from tokenizers import Tokenizer, models, pre_tokenizers

import pyelmo
from pyelmo.embed.sentence import make_form

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "models"))
import sentences

STSB = "genre\tfile\tyear\t1\t4.500\tA man plays\tA man is playing\ngenre\tfile\tyear\t2\t0.0\tA river\tOil prices\n"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tjudgement\n4\tA man plays\tA man\t3.6\tNEUTRAL\n"
KLUE = [{"labels": {"real-label": 4.8}, "sentence1": "친절 하다", "sentence2": "매우 친절 하다"}]


def test_every_data_set_is_read(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "sts-dev.csv").write_text(STSB, "utf-8")
    (tmp_path / "SICK_trial.txt").write_text(SICK, "utf-8")
    sets = sentences.read_sets(tmp_path, "en", "dev")
    assert sets["STS-B"] == ([4.5, 0.0], ["A man plays", "A man is playing", "A river", "Oil prices"])
    assert sets["SICK"] == ([3.6], ["A man plays", "A man"])
    with pytest.raises(SystemExit, match=r"sts-dev\.tsv is missing"):
        sentences.read_sets(tmp_path, "ko", "dev")
    (tmp_path / "sts-dev.tsv").write_text("genre\tfilename\tyear\tid\tscore\ts1\ts2\n" + STSB, "utf-8")
    (tmp_path / "klue-sts-v1.1_dev.json").write_text(json.dumps(KLUE), "utf-8")
    korean = sentences.read_sets(tmp_path, "ko", "dev")
    assert korean["KorSTS"] == sets["STS-B"]
    assert korean["KLUE-STS"] == ([4.8], ["친절 하다", "매우 친절 하다"])


def test_the_correlation_is_that_of_ranks():
    vectors = [np.array(vector, np.float32) for vector in ([1, 0], [1, 0.1], [1, 0], [1, 1], [1, 0], [0, 1])]
    assert sentences.correlation(vectors, [5.0, 3.0, 0.0]) == 100
    assert sentences.correlation(vectors, [0.0, 3.0, 5.0]) == -100


def test_the_rows_of_a_model_of_static_vectors_and_of_a_transformer(tmp_path):
    plain = make_embedder()
    form = make_form(plain.word_table(), Counter(["a", "a", "man"]), smoothing=0.001, directions=1)
    model = pyelmo.Embedder(replace(plain.pretrained, sentence=form), language="en")
    words = ("man", "plays", "river", "oil", "prices")
    rows = [" ".join([word, *(f"{(3 * place + k) % 7}.5" for k in range(4))]) for place, word in enumerate(words)]
    (tmp_path / "glove.txt").write_text("\n".join(rows) + "\n", "utf-8")
    sets = {"STS-B": ([4.5, 0.0], ["A man plays", "A man is playing", "A river", "Oil prices"])}
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "A": 1, "man": 2, "Oil": 3, "river": 4}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    one_number_per_word = StaticEmbedding(tokenizer, embedding_weights=np.eye(5, dtype=np.float32))
    SentenceTransformer(modules=[one_number_per_word]).save(str(tmp_path / "other"))
    rows_of_ways = sentences.compare(model, sets, str(tmp_path / "glove.txt"), str(tmp_path / "other"))
    assert next(iter(rows_of_ways)) == "default of encode"
    assert len(rows_of_ways) == 8
    assert rows_of_ways["other"] == {"STS-B": 100}
    assert all(value in (-100, 100) for row in rows_of_ways.values() for value in row.values())
