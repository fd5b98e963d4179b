"""How near int8 vectors are to float32 ones, and how fast int8 is beside another version of pyelmo.

    python benchmarks/models/int8.py MODEL... --text FILE... [--sentences 400] [--before SRC] [--rounds 15]

MODEL is a bundled model, a folder, or "small" or "original" for random weights. A line of FILE is a sentence of 3 to 60
words between spaces; the same number of lines is taken from each file. `--before` names the folder `src` of another
version, with its compiled library: both versions embed 64 sentences in int8 in turn, each in its own process on one
thread. A speed is the ratio of the least CPU times, then of the medians; on a shared machine the first is steadier.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

AT_ONCE = 64


def choose(files: list[Path], count: int) -> list[list[str]]:
    sentences: list[list[str]] = []
    for file in files:
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
        usable = [words for words in lines if 3 <= len(words) <= 60]
        sentences += random.Random(0).sample(usable, min(len(usable), count // len(files)))
    random.Random(0).shuffle(sentences)
    return sentences


def open_model(name: str, precision: str) -> Any:
    import pyelmo
    from pyelmo.embed.bench import random_model

    if name in ("small", "original"):
        return pyelmo.Embedder(random_model(name).pretrained, precision=precision, threads=1)
    return pyelmo.load(name, precision=precision, threads=1)


def show_cosines(name: str, sentences: list[list[str]]) -> None:
    import numpy as np

    want, got = (
        np.concatenate(open_model(name, precision).embed(sentences), 1).astype(np.float64)
        for precision in ("float32", "int8")
    )
    cosine = (want * got).sum(-1) / np.linalg.norm(want, axis=-1) / np.linalg.norm(got, axis=-1)  # (L, N)
    mean, lowest = (" ".join(f"{value:.5f}" for value in values) for values in (cosine.mean(1), cosine.min(1)))
    print(f"{name}: {cosine.shape[1]:,} words, cosine by layer: mean {mean}, lowest {lowest}", flush=True)


def serve(name: str, sentences: list[list[str]]) -> None:
    """For each line on stdin ("cold", "warm" or "one"), embed once and print the CPU seconds."""
    embedder = open_model(name, "int8")
    embedder.embed(sentences)
    one = max(sentences, key=len)[:20]
    for line in sys.stdin:
        if line.strip() == "cold":
            embedder.word_table().clear()
        start = time.process_time()
        for _ in range(5 if line.strip() == "one" else 1):
            embedder.embed([one] if line.strip() == "one" else sentences)
        print(time.process_time() - start, flush=True)


def show_speeds(name: str, args: argparse.Namespace) -> None:
    sources = {"before": args.before, "now": Path(__file__).parents[2] / "src"}
    command = [sys.executable, __file__, name, "--serve", "--text", *map(str, args.text)]
    running = {
        version: subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"},
        )
        for version, source in sources.items()
    }  # fmt: skip
    for state in ("cold", "warm", "one"):
        seconds: dict[str, list[float]] = {version: [] for version in running}
        for number in range(args.rounds):
            for version in list(running)[:: 1 if number % 2 else -1]:
                process = running[version]
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(f"{state}\n")
                process.stdin.flush()
                seconds[version].append(float(process.stdout.readline()))
        least, median = (pick(seconds["before"]) / pick(seconds["now"]) for pick in (min, statistics.median))
        print(f"{name}: {state}, speed beside before {least:.3f}, {median:.3f}", flush=True)
    for process in running.values():
        process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", metavar="MODEL", nargs="+")
    parser.add_argument("--text", metavar="FILE", type=Path, nargs="+", required=True)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--before", metavar="SRC", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.serve:
        serve(args.models[0], choose(args.text, AT_ONCE))
        return
    for name in args.models:
        show_cosines(name, choose(args.text, args.sentences))
        if args.before:
            show_speeds(name, args)


if __name__ == "__main__":
    main()
