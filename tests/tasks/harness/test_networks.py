"""Task networks: shapes as the papers have them, no result that padding or company changes, gradients everywhere."""

from __future__ import annotations

import pytest
import torch
from support import TOLERANCE
from torch.autograd import gradcheck
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from pyelmo.model.recurrent import BiGru, BiLstm, VariationalDropout, gru_recurrence, pack
from pyelmo.tasks.harness.batching import WordIdCache
from pyelmo.tasks.harness.representation import WordIndex
from pyelmo.tasks.ner.network import CharacterFeatures, CharacterRows, TaggerNetwork
from pyelmo.tasks.sentiment.network import BcnNetwork
from pyelmo.tasks.srl.network import SrlNetwork
from pyelmo.text.characters import Bytes, encode_rows

LABELS = ["O", "B-V", "I-V", "B-A0", "I-A0"]
LENGTHS = torch.tensor([4, 1, 3])
MASK = torch.arange(4) < LENGTHS[:, None]


def make_srl(**settings):
    network = SrlNetwork(5, LABELS, **{"hidden": 6, "layers": 4, "flag": 3} | settings)
    predicates = torch.tensor([1, 0, 2])
    return network, lambda inputs, mask, extra: network(inputs, predicates[: len(inputs)], mask)


def make_tagger(extra=0):
    network = TaggerNetwork(5, 7, hidden=(6, 4), extra=extra)
    return network, lambda inputs, mask, joined: network(inputs, mask, joined if extra else None)


def make_bcn(extra=0):
    network = BcnNetwork(5, 3, hidden=4, extra=extra)
    return network, lambda inputs, mask, joined: network(inputs, mask, joined if extra else None)


MAKERS = {
    "srl": make_srl,
    "srl, odd layers": lambda: make_srl(layers=3),
    "tagger": make_tagger,
    "tagger and elmo": lambda: make_tagger(2),
    "bcn": make_bcn,
    "bcn and elmo": lambda: make_bcn(2),
}


@pytest.fixture(params=MAKERS)
def made(request):
    """A network in evaluation, and three sentences in float64."""
    torch.manual_seed(0)
    network, run = MAKERS[request.param]()
    inputs, extra = torch.randn(3, 4, 5).double(), torch.randn(3, 4, 2).double()
    return network.double().eval(), run, inputs, extra


def real(outputs, mask):
    """What an output says of words; a class's scores (B, K) are of the whole text."""
    return outputs[mask] if outputs.dim() == 3 else outputs


def test_padding_never_changes_a_result_whatever_it_holds(made):
    _, run, inputs, extra = made
    want = real(run(inputs, MASK, extra), MASK)
    for filling in (0.0, 1e3, float("nan")):
        wide, joined = (pad(tensor, (0, 0, 0, 2)) for tensor in (inputs, extra))
        mask = pad(MASK, (0, 2))
        wide[~mask], joined[~mask] = filling, filling
        got = real(run(wide, mask, joined), mask)
        assert torch.allclose(got, want, rtol=0, atol=TOLERANCE[torch.float64])


def test_a_sentence_alone_gives_what_it_gives_in_company(made):
    _, run, inputs, extra = made
    together = run(inputs, MASK, extra)
    length = LENGTHS[0]
    alone = run(inputs[:1, :length], MASK[:1, :length], extra[:1, :length])
    want = together[:1, :length] if together.dim() == 3 else together[:1]
    assert torch.allclose(alone, want, rtol=0, atol=TOLERANCE[torch.float64])


def test_gradients_agree_with_finite_differences(made):
    _, run, inputs, extra = made
    inputs, extra = inputs[:2, :3].clone().requires_grad_(), extra[:2, :3].clone().requires_grad_()
    mask = MASK[:2, :3]
    assert gradcheck(
        lambda *values: real(run(values[0], mask, values[1]), mask), (inputs, extra), check_undefined_grad=False
    )


