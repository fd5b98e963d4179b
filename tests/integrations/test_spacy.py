"""spaCy's documents have the vectors of `Embedder.embed`, in any batch and process, and spaCy trains on them."""

from __future__ import annotations

import importlib
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from support import make_embedder, worst
from thinc.api import Adam

import pyelmo
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import FormatError, InputError, MissingExtraError, NotFoundError

CONFIG = Path(__file__).parents[2] / "examples" / "spacy_ner.cfg"
TEXTS = ["The bank of the river.", "A bank account.", "Banks lend.", "", "  \n", "He sat on the bank of a lake ."]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a small model."""
    folder = tmp_path_factory.mktemp("spacy") / "model"
    make_embedder().save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def nlp(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": model})
    return nlp


def words_of(doc):
    return [token.text for token in doc if not token.is_space]


def rows_of(doc):
    return [token.i for token in doc if not token.is_space]


def test_vectors_are_those_of_embed_bit_by_bit(nlp, model):
    docs = [nlp(text) for text in TEXTS]
    embedder = pyelmo.load(model)
    for doc, layers in zip(docs, embedder.embed([words_of(doc) for doc in docs]), strict=True):
        assert doc.tensor.shape == (len(doc), 16)
        assert np.array_equal(doc._.elmo_layers[:, rows_of(doc)], layers)
        assert np.array_equal(doc.tensor[rows_of(doc)], layers[-1])


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_a_batch_does_not_change_a_vector(nlp, batch_size):
    for doc, alone in zip(nlp.pipe(TEXTS, batch_size=batch_size), map(nlp, TEXTS), strict=True):
        assert np.array_equal(doc._.elmo_layers, alone._.elmo_layers)


@pytest.mark.filterwarnings("ignore:.*W109")  # says that hooks are lost, as the guide does
def test_processes_do_not_change_a_vector(nlp):
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=2))
    for doc, alone in zip(docs, map(nlp, TEXTS), strict=True):
        assert np.array_equal(doc.tensor, alone.tensor)
        assert np.array_equal(doc._.elmo_layers, alone._.elmo_layers)
    from pyelmo.integrations.spacy import use_context

    first, second = map(use_context, docs[:2])
    assert first[1].similarity(second[1]) == nlp(TEXTS[0])[1].similarity(nlp(TEXTS[1])[1])


@pytest.mark.parametrize("layers", ["top", "average", 0, -2, [0.2, 0.3, 0.5]])
def test_the_tensor_holds_the_chosen_layers(model, layers):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": model, "layers": layers, "keep_layers": False})
    doc = nlp(TEXTS[0])
    assert np.array_equal(doc.tensor, pyelmo.load(model).embed([words_of(doc)], layers=layers)[0])
    assert doc._.elmo_layers is None
    assert doc[0]._.elmo_layers is None


def test_tokens_spans_and_documents_have_vectors(nlp):
    doc = nlp("The bank  of the river.")
    assert doc[2].is_space
    assert np.array_equal(doc[1].vector, doc.tensor[1])
    assert [token.has_vector for token in doc][:4] == [True, True, False, True]
    assert not doc[2].vector.any()
    assert np.array_equal(doc[1:4].vector, doc.tensor[[1, 3]].mean(0))  # without the white space
    assert np.array_equal(doc.vector, doc.tensor[rows_of(doc)].mean(0))
    assert np.array_equal(doc[1:4]._.elmo_layers, doc._.elmo_layers[:, 1:4])
    assert np.array_equal(doc[1]._.elmo_layers, doc._.elmo_layers[:, 1])
    assert doc.has_vector
    assert not nlp(" ").has_vector


def test_similarity_follows_the_context():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": "en", "keep_layers": False})
    river, lake, money = nlp.pipe(["the bank of the river", "the bank of the lake", "a bank account"])
    near, far = river[1].similarity(lake[1]), river[1].similarity(money[1])
    assert far + 0.1 < near < 0.999  # spaCy says 1.0 for equal words
    assert np.isclose(
        near, pyelmo.load("en").similarity("the *bank* of the river", "the *bank* of the lake"), atol=1e-6
    )
    assert river[:2].similarity(lake[:2]) > river[:2].similarity(money[:2])
    assert river.similarity(lake) > river.similarity(money)
    assert river[1].similarity(lake) == pytest.approx(lake.similarity(river[1]))


def test_static_vectors_of_the_pipeline_do_not_replace_those_of_elmo(model):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("bank", np.ones(4, np.float32))
    nlp.add_pipe("elmo", config={"model": model})
    doc = nlp("A bank account")
    assert np.array_equal(doc[1].vector, doc.tensor[1])
    assert doc.vector.shape == (16,)


def test_each_sentence_is_embedded_by_itself_where_boundaries_are_set(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": model})
    doc = nlp("A bank. The river.")
    sentences = pyelmo.load(model).embed([["A", "bank", "."], ["The", "river", "."]])
    assert np.array_equal(doc._.elmo_layers, np.concatenate(sentences, 1))


def test_any_tokens_are_words_and_a_token_with_spaces_is_the_mean_of_its_words(nlp, model):
    doc = nlp.get_pipe("elmo")(Doc(nlp.vocab, ["don't", "\n", "New York", "lend"]))
    layers = pyelmo.load(model).embed([["don't", "New", "York", "lend"]])[0]
    assert np.array_equal(doc._.elmo_layers[:, [0, 3]], layers[:, [0, 3]])
    assert worst(doc._.elmo_layers[:, 2], layers[:, 1:3].mean(1)) < 1e-6
    assert not doc._.elmo_layers[:, 1].any()


def test_korean_tokens_are_the_means_of_their_morphemes(tmp_path):
    korean = Embedder(replace(make_embedder().pretrained, language="ko-morph"))
    korean.save(tmp_path / "korean")
    nlp = spacy.blank("ko", config={"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}})
    nlp.add_pipe("elmo", config={"model": str(tmp_path / "korean")})
    doc = nlp("배가 아프다.")
    wanted = korean.embed([words_of(doc)], pooling="words")[0]
    assert np.array_equal(doc._.elmo_layers, wanted)
    invisible = nlp.get_pipe("elmo")(Doc(nlp.vocab, ["\u200b"]))
    assert not invisible.tensor.any()


def test_a_pipeline_stores_the_name_of_its_model(nlp, model, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    assert sum(path.stat().st_size for path in (tmp_path / "pipeline").rglob("*") if path.is_file()) < 200_000
    loaded = spacy.load(tmp_path / "pipeline")
    assert np.array_equal(loaded(TEXTS[0]).tensor, nlp(TEXTS[0]).tensor)
    other = spacy.load(tmp_path / "pipeline", config={"components": {"elmo": {"layers": 0}}})
    assert np.array_equal(other(TEXTS[0]).tensor, nlp(TEXTS[0])._.elmo_layers[0])
    from_bytes = spacy.blank("en", config=nlp.config).from_bytes(nlp.to_bytes())
    assert np.array_equal(from_bytes(TEXTS[0]).tensor, nlp(TEXTS[0]).tensor)


def test_a_pickle_of_the_component_is_small(nlp):
    data = pickle.dumps(nlp.get_pipe("elmo"))
    assert len(data) < 500
    doc = pickle.loads(data)(nlp.make_doc(TEXTS[0]))
    assert np.array_equal(doc.tensor, nlp(TEXTS[0]).tensor)


def test_documents_keep_their_layers_in_a_doc_bin_and_get_their_tensor_from_them(nlp):
    from pyelmo.integrations.spacy import use_context

    expected = nlp(TEXTS[0])
    (doc,) = DocBin(store_user_data=True, docs=[expected]).get_docs(nlp.vocab)
    assert np.array_equal(doc._.elmo_layers, expected._.elmo_layers)
    with pytest.raises(InputError, match=r"0 vectors for 6 tokens.*set doc.tensor = doc._.elmo_layers\[-1\]"):
        use_context(doc)
    doc.tensor = doc._.elmo_layers[-1]
    assert np.array_equal(use_context(doc)[1].vector, expected[1].vector)
    assert doc[1].similarity(expected[1]) == pytest.approx(1)


def test_layers_of_merged_tokens_are_an_error_and_not_those_of_others(nlp):
    doc = nlp(TEXTS[0])
    expected = doc[3].vector
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[:2])
    assert np.array_equal(doc[2].vector, expected)
    for part in (doc[2], doc[1:3]):
        with pytest.raises(InputError, match="has 6 tokens, but the document has 5.*Add it before 'elmo'"):
            part._.elmo_layers  # noqa: B018


def test_components_with_the_same_settings_share_one_model(nlp, model):
    other = spacy.blank("en")
    other.add_pipe("elmo", config={"model": model, "layers": 0})
    assert other.get_pipe("elmo").encoder is nlp.get_pipe("elmo").encoder


def test_a_document_that_fails_goes_to_the_error_handler(nlp, monkeypatch):
    elmo, seen = nlp.get_pipe("elmo"), []
    monkeypatch.setattr(elmo.encoder, "embed", lambda docs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(nlp.pipe(TEXTS))
    monkeypatch.setattr(elmo, "error_handler", lambda *given: seen.append(given), raising=False)
    assert list(elmo.pipe(map(nlp.make_doc, TEXTS), batch_size=4)) == []
    assert [len(docs) for _, _, docs, _ in seen] == [4, 2]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"model": "no-such-model"}, NotFoundError, "no-such-model: no such file or folder"),
        ({"layers": "all"}, InputError, "doc.tensor has one vector per token"),
        ({"layers": 7}, InputError, "layer 7 does not exist"),
    ],
)
def test_a_wrong_setting_is_an_error_when_the_component_is_added(model, config, error, message):
    with pytest.raises(error, match=message):
        spacy.blank("en").add_pipe("elmo", config={"model": model, **config})


# --- the architecture -----------------------------------------------------------------------------------------------


def layer(model, **settings):
    build = spacy.registry.architectures.get("pyelmo.ElmoTok2Vec.v1")  # by the entry point
    tok2vec = build(model=model, **settings)
    tok2vec.initialize()
    return tok2vec


def test_a_fixed_layer_is_that_of_embed(nlp, model):
    docs = [nlp.make_doc(text) for text in TEXTS]
    for layers in ("top", 0):
        vectors = layer(model, layers=layers).predict(docs)
        for doc, got in zip(docs, vectors, strict=True):
            wanted = pyelmo.load(model).embed([words_of(doc)], layers=layers)[0]
            assert np.array_equal(got[rows_of(doc)], wanted)


def test_the_mix_begins_as_the_average_and_has_the_right_gradient(nlp, model):
    docs = [nlp.make_doc(text) for text in TEXTS]
    tok2vec = layer(model)
    for doc, got in zip(docs, tok2vec.predict(docs), strict=True):
        assert worst(got[rows_of(doc)], pyelmo.load(model).embed([words_of(doc)], layers="average")[0]) < 1e-6
    node = next(node for node in tok2vec.walk() if node.name == "elmo")
    random = np.random.default_rng(0)
    node.set_param("logits", random.normal(size=3).astype("f"))
    node.set_param("scale", np.array([1.5], "f"))
    weights = [random.normal(size=(len(doc), 16)).astype("f") for doc in docs]

    def loss():
        return sum(
            float((one * two).sum(dtype=np.float64)) for one, two in zip(weights, node.predict(docs), strict=True)
        )

    node.finish_update(Adam(0.0))  # clears the gradients
    node(docs, is_train=True)[1](weights)
    for name, size in (("logits", 3), ("scale", 1)):
        for index in range(size):
            value, step = node.get_param(name), np.zeros(size, "f")
            step[index] = 1e-2
            node.set_param(name, value + step)
            above = loss()
            node.set_param(name, value - step)
            slope = (above - loss()) / 2e-2
            node.set_param(name, value)
            assert node.get_grad(name)[index] == pytest.approx(slope, rel=1e-2, abs=1e-3)


def test_training_documents_are_embedded_once(nlp, model, monkeypatch):
    tok2vec = layer(model, cache_mb=1, threads=1)
    node = next(node for node in tok2vec.walk() if node.name == "elmo")
    encoder, counts = node._func.encoder, []
    embed = encoder.embed
    monkeypatch.setattr(encoder, "embed", lambda docs: counts.append(len(docs)) or embed(docs))
    docs = [nlp.make_doc(text) for text in TEXTS[:3]]
    tok2vec.predict(docs)
    first = tok2vec(docs, is_train=True)[0]
    second = tok2vec(docs, is_train=True)[0]
    assert counts == [3, 3, 0]  # a prediction is not stored
    assert all(map(np.array_equal, first, second))
    encoder.embed_once([nlp.make_doc("word " * 6000)], store=True, room=2**20)
    assert encoder._cached_bytes < 2**20  # too large to be kept


def ner_config(model, folder, width):
    overrides = {
        "paths.train": str(folder / "train.spacy"), "paths.dev": str(folder / "train.spacy"),
        "components.tok2vec.model.embed.model": model, "components.tok2vec.model.encode.width": width,
        "training.max_steps": 40, "training.eval_frequency": 20, "training.logger.progress_bar": False,
    }  # fmt: skip
    return load_config(CONFIG, overrides=overrides)


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory):
    """A pipeline that spaCy trained with the config of the examples."""
    folder = tmp_path_factory.mktemp("ner")
    vocab = spacy.blank("en").vocab
    docs = []
    for name in ("Ann", "Bob", "Paul", "Mary"):
        for verb in ("ran", "sat", "slept"):
            doc = Doc(vocab, [name, verb, "in", "London", "."])
            doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "LOC")]
            docs.append(doc)
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    nlp = init_nlp(ner_config(model, folder, 16))
    (folder / "out").mkdir()
    train(nlp, folder / "out")
    return folder


def test_the_config_of_the_examples_can_be_assembled(model):
    config = load_config(CONFIG, overrides={"components.tok2vec.model.embed.model": model})
    nlp = spacy.util.load_model_from_config(config, auto_fill=False, validate=True)
    assert nlp.pipe_names == ["tok2vec", "ner"]


def test_spacy_assemble_writes_a_pipeline_with_the_component(nlp, model, tmp_path):
    from spacy.cli.assemble import assemble_cli

    nlp.config.to_disk(tmp_path / "config.cfg")
    context = type("Context", (), {"args": []})
    assemble_cli(context, tmp_path / "config.cfg", tmp_path / "assembled", code_path=None, verbose=False)
    doc = spacy.load(tmp_path / "assembled")(TEXTS[0])
    assert np.array_equal(doc.tensor, pyelmo.load(model).embed([words_of(doc)], layers="top")[0])


def test_spacys_ner_learns_from_elmo(trained):
    nlp = spacy.load(trained / "out" / "model-best")
    assert [(ent.text, ent.label_) for ent in nlp("Ann slept in London .").ents] == [("Ann", "PER"), ("London", "LOC")]
    mix = next(node for node in nlp.get_pipe("tok2vec").model.walk() if node.name == "elmo")
    assert mix.get_param("logits").any()  # equal weights at the beginning


def test_a_trained_pipeline_refuses_another_model(trained, tmp_path):
    make_embedder(seed=1).save(tmp_path / "other")
    config = {"components": {"tok2vec": {"model": {"embed": {"model": str(tmp_path / "other")}}}}}
    nlp = spacy.load(trained / "out" / "model-best", config=config)
    with pytest.raises(FormatError, match="not the model that this pipeline was trained with"):
        nlp("Ann slept in London .")


def test_other_pipes_of_spacy_train_beside_the_component(nlp):
    tagged = spacy.blank("en", config={"components": {}})
    tagged.add_pipe("elmo", config={"model": nlp.get_pipe("elmo").encoder.settings[0]})
    tagger = tagged.add_pipe("tagger")
    tagger.add_label("N")
    tagger.add_label("V")
    example = Example.from_dict(tagged.make_doc("Banks lend"), {"tags": ["N", "V"]})
    tagged.initialize(lambda: [example])
    assert tagged.update([example])["tagger"] > 0
    assert tagged("Banks lend").tensor.shape == (2, 16)


def test_without_spacy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy.language", None)
    monkeypatch.delitem(sys.modules, "pyelmo.integrations.spacy", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'pyelmo\[spacy\]'"):
        importlib.import_module("pyelmo.integrations.spacy")
