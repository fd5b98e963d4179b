"""Coreference end to end on a few documents: trained, saved, scored, and asked about raw text."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyelmo.cli import main
from pyelmo.errors import ConfigError, OutputError
from pyelmo.recipes import read_settings
from pyelmo.tasks import load
from pyelmo.tasks.coref import task as coref
from pyelmo.tasks.coref.task import CorefNetworkSettings, CorefRecipe, DocumentMetadata
from pyelmo.tasks.harness.run import RunSettings, train_run
from pyelmo.tasks.harness.task import Example, find_task

PEOPLE = [("Ann", "she"), ("Bob", "he"), ("Sue", "she"), ("Max", "he")]
SMALL = [
    "training.epochs=25", "training.lr=0.01", "training.patience=25", "words.dim=8", "words.min_count=1", "network.hidden=8",
    "network.scorer=16", "network.feature=4", "network.characters=4", "network.width=2", "network.ratio=1.0",
    "network.dropout=0.0", "network.input_dropout=0.0", "data.format=ontogum",
]  # fmt: skip


def document(name: str, pronoun: str, place: int) -> str:
    """A name, and the pronoun that means it in the next sentence."""
    words = [(name, f"({place})"), ("ran", "_"), (".", "_"), (pronoun.title(), f"({place})"), ("sat", "_"), (".", "_")]
    lines = [f"{number}\t{word}\t{mark}" for number, (word, mark) in enumerate(words)]
    return "# begin document\n" + "\n".join(lines) + "\n# end document\n"


@pytest.fixture(scope="session")
def coref_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents, and a list of their names."""
    folder = tmp_path_factory.mktemp("coref")
    (folder / "docs").mkdir()
    for place, person in enumerate(PEOPLE, 1):
        (folder / "docs" / f"GUM_{'fiction' if place < 3 else 'news'}_{place}.conll").write_text(
            document(*person, place)
        )
    (folder / "part.ids").write_text("GUM_fiction_2\nGUM_news_4\n")
    return folder


def plan(folder: Path, *changes: str, **options: object) -> RunSettings:
    recipe = read_settings(CorefRecipe, "coref", [*SMALL, f"data.folder={folder / 'docs'}", *changes], group="task")
    return RunSettings(task="coref", data=[folder / "docs", folder / "part.ids"], recipe=recipe, **options)


@pytest.mark.parametrize("where", [None, "input", "output", "both"])
def test_documents_are_learnt_scored_and_found_in_raw_text(coref_data, ner_data, tmp_path, where):
    changes = [f"elmo.where={where}"] if where else []
    made = plan(coref_data, *changes, encoder=str(ner_data / "LM") if where else None)
    (result,) = train_run(made, tmp_path / "run")
    assert result["dev"]["mean"] == result["dev"]["score"] == 100
    assert result["dev"]["b3_r_den"] == 4
    model = load(tmp_path / "run")
    assert model.vocabularies["genres"] == ("fiction", "news")
    assert model.evaluate(coref_data / "docs").figures == pytest.approx(
        {"mean": 100, "muc": 100, "b3": 100, "ceafe": 100}
    )
    (examples,) = model.predict(["Ann ran. She sat."])
    assert model.task.format(examples) == "[1 Ann] ran .\n[1 She] sat .\n1: Ann | She"
    facts = examples[0].to_json()
    assert facts["sentences"] == (("Ann", "ran", "."), ("She", "sat", "."))
    assert facts["clusters"] == (((0, 1), (3, 4)),)
    [[ann, she]] = examples[0].clusters
    assert [(ann.text, ann.start, ann.end), (she.text, she.start, she.end)] == [("Ann", 0, 3), ("She", 9, 12)]
    assert (ann.antecedent, she.antecedent, she.words) == (None, 0, (3, 4))
    assert 0 < she.probability <= 1
    ([same],) = model.predict([["Ann", "ran", ".", "She", "sat", "."]])
    assert (same.labels, same.clusters[0][1].start) == (examples[0].labels, 10)  # spaces join the words


