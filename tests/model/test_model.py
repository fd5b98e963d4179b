"""The biLM, its mixes and the `Elmo` module."""

from __future__ import annotations

import pytest
import torch
from support import TINY, TOLERANCE, make_embedder, worst

from pyelmo.config import LstmConfig, ModelConfig, WordConfig, weight_shapes
from pyelmo.errors import InputError
from pyelmo.model.bilm import Batch, BiLM
from pyelmo.model.elmo import Elmo
from pyelmo.model.lstm import ProjectedLSTM
from pyelmo.model.scalar_mix import ScalarMix
from pyelmo.model.softmax import AdaptiveSoftmax, Softmax

SENTENCES = [["the", "bank", "of", "a", "river"], ["a", "bank"], []]


def test_an_lstm_without_clips_equals_torch():
    torch.manual_seed(0)
    config = LstmConfig(cells=6, projection=3, cell_clip=None, projection_clip=None, forget_bias=0.0)
    ours, theirs = ProjectedLSTM(4, config, directions=1), torch.nn.LSTM(4, 6, proj_size=3, batch_first=True)
    with torch.no_grad():
        theirs.bias_hh_l0.zero_()
        for parameter, weight in zip(ours.parameters(), (
            theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.weight_hr_l0), strict=True):  # fmt: skip
            parameter[0].copy_(weight)
    inputs = torch.randn(2, 40, 4)
    outputs, hidden, cell = ours(inputs[None], torch.zeros(1, 2, 3), torch.zeros(1, 2, 6))
    want, (want_hidden, want_cell) = theirs(inputs)
    torch.testing.assert_close(outputs[0], want, atol=TOLERANCE[torch.float32], rtol=0)
    torch.testing.assert_close(hidden, want_hidden, atol=TOLERANCE[torch.float32], rtol=0)
    torch.testing.assert_close(cell, want_cell, atol=TOLERANCE[torch.float32], rtol=0)


def test_state_is_an_argument_and_a_result():
    torch.manual_seed(0)
    stack = BiLM(TINY).lstm
    inputs = torch.randn(2, 3, 8, 8)
    whole, state = stack(inputs)
    first, middle = stack(inputs[:, :, :5])
    second, end = stack(inputs[:, :, 5:], middle)
    torch.testing.assert_close(torch.cat([first[-1], second[-1]], 2), whole[-1])
    torch.testing.assert_close(end.cell, state.cell)


def test_layer_zero_is_the_token_twice_and_the_split_has_2l_plus_1_parts(tiny):
    layers = tiny.bilm(tiny.batch(SENTENCES))
    token, again = layers.values[0].chunk(2, -1)
    assert torch.equal(token, again)
    parts = layers.split()
    assert parts.shape == (5, 3, 7, 8)
    assert torch.equal(parts[0], token)
    assert torch.equal(torch.cat([parts[3], parts[4]], -1), layers.values[2])


def test_forward_vectors_see_only_the_left_and_backward_only_the_right(tiny):
    one, other = tiny.embed([["a", "b", "c"], ["a", "b", "X"]], layers="top")
    half = tiny.config.lstm.dim
    assert abs(one[1, :half] - other[1, :half]).max() < 1e-6
    assert abs(one[1, half:] - other[1, half:]).max() > 1e-3


def test_word_input_from_given_vectors():
    config = ModelConfig(chars=None, words=WordConfig(size=5, dim=3), lstm=LstmConfig(cells=8, projection=4))
    bilm = BiLM(config)
    with torch.no_grad():
        bilm.words.weight.copy_(torch.arange(15.0).view(5, 3))
    batch = Batch(None, torch.tensor([4, 2]), torch.tensor([[0, 1, 0]]), torch.ones(1, 3, dtype=torch.bool))
    values = bilm(batch).values
    torch.testing.assert_close(values[0, 0, 1, :4], bilm.projection(torch.tensor([6.0, 7.0, 8.0])))
    assert values.shape == (3, 1, 3, 8)


def test_a_model_may_read_forwards_only():
    config = ModelConfig(chars=TINY.chars, lstm=TINY.lstm, bidirectional=False)
    embedder = make_embedder(config)
    assert embedder.embed([["a", "b"]])[0].shape == (3, 2, 8)
    with pytest.raises(InputError, match="bidirectional"):
        embedder.elmo(per_direction=True)


def test_the_softmax_is_normalised_and_its_loss_is_its_log_probability():
    torch.manual_seed(0)
    softmax = Softmax(7, 4)
    vectors, targets = torch.randn(3000, 4), torch.randint(0, 7, (3000,))
    scores = softmax(vectors)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(3000))
    want = -scores.gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(softmax.nll(vectors, targets), want)
    with torch.no_grad():  # in parts
        torch.testing.assert_close(softmax.nll(vectors, targets), want)


