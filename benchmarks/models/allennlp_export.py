"""Export a model to AllenNLP, run it in AllenNLP 2.10.1, and compare its vectors with those of pyelmo.

    python benchmarks/models/allennlp_export.py MODEL --python PYTHON3.8 --text FILE [--sentences 200] [--json FILE]

PYTHON3.8 is the Python of an environment with allennlp==2.10.1 and lmdb==1.4.1. FILE is plain text with one paragraph
on each line. Both programs embed its first sentences in float32, each from a zero state: AllenNLP from the HDF5 file of
`elmo convert --to allennlp`, pyelmo from MODEL itself. The boundary tokens of AllenNLP are removed. Both read at most
50 symbols of a word.

L layers, N words, D vector.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import pyelmo
from pyelmo.errors import PyelmoError
from pyelmo.formats import resolve
from pyelmo.provenance import machine
from pyelmo.text.lines import numbered_lines
from pyelmo.text.tokens import split_sentences, split_words

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))  # benchmarks are scripts, not a package
from embed_cpu import Process

BATCH = 32  # sentences for each step of the progress bar
VERSION = "import importlib.metadata as facts; print(facts.version('allennlp'))"


def first_sentences(path: Path, language: str, count: int) -> list[list[str]]:
    sentences: list[list[str]] = []
    for _, line in numbered_lines(path):
        sentences += filter(None, (split_words(sentence, language) for sentence in split_sentences(line, language)))
        if len(sentences) >= count:
            return sentences[:count]
    sys.exit(f"{path}: {len(sentences)} sentences, expected at least {count}. Use a longer text.")


def allennlp_vectors(python: str, model: Path, sentences: list[list[str]]) -> Any:  # (L, N, D)
    process = Process(python, "allennlp", model)
    arrays = []
    for start in tqdm(range(0, len(sentences), BATCH), unit=" batches", desc="AllenNLP"):
        batch = sentences[start : start + BATCH]
        arrays.append(np.load(process.ask("vectors", sentences=batch, path=str(model / "vectors.npy"))))
    process.close()
    return np.concatenate(arrays, 1)


def compare(ours: Any, theirs: Any) -> list[dict[str, float]]:  # (L, N, D) both
    """Return for each layer the largest difference of a number and the lowest cosine of the two vectors of a word."""
    if ours.shape != theirs.shape:
        sys.exit(f"AllenNLP returned an array of shape {theirs.shape}, pyelmo one of shape {ours.shape}")
    layers = []
    for got, want in zip(ours.astype(np.float64), theirs.astype(np.float64), strict=True):
        cosines = (got * want).sum(1) / (np.linalg.norm(got, axis=1) * np.linalg.norm(want, axis=1))
        layers.append(
            {
                "largest_difference": float(np.abs(got - want).max()),
                "largest_value": float(np.abs(want).max()),
                "lowest_cosine": float(cosines.min()),
            }
        )
    return layers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="a folder, a file or the name of a bundled model")
    parser.add_argument("--python", required=True, help="the Python of the environment with AllenNLP")
    parser.add_argument("--text", type=Path, required=True, help="plain text with one paragraph on each line")
    parser.add_argument("--language", default="en", help="the rules that split text: en, ko, general (default: en)")
    parser.add_argument("--sentences", type=int, default=200, help="the number of sentences to compare (default: 200)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the results")
    args = parser.parse_args()

    try:
        sentences = first_sentences(args.text, args.language, args.sentences)
        with tempfile.TemporaryDirectory() as folder:
            resolve.write(resolve.read(args.model), Path(folder) / "model", format="allennlp")
            theirs = allennlp_vectors(args.python, Path(folder) / "model", sentences)
        ours = np.concatenate(pyelmo.load(args.model).embed(sentences, progress=True), 1)
    except PyelmoError as error:
        sys.exit(str(error))
    layers = compare(ours, theirs)
    version = subprocess.run([args.python, "-c", VERSION], capture_output=True, text=True, check=True).stdout.strip()
    result = {
        "machine": machine(), "model": Path(args.model).name, "text": args.text.name, "sentences": len(sentences),
        "words": ours.shape[1], "allennlp": version, "layers": layers,
    }  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    differences = ", ".join(f"{layer['largest_difference']:.1e}" for layer in layers)
    cosines = ", ".join(f"{layer['lowest_cosine']:.7f}" for layer in layers)
    print(
        f"{result['model']} in AllenNLP {version} and in pyelmo, {len(sentences)} sentences, {ours.shape[1]:,} words, "
        f"by layer: largest difference {differences}; lowest cosine {cosines}"
    )


if __name__ == "__main__":
    main()
