"""ELMo in transformers: the vectors of `Embedder.embed`, round trips, pipelines and fine-tuning."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import TINY, TOLERANCE, worst

import pyelmo
from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig
from pyelmo.errors import InputError
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes, Dictionary, Jamo
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

transformers = pytest.importorskip("transformers")

from pyelmo.integrations.transformers import (  # noqa: E402
    ElmoConfig,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
)

SENTENCES = ["A bank account.", "The river", "", "of the bank, in 1999, they 한국의 강은"]
SIZES = LstmConfig(cells=16, projection=8, layers=2)
FILTERS = ((1, 4), (2, 8))
WORDS = Vocabulary(("<S>", "</S>", "<UNK>", "bank", "river", "The"))
SYMBOLS = ("<bow>", "<eow>", "<bos>", "<eos>", "<oov>", "<pad>", *"abcdeghinorktuv")


def build(config: ModelConfig, lexicon: Lexicon, language: str) -> pyelmo.Embedder:
    torch.manual_seed(0)
    return pyelmo.Embedder(Pretrained(BiLM(config).eval(), lexicon, "test", "test", language))


def words_and_characters() -> pyelmo.Embedder:
    chars = CharConfig(alphabet="dictionary", symbols=len(SYMBOLS), dim=4, filters=FILTERS, max_length=16)
    config = ModelConfig(chars=chars, words=WordConfig(size=5, dim=8), lstm=SIZES)
    vocab = Vocabulary(("<bos>", "<eos>", "<oov>", "bank", "river"), "<bos>", "<eos>", "<oov>")
    return build(config, Lexicon(Dictionary(SYMBOLS, 16), vocab, reads_words=True), "general")


MODELS = {
    "bytes": lambda: build(TINY, Lexicon(Bytes(16)), "en"),
    "jamo": lambda: build(
        ModelConfig(
            chars=CharConfig(alphabet="jamo", symbols=380, dim=4, filters=FILTERS, max_length=16), lstm=SIZES, softmax=6
        ),
        Lexicon(Jamo(16), WORDS),
        "ko",
    ),
    "words": lambda: build(
        ModelConfig(chars=None, words=WordConfig(size=6, dim=8), lstm=SIZES, softmax=6, softmax_shares_words=True),
        Lexicon(None, WORDS, reads_words=True),
        "general",
    ),
    "words and characters": words_and_characters,
    "forward": lambda: build(ModelConfig(chars=TINY.chars, lstm=SIZES, bidirectional=False), Lexicon(Bytes(16)), "en"),
}


@pytest.fixture(params=MODELS)
def saved(request, tmp_path) -> tuple[pyelmo.Embedder, Path]:
    """A tiny model of each kind, and its folder."""
    embedder = MODELS[request.param]()
    embedder.save(tmp_path / "model")
    return embedder, tmp_path / "model"


@pytest.fixture
def folder(tmp_path) -> Path:
    MODELS["bytes"]().save(tmp_path / "model")
    return tmp_path / "model"


def hidden(model, tokenizer, sentences=SENTENCES, **options) -> torch.Tensor:
    """Return all layers (L, B, T, D)."""
    inputs = tokenizer(sentences, padding=True, return_tensors="pt", **options)
    return torch.stack(model(**inputs, output_hidden_states=True).hidden_states)


def check_equal(values: torch.Tensor, arrays: list[np.ndarray], tolerance: float = 0.0) -> None:
    for number, array in enumerate(arrays):
        own = values[:, number].detach().numpy()
        assert worst(own[:, : array.shape[1]], array) <= tolerance
        assert not own[:, array.shape[1] :].any()


def test_vectors_are_those_of_embed_in_any_batch(saved):
    embedder, folder = saved
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    expected = embedder.embed(SENTENCES)
    with torch.no_grad():
        check_equal(hidden(model, tokenizer), expected)
        for sentence, array in zip(SENTENCES, expected, strict=True):
            check_equal(hidden(model, tokenizer, [sentence]), [array])
    check_equal(hidden(model, tokenizer), expected, 1e-6)  # with gradients, through the modules


def test_auto_classes_read_what_save_pretrained_wrote_and_so_does_pyelmo(saved, tmp_path):
    embedder, folder = saved
    ElmoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "out")
    transformers.AutoModel.from_pretrained(folder).save_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModel.from_pretrained(tmp_path / "out")
    expected = embedder.embed(SENTENCES)
    assert isinstance(model, ElmoModel)
    with torch.no_grad():
        check_equal(hidden(model, tokenizer), expected)
    for array, other in zip(pyelmo.load(tmp_path / "out").embed(SENTENCES), expected, strict=True):
        assert worst(array, other) == 0


def test_a_config_has_the_sizes_that_other_code_asks_for(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    assert (config.hidden_size, config.num_hidden_layers, config.num_labels) == (16, 2, 2)


def test_every_weight_of_the_bilm_has_a_gradient(folder):
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    hidden(model, tokenizer).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.bilm.parameters())


def test_after_a_training_step_the_engine_has_the_new_weights(folder):
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    with torch.no_grad():
        before = hidden(model, tokenizer)
        for weight in model.parameters():
            weight.add_(0.1)
        after = hidden(model, tokenizer)
    assert worst(after, hidden(model, tokenizer).detach()) < TOLERANCE[torch.float32]
    assert worst(after, before) > 0.01


def test_words_of_a_list_stay_and_labels_correspond_to_them(folder):
    tokenizer = ElmoTokenizer.from_pretrained(folder)
    encoding = tokenizer([["can't", "stop"], ["one"]], is_split_into_words=True, padding=True)
    assert encoding.tokens(0) == ["can't", "stop"]
    assert encoding.word_ids(1) == [0, None]
    assert tokenizer("can't stop").tokens() == ["ca", "n't", "stop"]
    collator = transformers.DataCollatorForTokenClassification(tokenizer)
    features = [
        {**tokenizer(words, is_split_into_words=True), "labels": [1] * len(words)} for words in (["a", "b"], ["c"])
    ]
    batch = collator(features)
    assert batch["input_ids"].shape == (2, 2, 16)
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [[1, 1], [1, -100]]


def test_eojeols_can_be_split_into_morphemes_that_name_their_word(tmp_path):
    pytest.importorskip("kiwipiepy")
    embedder = pyelmo.Embedder(replace(MODELS["jamo"]().pretrained, language="ko-morph"))
    embedder.save(tmp_path / "model")
    eojeols = ["한국의", "강은", "길다."]
    tokenizer = ElmoTokenizer.from_pretrained(tmp_path / "model", split_words=True)
    encoding = tokenizer(eojeols, is_split_into_words=True)
    assert encoding.tokens() == embedder.tokenise(" ".join(eojeols)) == ["한국", "의", "강", "은", "길", "다", "."]
    assert encoding.word_ids() == [0, 0, 1, 1, 2, 2, 2]


def test_sentences_are_truncated_and_padded_to_lengths_in_words(folder):
    tokenizer = ElmoTokenizer.from_pretrained(folder)
    assert tokenizer([], padding=True)["input_ids"] == []
    assert tokenizer("", return_tensors="pt").input_ids.shape == (1, 0, 16)
    assert tokenizer("a b c d", truncation=True, max_length=2).tokens() == ["a", "b"]
    padded = tokenizer(
        ["a b c"], padding="max_length", max_length=5, return_tensors="np", return_special_tokens_mask=True
    )
    assert padded["input_ids"].shape == (1, 5, 16)
    assert padded["special_tokens_mask"].tolist() == [[0, 0, 0, 1, 1]]
    assert tokenizer(["a b c"], padding=True, pad_to_multiple_of=4, return_tensors="pt").attention_mask.shape == (1, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tokenizer: tokenizer("a", "b"), "pairs of sentences"),
        (lambda tokenizer: tokenizer([["a", "b"]]), "is_split_into_words=True"),
        (lambda tokenizer: tokenizer([3]), "expected a string, got '3'"),
        (lambda tokenizer: tokenizer(3), "expected a string or a list of strings, got int"),
        (lambda tokenizer: tokenizer.decode(tokenizer("a").input_ids), "not decoded to words"),
        (lambda tokenizer: tokenizer.batch_decode(tokenizer(["a b"]).input_ids), "not decoded to words"),
        (
            lambda tokenizer: tokenizer("a", padding=True, padding_side="left"),
            "reads a sentence from the first position",
        ),
        (lambda tokenizer: tokenizer.pad(tokenizer("a")), "expected a batch"),
    ],
)
def test_what_the_tokenizer_cannot_do_is_one_clear_error(call, message, folder):
    with pytest.raises(InputError, match=message):
        call(ElmoTokenizer.from_pretrained(folder))


def test_wrong_inputs_of_the_model_are_one_clear_error(folder):
    model = ElmoModel.from_pretrained(folder)
    with pytest.raises(InputError, match=r"expected \(sentences, words, 16\).* got \(1, 3\)"):
        model(torch.zeros(1, 3, dtype=torch.long))
    wrong = torch.full((1, 2, 16), 262)
    for grad in (True, False):
        with (
            torch.set_grad_enabled(grad),
            pytest.raises(InputError, match="not below 262. Are they from the tokenizer"),
        ):
            model(wrong)
    with pytest.raises(InputError, match="padding must come after the words"):
        model(torch.zeros(1, 2, 16, dtype=torch.long), attention_mask=torch.tensor([[0, 1]]))


def test_ids_may_have_any_type_of_integers(saved):
    folder = saved[1]
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    ids = tokenizer(SENTENCES[0], return_tensors="pt").input_ids
    with torch.no_grad():
        assert torch.equal(model.layers(ids.int()), model.layers(ids))


def test_settings_of_a_tokenizer_are_kept_when_it_is_saved(folder, tmp_path):
    options = {"model_max_length": 2, "truncation_side": "left", "language": "general"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
    tokenizer.save_pretrained(tmp_path / "out")
    for own in (tokenizer, ElmoTokenizer.from_pretrained(tmp_path / "out")):
        assert own("can't stop now", truncation=True).tokens() == ["stop", "now"]
        assert own.tokenize("can't") == ["can", "'", "t"]


def test_a_model_of_words_with_random_weights_needs_its_boundary_tokens():
    words = {"chars": None, "words": {"size": 6, "dim": 8}, "lstm": {"cells": 16, "projection": 8}}
    with pytest.raises(InputError, match="begin_ids and end_ids"):
        ElmoModel(ElmoConfig(model=words))
    assert (
        ElmoModel(ElmoConfig(model=words, begin_ids=[0], end_ids=[1])).layers(torch.zeros(1, 2, 1).int()).shape[2] == 2
    )


def test_feature_extraction_pipeline(folder):
    model, tokenizer = ElmoModel.from_pretrained(folder), ElmoTokenizer.from_pretrained(folder)
    extract = transformers.pipeline("feature-extraction", model=model, tokenizer=tokenizer)
    arrays = pyelmo.load(folder).embed(SENTENCES[:2], layers="top")
    for values, array in zip(extract(SENTENCES[:2], batch_size=2), arrays, strict=True):
        assert worst(np.float32(values[0][: len(array)]), array) == 0


def test_trainer_fits_a_token_classifier_that_is_saved_whole(folder, tmp_path):
    tokenizer = ElmoTokenizer.from_pretrained(folder)
    labels = {"O": 0, "NAME": 1}
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        folder, label2id=labels, id2label={number: label for label, number in labels.items()}, classifier_dropout=0.0
    )
    texts = [["Ann", "sat"], ["sat", "Ann", "sat"], ["Bob", "sat", "Ann"]] * 4
    data = [
        {**tokenizer(words, is_split_into_words=True), "labels": [int(word != "sat") for word in words]}
        for words in texts
    ]
    settings = transformers.TrainingArguments(
        tmp_path / "run", num_train_epochs=10, learning_rate=0.02, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, settings, transformers.DataCollatorForTokenClassification(tokenizer), data, processing_class=tokenizer
    )
    before = model.bilm.projection.weight.detach().clone()
    first = trainer.evaluate(data)["eval_loss"]
    trainer.train()
    last = trainer.evaluate(data)["eval_loss"]
    assert last < first / 4
    assert not torch.equal(model.bilm.projection.weight, before)
    trainer.save_model(tmp_path / "tuned")
    loaded = ElmoForTokenClassification.from_pretrained(tmp_path / "tuned").eval()
    own = ElmoTokenizer.from_pretrained(tmp_path / "tuned")(["Ann sat"], return_tensors="pt")
    with torch.no_grad():
        logits = loaded(**own).logits
        assert torch.equal(logits, model.eval()(**own).logits)
    assert [loaded.config.id2label[number] for number in logits[0].argmax(-1).tolist()] == ["NAME", "O"]
    vectors = pyelmo.load(tmp_path / "tuned").embed(["Ann sat"])[0]  # the biLM alone, without the head
    assert worst(ElmoModel.from_pretrained(tmp_path / "tuned").layers(**own)[:, 0].detach(), vectors) < 1e-6


def test_a_frozen_bilm_has_no_gradients_but_its_task_head_has(folder):
    tokenizer = ElmoTokenizer.from_pretrained(folder)
    model = ElmoForTokenClassification.from_pretrained(folder, num_labels=3)
    model.bilm.requires_grad_(False)
    loss = model(**tokenizer("a b", return_tensors="pt"), labels=torch.tensor([[0, 2]])).loss
    loss.backward()
    assert {name.split(".")[0] for name, weight in model.named_parameters() if weight.grad is not None} == {
        "mix",
        "classifier",
    }


def test_a_model_with_random_weights_trains_and_its_bilm_is_initialised_by_itself():
    torch.manual_seed(0)
    config = ElmoConfig(model=json.loads(json.dumps({"lstm": {"cells": 16, "projection": 8}})))
    model = ElmoModel(config)
    torch.manual_seed(0)
    assert torch.equal(model.bilm.projection.weight, BiLM(config.bilm).projection.weight)


def test_the_bundled_models_are_read_by_name():
    tokenizer, model = ElmoTokenizer.from_pretrained("en"), ElmoModel.from_pretrained("en")
    sentences = ["The bank of the river.", "He don't lend."]
    with torch.no_grad():
        check_equal(hidden(model, tokenizer, sentences), pyelmo.load("en").embed(sentences))
    assert model.bilm.softmax is None


@pytest.mark.parametrize("module", ["transformers", "transformers_tokenizer"])
def test_the_examples_of_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(f"pyelmo.integrations.{module}"))
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_importing_pyelmo_does_not_import_transformers_and_a_missing_one_is_one_line():
    code = (
        "import sys, pyelmo, pyelmo.embed.embedder\n"
        "print('transformers' in sys.modules)\n"
        "sys.modules['transformers'] = None\n"
        "try: import pyelmo.integrations.transformers\n"
        "except pyelmo.PyelmoError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "False",
        "ELMo for transformers needs an optional dependency. Install it with: pip install 'pyelmo[transformers]'",
    ]