def test_a_shared_table_is_one_parameter():
    config = ModelConfig(
        chars=None, words=WordConfig(size=6, dim=4), project=False, lstm=LstmConfig(cells=8, projection=4),
        softmax=6, softmax_shares_words=True,
    )  # fmt: skip
    bilm = BiLM(config)
    assert bilm.softmax.weight is bilm.words.weight


def test_a_new_mix_is_the_mean_and_a_mix_of_one_layer_that_layer():
    values = torch.randn(3, 2, 4, 6)
    torch.testing.assert_close(ScalarMix(3)(values), values.mean(0))
    torch.testing.assert_close(ScalarMix(3, weights=[-1e9, 0.0, -1e9], gamma=2.0)(values), 2 * values[1])


def test_a_mix_per_direction_weighs_each_half_apart():
    values = torch.randn(2, 1, 1, 4)
    mix = ScalarMix(2, per_direction=True, weights=[-1e9, 0.0, -1e9])  # the forward half of layer 1 alone
    torch.testing.assert_close(mix(values)[0, 0], torch.cat([values[1, 0, 0, :2], torch.zeros(2)]))
    assert len(mix.logits) == 3


def test_the_penalty_is_lambda_times_the_square_of_the_weights():
    mix = ScalarMix(3, weights=[1.0, 2.0, 2.0], penalty_weight=0.001)
    assert mix.penalty().item() == pytest.approx(0.009)


def test_token_norm_does_not_depend_on_the_batch_and_batch_norm_does(tiny):
    def mixed(kind, sentences):
        elmo = Elmo(tiny.bilm, layer_norm=kind, dropout=0.0)
        return elmo(tiny.batch(sentences)).representations[0][0, :2]

    alone, together = [SENTENCES[1]], [SENTENCES[1], SENTENCES[0]]
    torch.testing.assert_close(mixed("token", alone), mixed("token", together), atol=1e-5, rtol=0)
    assert (mixed("batch", alone) - mixed("batch", together)).abs().max() > 1e-3


def test_elmo_gives_one_tensor_a_mix_with_or_without_boundary_tokens(tiny):
    output = tiny.elmo(mixes=2)(tiny.batch(SENTENCES))
    assert [tuple(values.shape) for values in output.representations] == [(3, 5, 16)] * 2
    assert output.mask.sum(1).tolist() == [5, 2, 0]
    assert (output.representations[0][2] == 0).all()
    kept = tiny.elmo(keep_boundaries=True)(tiny.batch(SENTENCES))
    assert kept.mask.sum(1).tolist() == [7, 4, 2]


@pytest.mark.parametrize("trainable", [False, True])
def test_gradients_reach_the_mix_always_and_the_bilm_on_request(trainable):
    embedder = make_embedder()
    elmo = embedder.elmo(trainable=trainable, dropout=0.0)
    elmo(embedder.batch(SENTENCES)).representations[0].square().sum().backward()
    assert elmo.mixes[0].logits.grad is not None
    assert (embedder.bilm.lstm.layers[0].input.grad is not None) == trainable
    assert (embedder.bilm.chars.embedding.weight.grad is not None) == trainable


def test_frozen_mixes_stay_frozen(tiny):
    elmo = tiny.elmo(weights=[0.0, 0.0, 1.0], trainable_mix=False)
    assert not any(parameter.requires_grad for parameter in elmo.parameters())


def test_an_adaptive_softmax_trains_under_autocast():
    softmax = AdaptiveSoftmax(40, 16, (10, 20))
    vectors, targets = torch.randn(30, 16), torch.arange(30)
    want = softmax.nll(vectors, targets)
    with torch.autocast("cpu", torch.bfloat16):
        got = softmax.nll(vectors.bfloat16(), targets)
    assert worst(got.detach(), want.detach()) <= TOLERANCE[torch.bfloat16]
    got.sum().backward()


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(),
        ModelConfig(
            chars=None,
            words=WordConfig(size=9, dim=8),
            project=False,
            lstm=LstmConfig(cells=8, projection=None),
            bidirectional=False,
            softmax=9,
            softmax_shares_words=True,
        ),
        ModelConfig(
            words=WordConfig(size=9, dim=4),
            lstm=LstmConfig(cells=16, projection=8),
            softmax=50,
            softmax_cutoffs=(5, 20),
        ),
        ModelConfig(lstm=LstmConfig(cells=16, projection=8), softmax=50),
    ],
)
def test_the_shapes_of_weights_are_those_of_the_modules(config):
    wanted = [(name, tuple(parameter.shape)) for name, parameter in BiLM(config).named_parameters()]
    assert list(weight_shapes(config).items()) == wanted