def test_every_parameter_and_every_word_gets_a_gradient(made):
    network, run, inputs, extra = made
    inputs.requires_grad_()
    extra.requires_grad_()
    real(run(inputs, MASK, extra), MASK).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert inputs.grad[MASK].any(1).all()
    assert not inputs.grad[~MASK].any()


def test_training_drops_and_evaluation_does_not(made):
    network, run, inputs, extra = made
    assert torch.equal(run(inputs, MASK, extra), run(inputs, MASK, extra))
    network.train()
    torch.manual_seed(1)
    assert not torch.equal(run(inputs, MASK, extra), run(inputs, MASK, extra))


def test_each_network_learns_three_sentences_by_heart():
    torch.manual_seed(0)
    inputs, extra = torch.randn(3, 4, 5), torch.randn(3, 4, 2)
    targets = torch.randint(3, (3, 4))
    for make in MAKERS.values():
        network, run = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
        for _ in range(150):
            scores = run(inputs, MASK, extra)
            wanted = targets[MASK] if scores.dim() == 3 else targets[:, 0]
            loss = torch.nn.functional.cross_entropy(real(scores, MASK), wanted)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        network.eval()
        assert torch.equal(real(run(inputs, MASK, extra), MASK).argmax(-1), wanted)


def test_the_place_of_the_predicate_changes_the_roles_and_roles_are_valid_spans():
    torch.manual_seed(0)
    network = SrlNetwork(5, LABELS, hidden=6, layers=4).eval()
    inputs = torch.randn(1, 4, 5).expand(2, 4, 5)
    mask = torch.ones(2, 4, dtype=torch.bool)
    scores = network(inputs, torch.tensor([0, 3]), mask)
    assert not torch.allclose(scores[0], scores[1])
    scores = torch.randn(50, 4, len(LABELS)) * 100
    for path in network.decode(scores, torch.ones(50, 4, dtype=torch.bool)):
        for before, after in zip(["O", *(LABELS[one] for one in path)], [LABELS[one] for one in path], strict=False):
            assert after[0] != "I" or before[2:] == after[2:]


def test_without_a_scored_transition_the_best_valid_labels_are_the_best_labels():
    network = SrlNetwork(5, LABELS, hidden=4, layers=1)
    scores = torch.tensor([[[0.0, 5, 0, 0, 0], [0, 0, 5, 0, 0], [4, 0, 0, 0, 5]]])
    assert network.decode(scores, torch.ones(1, 3, dtype=torch.bool)) == [[1, 2, 0]]  # I-A0 cannot follow I-V


def test_directions_take_turns():
    """One layer sees only the words before, two see all."""
    torch.manual_seed(0)
    inputs, mask, predicates = (
        torch.randn(1, 4, 5, requires_grad=True),
        torch.ones(1, 4, dtype=torch.bool),
        torch.zeros(1).long(),
    )
    for layers, seen in ((1, [True, True, False, False]), (2, [True, True, True, True])):
        network = SrlNetwork(5, LABELS, hidden=6, layers=layers).eval()
        (gradient,) = torch.autograd.grad(network(inputs, predicates, mask)[0, 1].sum(), inputs)
        assert gradient[0].any(1).tolist() == seen


def test_the_paper_s_sizes_are_the_defaults():
    srl = SrlNetwork(100, LABELS)
    assert [layer.recurrent.shape for layer in srl.layers] == [(1500, 300)] * 8
    assert [layer.input.shape[1] for layer in srl.layers] == [200] + [300] * 7
    tagger = TaggerNetwork(178, 9)
    assert (tagger.first.lstm.hidden_size, tagger.second.lstm.hidden_size) == (200, 100)
    assert tagger.emissions.in_features == 200
    bcn = BcnNetwork(300, 5)
    assert [layer.linear.weight.shape for layer in bcn.output] == [(4800, 2400), (2400, 1200), (20, 600)]


