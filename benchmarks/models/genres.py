"""Perplexity of a model by genre, over a vocabulary that several models share, and with weights of fewer bits.

    python benchmarks/models/genres.py MODEL wikipedia=en-wikipedia.test.txt books=books.test.txt --language en
    python benchmarks/models/genres.py MODEL ... --vocab old/vocab.txt              # over another model's words
    python benchmarks/models/genres.py MODEL ... --bits 4 --group 32 --codes normal  # weights rounded first

Each sentence is scored by itself. Perplexities of models with different vocabularies cannot be compared. With --vocab
the words that the list lacks count as one, the unknown word: their probabilities are added up, so that every model is
asked the same question. The list must be part of the model's own vocabulary.

--bits rounds each matrix of the LSTMs, the character CNN's highways and projection, and the softmax: groups of weights
along the input share a scale, which is searched for the least squared error. Codes are evenly spaced, or quantiles of
a normal distribution.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.embed.perplexity import Document
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.formats.resolve import read
from pyelmo.model.softmax import Softmax
from pyelmo.provenance import machine
from pyelmo.text.tokens import split_sentences, split_words
from pyelmo.text.vocabulary import Vocabulary

SEARCH = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)  # parts of the largest weight that the outermost code may stand for


class SharedSoftmax(nn.Module):
    """A softmax over the words of a shorter list; all others are its unknown word."""

    def __init__(self, softmax: Softmax, classes: Tensor, unknown: int) -> None:
        super().__init__()
        self.weight, self.bias = softmax.weight, softmax.bias
        self.register_buffer("classes", classes)  # (v,) the model's number of each word of the list
        self.unknown = unknown
        others = torch.ones(len(softmax.bias), dtype=torch.bool, device=classes.device)
        others[classes] = False
        others[classes[unknown]] = True
        self.register_buffer("others", others.nonzero()[:, 0])

    def nll(self, vectors: Tensor, targets: Tensor) -> Tensor:
        losses = []
        for part, wanted in zip(vectors.split(2048), targets.split(2048), strict=True):
            logits = nn.functional.linear(part, self.weight, self.bias)
            chosen = logits.gather(1, self.classes[wanted].unsqueeze(1))[:, 0]
            unknown = wanted == self.unknown
            chosen[unknown] = torch.logsumexp(logits[unknown][:, self.others], 1)
            losses.append(torch.logsumexp(logits, 1) - chosen)
        return torch.cat(losses)


def sharing(model: Pretrained, words: Vocabulary) -> Pretrained:
    """The same model, asked for the words of a list."""
    softmax, own = model.bilm.softmax, model.lexicon.vocab
    assert isinstance(softmax, Softmax)
    assert own is not None
    missing = [word for word in words.words if word not in own]
    if missing:
        raise InputError(f"{len(missing):,} words of the list are not in the model's vocabulary, as {missing[:5]}")
    classes = torch.from_numpy(own.encode(words.words)).long().to(softmax.bias.device)
    shared = SharedSoftmax(softmax, classes, words.ids[words.unknown])
    model.bilm.softmax = shared  # type: ignore[assignment]
    return replace(model, lexicon=replace(model.lexicon, vocab=words))


def rounded(weight: Tensor, bits: int, group: int, codes: str) -> Tensor:
    """A matrix (..., inputs) as it comes back from `bits` a weight and a float16 scale a group."""
    flat = weight.detach().float().reshape(-1, weight.shape[-1])
    missing = -flat.shape[1] % group
    parts = nn.functional.pad(flat, (0, missing)).view(-1, group)
    levels = code_book(bits, codes).to(parts)
    largest = parts.abs().amax(1, keepdim=True).clamp(min=1e-12)
    best, least = torch.zeros_like(parts), torch.full_like(largest, float("inf"))
    for share in SEARCH:
        scale = (largest * share).half().float().clamp(min=1e-7)
        edges = (levels[1:] + levels[:-1]) / 2
        tried = levels[torch.bucketize(parts / scale, edges)] * scale
        error = (tried - parts).square().sum(1, keepdim=True)
        best, least = torch.where(error < least, tried, best), torch.minimum(error, least)
    return best.view(len(flat), -1)[:, : flat.shape[1]].reshape(weight.shape)


def code_book(bits: int, codes: str) -> Tensor:
    if codes == "even":
        most = 2 ** (bits - 1) - 1
        return torch.arange(-most - 1, most + 1) / most
    # Quantiles of a normal distribution, with an exact zero: as many codes below it as above, and one more.
    half = 2 ** (bits - 1)
    normal = torch.distributions.Normal(0.0, 1.0)
    above = normal.icdf(torch.linspace(0.5, 1 - 0.5 / (2 * half), half + 1))
    below = -normal.icdf(torch.linspace(0.5, 1 - 0.5 / (2 * half), half))[1:]
    return torch.cat([below.flip(0) / below.abs().max(), above / above.max()])


def round_weights(model: Pretrained, bits: int, group: int, codes: str) -> float:
    """Round every large matrix; gives the bytes that the weights would take."""
    size = 0.0
    for parameter in model.bilm.parameters():
        if parameter.dim() >= 2 and parameter.numel() > 20_000:
            parameter.data.copy_(rounded(parameter.data, bits, group, codes))
            size += parameter.numel() * (bits + 16 / group) / 8
        else:
            size += parameter.numel() * 4
    return size


def read_documents(path: Path, language: str, most: int | None) -> list[Document]:
    documents: list[Document] = []
    words = 0
    for row in path.read_text("utf-8").splitlines():
        for sentence in split_sentences(row, language):
            if split := split_words(sentence, language):
                documents.append([split])
                words += len(split)
        if most is not None and words >= most:
            break
    return documents


def by_genre(model: Pretrained, texts: dict[str, list[Document]]) -> dict[str, dict[str, float]]:
    result = {}
    for name, documents in texts.items():
        found = perplexity(model, documents, context="sentence", batch_size=256)
        result[name] = {
            "perplexity": round(found.average, 3), "forward": round(found.forward, 3),
            "backward": round(found.backward or 0.0, 3), "words": found.words,
            "unknown": round(found.unknown / found.words, 4),
        }  # fmt: skip
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--language", default="en")
    parser.add_argument("--words", type=int, help="of each text at most")
    parser.add_argument("--vocab", type=Path)
    parser.add_argument("--bits", type=int)
    parser.add_argument("--group", type=int, default=64)
    parser.add_argument("--codes", choices=("even", "normal"), default="even")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    model = read(args.model)
    model.bilm.to(args.device).eval()
    result: dict[str, Any] = {"model": args.model, "machine": machine()}
    if args.bits:
        size = round_weights(model, args.bits, args.group, args.codes)
        result |= {"bits": args.bits, "group": args.group, "codes": args.codes, "megabytes": round(size / 1e6, 2)}
        print(f"{args.bits} bits, groups of {args.group}, {args.codes} codes: {size / 1e6:.1f} MB")
    if args.vocab:
        model = sharing(model, Vocabulary.load(args.vocab))
        result["vocabulary"] = str(args.vocab)
    texts = {
        name: read_documents(Path(path), args.language, args.words)
        for name, _, path in (text.partition("=") for text in args.texts)
    }
    result["genres"] = by_genre(model, texts)
    for name, row in result["genres"].items():
        print(f"{name:16} {row['perplexity']:9.2f}  ({row['words']:,} words, {row['unknown']:.2%} unknown)", flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
