"""Small labelled files and runs that take a second, for the tests of tasks and experiments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from pyelmo.recipes import read_settings
from pyelmo.tasks.harness.run import RunSettings
from pyelmo.tasks.harness.settings import TaskRecipe
from pyelmo.tasks.harness.task import find_task

NAMES = {"PER": ["Ann Lee", "Bob", "Kim Roh", "Sue", "Max"], "LOC": ["Paris", "New York", "Seoul", "Rome"]}
PATTERNS = ["{PER} lives in {LOC} .", "{LOC} is far from {LOC} .", "{PER} met {PER} .", "It rained in {LOC} today ."]
TINY = [
    "training.epochs=3",
    "training.batch=8",
    "network.hidden=[8,8]",
    "network.characters=8",
    "words.dim=8",
    "words.min_count=1",
]


def sentences(count: int, seed: int) -> str:
    """Return sentences about people and places, one word and its label per line."""
    random = np.random.default_rng(seed)
    lines: list[str] = []
    for _ in range(count):
        for part in PATTERNS[random.integers(len(PATTERNS))].split():
            kind = part.strip("{}")
            words = NAMES[kind][random.integers(len(NAMES[kind]))].split() if kind in NAMES else [part]
            labels = [f"{'I' if place else 'B'}-{kind}" if kind in NAMES else "O" for place in range(len(words))]
            lines += [f"{word}\t{label}" for word, label in zip(words, labels, strict=True)]
        lines.append("")
    return "\n".join(lines) + "\n"


def run_settings(folder: Path, *changes: str, **options: object) -> RunSettings:
    recipe = read_settings(find_task("ner").recipe, "ner", [*TINY, *changes], group="task")
    data = [folder / f"{part}.conll" for part in ("train", "dev", "test")]
    return replace(RunSettings(task="ner", data=data, recipe=recipe), **options)


GOOD, BAD = ("lovely", "great", "fine"), ("dull", "bad", "poor")
SST = "".join(
    f"(4 (2 A) (4 (4 {good}) (2 film)))\n(0 (2 A) (0 (0 {bad}) (2 film)))\n"
    for good, bad in zip(GOOD, BAD, strict=True)
)
PAIRS = "".join(
    json.dumps({"sentence1": f"The {who} sleeps .", "sentence2": f"A {who} is {what} .", "gold_label": label}) + "\n"
    for who in ("man", "dog", "child")
    for what, label in (("asleep", "entailment"), ("awake", "contradiction"), ("old", "neutral"), ("so", "-"))
)


def recipe(name: str, *changes: str) -> TaskRecipe:
    small = ["training.epochs=30", "training.lr=0.02", "training.batch=4", "training.optimiser=adam", "words.dim=8"]
    return read_settings(find_task(name).recipe, name, [*small, "words.min_count=1", *changes], group="task")


def make_run(folder: Path, counts: list[list[list[int]]], *, encoder: str | None = None, fraction: float = 1.0) -> Path:
    """Write a finished run whose seeds have these counts of correct, predicted and gold spans for each example."""
    folder.mkdir()
    elmo = {"where": "both", "layers": "mix", "penalty": 0.001, "tune": False}
    facts = {
        "task": "ner",
        "data": {"dev": {"file": "d"}, "test": {"file": "wnut", "sha256": "1"}},
        "encoder": encoder and {"model": encoder},
        "encoder_name": encoder,
        "fraction": fraction,
        "recipe": {"elmo": elmo},
    }
    (folder / "run.json").write_text(json.dumps(facts))
    mixes = {place: {"weights": [0.2, 0.7, 0.1], "gamma": 1.0} for place in ("input", "output")} if encoder else {}
    for seed, examples in enumerate(counts, 1):
        (folder / f"seed-{seed}").mkdir()
        right, found, gold = np.sum(examples, axis=0).tolist()
        f1 = 200 * right / (found + gold)
        score = {"f1": f1, "right": right, "found": found, "gold": gold}
        result = {"seed": seed, "dev": score, "test": score, "layers": mixes}
        (folder / f"seed-{seed}" / "result.json").write_text(json.dumps(result))
        lines = "".join(json.dumps({"counts": each}) + "\n" for each in examples)
        (folder / f"seed-{seed}" / "answers-test.jsonl").write_text(lines)
    return folder
