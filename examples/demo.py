"""One word with two meanings: English "bank" (of a river, with money) and Korean 다리 (leg, bridge).

Each bundled model embeds four sentences. The vectors of the word are more similar between sentences with the same
meaning than between sentences with different ones. Each model then predicts a word for a gap. The sentences are
tokenised already; the Korean ones into morphemes, which pyelmo does itself if the extra `ko` is installed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import pyelmo


@dataclass(frozen=True)
class Example:
    """A word in two sentences for each of its two meanings, and a sentence with a gap."""

    model: str
    word: str
    meanings: tuple[str, str]
    sentences: tuple[str, str, str, str]
    gap: str


EXAMPLES = [
    Example(
        "en", "bank", ("river", "money"),
        (
            "The fisherman sat on the bank of the river .",
            "Reeds grow along the bank of the lake .",
            "She borrowed money from the bank to buy a house .",
            "He took his savings to the bank every month .",
        ),
        "He drank a cup of ___ with milk .",
    ),
    Example(
        "ko", "다리", ("leg", "bridge"),
        (
            "축구 를 하 다가 다리 를 다치 어 수술 을 받 었 다 .",
            "그 는 의자 에 앉 어 다리 를 꼬 고 신문 을 읽 었 다 .",
            "섬 과 육지 를 잇 는 다리 를 건설 하 고 있 다 .",
            "우리 는 한강 의 다리 를 건너 어 시내 로 들어가 었 다 .",
        ),
        "그 는 1950 년 서울 에서 ___ 었 다 .",
    ),
]  # fmt: skip


def show(example: Example) -> bool:
    """Print the results of a model, and return whether it distinguishes the two meanings."""
    model = pyelmo.load(example.model)
    sentences = [sentence.split() for sentence in example.sentences]
    vectors = model.embed(sentences, layers="top")
    positions = [sentence.index(example.word) for sentence in sentences]
    words = np.stack([vector[position] for vector, position in zip(vectors, positions, strict=True)])
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    cosines = words @ words.T
    print(f"{example.model}: cosine of the vectors of {example.word} (top layer)")
    for row, sentence in enumerate(example.sentences):
        numbers = "  ".join(f"{value:5.2f}" for value in cosines[row])
        print(f"  {row + 1} {example.meanings[row // 2]:6}  {numbers}   {sentence}")
    same, different = min(cosines[0, 1], cosines[2, 3]), cosines[:2, 2:].max()
    print(f"  same meaning: at least {same:.2f}; different meanings: at most {different:.2f}")
    guesses = model.predict(example.gap.split(), count=5)
    print(f"  {example.gap}   {', '.join(f'{guess.word} {guess.probability:.2f}' for guess in guesses)}\n")
    return bool(same > different)


def main() -> None:
    start = time.perf_counter()
    mixed = [example.word for example in EXAMPLES if not show(example)]
    print(f"{time.perf_counter() - start:.1f} s")
    if mixed:
        raise SystemExit(f"the two meanings of {', '.join(mixed)} were not distinguished")


if __name__ == "__main__":
    main()