def test_the_command_trains_evaluates_and_shows_clusters(coref_data, tmp_path, capsys):
    run, docs = str(tmp_path / "run"), str(coref_data / "docs")
    changes = [word for change in SMALL for word in ("--set", change)]
    main(["task", "train", "coref", "--data", docs, docs, docs, "--encoder", "none", "-o", run, "--seeds", "1", "-q", *changes])  # fmt: skip
    assert "test mean F1 of MUC, B3 and CEAF 100.00" in capsys.readouterr().out
    lines = (tmp_path / "run" / "seed-1" / "answers-test.jsonl").read_text().splitlines()
    answer = json.loads(lines[0])
    assert [json.loads(line)["unit"] for line in lines] == list(range(len(lines)))  # a document each
    assert answer["wanted"] == answer["given"] == [[[0, 1], [3, 4]]]
    main(["task", "evaluate", run, docs, "-q"])
    assert "muc 100.00, b3 100.00, ceafe 100.00, mean 100.00" in capsys.readouterr().out
    (tmp_path / "text.txt").write_text("Bob ran.\nHe sat.\n")
    main(["task", "predict", run, "--document", str(tmp_path / "text.txt")])
    assert capsys.readouterr().out == "[1 Bob] ran .\n[1 He] sat .\n1: Bob | He\n"
    main(["task", "predict", run, "Bob ran. He sat.", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)["answers"]
    assert shown["clusters"] == [[[0, 1], [3, 4]]]
    main(["task", "table", run, run, "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["score"] for row in rows] == [100, 100]
    assert [row["resampled"] for row in rows] == ["", f"{len(lines)} documents; 1 and 1 seeds"]


def test_another_document_in_a_folder_is_another_run(coref_data, tmp_path):
    docs = shutil.copytree(coref_data / "docs", tmp_path / "docs")
    names = shutil.copy(coref_data / "part.ids", tmp_path / "part.ids")
    made = replace(plan(coref_data, "training.epochs=1", f"data.folder={docs}"), data=[docs, names])
    first = train_run(made, tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())["data"]
    assert (facts["train"]["file"], facts["dev"]["file"]) == ("docs", "part.ids")
    assert train_run(made, tmp_path / "run") == first
    (docs / "GUM_news_4.conll").write_text(document("Tim", "he", 4))
    with pytest.raises(OutputError, match="holds a run with another data"):
        train_run(made, tmp_path / "run")


def test_a_long_document_is_cut_to_a_few_sentences_and_their_clusters():
    texts = tuple((f"a{n}", f"b{n}", f"c{n}") for n in range(6))
    clusters = (((0, 1), (4, 6), (16, 18)), ((3, 4), (9, 10)), ((7, 8), (10, 11)))
    example = Example(texts, clusters, DocumentMetadata(tuple(f"s{n // 3}" for n in range(18)), "news"))
    recipe = CorefRecipe(network=CorefNetworkSettings(sentences=3))
    seen = set()
    for seed in range(20):
        cropped = coref.crop(example, recipe, np.random.default_rng(seed))
        begin = texts.index(cropped.texts[0])
        seen.add(begin)
        assert cropped.texts == texts[begin : begin + 3]
        assert cropped.metadata == DocumentMetadata(tuple(f"s{begin + n // 3}" for n in range(9)), "news")
        words = [word for text in cropped.texts for word in text]
        kept = [[words[start:end] for start, end in cluster] for cluster in cropped.labels]
        everything = [word for text in texts for word in text]
        whole = [
            [everything[start:end] for start, end in cluster if 3 * begin <= start and end <= 3 * begin + 9]
            for cluster in clusters
        ]
        assert kept == [cluster for cluster in whole if len(cluster) > 1]
    assert seen == {0, 1, 2, 3}
    assert coref.crop(example, CorefRecipe(), np.random.default_rng(0)) is example


def test_clusters_of_one_mention_are_scored_on_request(tmp_path):
    path = tmp_path / "one.conll"
    path.write_text("# begin document\n0\tAnn\t(1)\n1\tsat\t_\n2\tshe\t(1)\n3\tit\t(2)\n# end document\n")
    data = (
        find_task("coref").recipe(data=coref.CorefDataSettings(language="en", format="ontogum", singletons=True)).data
    )
    assert coref.read(path, data, False)[0].labels == (((0, 1), (2, 3)), ((3, 4),))
    assert coref.read(path, coref.CorefDataSettings(language="en", format="ontogum"), False)[0].labels == (
        ((0, 1), (2, 3)),
    )


def test_mentions_within_mentions_are_shown_by_brackets_within_brackets():
    example = Example((("his", "mother", "left"), ("She", "ran")), (((0, 1), (4, 5)), ((0, 2), (3, 4))))
    assert (
        coref.format_answers([example]) == "[2 [1 his] mother] left\n[2 She] [1 ran]\n1: his | ran\n2: his mother | She"
    )


def test_a_size_of_zero_is_an_error():
    with pytest.raises(ConfigError, match="network.width: 0 must be positive"):
        CorefNetworkSettings(width=0)
