"""Static vectors from ELMo beside word2vec of the same text: analogies and similarity of words, layer by layer.

    elmo vectors train CORPUS -o word2vec.bin --dim 200 --window 10 --sample 1e-5 --epochs 5
    python benchmarks/models/static_from_elmo.py MODEL CORPUS --tests DIR --means FILE --vectors word2vec.bin [-o FILE]

CORPUS is a folder that `elmo prepare` wrote. DIR has questions-words.txt (Google's analogies), wordsim353.tsv and
simlex999.txt, at any depth. The model reads each sentence once, in int8; the vectors of all layers are kept in the file
of --means, and read from there if it exists. The rows are the layers and their average, as `elmo vectors distill`
writes them, and the files of --vectors, all for the same words. A table in Markdown goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import pyelmo
from pyelmo.files import write_text
from pyelmo.provenance import machine, plain_command
from pyelmo.vectors import evaluate
from pyelmo.vectors.distill import DistillSettings, mean_vectors
from pyelmo.vectors.static import StaticVectors

TESTS = {"analogies": "questions-words.txt", "wordsim": "wordsim353.tsv", "simlex": "simlex999.txt"}
COLUMNS = ("semantic", "syntactic", "analogies", "wordsim", "simlex")


def find_tests(folder: Path) -> dict[str, Path]:
    tests = {}
    for name, file in TESTS.items():
        paths = sorted(folder.rglob(file))
        if not paths:
            sys.exit(f"{folder}: {file} is missing")
        tests[name] = paths[0]
    return tests


def scores(vectors: StaticVectors, tests: dict[str, Path]) -> dict[str, Any]:
    """Return accuracies of analogies in percent of the known questions, and correlations over known pairs x 100."""
    analogies = evaluate.analogies(vectors, evaluate.read_analogies(tests["analogies"]))
    row: dict[str, Any] = {
        "semantic": analogies.semantic.accuracy, "syntactic": analogies.syntactic.accuracy,
        "analogies": analogies.total.accuracy, "known_questions": analogies.total.known,
        "questions": analogies.total.questions,
    }  # fmt: skip
    for name in ("wordsim", "simlex"):
        result = evaluate.similarity(vectors, evaluate.read_pairs(tests[name]))
        row[name] = None if result.spearman_known is None else 100 * result.spearman_known
        row[f"{name}_known"] = result.known
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}


def restrict(vectors: StaticVectors, words: list[str]) -> StaticVectors:
    """Return the vectors of these words only; a word without a vector is left out."""
    known = [word for word in words if word in vectors.index]
    return StaticVectors(known, vectors.matrix[[vectors.index[word] for word in known]], name=vectors.name)


def compute(args: argparse.Namespace) -> None:
    """Write the mean vectors of all layers, and the CPU time that they took."""
    embedder = pyelmo.load(args.model, precision="int8", threads=1)
    settings = DistillSettings(occurrences=args.occurrences, vocab_size=args.vocab_size)
    start = time.process_time()
    words, means = mean_vectors(embedder, args.corpus, settings, progress=True)
    facts = {**vars(settings), "cpu_seconds": round(time.process_time() - start, 1), **machine()}
    np.savez(args.means, words=np.array(words), means=means, facts=json.dumps(facts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, nargs="*", default=[])
    parser.add_argument("--occurrences", type=int, default=10)
    parser.add_argument("--vocab-size", type=int, default=20_000)
    parser.add_argument("--means", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    tests = find_tests(args.tests)
    if not args.means.exists():
        compute(args)
    with np.load(args.means) as file:
        words, means = file["words"].tolist(), file["means"]  # (L, N, D)
        facts = json.loads(str(file["facts"]))
    matrices = {f"layer {number}": layer for number, layer in enumerate(means)} | {"average": means.mean(0)}
    rows = {name: scores(StaticVectors(words, matrix), tests) for name, matrix in matrices.items()}
    for path in args.vectors:
        rows[path.stem] = scores(restrict(StaticVectors.load(path), words), tests)
    print("| vectors | semantic | syntactic | all analogies | WordSim-353 | SimLex-999 |\n|---|---|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join("-" if row[key] is None else f"{row[key]:.1f}" for key in COLUMNS) + " |")
    if args.output:
        command = plain_command("python benchmarks/models/static_from_elmo.py", sys.argv[1:])
        report = {"command": command, "machine": machine(), "means": facts, "words": len(words), "rows": rows}
        write_text(args.output, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
