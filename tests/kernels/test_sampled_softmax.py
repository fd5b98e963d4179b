"""The sampler draws as TensorFlow's does; the sampled softmax is what its definition says, plain and fast."""

from __future__ import annotations

import math

import pytest
import torch
from parity import DEVICE, INTERPRETED, TOLERANCE, check
from torch import Tensor

from pyelmo.kernels.gpu.softmax import (
    Negatives,
    draw_negatives,
    fast_sampled_nll,
    log_uniform_probability,
    sampled_nll,
    touched,
)


def drawn_one_by_one(words: int, count: int, generator: torch.Generator) -> tuple[list[int], int]:
    """TensorFlow's loop: draw until `count` distinct words have occurred."""
    met: list[int] = []
    tries = 0
    while len(met) < count:
        tries += 1
        uniform = torch.rand((), generator=generator, dtype=torch.float64).item()
        word = int(math.exp(uniform * math.log(words + 1))) - 1
        if word not in met:
            met.append(word)
    return met, tries


def test_the_probabilities_are_log_uniform_and_sum_to_one():
    p = log_uniform_probability(torch.arange(1000), 1000)
    assert p.sum().item() == pytest.approx(1.0)
    assert p[0].item() == pytest.approx(math.log(2) / math.log(1001))


def test_the_same_seed_draws_the_same_negatives():
    one, other = (draw_negatives(5000, 100, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.tries, other.tries)


@pytest.mark.parametrize(("words", "count"), [(1, 1), (20, 20), (20, 19), (3000, 2999), (100_000, 8192)])
def test_negatives_are_distinct_and_as_many_as_asked(words, count):
    negatives = draw_negatives(words, count, torch.Generator().manual_seed(0))
    assert len(negatives.ids.unique()) == len(negatives.ids) == count
    assert negatives.ids.min() >= 0
    assert negatives.ids.max() < words
    assert negatives.tries >= count


def test_more_negatives_than_words_are_refused():
    with pytest.raises(ValueError, match="11 distinct negatives from 10 words"):
        draw_negatives(10, 11, torch.Generator())


def test_words_and_tries_are_distributed_as_by_drawing_one_by_one():
    words, count, rounds = 12, 5, 3000
    generator = torch.Generator().manual_seed(3)
    ours, theirs = torch.zeros(2, words), torch.zeros(2, words)
    ours_tries, theirs_tries = [], []
    for _ in range(rounds):
        negatives = draw_negatives(words, count, generator)
        ours[0, negatives.ids] += 1
        ours[1, negatives.ids[0]] += 1  # the word met first
        ours_tries.append(negatives.tries.item())
        met, tries = drawn_one_by_one(words, count, generator)
        theirs[0, met] += 1
        theirs[1, met[0]] += 1
        theirs_tries.append(float(tries))
    # Shares of 3,000 rounds have a standard error under 0.01, the mean of the tries (deviation near 3) one of 0.06.
    assert (ours - theirs).abs().max().item() / rounds < 0.045
    one, other = torch.tensor(ours_tries), torch.tensor(theirs_tries)
    assert one.mean().item() == pytest.approx(other.mean().item(), abs=0.3)
    assert one.std().item() == pytest.approx(other.std().item(), rel=0.1)


def test_expected_counts_are_those_of_the_tries():
    negatives = Negatives(torch.tensor([0, 3]), torch.tensor(10.0), 50)
    p = math.log(5 / 4) / math.log(51)
    assert negatives.log_expected(torch.tensor([3])).item() == pytest.approx(math.log(1 - (1 - p) ** 10), rel=1e-6)


def test_touched_rows_are_the_distinct_words_and_number_them():
    rows = touched(torch.tensor([5, 2, 5]), torch.tensor([9, 2]))
    assert rows.ids.tolist() == [2, 5, 9]
    assert rows.ids[rows.targets].tolist() == [5, 2, 5]
    assert rows.ids[rows.negatives].tolist() == [9, 2]


def problem(positions: int, size: int, words: int, count: int) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Vectors, table and biases; targets, negatives and their log expected counts. Many targets are negatives too."""
    generator = torch.Generator().manual_seed(0)
    values = {
        "vectors": torch.randn(positions, size, generator=generator),
        "weight": torch.randn(words, size, generator=generator),
        "bias": torch.randn(words, generator=generator),
    }
    negatives = draw_negatives(words, count, generator)
    targets = torch.randint(words, (positions,), generator=generator)
    targets[::2] = negatives.ids[torch.randint(count, targets[::2].shape, generator=generator)]
    rest = [targets, negatives.ids, negatives.log_expected(targets), negatives.log_expected(negatives.ids)]
    return values, rest


def test_the_reference_is_the_definition():
    values, (targets, negatives, of_targets, of_negatives) = problem(positions=6, size=4, words=30, count=12)
    vectors, weight, bias = values.values()
    got = sampled_nll(vectors, targets, weight, bias, negatives, of_targets, of_negatives)
    for position, target in enumerate(targets.tolist()):

        def logit(word: int, expected: float, position: int = position) -> float:
            return math.exp((vectors[position] @ weight[word] + bias[word]).item() - expected)

        true = logit(target, of_targets[position].item())
        others = sum(
            logit(word, of_negatives[number].item()) for number, word in enumerate(negatives.tolist()) if word != target
        )
        assert got[position].item() == pytest.approx(-math.log(true / (true + others)), rel=1e-4)


def test_with_every_word_a_negative_it_nears_the_full_softmax():
    values, (targets, _, _, _) = problem(positions=6, size=4, words=30, count=12)
    vectors, weight, bias = values.values()
    every = Negatives(torch.arange(30), torch.tensor(1e9), 30)
    got = sampled_nll(
        vectors, targets, weight, bias, every.ids, every.log_expected(targets), every.log_expected(every.ids)
    )
    want = torch.nn.functional.cross_entropy(vectors @ weight.T + bias, targets, reduction="none")
    assert torch.allclose(got, want, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("gathered", [False, True])
def test_losses_and_gradients_agree(dtype, gathered):
    pytest.importorskip("triton")
    sizes = {"positions": 13, "size": 8, "words": 40, "count": 11}
    if not INTERPRETED:
        sizes = {"positions": 20_000, "size": 96, "words": 30_000, "count": 5000}
    values, rest = problem(**sizes)
    targets, negatives, of_targets, of_negatives = (tensor.to(DEVICE) for tensor in rest)
    values = {name: value.to(DEVICE) for name, value in values.items()}
    values["weight"] *= sizes["size"] ** -0.5
    if gathered:
        rows = touched(targets, negatives)
        values["weight"], values["bias"] = values["weight"][rows.ids], values["bias"][rows.ids]
        targets, negatives = rows.targets, rows.negatives

    def run(function, leaves):  # type: ignore[no-untyped-def]
        vectors, weight, bias = leaves
        return (function(vectors, targets, weight, bias, negatives, of_targets, of_negatives),)

    check(lambda leaves: run(fast_sampled_nll, leaves), lambda leaves: run(sampled_nll, leaves), values, dtype)
