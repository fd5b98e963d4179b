"""Recurrent layers of task networks: equal to torch's own layers, whatever the lengths and the padding."""

from __future__ import annotations

import torch
from support import TOLERANCE
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pyelmo.model.recurrent import BiGru, BiLstm, VariationalDropout, gru_recurrence, pack

MASK = torch.arange(4) < torch.tensor([[4], [1], [3]])


def test_each_direction_of_an_lstm_begins_at_its_own_end():
    torch.manual_seed(0)
    lstm = BiLstm(5, 3)
    inputs = torch.randn(3, 4, 5)
    outputs = lstm(inputs, MASK)
    assert outputs.shape == (3, 4, 6)
    assert not outputs[~MASK].any()
    alone, _ = lstm.lstm(inputs[2:, :3])
    assert torch.allclose(outputs[2:, :3], alone, rtol=0, atol=TOLERANCE[torch.float32])


def test_an_lstm_is_that_of_torch_s_own_packing_to_the_bit():
    torch.manual_seed(0)
    lstm, lengths = BiLstm(5, 3), [2, 7, 1, 7, 4]
    inputs = torch.randn(5, 8, 5, requires_grad=True)
    mask = torch.arange(8) < torch.tensor(lengths)[:, None]
    packed = pack_padded_sequence(inputs, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    want, _ = pad_packed_sequence(lstm.lstm(packed)[0], batch_first=True, total_length=8)
    leaves, weights = [inputs, *lstm.parameters()], torch.randn(5, 8, 6)
    for got in (lstm(inputs, mask), lstm(inputs, mask, pack(lengths, 8, torch.device("cpu")))):
        assert torch.equal(got, want)
        for one, other in zip(
            torch.autograd.grad((got * weights).sum(), leaves),
            torch.autograd.grad((want * weights).sum(), leaves, retain_graph=True),
            strict=True,
        ):
            assert torch.equal(one, other)


def test_a_gru_over_all_steps_is_torchs_over_words():
    torch.manual_seed(0)
    gru, inputs = BiGru(5, 3), torch.randn(4, 7, 5)
    mask = torch.arange(7) < torch.tensor([[7], [2], [0], [5]])  # one text has no words
    plain, other = gru(inputs, mask), gru.run_recurrence(inputs, mask, gru_recurrence)
    assert torch.allclose(other, plain, atol=1e-6)
    assert not other[~mask].any()
    weight = torch.randn_like(plain)
    gradients = [torch.autograd.grad((each * weight).sum(), [*gru.parameters()]) for each in (other, plain)]
    assert all(torch.allclose(one, two, atol=1e-5) for one, two in zip(*gradients, strict=True))


def test_variational_dropout_drops_a_column_at_every_word_or_at_none():
    torch.manual_seed(0)
    dropout = VariationalDropout(0.5)
    dropped = dropout(torch.ones(3, 6, 20))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped, dropped[:, :1].expand(3, 6, 20))
    assert not torch.equal(dropped[0], dropped[1])
    assert torch.equal(dropout.eval()(torch.ones(3, 6, 20)), torch.ones(3, 6, 20))
