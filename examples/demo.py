"""One word, two meanings: "bank" by a river and "bank" with an account.

There is no pretrained model in the box yet, so the demo first trains a tiny biLM on examples/banks.txt, 655 simple
sentences, for some seconds. It then embeds four sentences that are not in that text and compares their banks.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from pyelmo import BiLM, Embedder, ModelConfig, Vocabulary
from pyelmo.config import CharConfig, LstmConfig
from pyelmo.formats.pretrained import Pretrained
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

TEXT = Path(__file__).parent / "banks.txt"
SENTENCES = [
    "The painter walked along the green bank of the river .",
    "A frog rested on the muddy bank of the stream .",
    "The widow kept her savings in the bank .",
    "On Friday the bank lent the farmer some cash .",
]


def train(sentences: list[list[str]], epochs: int = 12) -> Embedder:
    """The joint log likelihood of both directions, with a full softmax over the few words there are."""
    torch.manual_seed(1)
    words = [word for sentence in sentences for word in sentence]
    vocab = Vocabulary.from_counts({word: words.count(word) for word in set(words)})
    config = ModelConfig(
        chars=CharConfig(max_length=20, filters=((1, 16), (2, 32), (3, 48)), highways=1),
        lstm=LstmConfig(cells=128, projection=32),
        softmax=len(vocab),
    )
    bilm = BiLM(config, dropout=0.1)
    embedder = Embedder(Pretrained(bilm, Lexicon(Bytes(20), vocab), "demo", "examples/banks.txt"))
    optimiser = torch.optim.Adam(bilm.parameters(), lr=0.004)
    order = np.random.default_rng(1)
    for epoch in range(epochs):
        bilm.train()
        losses = []
        for rows in np.array_split(order.permutation(len(sentences)), len(sentences) // 32):
            loss = joint_loss(embedder, [sentences[row] for row in rows], vocab)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        print(f"  epoch {epoch + 1:2d}: perplexity {np.exp(np.mean(losses)):6.1f}", flush=True)
    bilm.eval()
    return embedder


def joint_loss(embedder: Embedder, sentences: list[list[str]], vocab: Vocabulary) -> torch.Tensor:
    """Mean of the two directions: forward states predict the next word, backward states the one before."""
    layers = embedder.bilm(embedder.batch(sentences))
    forward, backward = layers.values[-1].chunk(2, -1)
    width = layers.mask.shape[1]
    marked = [[vocab.begin, *sentence, vocab.end] for sentence in sentences]
    targets = torch.tensor([[vocab[word] for word in row] + [0] * (width - len(row)) for row in marked])
    real = layers.mask[:, 1:]  # a place and its right neighbour are both tokens
    softmax = embedder.bilm.softmax
    assert softmax is not None
    ahead = softmax.nll(forward[:, :-1][real], targets[:, 1:][real])
    behind = softmax.nll(backward[:, 1:][real], targets[:, :-1][real])
    return (ahead.mean() + behind.mean()) / 2


def main() -> None:
    torch.set_num_threads(1)  # so small a model gains nothing from more
    start = time.perf_counter()
    print(f"training a tiny biLM on {TEXT.name} (no pretrained model is in the box yet)")
    embedder = train([line.split() for line in TEXT.read_text("utf-8").splitlines()])
    print(f"trained in {time.perf_counter() - start:.0f} s\n")

    vectors = embedder.embed([sentence.split() for sentence in SENTENCES], layers="top")
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
