"""What computes the layers: whatever it is, the vectors are the same."""

from __future__ import annotations

import copy
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import GOLDEN, TINY, TOLERANCE, make_embedder, worst

import pyelmo
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.engines import softmax
from pyelmo.embed.engines.cpu import CpuEngine
from pyelmo.embed.engines.torch import TorchEngine, TorchSoftmax
from pyelmo.embed.engines.word_table import WordTable
from pyelmo.embed.stream import split_windows
from pyelmo.errors import FormatError, InputError
from pyelmo.formats.native import quantised
from pyelmo.formats.pretrained import Pretrained
from pyelmo.kernels.cpu import compiled
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

SENTENCES = [["the", "bank", "of", "a", "river"], [], ["a", "bank"], ["x" * 99, "é", "강"], ["the"] * 40]
WORDS = Vocabulary(["<S>", "</S>", "<UNK>", "the", "bank", "of", "a"])
CHARS, LSTM = TINY.chars, TINY.lstm
CONFIGS = {
    "tiny": TINY,
    "no highway, tanh": ModelConfig(chars=replace(CHARS, highways=0, activation="tanh"), lstm=LSTM),
    "no projection": ModelConfig(chars=CHARS, lstm=LstmConfig(cells=20, projection=None, layers=1)),
    "no clip, no skip, three layers": ModelConfig(
        chars=CHARS, lstm=LstmConfig(cells=24, projection=8, layers=3, cell_clip=None, projection_clip=None, skip=False)
    ),
    "one direction": ModelConfig(chars=CHARS, lstm=LSTM, bidirectional=False),
    "words": ModelConfig(chars=None, words=WordConfig(size=len(WORDS), dim=8), project=False, lstm=LSTM),
    "words and characters": ModelConfig(chars=CHARS, words=WordConfig(size=len(WORDS), dim=5), lstm=LSTM),
}
COMPILED = pytest.mark.skipif(not compiled.available(), reason="the package was installed without a compiler")


def model_of(config, seed=0):
    torch.manual_seed(seed)
    alphabet = Bytes(config.chars.max_length) if config.chars else None
    lexicon = Lexicon(alphabet, WORDS if config.words else None, reads_words=config.words is not None)
    return Pretrained(BiLM(config).eval(), lexicon, "test", "test")


def embed_with(engine, model, sentences=SENTENCES):
    """All layers of each sentence, in one batch of one engine."""
    order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
    table = WordTable(engine, model.lexicon)
    [(tokens, lengths)] = split_windows([sentences[row] for row in order], 10**6, table.boundaries)
    rows, vectors = table.look_up(tokens)
    values = engine.submit(vectors, rows, lengths, lambda layers: layers, "float32").result()
    parts = np.split(values, np.cumsum(lengths)[:-1], axis=-2)
    return [parts[order.index(row)] for row in range(len(sentences))]


def cpu_engine(model, precision="float32"):
    convert = quantised if precision == "int8" else lambda name, weight: weight
    return CpuEngine(model.config, model.weights.__getitem__, convert)


@COMPILED
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_compiled_engine_equals_the_model(config):
    model = model_of(config)
    plain = embed_with(TorchEngine(model.bilm, torch.device("cpu")), model)
    for fast, slow in zip(embed_with(cpu_engine(model), model), plain, strict=True):
        assert worst(fast, slow) <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_int8_is_near_float32(config):
    model = model_of(config)
    exact = np.concatenate(embed_with(TorchEngine(model.bilm, torch.device("cpu")), model), 1)
    rounded = np.concatenate(embed_with(cpu_engine(model, "int8"), model), 1)
    for layer, (some, others) in enumerate(zip(rounded, exact, strict=True)):
        cosine = (some * others).sum(-1) / np.linalg.norm(some, axis=-1) / np.linalg.norm(others, axis=-1)
        assert cosine.mean() >= 0.9995, layer
        assert cosine.min() >= 0.995, layer


