"""Measure neighbours in context: do they share the sense (Peters et al. 2018, table 4), and what does an index cost?

    python benchmarks/speed/neighbours.py senses en --semcor DIR -o benchmarks/results/neighbours.json
    python benchmarks/speed/neighbours.py size -o (the same file)
    python benchmarks/speed/neighbours.py recall INDEX -o (the same file)

senses  "play" in SemCor: the share of the 10 nearest occurrences that have the same sense, in sport and in theatre, by
        layer; and the neighbours of the paper's two sentences in an index of SemCor.
size    indexes of random vectors (a centre for each word, words by Zipf's law, a context of 64 dimensions, noise) for a
        quarter of the occurrences and for all: size on disk, seconds and peak memory of the build, time to open and
        to query, and the recall of the 10 nearest in comparison with exact search.
recall  the recall on the real vectors of an index that `elmo neighbours build --exact` wrote.

Every figure is saved with its command, machine and commit. OMP_NUM_THREADS sets the number of threads.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import pyelmo
from pyelmo import neighbours
from pyelmo.arrays import Float32Array
from pyelmo.errors import PyelmoError
from pyelmo.files import atomic_path
from pyelmo.neighbours import vector_index
from pyelmo.neighbours.build import IndexedSentence, write
from pyelmo.neighbours.senses import PLAY, PLAY_NOUNS, senses_of_neighbours
from pyelmo.probes.wsd_data import read_senses
from pyelmo.provenance import machine
from pyelmo.text.tokens import TokenSpan
from pyelmo.vectors.static import unit_vectors

# The sentences of table 4: the query, and the neighbour that the paper prints. All four are in SemCor.
TABLE = {
    "sport": ("Chico Ruiz made a spectacular play on", "Kieffer , the only junior in the group"),
    "theatre": (
        "Olivia De Havilland signed to do a Broadway play",
        "that they were actors who had been handed fat roles",
    ),
}
FORMS = ("play", "plays", "played", "playing")
# The random text: different words, dimensions of a context, words in a sentence.
WORDS, CONTEXT, LENGTH = 5000, 64, 20
NEAREST = 10


# --- senses --------------------------------------------------------------------------------------------------------


def find_senses(args: argparse.Namespace) -> dict[str, Any]:
    sentences = read_senses(args.semcor)
    model = pyelmo.load(args.model, precision=args.precision, language="en")
    groups = {"nouns": PLAY_NOUNS, "nouns and verbs": PLAY}
    shares = {name: asdict(senses_of_neighbours(model.stream, sentences, senses)) for name, senses in groups.items()}
    return {"shares": shares, "table 4": find_table(args, [" ".join(sentence.words) for sentence in sentences])}


def find_table(args: argparse.Namespace, lines: list[str]) -> dict[str, Any]:
    """Return the neighbours of the paper's sentences in an index of SemCor, and the rank of the paper's neighbour."""
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "semcor.txt").write_text("\n".join(lines), "utf-8")
        index = neighbours.build(
            [Path(folder) / "semcor.txt"], Path(folder) / "index", model=args.model, language="en", words=FORMS,
            layer=args.layer, tokenised=True, precision=args.precision,
        )  # fmt: skip
        model = index.load_model()
        for name, (asked, printed) in TABLE.items():
            sentence = next(line for line in lines if asked in line)
            near = [
                other
                for other in index.query(model, sentence, word="play", count=len(index))
                if other.sentence != sentence
            ]
            rank = next(rank for rank, other in enumerate(near, 1) if printed in other.sentence)
            nearest = [{"cosine": round(other.cosine, 4), "sentence": other.marked} for other in near[:NEAREST]]
            table[name] = {"query": sentence, "nearest": nearest, "rank of the paper's": rank, "of": len(near)}
    return table


# --- size ----------------------------------------------------------------------------------------------------------


class RandomText:
    """Sentences of random words with vectors, reproducible by the seed."""

    def __init__(self, dim: int, seed: int) -> None:
        fixed, self.random = np.random.default_rng(0), np.random.default_rng(seed)
        self.centres = fixed.standard_normal((WORDS, dim), dtype=np.float32)
        self.contexts = fixed.standard_normal((CONTEXT, dim), dtype=np.float32) / np.float32(np.sqrt(CONTEXT))
        shares = 1 / np.arange(1, WORDS + 1)
        self.shares = shares / shares.sum()

    def blocks(self, count: int) -> Iterator[tuple[np.ndarray, Float32Array]]:
        """Return blocks of words (N,) and unit vectors (N, D)."""
        for start in range(0, count, 500 * LENGTH):
            rows = min(500 * LENGTH, count - start)
            words = self.random.choice(WORDS, rows, p=self.shares)
            vectors = self.centres[words]
            vectors += self.random.standard_normal((rows, CONTEXT), dtype=np.float32) @ self.contexts
            vectors += 0.2 * self.random.standard_normal(vectors.shape, dtype=np.float32)
            yield words, unit_vectors(vectors)

    def sentences(self, count: int) -> Iterator[tuple[IndexedSentence, Float32Array]]:
        line = 0
        for words, vectors in self.blocks(count):
            for start in range(0, len(words), LENGTH):
                spans, end = [], 0
                for number in words[start : start + LENGTH].tolist():
                    spans.append(TokenSpan(f"w{number}", end, end + 1 + len(str(number))))
                    end = spans[-1].end + 1
                line += 1
                text = " ".join(span.word for span in spans)
                yield (
                    IndexedSentence(text, spans, list(range(len(spans))), 0, line),
                    vectors[start : start + LENGTH],
                )


def find_size(args: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = {
        "dim": args.dim,
        "threads": threads(),
        "probes": vector_index.PROBES,
        "centres": vector_index.CENTROIDS,
    }
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for count in (args.occurrences // 4, args.occurrences):
            path = Path(folder) / str(count)
            facts = alone(build_random, path, count, args.dim)
            facts |= alone(query_random, path, args.dim, args.queries, count)
            results[f"{count:,} occurrences"] = facts
            print(json.dumps(facts), file=sys.stderr)
    return results


def build_random(path: Path, count: int, dim: int) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    facts = {"words": "all", "inputs": ["random"]}
    index = write(RandomText(dim, seed=1).sentences(count), path, dim=dim, facts=facts)
    return {
        "kind": index.manifest["kind"], "gigabytes": sum(file.stat().st_size for file in path.iterdir()) / 1e9,
        "build_seconds": time.perf_counter() - start, "build_cpu_seconds": time.process_time() - cpu,
        "build_peak_gb": peak_gb(),
    }  # fmt: skip


def query_random(path: Path, dim: int, queries: int, count: int) -> dict[str, Any]:
    words, asked = next(RandomText(dim, seed=2).blocks(queries))
    facts = {}
    for name, verify in (("open_seconds", True), ("open_quick_seconds", False)):
        start = time.perf_counter()
        index = neighbours.Index(path, verify=verify)
        facts[name] = time.perf_counter() - start
    index.nearest(asked[0])  # the first query loads the mapped pages
    facts |= milliseconds(
        "query", [lambda vector=vector: index.nearest(vector, count=NEAREST) for vector in asked[:1000]]
    )
    pairs = [(vector, word) for vector, word in zip(asked, words.tolist(), strict=True) if word < 100][:100]
    acts = [lambda v=vector, w=word: index.nearest(v, count=NEAREST, word=f"w{w}") for vector, word in pairs]
    facts |= milliseconds("same_word", acts)
    facts["query_peak_gb"] = peak_gb()
    best = Best(asked, NEAREST)
    for _, vectors in RandomText(dim, seed=1).blocks(count):
        best.add(vectors)
    return facts | {"queries": len(asked), "recall_at_10": recall(index._search, asked, best.rows)}


# --- recall --------------------------------------------------------------------------------------------------------


def find_recall(args: argparse.Namespace) -> dict[str, Any]:
    index = neighbours.Index(args.index, verify=False)
    count, dim = len(index), index.manifest["dim"]
    if index.manifest["kind"] != "exact":
        sys.exit(f"{args.index}: the index is not exact. Build it with --exact.")
    stored = np.memmap(args.index / vector_index.VECTORS, dtype="<f4", mode="r", shape=(count, dim))
    chosen = np.sort(np.random.default_rng(0).choice(count, min(args.queries, count), replace=False))
    asked = np.asarray(stored[chosen])
    best = Best(asked, NEAREST + 1)  # the nearest is the occurrence itself
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        writer = vector_index.VectorWriter(Path(folder), dim)
        for start in range(0, count, vector_index.BLOCK):
            block = np.asarray(stored[start : start + vector_index.BLOCK])
            best.add(block)
            writer.add(block)
        vector_index.EXACT_AT_MOST = 0
        writer.finish()
        search = vector_index.ListSearch(Path(folder), count, dim)
        times = milliseconds(
            "query", [lambda vector=vector: search.nearest(vector, NEAREST) for vector in asked[:1000]]
        )
        share = (recall(search, asked, best.rows) * (NEAREST + 1) - 1) / NEAREST
    model = index.manifest["model"]
    return {
        "model": Path(model["name"]).name, "model_sha256": model["sha256"], "layer": index.manifest["layer"],
        "occurrences": count, "dim": dim, "queries": len(asked), "recall_at_10": share, "threads": threads(),
        "probes": vector_index.PROBES, "centres": vector_index.CENTROIDS, **times,
    }  # fmt: skip


class Best:
    """The rows nearest to each query by exact search, over all vectors that were added."""

    def __init__(self, queries: Float32Array, count: int) -> None:
        self.queries, self.count, self.seen = queries, count, 0
        self.cosines = np.full((len(queries), 0), -np.inf, dtype=np.float32)
        self.rows = np.zeros((len(queries), 0), dtype=np.int64)

    def add(self, vectors: Float32Array) -> None:
        faiss = vector_index.import_faiss()
        near, positions = faiss.knn(self.queries, vectors, self.count, metric=faiss.METRIC_INNER_PRODUCT)
        cosines = np.concatenate([self.cosines, near], axis=1)
        rows = np.concatenate([self.rows, positions + self.seen], axis=1)
        order = np.argsort(-cosines, axis=1)[:, : self.count]
        self.cosines, self.rows = (np.take_along_axis(values, order, 1) for values in (cosines, rows))
        self.seen += len(vectors)


def recall(search: Any, queries: Float32Array, want: np.ndarray) -> float:
    """Return the share of the exact neighbours that the search finds."""
    count = want.shape[1]
    results = (search.nearest(query, count)[1] for query in queries)
    return sum(len(np.intersect1d(rows, wanted)) for rows, wanted in zip(results, want, strict=True)) / want.size


# --- the file ------------------------------------------------------------------------------------------------------


def alone(find: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a function in its own process, to measure its peak memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(find, *arguments).result()


def milliseconds(name: str, acts: list[Callable[[], object]]) -> dict[str, float]:
    """Return the median and the 99th percentile of wall time and of CPU time, which other processes do not change."""
    wall, cpu = [], []
    for act in acts:
        start, start_cpu = time.perf_counter(), time.process_time()
        act()
        wall.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - start_cpu))
    return {
        f"{name}_ms_median": float(np.median(wall)), f"{name}_ms_p99": float(np.quantile(wall, 0.99)),
        f"{name}_cpu_ms_median": float(np.median(cpu)), f"{name}_cpu_ms_p99": float(np.quantile(cpu, 0.99)),
    }  # fmt: skip


def peak_gb() -> float:
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024 / 1e9


def threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


def save(path: Path, key: str, figures: dict[str, Any]) -> None:
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    plain = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    versions = {"pyelmo": pyelmo.__version__, "numpy": np.__version__, "faiss": vector_index.import_faiss().__version__}
    command = " ".join(["python", "benchmarks/speed/neighbours.py", *plain])
    results[key] = {"result": rounded(figures), "command": command, "machine": {**machine(), **versions}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as draft:
        draft.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(results[key]["result"], indent=1, ensure_ascii=False))


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(inner) for inner in value]
    return round(float(value), 4) if isinstance(value, (float, np.floating)) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    senses = parts.add_parser("senses", help="measure the senses of neighbours in SemCor")
    senses.add_argument("model", metavar="MODEL", help="a folder, a file or the name of a bundled model")
    senses.add_argument("--semcor", type=Path, required=True, metavar="DIR", help="folder of SemCor 3.0")
    senses.add_argument("--precision", choices=("float32", "int8"), default="float32", help="default: float32")
    senses.add_argument("--layer", default="top", help="layer for the sentences of the paper (default: top)")
    size = parts.add_parser("size", help="measure the cost of an index of random vectors")
    size.add_argument("--occurrences", type=int, default=1_000_000, help="size of the larger index (default: 1000000)")
    size.add_argument("--dim", type=int, default=768, help="size of a vector (default: 768)")
    real = parts.add_parser("recall", help="measure the recall on real vectors")
    real.add_argument("index", type=Path, metavar="INDEX", help="an exact index")
    for part in (size, real):
        part.add_argument("--queries", type=int, default=10_000, help="number of queries (default: 10000)")
        part.add_argument("--folder", help="folder for temporary files: 5 GB for a million (default: the system's)")
    for part in (senses, size, real):
        part.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.json", help="file for the results")
    args = parser.parse_args()
    try:
        figures = {"senses": find_senses, "size": find_size, "recall": find_recall}[args.part](args)
    except PyelmoError as error:
        sys.exit(str(error))
    save(args.output, args.part, figures)


if __name__ == "__main__":
    main()
