"""Batches for truncated back-propagation: what they hold, their order, and how they resume from a saved position."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyelmo.corpus import stream as stream_module
from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.corpus.stream import Stream, StreamBatch, Window
from pyelmo.errors import InputError

B, T = 6, 5


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("stream")
    chance = random.Random(0)
    sentences = [" ".join(f"w{chance.randint(0, 80)}" for _ in range(chance.randint(1, 15))) for _ in range(200)]
    (folder / "text.txt").write_text("\n".join(sentences))
    prepare(
        PrepareSettings(inputs=[folder / "text.txt"], tokenised=True, vocab_size=50, valid_fraction=0, shard_words=300),
        folder / "out",
    )
    opened = Corpus.open(folder / "out")
    assert len(opened.shards()) > 3
    return opened


@pytest.fixture(autouse=True, params=[1, 100, 1 << 18])
def _batches_made_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_TOKENS_AT_ONCE", request.param)


def windows(batch: StreamBatch) -> Iterator[Window]:
    yield batch.forward
    yield batch.backward


def arrays(batch: StreamBatch) -> list[list[list[int]]]:
    return [array.tolist() for window in windows(batch) for array in (window.inputs, window.targets)]


def take(stream: Stream, count: int) -> list[list[list[list[int]]]]:
    return [arrays(next(stream)) for _ in range(count)]


def one_epoch(stream: Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All rows of an epoch end to end: forward inputs and targets, backward inputs and targets."""
    batches = [next(stream) for _ in range(stream.batches_per_epoch)]
    parts = [
        np.concatenate([array(batch) for batch in batches], axis=1).ravel()
        for array in (
            lambda batch: batch.forward.inputs,
            lambda batch: batch.forward.targets,
            lambda batch: batch.backward.inputs,
            lambda batch: batch.backward.targets,
        )
    ]
    return parts[0], parts[1], parts[2], parts[3]


def test_the_directions_read_and_predict_as_in_the_paper(corpus: Corpus) -> None:
    stream = Stream(corpus, rows=1, steps=20, shuffle=False)
    sentence = next(corpus.sentences()).tolist()
    n = len(sentence)
    known = list(sentence)
    assert n + 1 <= 20
    batch = next(stream)
    assert batch.forward.inputs[0, : n + 1].tolist() == [0, *sentence]
    assert batch.forward.targets[0, : n + 1].tolist() == [*known, 1]
    assert batch.backward.inputs[0, : n + 1].tolist() == [1, *reversed(sentence)]
    assert batch.backward.targets[0, : n + 1].tolist() == [*reversed(known), 0]


def test_batches_have_their_shapes_and_types(corpus: Corpus) -> None:
    for window in windows(next(Stream(corpus, rows=B, steps=T))):
        for array in (window.inputs, window.targets):
            assert array.shape == (B, T)
            assert array.dtype == np.int32
            assert array.flags.c_contiguous
        assert window.targets.max() < len(corpus.types)


@pytest.mark.parametrize("independent", [False, True])
def test_an_epoch_contains_every_sentence_once_up_to_the_remainder(corpus: Corpus, independent: bool) -> None:
    expected = Counter(tuple(sentence.tolist()) for sentence in corpus.sentences())
    stream = Stream(corpus, rows=B, steps=T, independent=independent, seed=3)
    tokens = sum(map(len, corpus.shards()))
    assert stream.batches_per_epoch == tokens // (B * T)
    for _ in range(3):
        forward_inputs, forward_targets, backward_inputs, _ = one_epoch(stream)
        seen = Counter(tuple(words) for words in _split_after(forward_inputs, 0))
        assert not seen - expected
        assert (expected - seen).total() <= B * T  # the remainder has fewer tokens than a batch
        assert Counter(forward_targets.tolist()).total() == stream.batches_per_epoch * B * T
        seen = Counter(tuple(reversed(words)) for words in _split_after(backward_inputs, 1))
        assert not seen - expected
        assert (expected - seen).total() <= B * T


def _split_after(ids: np.ndarray, boundary: int) -> list[list[int]]:
    """Return the ids between each boundary token and the next."""
    positions = np.flatnonzero(ids == boundary)
    return [ids[a + 1 : b].tolist() for a, b in itertools.pairwise(positions)]


def test_each_batch_continues_the_rows_of_the_batch_before(corpus: Corpus) -> None:
    stream = Stream(corpus, rows=B, steps=T)
    before = next(stream)
    for _ in range(stream.batches_per_epoch - 1):
        batch = next(stream)
        last = before.forward.targets[:, -1]
        follows = batch.forward.inputs[:, 0]
        known = follows
        assert np.where(last == 1, 0, last).tolist() == known.tolist()
        before = batch


def test_targets_are_the_next_inputs_within_a_window(corpus: Corpus) -> None:
    batch = next(Stream(corpus, rows=B, steps=20))
    for window in windows(batch):
        following = window.inputs[:, 1:]
        inside = window.targets[:, :-1] > 1
        assert np.array_equal(window.targets[:, :-1][inside], following[inside])


