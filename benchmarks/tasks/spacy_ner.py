"""spaCy's NER on wikigold with its default hash embeddings, with these and static vectors, and with ELMo as tok2vec.

    python benchmarks/tasks/task_data.py PUBLISHED -o DATA --only wikigold
    python benchmarks/tasks/spacy_ner.py DATA --vectors glove.txt -o benchmarks/results/spacy_ner.json

All pipelines are trained by spaCy with the settings of `spacy init config --pipeline ner`, for 2,000 steps (21
epochs). ELMo's is examples/spacy_ner.cfg, which differs in the embedding only. A document is one sentence. The best
checkpoint on the dev set is scored on the test set, both by exact spans. An existing file is completed, so that runs
may be divided (`--only elmo --seeds 0`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.vectors import Vectors
from thinc.api import Config

from pyelmo.integrations.spacy import DocEncoder, shared_encoder
from pyelmo.provenance import machine, plain_command
from pyelmo.tasks.ner.data import read_labelled
from pyelmo.vectors.static import StaticVectors

ELMO = Path(__file__).parents[2] / "examples" / "spacy_ner.cfg"
PARTS = ("train", "dev", "test")
PIPELINES = ("default", "static", "elmo")


def write_docs(source: Path, target: Path) -> list[str]:
    """Write a labelled file as spaCy's documents, one per sentence; return the words."""
    vocab = spacy.blank("en").vocab
    sentences = read_labelled(source, scheme="iob1")
    docs = [Doc(vocab, sentence.words, ents=sentence.labels) for sentence in sentences]
    DocBin(docs=docs).to_disk(target)
    return [token.text for doc in docs for token in doc]


def write_vectors(source: Path, words: set[str], target: Path) -> None:
    """Write the static vectors of these words as spaCy reads them: an empty pipeline that has them.

    A word without a vector has that of its lower case. (spaCy's own setting for that is lost when it saves a pipeline.)
    """
    vectors, nlp = StaticVectors.load(source, lower_unknown=True), spacy.blank("en")
    rows = {word: row for word in sorted(words) if (row := vectors.row(word)) is not None}
    data = vectors.matrix[list(rows.values())]
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=list(rows), name="static")
    nlp.to_disk(target)


def read_config(name: str, vectors: Path) -> Config:
    """Return the config of spaCy's own pipeline ("default", or "static" with vectors) or of that with ELMo ("elmo")."""
    if name == "elmo":
        return Config().from_disk(ELMO, interpolate=False)
    config = init_config(lang="en", pipeline=["ner"], optimize="efficiency", silent=True)
    if name == "static":
        config["paths"]["vectors"] = str(vectors)
        config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True
    return config


def embed_all(config: Config, data: Path) -> DocEncoder:
    """Return the encoder of a config, with all sentences in its cache: as long as it lives, the runs share it."""
    settings = config["components"]["tok2vec"]["model"]["embed"]
    encoder = shared_encoder(*(settings[name] for name in ("model", "precision", "device", "threads")))
    for part in PARTS:
        docs = [example.predicted for example in Corpus(data / f"{part}.spacy")(spacy.blank("en"))]
        encoder.embed_once(docs, store=True, room=settings["cache_mb"] * 2**20)
    return encoder


def run(config: Config, data: Path, seed: int, overrides: dict[str, Any]) -> dict[str, float]:
    """Train one pipeline, and return the scores of its best checkpoint."""
    paths = {"paths.train": str(data / "train.spacy"), "paths.dev": str(data / "dev.spacy")}
    settings = Config().from_str(config.to_str(), overrides={**paths, "system.seed": seed, **overrides})
    started = time.process_time()
    nlp = init_nlp(settings)
    with tempfile.TemporaryDirectory() as folder:
        train(nlp, Path(folder))
        seconds = time.process_time() - started
        best = spacy.load(Path(folder) / "model-best")
    scores = {"cpu_seconds": round(seconds, 1)}
    for part in ("dev", "test"):
        result = best.evaluate(Corpus(data / f"{part}.spacy")(best))
        scores |= {f"{part}_{name}": round(100 * result[f"ents_{name}"], 2) for name in ("p", "r", "f")}
    return scores


def complete(path: Path, name: str, seed: int, scores: dict[str, Any], facts: dict[str, Any]) -> None:
    """Add one run to the file, with the mean and the standard deviation over the seeds that it has."""
    report = json.loads(path.read_text("utf-8")) if path.is_file() else {"runs": {}}
    runs = report["runs"].setdefault(name, {})
    runs[str(seed)] = scores
    report |= facts
    report["mean and standard deviation"] = {
        name: {score: _mean(run[score] for run in runs.values()) for score in ("dev_f", "test_f", "cpu_seconds")}
        for name, runs in report["runs"].items()
    }
    path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def _mean(values: Iterable[float]) -> list[float]:
    values = list(values)
    return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with wikigold-train.conll, -dev and -test")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write or to complete")
    parser.add_argument("--vectors", type=Path, help="file of static vectors, without which `static` is left out")
    parser.add_argument("--only", choices=PIPELINES, help="pipeline to train (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds (default: 0 1 2)")
    parser.add_argument("--steps", type=int, default=2_000, help="largest number of steps (default: 2000)")
    args = parser.parse_args()
    if args.only == "static" and not args.vectors:
        parser.error("--only static needs --vectors")
    facts = {
        "machine": machine(), "spacy": spacy.__version__,
        "command": plain_command("python benchmarks/tasks/spacy_ner.py", sys.argv[1:]), "steps": args.steps,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        words = {part: write_docs(args.data / f"wikigold-{part}.conll", data / f"{part}.spacy") for part in PARTS}
        facts["words"] = {part: len(some) for part, some in words.items()}
        if args.vectors:
            write_vectors(args.vectors, set().union(*words.values()), data / "vectors")
        for name in [args.only] if args.only else [name for name in PIPELINES if name != "static" or args.vectors]:
            config = read_config(name, data / "vectors")
            encoder = embed_all(config, data) if name == "elmo" else None
            for seed in args.seeds:
                scores = run(config, data, seed, {"training.max_steps": args.steps})
                print(name, seed, scores, flush=True)
                complete(args.output, name, seed, scores, facts)
            del encoder


if __name__ == "__main__":
    main()