def test_a_text_without_words_gets_scores_and_leaves_gradients_finite():
    torch.manual_seed(0)
    network = BcnNetwork(5, 3, hidden=4)
    inputs = torch.randn(3, 4, 5, requires_grad=True)
    mask = MASK.clone()
    mask[1] = False
    network(inputs, mask).square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad.isfinite().all()
    scores = network.eval()(inputs, mask)
    assert scores.isfinite().all()
    assert torch.equal(scores[1], network(torch.zeros_like(inputs), mask)[1])
    tagger = TaggerNetwork(5, 3, hidden=(4, 4)).eval()
    assert tagger(inputs, mask).isfinite().all()


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
    found = [torch.autograd.grad((each * weight).sum(), [*gru.parameters()]) for each in (other, plain)]
    assert all(torch.allclose(one, two, atol=1e-5) for one, two in zip(*found, strict=True))


def test_variational_dropout_drops_a_column_at_every_word_or_at_none():
    torch.manual_seed(0)
    dropout = VariationalDropout(0.5)
    dropped = dropout(torch.ones(3, 6, 20))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped, dropped[:, :1].expand(3, 6, 20))
    assert not torch.equal(dropped[0], dropped[1])
    assert torch.equal(dropout.eval()(torch.ones(3, 6, 20)), torch.ones(3, 6, 20))


def test_characters_give_the_same_features_wherever_a_word_stands():
    torch.manual_seed(0)
    alphabet = Bytes(12)
    network = CharacterFeatures(alphabet).eval()
    rows = torch.from_numpy(encode_rows(alphabet, ["ran", "He", "ran", "away"])).long()
    flat, batch = network(rows), network(rows.view(2, 2, 12))
    assert batch.shape == (2, 2, 128)
    assert network.size == 128
    assert torch.allclose(batch.view(4, 128), flat, rtol=0, atol=TOLERANCE[torch.float32])
    assert torch.equal(flat[0], flat[2])
    assert not torch.equal(flat[0], flat[1])


def test_a_word_s_row_is_made_once_and_is_that_of_the_alphabet(monkeypatch):
    rows = CharacterRows(Bytes(8))
    texts = [("to", "be"), ("or", "to")]
    for _ in range(2):
        table, places = rows(texts)
        assert table.tolist() == encode_rows(Bytes(8), ["to", "be", "or"]).tolist()
        assert places.tolist() == [0, 1, 2, 0]
    monkeypatch.setattr("pyelmo.tasks.ner.network.encode_rows", lambda alphabet, new: [8 * [7]] * len(new))
    table, places = rows([("new", "be")])  # in their order in these texts, whatever was before
    assert table.tolist() == [8 * [7], encode_rows(Bytes(8), ["be"])[0].tolist()]
    assert places.tolist() == [0, 1]
    monkeypatch.setattr("pyelmo.tasks.ner.network.KEPT", 1)
    assert rows([("be",)])[0].tolist() == [8 * [7]]  # forgotten


def test_a_word_stands_in_the_table_by_itself_or_in_small_letters():
    rows = WordIndex(["the", "Cat"])
    assert [rows[word] for word in ("the", "The", "Cat", "cat", "dog")] == [1, 1, 2, 0, 0]


def test_the_numbers_of_a_text_are_looked_up_once_until_too_many_are_kept(monkeypatch):
    asked: list[str] = []
    numbers = WordIdCache(lambda word: asked.append(word) or len(word))
    for _ in range(2):
        assert numbers([("The", "Cat"), ("is",), ("The", "Cat")]).tolist() == [3, 3, 2, 3, 3]
    assert asked == ["The", "Cat", "is"]
    monkeypatch.setattr("pyelmo.tasks.harness.batching.CACHED_WORDS", 2)
    assert numbers([("a",)]).tolist() == [1]
    assert (list(numbers.known), numbers.words) == ([("a",)], 1)  # the others are forgotten
