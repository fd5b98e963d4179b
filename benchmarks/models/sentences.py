"""Similarity of sentences: the cosine of sentence vectors against the judgement of people, Spearman x 100.

    python benchmarks/models/sentences.py MODEL --data DIR --choose CORPUS [-o FILE]             # dev sets only
    python benchmarks/models/sentences.py MODEL --data DIR --split test [--glove FILE] [--transformer FOLDER] [-o FILE]

DIR contains the data sets, at any depth, of which those in the model's language are used: sts-dev.csv and sts-test.csv
(STS Benchmark), SICK_trial.txt and SICK_test_annotated.txt, sts-dev.tsv and sts-test.tsv (KorSTS), and
klue-sts-v1.1_dev.json (its test set is not published).

--choose compares smoothings and numbers of common directions of a sentence form made from a prepared corpus. Else the
rows are the default of `Embedder.encode` and the means of the layers; with --glove also the mean of these vectors, with
the model's weights of words, and with as many of their own directions damped; with --transformer also a model of
sentence-transformers. A sentence without a known word has cosine 0 with every other.

Each run adds its rows, with command, machine and commit, to FILE. A table in Markdown goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import pyelmo
from pyelmo.embed.sentence import corpus_counts, make_form
from pyelmo.files import write_text
from pyelmo.formats.sentence import SentenceForm, common_directions
from pyelmo.provenance import machine, plain_command
from pyelmo.vectors.evaluate import spearman
from pyelmo.vectors.static import StaticVectors, unit_vectors

Pairs = tuple[list[float], list[str]]  # the judgements, and the sentences: first, second, first, second, ...
# For each split and language: the file, and which fields have the score and both sentences.
FILES: dict[str, dict[str, dict[str, tuple[str, tuple[Any, Any, Any]]]]] = {
    "dev": {
        "en": {"STS-B": ("sts-dev.csv", (4, 5, 6)), "SICK": ("SICK_trial.txt", (3, 1, 2))},
        "ko": {"KorSTS": ("sts-dev.tsv", (4, 5, 6)), "KLUE-STS": ("klue-sts-v1.1_dev.json", ())},
    },
    "test": {
        "en": {"STS-B": ("sts-test.csv", (4, 5, 6)), "SICK": ("SICK_test_annotated.txt", (3, 1, 2))},
        "ko": {"KorSTS": ("sts-test.tsv", (4, 5, 6))},
    },
}
SMOOTHINGS = (0.01, 0.003, 0.001, 0.0003, 0.0001)
DIRECTIONS = (0, 1, 16, 64, 128)


def read_pairs(path: Path, fields: tuple[Any, ...]) -> Pairs:
    """Read a data set. Lines whose score is not a number are headers."""
    if path.suffix == ".json":
        rows = json.loads(path.read_text("utf-8"))
        triples = [(row["labels"]["real-label"], row["sentence1"], row["sentence2"]) for row in rows]
    else:
        lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        score, first, second = fields
        triples = [(row[score], row[first], row[second]) for row in lines if row[score].replace(".", "").isdigit()]
    sentences = [sentence for _, *both in triples for sentence in both]
    return [float(score) for score, *_ in triples], sentences


def read_sets(folder: Path, language: str, split: str) -> dict[str, Pairs]:
    sets = {}
    for name, (file, fields) in FILES[split][language].items():
        paths = sorted(folder.rglob(file))
        if not paths:
            sys.exit(f"{folder}: {file} is missing")
        sets[name] = read_pairs(paths[0], fields)
    return sets


def correlation(vectors: Iterable[np.ndarray], scores: list[float], digits: int | None = 2) -> float:
    """Return Spearman's correlation of cosines and scores, x 100; the sentences of a pair follow each other.

    It is rounded to `digits` after the point, if there are any.
    """
    units = unit_vectors(np.nan_to_num(np.stack(list(vectors))))
    cosines = (units[::2] * units[1::2]).sum(1, dtype=np.float64)
    percent = 100 * (spearman(cosines, np.array(scores)) or 0.0)
    return percent if digits is None else round(percent, digits)


def form_vectors(model: pyelmo.Embedder, form: SentenceForm, sentences: list[str]) -> list[np.ndarray]:
    table = model.word_table()
    return [form.pool(words, table.vectors(words)) for words in map(model.tokenise, sentences)]


def static_vectors(vectors: StaticVectors, words: list[str], form: SentenceForm) -> np.ndarray:
    """Return the vector of the known words by a form."""
    pairs = [(word, vector) for word in words if (vector := vectors.vector(word)) is not None]
    known = np.array([vector for _, vector in pairs], np.float32).reshape(len(pairs), vectors.dim)
    return form.pool([word for word, _ in pairs], known)


def choose(model: pyelmo.Embedder, sets: dict[str, Pairs], corpora: list[str]) -> dict[str, dict[str, float]]:
    counts, rows = corpus_counts(corpora, model.language), {}
    for directions in DIRECTIONS:
        for smoothing in SMOOTHINGS:
            form = make_form(model.word_table(), counts, smoothing=smoothing, directions=directions)
            rows[f"smoothing {smoothing}, {directions} directions"] = {
                name: correlation(form_vectors(model, form, sentences), scores)
                for name, (scores, sentences) in sets.items()
            }
    return rows


def compare(
    model: pyelmo.Embedder, sets: dict[str, Pairs], glove: str | None, transformer: str | None
) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for name, (scores, texts) in sets.items():
        layers = np.stack(model.embed(texts, pooling="mean"))  # (sentences, L, D)
        ways = {
            "default of encode": model.encode(texts),
            "mean of the token layer": layers[:, 0],
            "mean of the top layer": layers[:, -1],
            "mean of all layers": layers.mean(1),
        }
        for way, vectors in ways.items():
            rows.setdefault(way, {})[name] = correlation(vectors, scores)
    if glove is not None:
        static = StaticVectors.load(glove, lower_unknown=True)
        own = model.pretrained.sentence
        assert own is not None
        none, common = common_directions(static.matrix[:20_000], 0), common_directions(static.matrix[:20_000], 64)
        forms = {
            "GloVe, mean": SentenceForm({}, none),
            "GloVe, weighted": SentenceForm(own.weights, none),
            "GloVe, weighted, 64 directions damped": SentenceForm(own.weights, common),
        }
        for way, form in forms.items():
            rows[way] = {
                name: correlation([static_vectors(static, model.tokenise(text), form) for text in texts], scores)
                for name, (scores, texts) in sets.items()
            }
    if transformer is not None:
        from sentence_transformers import SentenceTransformer

        other = SentenceTransformer(transformer, device="cpu")
        rows[Path(transformer).name] = {
            name: correlation(other.encode(texts), scores) for name, (scores, texts) in sets.items()
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="bundled model or folder")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--choose", nargs="+", metavar="CORPUS", help="compare sentence forms from prepared corpora")
    parser.add_argument("--glove", help="file of static vectors")
    parser.add_argument("--transformer", metavar="FOLDER", help="folder of a model of sentence-transformers")
    parser.add_argument("--name", help="name of the rows in FILE (default: the model's)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.choose and args.split == "test":
        parser.error("--choose is for dev sets: a choice made on a test set would flatter it")
    model = pyelmo.load(args.model, threads=1)
    sets = read_sets(args.data, model.language.split("-")[0], args.split)
    rows = choose(model, sets, args.choose) if args.choose else compare(model, sets, args.glove, args.transformer)
    name = f"{args.name or Path(args.model).name}, {'choice' if args.choose else args.split}"
    command = plain_command("python benchmarks/models/sentences.py", sys.argv[1:])
    result = {"pairs": {key: len(scores) for key, (scores, _) in sets.items()}, "spearman": rows}
    if args.output:
        old = json.loads(args.output.read_text("utf-8")) if args.output.exists() else {}
        old[name] = {**result, "command": command, "machine": machine()}
        write_text(args.output, json.dumps(old, ensure_ascii=False, indent=1) + "\n")
    print(f"| {name} | {' | '.join(sets)} |\n|---|{'---|' * len(sets)}")
    for way, figures in rows.items():
        print(f"| {way} | {' | '.join(f'{value:.1f}' for value in figures.values())} |")


if __name__ == "__main__":
    main()
