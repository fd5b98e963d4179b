"""What `elmo bench` counts: arithmetic against a count by hand, and its built-in text."""

from __future__ import annotations

import pytest
from support import TINY

from pyelmo.config import LstmConfig, ModelConfig, WordConfig
from pyelmo.embed.bench import SIZES, lstm_flops, random_model, standard_sentences, word_flops


@pytest.mark.parametrize(("size", "mflop"), [("original", 151.0), ("small", 9.4)])
def test_the_arithmetic_of_the_known_sizes(size, mflop):
    assert lstm_flops(SIZES[size]) / 1e6 == pytest.approx(mflop, rel=0.005)


def test_the_arithmetic_of_a_tiny_model_by_hand():
    # A layer and direction: (8 inputs + 8 outputs) x 4 gates x 16 cells, and 16 cells x 8 outputs; two layers, two ways.
    assert lstm_flops(TINY) == 2 * (16 * 64 + 128) * 2 * 2
    # Windows of 1, 2, 3 symbols of 4 numbers at 16, 15, 14 places; one highway of 20 features; 20 features to 8.
    windows = 16 * 4 * 4 + 15 * 8 * 8 + 14 * 12 * 8
    assert word_flops(TINY) == 2 * (windows + 2 * 20 * 20 + 20 * 8)


def test_what_a_model_lacks_costs_nothing():
    config = ModelConfig(
        chars=None, words=WordConfig(size=5, dim=8), project=False, bidirectional=False,
        lstm=LstmConfig(cells=8, projection=None, layers=1),
    )  # fmt: skip
    assert lstm_flops(config) == 2 * 4 * 8 * 16
    assert word_flops(config) == 0


def test_the_built_in_text_is_like_news():
    sentences = standard_sentences()
    words = [word for sentence in sentences for word in sentence]
    assert sentences == standard_sentences()
    assert len(sentences) == 512
    assert 20 < len(words) / 512 < 25
    assert 0.28 < len(set(words)) / len(words) < 0.33  # English news: 0.29


def test_random_weights_are_always_the_same():
    (first,), (second,) = (random_model("small").embed([["a", "word"]]) for _ in range(2))
    assert first.shape == (3, 2, 256)
    assert (first == second).all()
