"""Texts that the tests of this folder prepare."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


def some_text(seed: int, documents: int) -> str:
    """Return documents of random words, some of them far more frequent than others."""
    chance = random.Random(seed)
    words = [f"{chance.choice('abcdefg')}{'xyz'[number % 3]}{number}" for number in range(300)]

    def sentence() -> str:
        return " ".join(words[int(chance.paretovariate(0.7)) % 300] for _ in range(chance.randint(1, 12))).title() + "."

    def paragraph() -> str:
        return " ".join(sentence() for _ in range(chance.randint(1, 5)))

    return "\n\n".join("\n".join(paragraph() for _ in range(chance.randint(1, 4))) for _ in range(documents)) + "\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(some_text(0, 60), encoding="utf-8")
    return path


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(some_text(1, 3000), encoding="utf-8")
    return path
