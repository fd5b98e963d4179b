"""Small labelled files, a small ELMo, and runs that take a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import make_embedder

from pyelmo.tasks.experiment import Plan
from pyelmo.tasks.task import find
from pyelmo.training.recipe import TASK, read_settings

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
    """Sentences about people and places, a word and its label a line."""
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


def plan(folder: Path, *changes: str, **options: object) -> Plan:
    recipe = read_settings(find("ner").recipe, "ner", [*TINY, *changes], prefix=TASK)
    data = [folder / f"{part}.conll" for part in ("train", "dev", "test")]
    return replace(Plan(task="ner", data=data, recipe=recipe), **options)


@pytest.fixture(scope="session")
def ner_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.conll, dev.conll, test.conll, a small ELMo in LM and static vectors."""
    folder = tmp_path_factory.mktemp("ner")
    for seed, (part, count) in enumerate({"train": 48, "dev": 12, "test": 12}.items()):
        (folder / f"{part}.conll").write_text(sentences(count, seed), "utf-8")
    make_embedder().save(folder / "LM")
    words = sorted({word.lower() for names in NAMES.values() for name in names for word in name.split()})
    rows = np.random.default_rng(0).normal(size=(len(words), 4))
    text = "".join(f"{word} {' '.join(f'{x:.3f}' for x in row)}\n" for word, row in zip(words, rows, strict=True))
    (folder / "vectors.txt").write_text(text, "utf-8")
    return folder
