"""Checksums of what pyelmo computes, so that a change of the code alone can be shown to change no result.

    python benchmarks/unchanged.py -o before.json     # at the commit before
    python benchmarks/unchanged.py -o after.json      # at the commit after, on the same machine
    python benchmarks/unchanged.py --compare before.json after.json

The script uses only the command line and names that `pyelmo` exports. It makes its own text (words of the bundled
models' vocabularies in seeded random order), so it needs no data. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pyelmo
from pyelmo.provenance import machine

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SENTENCES, BULK_SENTENCES = 1000, 2000


def checksum(arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def sentences(language: str, count: int, seed: int) -> list[list[str]]:
    """Seeded random sentences of 1 to 40 words; frequent words of the model's vocabulary come more often."""
    vocab = Path(pyelmo.__file__).parent / "models" / language / "vocab.txt"
    words = vocab.read_text("utf-8").split("\n")[4:20_000]
    drawn = random.Random(seed)
    return [[words[int(len(words) * drawn.random() ** 3)] for _ in range(drawn.randint(1, 40))] for _ in range(count)]


def elmo(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "pyelmo", *map(str, arguments)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=one_thread)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def write_lines(path: Path, lines: Iterable[Sequence[str]]) -> Path:
    path.write_text("".join(" ".join(line) + "\n" for line in lines), "utf-8")
    return path


def tensors(path: Path) -> str:
    from safetensors.numpy import load_file

    weights = load_file(path)
    return checksum(weights[name] for name in sorted(weights))


def embeddings() -> dict[str, str]:
    """The bundled models, in both precisions, all layers."""
    results = {}
    for language in ("en", "ko"):
        given = sentences(language, SENTENCES, seed=1)
        for precision in ("float32", "int8"):
            model = pyelmo.load(language, precision=precision, threads=1)
            results[f"embed {language} {precision}"] = checksum(model.embed(given))
    return results


def _vocabulary(folder: Path, inputs: dict[str, list[list[str]]], temporary: Path) -> Path | None:
    """Word models of bilm-tf have no vocabulary beside them: the golden words, filled up to the model's size."""
    options = folder / "options.json"
    size = json.loads(options.read_text("utf-8")).get("n_tokens_vocab") if options.exists() else None
    if size is None:
        return None
    words = dict.fromkeys(word for batch in inputs.values() for sentence in batch for word in sentence if word)
    lines = ["<S>", "</S>", "<UNK>", *words, *(f"filler{number}" for number in range(size))][:size]
    path = temporary / "golden-vocab.txt"
    path.write_text("".join(f"{word}\n" for word in lines), "utf-8")
    return path


def golden_sets(temporary: Path) -> dict[str, str]:
    """Every model under tests/golden (and under PYELMO_GOLDEN, where that is set) on every golden sentence."""
    inputs = json.loads((GOLDEN / "allennlp-outputs" / "inputs.json").read_text("utf-8"))
    results = {}
    extra = os.environ.get("PYELMO_GOLDEN")
    models = sorted((GOLDEN / "allennlp-outputs" / "models").iterdir())
    models += [GOLDEN / "many-langs" / "model"]
    models += sorted(path for path in (GOLDEN / "bilm-tf-training").iterdir() if path.is_dir())
    if extra:
        folders = (Path(extra) / "allennlp-fixture", Path(extra) / "bilm-tf-fixture" / "model")
        models += [folder / "lm_weights.hdf5" for folder in folders]
    for folder in models:
        for source in [folder, folder / "weights.hdf5"]:
            if not source.exists():
                continue
            model = pyelmo.load(source, vocab=_vocabulary(folder, inputs, temporary), threads=1)
            layers = [model.embed(batch, keep_boundaries=True) for batch in inputs.values()]
            name = f"golden {folder.parent.name}/{folder.name}" + (" hdf5" if source != folder else "")
            results[name] = checksum(array for batch in layers for array in batch)
    return results