@COMPILED
def test_int8_without_a_compiler_gives_nearly_the_same(monkeypatch):
    model = model_of(TINY)
    fast = cpu_engine(model, "int8")
    monkeypatch.setattr(compiled, "available", lambda: False)
    plain = cpu_engine(model, "int8")
    assert fast._kernels is not plain._kernels
    for some, others in zip(embed_with(fast, model), embed_with(plain, model), strict=True):
        assert worst(some, others) <= 0.02


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_threads_and_a_full_word_table_change_no_bit(precision):
    model = model_of(TINY)
    sentences = [[f"w{(i * i) % 50}" for i in range(n % 23)] for n in range(90)]
    one, three = (Embedder(model, precision=precision, threads=threads) for threads in (1, 3))
    want = one.embed(sentences)
    small = Embedder(model, precision=precision, threads=1)
    small._table = WordTable(small.word_table().engine, model.lexicon, capacity=7)
    for got in (three.embed(sentences), list(small.stream(sentences)), one.embed(sentences, batch_size=1)):
        for some, others in zip(got, want, strict=True):
            assert np.array_equal(some, others)


def test_a_trained_model_embeds_as_it_is_now():
    embedder = make_embedder()
    before = embedder.embed(SENTENCES)[0]
    with torch.no_grad():
        embedder.bilm.lstm.layers[0].bias.add_(0.5)
        embedder.bilm.chars.embedding.weight.mul_(1.5)
    after = embedder.embed(SENTENCES)[0]
    assert worst(before, after) > 1e-3
    assert np.array_equal(after, Embedder(embedder.pretrained).embed(SENTENCES)[0])


def test_a_step_of_a_fused_optimiser_is_noticed():
    embedder = make_embedder()
    optimiser = torch.optim.AdamW(embedder.bilm.parameters(), lr=0.1, fused=True)  # leaves `_version` as it is
    before = embedder.embed(SENTENCES)[0]
    for parameter in embedder.bilm.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()
    after = embedder.embed(SENTENCES)[0]
    assert not np.array_equal(after, before)
    assert np.array_equal(after, Embedder(embedder.pretrained).embed(SENTENCES)[0])


def test_several_threads_may_embed_at_once():
    embedder = Embedder(model_of(TINY), threads=1)
    embedder.word_table().capacity = 9
    jobs = [[[f"{job}-{(n * i) % 7}" for i in range(9)] for n in range(30)] for job in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda job: embedder.embed(job, batch_size=2), jobs))
    for job, got in zip(jobs, results, strict=True):
        assert all(map(np.array_equal, got, Embedder(model_of(TINY)).embed(job)))


def test_an_embedder_can_be_copied_and_sent_to_another_process():
    embedder = pyelmo.load(GOLDEN / "allennlp-outputs" / "models" / "clip", language="en", threads=1)
    want = embedder.embed(SENTENCES)
    for twin in (copy.deepcopy(embedder), pickle.loads(pickle.dumps(embedder))):
        assert (twin.language, twin.threads) == ("en", 1)
        assert all(map(np.array_equal, twin.embed(SENTENCES), want))


def test_a_loaded_model_gives_its_weights_back():
    path = GOLDEN / "allennlp-outputs" / "models" / "clip" / "weights.hdf5"
    embedder = pyelmo.load(path)
    before = embedder.embed(SENTENCES)
    weights = pyelmo.formats.resolve.read(path).bilm.state_dict()
    for name, tensor in embedder.bilm.state_dict().items():
        assert torch.equal(tensor, weights[name]), name
    engine = embedder.word_table().engine
    assert all(map(np.array_equal, embedder.embed(SENTENCES), before))
    assert embedder.word_table().engine is engine  # looking at the model is no reason to pack it again


def test_an_int8_model_is_a_quarter_and_survives(tmp_path):
    config = ModelConfig(lstm=LstmConfig(cells=256, projection=64), chars=CharConfig(highways=1))
    first = make_embedder(config)
    first.save(tmp_path / "float32")
    first.save(tmp_path / "int8", precision="int8")
    sizes = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("float32", "int8")}
    assert sizes["int8"] <= 0.27 * sizes["float32"]
    second = pyelmo.load(tmp_path / "int8", precision="int8")
    engine = second.word_table().engine
    second.save(tmp_path / "again")
    second.save(tmp_path / "weights.hdf5")  # which holds floats
    assert second.word_table().engine is engine  # saving is no reason to pack again
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("int8", "again")]
    assert files[0] == files[1]
    direct = pyelmo.load(tmp_path / "float32", precision="int8").embed(SENTENCES)
    assert all(map(np.array_equal, second.embed(SENTENCES), direct))
    rounded = pyelmo.load(tmp_path / "int8")  # the same weights, float32 arithmetic
    for some, others in zip(rounded.embed(SENTENCES), second.embed(SENTENCES), strict=True):
        assert 0 < worst(some, others) < 0.1 or not some.size
    with pytest.raises(InputError, match="only pyelmo's own format"):
        first.save(tmp_path / "hdf5", format="allennlp", precision="int8")


