"""Similarity of sentences by mteb, offline, beside pyelmo's own evaluation of the same pairs (Spearman x 100).

    python benchmarks/models/mteb_sts.py en ko --data DIR [-o FILE]

mteb's own tasks (STSBenchmark, SICK-R, KorSTS) run on `SentenceTransformer(modules=[ElmoSentences(MODEL)])`, with the
pairs of the test files in DIR in place of the data sets on the Hub: sts-test.csv, SICK_test_annotated.txt, sts-test.tsv
(see sentences.py). SICK-R on the Hub has all pairs of SICK; here it has those of its test file.

The program ends with an error if a score differs from that of sentences.py by more than 0.001: mteb computes cosines
in float32, so that pairs with nearly the same cosine may change places.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mteb
from datasets import Dataset, DatasetDict
from mteb.tasks.sts.eng.sickr_sts import SickrSTS
from mteb.tasks.sts.eng.sts_benchmark_sts import STSBenchmarkSTS
from mteb.tasks.sts.kor.kor_sts import KorSTS
from sentence_transformers import SentenceTransformer
from sentences import Pairs, correlation, read_sets

import pyelmo
from pyelmo.files import write_text
from pyelmo.integrations.sentence_transformers import ElmoSentences
from pyelmo.provenance import machine, plain_command

TASKS = {"STS-B": STSBenchmarkSTS, "SICK": SickrSTS, "KorSTS": KorSTS}


def local_task(name: str, pairs: Pairs) -> Any:
    """Return a task of mteb with these pairs as its test set."""
    scores, sentences = pairs
    columns = {"sentence1": sentences[::2], "sentence2": sentences[1::2], "score": scores}
    task = TASKS[name]()
    task.dataset = {"default": DatasetDict({"test": Dataset.from_dict(columns)})}
    task.data_loaded = True
    return task


def mteb_score(model: pyelmo.Embedder, task: Any) -> float:
    """Return the Spearman correlation of cosines that mteb computes, x 100."""
    sentences = SentenceTransformer(modules=[ElmoSentences(model)], device="cpu")
    result = mteb.evaluate(sentences, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return 100 * float(result.task_results[0].scores["test"][0]["cosine_spearman"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="bundled models or folders")
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows: dict[str, Any] = {}
    for source in args.models:
        model = pyelmo.load(source, threads=1)
        for name, (scores, sentences) in read_sets(args.data, model.language.split("-")[0], "test").items():
            task = local_task(name, (scores, sentences))
            by_mteb, own = mteb_score(model, task), correlation(model.encode(sentences), scores, digits=None)
            rows[f"{source}, {task.metadata.name}"] = {"pairs": len(scores), "mteb": by_mteb, "pyelmo": own}
            print(f"{source}, {task.metadata.name}: mteb {by_mteb:.4f}, pyelmo {own:.4f}", flush=True)
            if abs(by_mteb - own) > 0.001:
                sys.exit("the two evaluations differ")
    if args.output:
        libraries = {name: version(name) for name in ("mteb", "sentence-transformers")}
        command = plain_command("python benchmarks/models/mteb_sts.py", sys.argv[1:])
        facts = {"spearman": rows, "command": command, "libraries": libraries, "machine": machine()}
        write_text(args.output, json.dumps(facts, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
