"""The torch engine gives what the biLM gives, whatever runs beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import TINY, TOLERANCE, make_embedder, worst

from pyelmo.config import LstmConfig, WordConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.engines.torch import TorchEngine
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.layers import LayerChoice, layer_picker
from pyelmo.embed.stream import split_windows
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

SENTENCES = [
    ["the", "bank", "of", "a", "river", "</S>", "é" * 40], ["a", "bank", "x"], ["bank", "a"], ["a"], ["Hello"], [],
]  # fmt: skip
LAYERS = ["all", "top", "average", 0, -2, (0.5, 0.0, 2.0), (1.0, 0.0, 0.0, 0.0, 3.0)]

gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
DEVICES = ["cpu", pytest.param("cuda", marks=gpu)]


def run(
    engine: TorchEngine,
    lexicon: Lexicon,
    sentences: list[list[str]],
    layers: LayerChoice = "all",
    dtype: str = "float32",
) -> list[np.ndarray]:
    """Return vectors with those of the boundary tokens, for sentences given longest first."""
    table = WordTable(engine, lexicon)
    [(tokens, lengths)] = split_windows(sentences, 10**6, table.boundaries)
    rows, vectors = table.look_up(tokens)
    pending = engine.submit(vectors, rows, lengths, layer_picker(layers, engine.bilm.config), dtype)
    values = pending.result()
    assert values.dtype == dtype
    return np.split(values, np.cumsum(lengths)[:-1], axis=-2)


def text(count: int, longest: int = 30) -> list[list[str]]:
    random = np.random.default_rng(0)
    lengths = sorted(random.integers(0, longest, count).tolist(), reverse=True)
    return [[f"w{number}" for number in random.zipf(1.5, length)] for length in lengths]


@pytest.mark.parametrize("layers", LAYERS, ids=str)
def test_on_a_cpu_it_gives_what_embed_gives(tiny, layers):
    want = tiny.embed(SENTENCES, layers=layers, keep_boundaries=True)
    engine = TorchEngine(tiny.bilm)
    for got, vectors in zip(run(engine, tiny.lexicon, SENTENCES, layers), want, strict=True):
        assert worst(got, vectors) <= 1e-6
    for got, vectors in zip(run(engine, tiny.lexicon, SENTENCES, layers, "float16"), want, strict=True):
        assert worst(got, vectors) <= 2e-3


def test_on_a_cpu_batch_mates_change_no_bit(tiny):
    engine = TorchEngine(tiny.bilm)
    sentences = text(40)
    for sentence, together in zip(sentences, run(engine, tiny.lexicon, sentences), strict=True):
        assert np.array_equal(run(engine, tiny.lexicon, [sentence])[0], together)


def test_no_sentences_give_no_vectors(tiny):
    engine = TorchEngine(tiny.bilm)
    table, none = engine.new_table(4), np.zeros(0, dtype=np.int64)
    picker = layer_picker("all", tiny.config)
    assert engine.submit(table, none.astype(np.int32), none, picker, "float32").result().shape == (3, 0, 16)


def test_an_unknown_precision_is_one_clear_error(tiny):
    with pytest.raises(InputError, match="'float64' is none of float32, bfloat16"):
        TorchEngine(tiny.bilm, "cpu", "float64")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("projection", [8, None])
def test_every_kind_of_model_runs(device, directions, projection):
    lstm = LstmConfig(cells=16, projection=projection, layers=2)
    config = replace(TINY, lstm=lstm, words=WordConfig(size=9, dim=6), bidirectional=directions == 2)
    torch.manual_seed(0)
    lexicon = Lexicon(
        make_embedder().lexicon.alphabet, Vocabulary(["<S>", "</S>", "<UNK>", "a", "bank", "river"]), True
    )
    embedder = Embedder(Pretrained(BiLM(config).eval(), lexicon, "test", "test"))
    want = embedder.embed(SENTENCES, keep_boundaries=True)
    for got, vectors in zip(run(TorchEngine(embedder.bilm, device), lexicon, SENTENCES), want, strict=True):
        assert worst(got, vectors) <= TOLERANCE[torch.float32]


WIDE = replace(
    TINY, chars=replace(TINY.chars, filters=((1, 32), (3, 96), (5, 128)), dim=16),
    lstm=LstmConfig(cells=512, projection=128, layers=2),
)  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("layers", ["all", "average", (0.5, 0.0, 2.0)], ids=str)
def test_each_precision_comes_as_near_as_its_tolerance(device, precision, layers):
    embedder, sentences = make_embedder(WIDE), text(200)
    want = embedder.embed(sentences, layers=layers, keep_boundaries=True)
    engine = TorchEngine(embedder.bilm, device, precision)
    for got, vectors in zip(run(engine, embedder.lexicon, sentences, layers), want, strict=True):
        assert worst(got, vectors) <= TOLERANCE[getattr(torch, precision)]


@pytest.mark.parametrize("device", DEVICES[1:])
def test_on_a_gpu_batch_mates_change_a_vector_by_rounding_only(device):
    embedder, sentences = make_embedder(WIDE), text(200)
    engine = TorchEngine(embedder.bilm, device)
    together = run(engine, embedder.lexicon, sentences)
    for place in (0, 7, 100, 150):
        alone = run(engine, embedder.lexicon, sentences[place : place + 1])[0]
        assert worst(alone, together[place]) <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("device", DEVICES[1:])
def test_results_stay_as_they_were_when_many_batches_follow(device):
    embedder, sentences = make_embedder(WIDE), text(60)
    engine = TorchEngine(embedder.bilm, device)
    table, pick = WordTable(engine, embedder.lexicon), layer_picker("all", embedder.config)
    [(tokens, lengths)] = split_windows(sentences, 10**6, table.boundaries)
    rows, vectors = table.look_up(tokens)
    pending_batches = [engine.submit(vectors, rows, lengths, pick, "float32") for _ in range(4 * engine.max_pending)]
    for pending in pending_batches:
        assert np.array_equal(pending.result(), pending_batches[0].result())
