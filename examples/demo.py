"""One word, two meanings: "bank" by a river and "bank" with an account.

There is no pretrained model in the box yet, so the demo first trains a tiny biLM on examples/banks.txt, 655 simple
sentences, for some seconds. It then embeds four sentences that are not in that text and compares their banks.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import pyelmo
from pyelmo.text.prepare import prepare
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import read_recipe

TEXT = Path(__file__).parent / "banks.txt"
SENTENCES = [
    "The painter walked along the green bank of the river .",
    "A frog rested on the muddy bank of the stream .",
    "The widow kept her savings in the bank .",
    "On Friday the bank lent the farmer some cash .",
]
SMALLER = [
    "training.batch=16",
    "training.steps=12",
    "training.loss=full",
    "training.epochs=12",
    "training.report_every=60",
]


def main() -> None:
    torch.set_num_threads(1)  # so small a model gains nothing from more
    print(f"training a tiny biLM on {TEXT.name} (no pretrained model is in the box yet)")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        prepare([TEXT], Path(folder) / "corpus", tokenised=True)
        pretrain(Path(folder) / "corpus", Path(folder) / "run", read_recipe("tiny-cpu", SMALLER), say=print)
        model = pyelmo.load(Path(folder) / "run" / "model")
    print(f"trained in {time.perf_counter() - start:.0f} s\n")

    vectors = model.embed([sentence.split() for sentence in SENTENCES], layers="top")
    banks = np.stack([v[s.split().index("bank")] for v, s in zip(vectors, SENTENCES, strict=True)])
    banks /= np.linalg.norm(banks, axis=1, keepdims=True)
    cosines = banks @ banks.T
    print('cosine of the vectors of "bank" (top layer):')
    for number, sentence in enumerate(SENTENCES):
        print(f"  {number + 1}  {'  '.join(f'{value:5.2f}' for value in cosines[number])}   {sentence}")
    same, different = cosines[0, 1], cosines[:2, 2:].max()
    print(f"\nthe banks of two rivers agree ({same:.2f}); a river's and an account's differ ({different:.2f} or less)")
    if same <= different:
        raise SystemExit("the two meanings were not told apart")


if __name__ == "__main__":
    main()