def test_a_damaged_int8_model_is_one_clear_error(tmp_path):
    from safetensors.torch import load_file, save_file

    make_embedder().save(tmp_path / "m", precision="int8")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    scale = tensors.pop("lstm.layers.0.input.scale")
    save_file(tensors, tmp_path / "m" / "model.safetensors")
    with pytest.raises(FormatError, match=r"'lstm.layers.0.input' is int8.*missing"):
        pyelmo.load(tmp_path / "m")
    for bad, message in (
        (scale[:, :3], r"input.scale' is \(2, 3\)"),
        (scale[0, 0], r"is \(\) float32"),
        (scale * np.nan, "NaN or infinite"),
    ):
        save_file({**tensors, "lstm.layers.0.input.scale": bad.contiguous()}, tmp_path / "m" / "model.safetensors")
        with pytest.raises(FormatError, match=message):
            pyelmo.load(tmp_path / "m")


def test_float16_is_float32_rounded():
    embedder = make_embedder()
    for pooling in (None, "mean"):
        exact, half = (embedder.embed(SENTENCES, pooling=pooling, dtype=dtype) for dtype in ("float32", "float16"))
        for some, others in zip(half, exact, strict=True):
            assert some.dtype == np.float16
            assert np.array_equal(some, others.astype(np.float16), equal_nan=True)
    assert embedder.embed([["a"]], output="torch", dtype="float16")[0].dtype == torch.float16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, "precision 'int4' is none of"),
        ({"precision": "bfloat16"}, "is not available on device 'cpu'"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Embedder(model_of(TINY), **options)


def test_a_missing_fast_path_is_logged_once(monkeypatch, caplog):
    monkeypatch.setattr(compiled, "library", lambda: None)
    monkeypatch.delenv("PYELMO_CPU", raising=False)
    compiled.instruction_set.cache_clear()
    try:
        with caplog.at_level(logging.WARNING, logger="pyelmo"):
            slow, _ = (make_embedder().embed(SENTENCES) for _ in range(2))
    finally:
        monkeypatch.undo()
        compiled.instruction_set.cache_clear()
    assert [record.message for record in caplog.records if "C compiler" in record.message] == [
        "pyelmo was installed without a C compiler, so embedding on a CPU is several times slower. "
        "Install a compiler, then pyelmo again."
    ]
    for some, others in zip(slow, make_embedder().embed(SENTENCES), strict=True):
        assert worst(some, others) <= TOLERANCE[torch.float32]


@pytest.mark.parametrize(
    "words", [{}, {"words": WordConfig(size=50, dim=8), "softmax_shares_words": True}, {"softmax_cutoffs": (5, 20)}]
)
@pytest.mark.parametrize("kind", ["compiled", "plain"])
def test_the_softmax_of_an_engine_is_that_of_the_model(words, kind, monkeypatch):
    model = model_of(ModelConfig(lstm=TINY.lstm, chars=TINY.chars, softmax=50, **words))
    if kind == "plain":
        monkeypatch.setattr(compiled, "available", lambda: False)
    monkeypatch.setattr(softmax, "WORDS_AT_ONCE", 16)
    monkeypatch.setattr(softmax, "VECTORS_AT_ONCE", 7)
    vectors = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    targets = np.arange(30) % 50
    fast = softmax.CpuSoftmax(model.config, model.weights.__getitem__, threads=2)
    plain = TorchSoftmax(model.bilm)
    assert worst(fast.log_probabilities(vectors), plain.log_probabilities(vectors)) <= TOLERANCE[torch.float32]
    assert worst(fast.losses(vectors, targets), plain.losses(vectors, targets)) <= TOLERANCE[torch.float32]
    assert np.array_equal(fast.losses(vectors[3:4], targets[3:4]), fast.losses(vectors, targets)[3:4])
