"""One word, two meanings: "bank" by a river and "bank" with money; 배 at sea and 배 in pain.

The two models that come with pyelmo embed four sentences each. A word's vectors are compared, and are nearest where the
meaning is the same; then each model guesses a word for a gap.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

import pyelmo
from pyelmo.training.evaluate import predict


@dataclass(frozen=True)
class Example:
    """A word in two sentences with one meaning and two with another, and a sentence with a gap."""

    model: str
    word: str  # as it is written in all four: a particle would be part of a Korean one
    meanings: tuple[str, str]
    sentences: tuple[str, str, str, str]
    gap: str


EXAMPLES = [
    Example(
        "en", "bank", ("river", "money"),
        (
            "The fisherman sat on the bank of the river.",
            "Reeds grow along the bank of the lake.",
            "She borrowed money from the bank to buy a house.",
            "He took his savings to the bank every month.",
        ),
        "He drank a cup of ___ with milk.",
    ),
    Example(
        "ko", "배를", ("ship", "belly"),
        (
            "우리는 배를 타고 제주도로 갔다.",
            "어부들은 새벽마다 배를 몰고 바다로 나간다.",
            "그는 웃다가 배를 잡고 바닥에 쓰러졌다.",
            "찬 음식을 먹고 배를 앓아 병원에 갔다.",
        ),
        "그는 1950년 서울에서 ___.",
    ),
]  # fmt: skip


def show(example: Example) -> bool:
    """Print what a model says; whether it tells the two meanings apart."""
    model = pyelmo.load(example.model)
    vectors = model.embed(example.sentences, layers="top")
    places = [model.tokenise(sentence).index(example.word) for sentence in example.sentences]
    words = np.stack([vector[place] for vector, place in zip(vectors, places, strict=True)])
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    cosines = words @ words.T
    print(f"{example.model}: cosine of the vectors of {example.word} (top layer)")
    for row, sentence in enumerate(example.sentences):
        numbers = "  ".join(f"{value:5.2f}" for value in cosines[row])
        print(f"  {row + 1} {example.meanings[row // 2]:5}  {numbers}   {sentence}")
    same, different = min(cosines[0, 1], cosines[2, 3]), cosines[:2, 2:].max()
    print(f"  one meaning: {same:.2f} or more; two: {different:.2f} or less")
    before, after = map(model.tokenise, example.gap.split("___"))
    guesses = predict(model.pretrained, before, after, count=5)
    print(f"  {example.gap}   {', '.join(f'{guess.word} {guess.probability:.2f}' for guess in guesses)}\n")
    return bool(same > different)


def main() -> None:
    start = time.perf_counter()
    torch.set_num_threads(1)  # so few sentences gain nothing from more
    mixed = [example.word for example in EXAMPLES if not show(example)]
    print(f"{time.perf_counter() - start:.1f} s")
    if mixed:
        raise SystemExit(f"the two meanings were not told apart: {', '.join(mixed)}")


if __name__ == "__main__":
    main()
