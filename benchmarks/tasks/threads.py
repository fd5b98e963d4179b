"""Does a task network train faster on one thread or on two? Seconds of an epoch, and CPU seconds of the process.

    python benchmarks/tasks/threads.py                # on a quiet machine
    python benchmarks/tasks/threads.py --busy 2       # beside two processes that never sleep

The data are 500 made-up sentences for ner and sentiment, and 500 pairs for nli; the vectors of `en` are cached first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES, EPOCHS = 500, 2
PEOPLE, PLACES = ("Ann Lee", "Bob", "Kim Roh", "Sue"), ("Paris", "New York", "Seoul", "Rome")
CLAUSES = ("{person} lives in {place}", "{person} met {person} in {place}", "it rained in {place} for two days")


def clauses(drawn: random.Random) -> list[tuple[str, str]]:
    """One to four clauses as pairs of a word and its BIO label."""
    pairs = []
    for _ in range(drawn.randint(1, 4)):
        for part in drawn.choice(CLAUSES).split():
            kind = {"{person}": "PER", "{place}": "LOC"}.get(part)
            words = drawn.choice(PEOPLE if kind == "PER" else PLACES).split() if kind else [part]
            pairs += [(word, f"{'I' if n else 'B'}-{kind}" if kind else "O") for n, word in enumerate(words)]
        pairs.append(("and", "O"))
    return pairs


def write_data(folder: Path) -> None:
    drawn = random.Random(1)
    texts = [clauses(drawn) for _ in range(EXAMPLES)]
    ner = "".join("".join(f"{word}\t{label}\n" for word, label in text) + "\n" for text in texts)
    (folder / "ner.txt").write_text(ner, "utf-8")
    trees = []
    for text in texts:
        tree = f"(2 {text[-1][0]})"
        for word, _ in reversed(text[:-1]):
            tree = f"({drawn.randint(0, 4)} (2 {word}) {tree})"
        trees.append(tree + "\n")
    (folder / "sentiment.txt").write_text("".join(trees), "utf-8")
    sentences = [" ".join(word for word, _ in text) for text in texts]
    labels = ("entailment", "contradiction", "neutral")
    pairs = [
        json.dumps({"sentence1": one, "sentence2": two, "gold_label": drawn.choice(labels)}) + "\n"
        for one, two in zip(sentences, reversed(sentences), strict=True)
    ]
    (folder / "nli.txt").write_text("".join(pairs), "utf-8")


def train(folder: Path, task: str, threads: int, seeds: str) -> tuple[float, float]:
    """Return the seconds of an epoch, and the user CPU seconds of the whole process."""
    run = folder / f"{task}-{threads}"
    command = [
        sys.executable,
        "-m",
        "pyelmo",
        "task",
        "train",
        task,
        "--data",
        f"{task}.txt",
        f"{task}.txt",
        "-o",
        str(run),
        "-q",
    ]
    command += ["--threads", str(threads), "--seeds", seeds, "--set", f"training.epochs={EPOCHS}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if seeds == "0":
        return 0.0, user
    return json.loads((run / "seed-1" / "result.json").read_text("utf-8"))["seconds"] / EPOCHS, user


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that never sleep (default: 0)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        for task in ("ner", "sentiment", "nli"):
            train(folder, task, 1, "0")
        beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
        try:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {args.busy} busy processes beside it")
            for task in ("ner", "sentiment", "nli"):
                for threads in (1, 2):
                    seconds, user = train(folder, task, threads, "1")
                    print(f"{task:10} threads {threads}: {seconds:6.1f} s an epoch, {user:6.1f} s of CPU", flush=True)
        finally:
            for process in beside:
                process.kill()


if __name__ == "__main__":
    main()
