"""spaCy's NER on wikigold with its default vectors (hash embeddings) and with ELMo as tok2vec.

    python benchmarks/tasks/task_data.py PUBLISHED -o DATA --only wikigold
    python benchmarks/tasks/spacy_ner.py DATA -o benchmarks/results/spacy_ner.json [--seeds 3]

Both pipelines are trained by spaCy with the settings of `spacy init config --pipeline ner`. ELMo's is
examples/spacy_ner.cfg, which differs in the vectors only. A document is one sentence; the best checkpoint on the dev
set is scored on the test set, both by exact spans.
"""

from __future__ import annotations

import argparse
import json
import statistics
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

from pyelmo.integrations.spacy import shared_encoder
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


def read_configs() -> dict[str, Config]:
    """Return the two configs to compare."""
    default = init_config(lang="en", pipeline=["ner"], optimize="efficiency", silent=True)
    return {"default": default, "elmo": Config().from_disk(ELMO, interpolate=False)}


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
    """Return the mean and the standard deviation over the seeds."""

    def both(name: str) -> list[float]:
        values = [run[name] for run in runs]
        return [round(statistics.mean(values), 2), round(statistics.stdev(values), 2) if len(values) > 1 else 0.0]

    return {name: both(name) for name in ("dev_f", "test_f", "cpu_seconds")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with wikigold-train.conll, -dev and -test")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default: 3)")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings to override, for tests")
    args = parser.parse_args()
    overrides = {name: json.loads(value) for name, _, value in (text.partition("=") for text in args.set)}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        words = {
            part: write_docs(args.data / f"wikigold-{part}.conll", Path(folder, f"{part}.spacy")) for part in PARTS
        }
        configs = read_configs()
        settings = configs["elmo"]["components"]["tok2vec"]["model"]["embed"]
        # Held here, so that the runs share one model and its cache of the training set.
        encoder = shared_encoder(*(settings[name] for name in ("model", "precision", "device", "threads")))
        for name, config in configs.items():
            own = {key: value for key, value in overrides.items() if name == "elmo" or "embed" not in key}
            runs = [run(config, Path(folder), seed, own) for seed in range(args.seeds)]
            results[name] = {**summary(runs), "seeds": runs}
            print(name, results[name], flush=True)
        del encoder
    default, elmo = results["default"]["test_f"][0], results["elmo"]["test_f"][0]
    report = {
        "machine": machine(), "command": plain_command("python benchmarks/tasks/spacy_ner.py", []),
        "spacy": spacy.__version__, "words": words, "results": results,
        "error_reduction": round(100 * (elmo - default) / (100 - default), 1),
    }  # fmt: skip
    args.output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