def test_epochs_seeds_and_directions_have_orders_of_their_own(corpus: Corpus) -> None:
    def epoch(stream: Stream) -> tuple[list[int], list[int]]:
        forward, _, backward, _ = one_epoch(stream)
        return forward.tolist(), backward.tolist()

    one, other = Stream(corpus, rows=B, steps=T, seed=1), Stream(corpus, rows=B, steps=T, seed=2)
    first, second, third = epoch(one), epoch(one), epoch(other)
    for direction in range(2):
        assert first[direction] != second[direction]
        assert first[direction] != third[direction]
    assert epoch(Stream(corpus, rows=B, steps=T, seed=1)) == first
    plain = Stream(corpus, rows=B, steps=T, shuffle=False)
    assert epoch(plain) == epoch(plain)


def test_directions_read_the_same_sentences_unless_independent(corpus: Corpus) -> None:
    def common(independent: bool) -> float:
        stream = Stream(corpus, rows=1, steps=60, independent=independent)
        forward, backward = windows(next(stream))
        return float(np.isin(forward.inputs, backward.inputs).mean())

    assert common(False) > 0.8 > common(True)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_ranks_share_the_rows_of_one_batch(corpus: Corpus, ranks: int, independent: bool) -> None:
    options: dict[str, Any] = {"rows": B, "steps": T, "independent": independent}
    whole = take(Stream(corpus, **options), 130)
    shares = [take(Stream(corpus, rank=rank, ranks=ranks, **options), 130) for rank in range(ranks)]
    for number, batch in enumerate(whole):
        for which, rows in enumerate(batch):
            assert list(itertools.chain(*(share[number][which] for share in shares))) == rows


@pytest.mark.parametrize("position", [0, 1, 7, 40, 100])
def test_a_resumed_stream_continues_at_its_position(corpus: Corpus, position: int) -> None:
    stream = Stream(corpus, rows=B, steps=T, independent=True)
    take(stream, position)
    state = json.loads(json.dumps(stream.state()))
    assert len(json.dumps(state)) < 300
    assert stream.words_seen == position * B * T
    expected = take(stream, 70)
    again = Stream(corpus, rows=B, steps=T, independent=True)
    take(again, 3)
    again.restore(state)
    assert again.words_seen == position * B * T
    assert again.epoch == position // again.batches_per_epoch
    assert take(again, 70) == expected


def test_a_stream_is_resumed_with_another_number_of_ranks(corpus: Corpus) -> None:
    whole = Stream(corpus, rows=B, steps=T)
    take(whole, 11)
    halves = [Stream(corpus, rows=B, steps=T, rank=rank, ranks=2) for rank in range(2)]
    for half in halves:
        half.restore(whole.state())
    expected = arrays(next(whole))
    first, second = (arrays(next(half)) for half in halves)
    assert [a + b for a, b in zip(first, second, strict=True)] == expected


@pytest.mark.parametrize("change", [{"rows": 2 * B}, {"steps": T + 1}, {"seed": 5}, {"independent": True}])
def test_a_position_of_another_stream_is_refused(corpus: Corpus, change: dict[str, Any]) -> None:
    options = {"rows": B, "steps": T} | change
    with pytest.raises(InputError, match=f"{next(iter(change))} was .*, is now"):
        Stream(corpus, rows=B, steps=T).restore(Stream(corpus, **options).state())


def test_a_position_in_another_corpus_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("other text " * 100)
    prepare(PrepareSettings(inputs=[tmp_path / "text.txt"], tokenised=True), tmp_path / "out")
    with pytest.raises(InputError, match="the corpus is a different one"):
        Stream(corpus, rows=B, steps=T).restore(Stream(Corpus.open(tmp_path / "out"), rows=B, steps=T).state())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1000}, "one batch of 1,000 rows of 5 time steps needs 5,000. Use a smaller batch or more text"),
        ({"rows": 0}, "both must be at least 1"),
        ({"rank": 2, "ranks": 2}, "ranks must share the rows evenly"),
        ({"ranks": 4}, "ranks must share the rows evenly"),
        ({"split": "valid"}, "has 0 tokens"),
    ],
)
def test_an_impossible_batch_is_one_clear_error(corpus: Corpus, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Stream(corpus, **({"rows": B, "steps": T} | options))


def test_a_corpus_that_is_just_one_batch_makes_one(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b\nc d\n")
    prepare(PrepareSettings(inputs=[tmp_path / "text.txt"], tokenised=True), tmp_path / "out")
    stream = Stream(Corpus.open(tmp_path / "out"), rows=2, steps=3, shuffle=False)
    for _ in range(3):
        assert arrays(next(stream)) == [
            [[0, 3, 4], [0, 5, 6]],
            [[3, 4, 1], [5, 6, 1]],
            [[1, 4, 3], [1, 6, 5]],
            [[4, 3, 0], [6, 5, 0]],
        ]
    assert stream.epoch == 3
