"""ELMo in scikit-learn: the vectors of `Embedder`, its conformance checks, pipelines, grid search and pickles."""

from __future__ import annotations

import doctest
import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from support import make_embedder

import pyelmo
from pyelmo.errors import InputError, NotFoundError

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

from pyelmo.integrations.sklearn import ElmoTokenVectorizer, ElmoVectorizer

SENTENCES = ["A bank account.", "The river", "of the bank, in 1999 they", ["two", "words"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("sklearn") / "model"
    make_embedder().save(folder)
    return str(folder)


@pytest.mark.parametrize(
    "options", [{}, {"layers": "top"}, {"layers": 0, "pooling": "max"}, {"layers": [0.2, 0.3, 0.5]}]
)
def test_vectors_of_sentences_are_those_of_encode_in_any_batch(options, model):
    vectorizer = ElmoVectorizer(model, **options)
    expected = pyelmo.load(model).encode(SENTENCES, **options)
    np.testing.assert_array_equal(vectorizer.fit_transform(SENTENCES), expected)
    for sentence, vector in zip(SENTENCES, expected, strict=True):
        np.testing.assert_array_equal(vectorizer.transform([sentence])[0], vector)


def test_vectors_of_words_are_those_of_embed(model):
    arrays = pyelmo.load(model).embed(SENTENCES, layers="average")
    rows = ElmoTokenVectorizer(model, layers="average").transform(SENTENCES)
    np.testing.assert_array_equal(rows, np.concatenate(arrays))
    dicts = ElmoTokenVectorizer(model, layers="average", output="dicts").transform(SENTENCES)
    assert [len(sentence) for sentence in dicts] == [4, 2, 7, 2]
    assert dicts[1][0] == {f"elmotokenvectorizer{number}": value for number, value in enumerate(arrays[1][0].tolist())}


def test_a_sentence_without_words_is_a_zero_vector_and_no_sentences_an_empty_matrix(model):
    assert not ElmoVectorizer(model).transform(["", "a"])[0].any()
    assert ElmoVectorizer(model).transform([]).shape == ElmoTokenVectorizer(model).transform([""]).shape == (0, 16)


class OnNumbers(ElmoVectorizer):
    """The vectorizer on numbers as words: most checks of scikit-learn have only matrices of numbers to give."""

    def fit(self, X, y=None):  # noqa: N803
        return super().fit(self.words(validate_data(self, X)), y)

    def transform(self, X):  # noqa: N803
        return super().transform(self.words(validate_data(self, X, reset=False)))

    @staticmethod
    def words(rows):
        return [[str(number) for number in row] for row in rows]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, False, True
        return tags


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks_of_estimators_pass(model):
    results = check_estimator(OnNumbers(model))
    passed = [result["check_name"] for result in results if result["status"] == "passed"]
    assert len(passed) > 35
    assert {"check_methods_subset_invariance", "check_methods_sample_order_invariance", "check_dict_unchanged"} <= {
        *passed
    }


@pytest.mark.parametrize("kind", [ElmoVectorizer, ElmoTokenVectorizer])
def test_of_an_estimator_for_text_scikit_learn_checks_only_that_it_can_be_cloned(kind, model):
    with pytest.warns(SkipTestWarning, match="Can't test estimator"):
        (result,) = check_estimator(kind(model))
    assert (result["check_name"], result["status"]) == ("check_estimator_cloneable", "passed")


def test_a_pickle_and_a_clone_have_the_name_of_the_model_and_not_its_weights(model):
    vectorizer = ElmoVectorizer(model, layers="top").fit(SENTENCES)
    data = pickle.dumps(vectorizer)
    assert len(data) < 1000
    expected = vectorizer.transform(SENTENCES)
    for other in (pickle.loads(data), clone(vectorizer)):
        assert other.get_params() == vectorizer.get_params()
        np.testing.assert_array_equal(other.transform(SENTENCES), expected)


def test_columns_have_names_also_in_a_data_frame(model):
    pytest.importorskip("pandas")
    frame = ElmoVectorizer(model).set_output(transform="pandas").fit_transform(SENTENCES)
    assert [*frame.columns][:2] == ["elmovectorizer0", "elmovectorizer1"]
    assert frame.shape == (4, 16)


def test_a_grid_search_chooses_layers_and_pooling(model):
    texts = [f"the {word} {other}" for word in ("good", "bad") for other in ("film", "book", "song", "play")]
    pipeline = make_pipeline(ElmoVectorizer(model, pooling="mean"), LogisticRegression(C=1e6, max_iter=1000))
    grid = {"elmovectorizer__layers": ["top", "average", 0], "elmovectorizer__pooling": ["mean", "max", "last"]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts, [1] * 4 + [0] * 4)
    assert len(search.cv_results_["params"]) == 9
    assert (search.predict(texts) == [1] * 4 + [0] * 4).all()


def test_a_model_that_is_replaced_is_read_again(tmp_path):
    make_embedder().save(tmp_path / "model")
    vectorizer = ElmoVectorizer(tmp_path / "model")
    before = vectorizer.transform(SENTENCES)
    make_embedder(seed=1).save(tmp_path / "model", force=True)
    assert (vectorizer.transform(SENTENCES) != before).any()


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (InputError, "expected a list of sentences, got str", lambda model: ElmoVectorizer(model).fit("A text.")),
        (InputError, "expected a list of sentences, got NoneType", lambda model: ElmoVectorizer(model).fit(None)),
        (InputError, "expected a list of sentences, got bytes", lambda model: ElmoVectorizer(model).fit(b"A text.")),
        (InputError, "expected a list of sentences, got dict", lambda model: ElmoVectorizer(model).fit({"A text.": 1})),
        (
            InputError,
            r"got a table \(ndarray of shape \(1, 1\)",
            lambda model: ElmoVectorizer(model).fit(np.array([["a"]])),
        ),
        (InputError, "pooling 'sum'", lambda model: ElmoVectorizer(model, pooling="sum").fit([])),
        (InputError, "layers 'all'", lambda model: ElmoTokenVectorizer(model, layers="all").fit([])),
        (InputError, "output 'lists' is none of", lambda model: ElmoTokenVectorizer(model, output="lists").fit([])),
        (InputError, "sentence 0", lambda model: ElmoVectorizer(model).transform([3])),
        (NotFoundError, "no such file or folder", lambda model: ElmoVectorizer("nothing").fit([])),
    ],
)
def test_wrong_arguments_are_one_clear_error(error, message, call, model):
    with pytest.raises(error, match=message):
        call(model)