def pretraining(folder: Path) -> dict[str, str]:
    """50 seeded steps from text, the corpus made by `elmo prepare`, then the perplexity of the model."""
    text = write_lines(folder / "text.txt", sentences("en", 3000, seed=2))
    held_out = write_lines(folder / "held-out.txt", sentences("en", 100, seed=3))
    run, corpus = folder / "run", folder / "corpus"
    elmo("prepare", text, "-o", corpus, "--tokenised", "--vocab-size", "5000", "--valid", held_out, "--quiet")
    changes = ["--set", "training.words=64000", "--set", "training.batch=64", "--set", "training.warmup=5"]
    elmo("pretrain", corpus, "-o", run, "--recipe", "tiny-cpu", *changes, "--device", "cpu", "--quiet")
    perplexity = elmo("evaluate", run / "model", held_out, "--tokenised", "--json")
    return {
        "pretrain 50 steps: weights": tensors(run / "model" / "model.safetensors"),
        "pretrain 50 steps: perplexity": json.dumps(json.loads(perplexity), sort_keys=True),
    }


def evaluation(folder: Path) -> dict[str, str]:
    text = write_lines(folder / "evaluate.txt", sentences("en", 60, seed=4))
    figures = json.loads(elmo("evaluate", "en", text, "--tokenised", "--context", "sentence", "--json"))
    return {"evaluate en": json.dumps(figures, sort_keys=True)}


def names(folder: Path) -> dict[str, str]:
    """A seeded training of the names task with the bundled model."""
    drawn = random.Random(5)
    files = []
    for part, count in (("train", 120), ("dev", 40), ("test", 40)):
        lines = []
        for sentence in sentences("en", count, seed=100 + count + len(files)):
            for word in sentence[:12]:
                label = "B-PER" if word[:1].isupper() and drawn.random() < 0.7 else "O"
                lines.append(f"{word}\t{label}\n")
            lines.append("\n")
        path = folder / f"{part}.conll"
        path.write_text("".join(lines), "utf-8")
        files.append(path)
    run = folder / "ner"
    changes = ["--set", "training.epochs=3", "--set", "network.hidden=[20,10]"]
    elmo("task", "train", "ner", "--data", *files, "--encoder", "en", "-o", run, "--seeds", "2", *changes, "-q")
    scores = json.loads(elmo("task", "evaluate", run, files[2], "--json", "--quiet"))
    kept = [{name: value for name, value in each.items() if name not in ("model", "metric")} for each in scores]
    return {"names, 2 seeds": json.dumps(kept, sort_keys=True)}


def bulk(folder: Path) -> dict[str, str]:
    """A folder of parts by two workers: every row of every part."""
    import pyarrow.parquet as parquet

    text = write_lines(folder / "bulk.txt", sentences("en", BULK_SENTENCES, seed=6))
    output = folder / "vectors"
    arguments = ["--model", "en", "--precision", "int8", "--tokenised", "--layers", "top"]
    elmo("embed", text, "-o", f"{output}/", *arguments, "--workers", "2", "--part-sentences", "500", "--quiet")
    digest = hashlib.sha256()
    for part in sorted(output.rglob("*.parquet")):
        table = parquet.read_table(part)
        for column in table.column_names:
            digest.update(column.encode())
            for value in table[column].to_pylist():
                digest.update(json.dumps(value).encode())
    return {"bulk": digest.hexdigest()[:16]}


def round_trip(folder: Path) -> dict[str, str]:
    """The bundled model written in AllenNLP's format and read again."""
    elmo("convert", "en", folder / "allennlp", "--to", "allennlp")
    model = pyelmo.load(folder / "allennlp", threads=1)
    return {"AllenNLP round trip": checksum(model.embed(sentences("en", 100, seed=7)))}


def compare(before: Path, after: Path) -> None:
    old, new = (json.loads(path.read_text("utf-8"))["checksums"] for path in (before, after))
    different = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
    for name in sorted(old.keys() | new.keys()):
        print(f"{'DIFFERS' if name in different else 'equal  '} {name}")
    if different:
        raise SystemExit(f"{len(different)} of {len(old)} results differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="the JSON file to write")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    args = parser.parse_args()
    if args.compare:
        compare(*args.compare)
        return
    results: dict[str, Any] = embeddings()
    with tempfile.TemporaryDirectory() as name:
        for part in (golden_sets, pretraining, evaluation, names, bulk, round_trip):
            results |= part(Path(name))
    report = {"machine": machine(), "checksums": results}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    if args.output:
        args.output.write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
