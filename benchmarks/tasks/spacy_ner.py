"""spaCy's NER on wikigold with its default vectors (hash embeddings) and with ELMo as tok2vec.

    python benchmarks/tasks/task_data.py PUBLISHED -o DATA --only wikigold
    python benchmarks/tasks/spacy_ner.py DATA -o benchmarks/results/spacy_ner.json [--only elmo] [--seeds 3]

Both pipelines are trained by spaCy with the settings of `spacy init config --pipeline ner`. ELMo's is
examples/spacy_ner.cfg, which differs in the embedding only. A document is one sentence; the best checkpoint on the dev
set is scored on the test set, both by exact spans. With --only, the results of the other one stay in the file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from pyelmo.integrations.spacy import DocEncoder, shared_encoder
from pyelmo.provenance import machine, plain_command
from pyelmo.tasks.ner.data import read_labelled

ELMO = Path(__file__).parents[2] / "examples" / "spacy_ner.cfg"
PARTS = ("train", "dev", "test")


def write_docs(source: Path, target: Path) -> int:
    """Write a labelled file as spaCy's documents, one per sentence; return the number of words."""
    vocab = spacy.blank("en").vocab
    sentences = read_labelled(source, scheme="iob1")
    docs = [Doc(vocab, sentence.words, ents=sentence.labels) for sentence in sentences]
    DocBin(docs=docs).to_disk(target)
    return sum(map(len, docs))


def read_config(name: str) -> Config:
    """Return the config of spaCy's own pipeline ("default") or of the one with ELMo ("elmo")."""
    if name == "elmo":
        return Config().from_disk(ELMO, interpolate=False)
    return init_config(lang="en", pipeline=["ner"], optimize="efficiency", silent=True)


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


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return the mean and the standard deviation over the seeds, and the seeds."""

    def both(name: str) -> list[float]:
        values = [run[name] for run in runs]
        return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]

    return {**{name: both(name) for name in ("dev_f", "test_f", "cpu_seconds")}, "seeds": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with wikigold-train.conll, -dev and -test")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write or to complete")
    parser.add_argument("--only", choices=("default", "elmo"), help="pipeline to train (default: both)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--steps", type=int, default=20_000, help="largest number of steps (default: 20000)")
    args = parser.parse_args()
    facts = {"machine": machine(), "command": plain_command("python benchmarks/tasks/spacy_ner.py", sys.argv[1:])}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        words = {part: write_docs(args.data / f"wikigold-{part}.conll", data / f"{part}.spacy") for part in PARTS}
        for name in [args.only] if args.only else ["default", "elmo"]:
            config = read_config(name)
            encoder = embed_all(config, data) if name == "elmo" else None
            runs = []
            for seed in range(args.seeds):
                runs.append(run(config, data, seed, {"training.max_steps": args.steps}))
                print(name, seed, runs[-1], flush=True)
            results[name] = {**facts, **summary(runs)}
            del encoder
    before = json.loads(args.output.read_text("utf-8"))["results"] if args.only and args.output.is_file() else {}
    report = {"spacy": spacy.__version__, "words": words, "results": {**before, **results}}
    args.output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