def test_a_data_frame_is_refused_and_its_column_is_read(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": SENTENCES[:3], "length": [4, 2, 7]}, index=[7, 8, 9])
    expected = ElmoVectorizer(model).transform(SENTENCES[:3])
    np.testing.assert_array_equal(ElmoVectorizer(model).transform(frame["text"]), expected)
    np.testing.assert_array_equal(
        make_column_transformer((ElmoVectorizer(model), "text")).fit_transform(frame), expected
    )
    with pytest.raises(InputError, match=r"got a table \(DataFrame of shape \(3, 2\)\). Give one column"):
        ElmoVectorizer(model).transform(frame)
    with pytest.raises(InputError, match="its name without brackets"):
        make_column_transformer((ElmoVectorizer(model), ["text"])).fit_transform(frame)


def test_the_examples_of_docstrings_run():
    result = doctest.testmod(importlib.import_module("pyelmo.integrations.sklearn"))
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_a_missing_library_is_one_line():
    code = (
        "import sys, pyelmo, pyelmo.embed.embedder\n"
        "print('sklearn' in sys.modules, 'torch' in sys.modules)\n"
        "sys.modules['sklearn'] = None\n"
        "try: import pyelmo.integrations.sklearn\n"
        "except pyelmo.PyelmoError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "False False",
        "ELMo for scikit-learn needs an optional dependency. Install it with: pip install 'pyelmo[sklearn]'",
    ]
