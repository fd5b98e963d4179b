"""How often a removed word of held-out text is guessed: first, and among ten.

    python benchmarks/models/guesses.py en --valid en-wikipedia.valid.txt --test en-wikipedia.test.txt \\
        -o benchmarks/results/guesses.json
    python benchmarks/models/guesses.py ko --valid ... --test ... -o (the same file)

From each of 5,000 sentences, drawn with a seed, one word of the model's vocabulary is removed, not punctuation, and for
Korean a morpheme that is written as one. The exponent of the word's own probability is compared on the validation text;
the test text shows these ways to guess:

    before      each side split apart, the product of both directions, punctuation among the guesses
    forward     the words before the gap alone
    backward    the words after it alone
    product     both, without the word's own probability
    both        what `elmo predict` does

It also counts how often a word that nobody knows would score higher than the removed one: with the whole probability of
<UNK> (before), and with the share of `elmo score`.

M gaps, P vector of one direction, V words.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

import pyelmo
from pyelmo.embed.scoring import PRIOR_POWER, log_prior
from pyelmo.provenance import machine, plain_command
from pyelmo.text.marked import GAP, read_gap
from pyelmo.text.tokens import TokenSpan, split_sentences, split_spans, split_words

EXPONENTS = [step / 10 for step in range(11)]
PART = 250  # gaps computed at once
WAYS = ("before", "forward", "backward", "product", "both")


class Gap(NamedTuple):
    """A sentence with a gap, the words on both sides of it, the same split apart, and the word removed."""

    sentence: str
    sides: tuple[list[str], list[str]]
    apart: tuple[list[str], list[str]]
    word: str


def draw_gaps(path: Path, model: pyelmo.Embedder, count: int, seed: int) -> list[Gap]:
    rng = random.Random(seed)
    lines = path.read_text("utf-8").splitlines()
    sentences = [sentence for line in lines for sentence in split_sentences(line, model.language)]
    rng.shuffle(sentences)
    gaps: list[Gap] = []
    for sentence in sentences:
        if len(gaps) == count:
            break
        spans = split_spans(sentence, model.language) if 20 <= len(sentence) <= 300 and "_" not in sentence else []
        candidates = [span for span in spans if is_removable(span, sentence, spans, model)]
        if not 5 <= len(spans) <= 60 or not candidates:
            continue
        span = rng.choice(candidates)
        before, after = sentence[: span.start], sentence[span.end :]
        text = f"{before}{GAP}{after}"
        apart = split_words(before, model.language), split_words(after, model.language)
        gaps.append(Gap(text, read_gap(text, model.language), apart, span.word))
    return gaps


def is_removable(span: TokenSpan, sentence: str, spans: list[TokenSpan], model: pyelmo.Embedder) -> bool:
    """Return whether a word is known, no punctuation, and shares no character with another morpheme."""
    vocab = model.lexicon.vocab
    assert vocab is not None
    known = span.word in vocab and any(map(str.isalnum, span.word)) and sentence[span.start : span.end] == span.word
    return known and sum(other.start < span.end and other.end > span.start for other in spans) == 1


def log_probabilities(model: pyelmo.Embedder, sides: list[tuple[list[str], list[str]]]) -> tuple[Tensor, Tensor]:
    """Return the log probabilities (M, V) of all words, forward and backward."""
    size, softmax = model.config.lstm.dim, model.bilm.softmax
    assert softmax is not None
    tops = model.embed([words for pair in sides for words in pair], layers="top", keep_boundaries=True)
    forward = np.stack([top[-2, :size] for top in tops[::2]])
    backward = np.stack([top[1, size:] for top in tops[1::2]])
    with torch.inference_mode():
        return softmax(torch.from_numpy(forward)), softmax(torch.from_numpy(backward))


def parts(model: pyelmo.Embedder, gaps: list[Gap]) -> Iterator[tuple[list[Gap], Tensor, Tensor, Tensor]]:
    """Yield some gaps with their targets (M,) and log probabilities (M, V)."""
    vocab = model.lexicon.vocab
    assert vocab is not None
    for start in tqdm(range(0, len(gaps), PART), unit=" parts", file=sys.stderr):
        some = gaps[start : start + PART]
        targets = torch.from_numpy(vocab.encode(gap.word for gap in some)).long()
        yield some, targets, *log_probabilities(model, [gap.sides for gap in some])


def ranks(scores: Tensor, targets: Tensor, left_out: Tensor) -> Tensor:  # (M, V), (M,), (V,) -> (M,)
    """Return how many words are likelier than the target, of those that are not left out."""
    return ((scores > scores.gather(1, targets[:, None])) & ~left_out).sum(1)


def shares(all_ranks: list[Tensor]) -> dict[str, float]:
    joined = torch.cat(all_ranks)
    counts = {"first": 1, "among_ten": 10}
    return {name: round(100 * float((joined < n).float().mean()), 2) for name, n in counts.items()}


def candidates(model: pyelmo.Embedder) -> tuple[Tensor, Tensor]:
    """Return which words are special tokens (V,), and which of them or punctuation (V,)."""
    vocab = model.lexicon.vocab
    assert vocab is not None
    special = torch.tensor([word in (vocab.begin, vocab.end, vocab.unknown) for word in vocab])
    return special, special | torch.tensor([not any(map(str.isalnum, word)) for word in vocab])


def choose(model: pyelmo.Embedder, gaps: list[Gap]) -> dict[str, dict[str, float]]:
    """Return the shares for each exponent."""
    _, left_out = candidates(model)
    prior = torch.from_numpy(log_prior(len(left_out)))
    by_exponent: dict[float, list[Tensor]] = {exponent: [] for exponent in EXPONENTS}
    for _, targets, forward, backward in parts(model, gaps):
        for exponent in EXPONENTS:
            by_exponent[exponent].append(ranks(forward + backward - exponent * prior, targets, left_out))
    return {str(exponent): shares(some) for exponent, some in by_exponent.items()}


def compare(model: pyelmo.Embedder, gaps: list[Gap]) -> dict[str, Any]:
    """Return the shares of all ways to guess, and how often an unknown word beats the removed one."""
    special, left_out = candidates(model)
    prior = PRIOR_POWER * torch.from_numpy(log_prior(len(left_out)))
    by_way: dict[str, list[Tensor]] = {way: [] for way in WAYS}
    beaten: list[Tensor] = []
    vocab = model.lexicon.vocab
    assert vocab is not None
    for some, targets, forward, backward in parts(model, gaps):
        apart = forward + backward
        if any(gap.apart != gap.sides for gap in some):
            apart = sum(log_probabilities(model, [gap.apart for gap in some]))  # type: ignore[assignment]
        by_way["before"].append(ranks(apart, targets, special))
        both = {"forward": forward, "backward": backward, "product": forward + backward}
        for way, scores in {**both, "both": both["product"] - prior}.items():
            by_way[way].append(ranks(scores, targets, left_out))
        for scores in (forward, backward):
            lead = scores[:, vocab.ids[vocab.unknown]] - scores.gather(1, targets[:, None])[:, 0]
            beaten.append(torch.stack([lead > 0, lead > math.log(len(vocab))], 1))
    unknown = 100 * torch.cat(beaten).double().mean(0)
    return {
        "ways": {way: shares(some) for way, some in by_way.items()},
        "unknown_beats": {"whole": round(float(unknown[0]), 2), "share": round(float(unknown[1]), 2)},
    }


def check(model: pyelmo.Embedder, gaps: list[Gap]) -> None:
    """Fail unless the library guesses as this script does."""
    _, left_out = candidates(model)
    vocab = model.lexicon.vocab
    assert vocab is not None
    prior = PRIOR_POWER * torch.from_numpy(log_prior(len(vocab)))
    for _, _, forward, backward in parts(model, gaps):
        scores = (forward + backward - prior).masked_fill(left_out, -math.inf)
        words = [vocab.words[best] for best in scores.argmax(1).tolist()]
        assert words == [model.predict(gap.sentence, count=1, direction="both")[0].word for gap in gaps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--valid", type=Path, required=True, metavar="FILE")
    parser.add_argument("--test", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=5000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.json")
    args = parser.parse_args()
    model = pyelmo.load(args.model)
    gaps = draw_gaps(args.test, model, args.count, args.seed)
    check(model, gaps[:20])
    result = {
        "model": args.model, "valid": args.valid.name, "test": args.test.name, "seed": args.seed, "gaps": len(gaps),
        "split_as_apart": round(100 * sum(gap.sides == gap.apart for gap in gaps) / len(gaps), 1),
        "power": PRIOR_POWER, **compare(model, gaps),
        "exponents": choose(model, draw_gaps(args.valid, model, args.count, args.seed)),
        "command": plain_command("python benchmarks/models/guesses.py", sys.argv[1:]), "machine": machine(),
    }  # fmt: skip
    known = json.loads(args.output.read_text("utf-8")) if args.output.exists() else {}
    args.output.write_text(json.dumps({**known, args.model: result}, indent=1) + "\n", "utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
