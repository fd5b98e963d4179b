"""ELMo as transformers of scikit-learn: sentences -> a matrix, for pipelines, grid search and pandas output.

    ElmoVectorizer        N sentences -> (N, D), one vector per sentence
    ElmoTokenVectorizer   N sentences -> (tokens of all sentences, D), or lists of dicts for sklearn-crfsuite

They hold the name of a model and not its weights, so that a pickle or a clone is small. In one process, all of them
share one embedder for each model. There is nothing to fit: `transform` works at once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder, Precision, load
from pyelmo.embed.engines.build import check_choice
from pyelmo.errors import InputError, missing_extra
from pyelmo.formats import resolve

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError:
    raise missing_extra("sklearn", "ELMo for scikit-learn") from None

MODELS = 2  # embedders that stay in memory


@functools.lru_cache(MODELS)
def _load(path: Path, written: tuple[int, int], precision: Precision, device: str) -> Embedder:
    """Return the embedder of a model; `written` changes when the model is replaced."""
    return load(path, precision=precision, device=device)


class _ElmoTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both share: the model, and what scikit-learn wants to know of a transformer."""

    model: str | Path
    precision: Precision
    device: str

    def fit(self, X: Iterable[Any], y: Any = None) -> Any:
        """Check the arguments. Nothing is learnt.

        Args:
            X: The sentences, which are not read.
            y: Not used.

        Returns:
            This transformer.

        Raises:
            InputError: An argument cannot be used, or `X` is one string.
            NotFoundError: There is no such model.
        """
        self._sentences(X)
        self._vectors(self._embedder(), [])
        return self

    def transform(self, X: Iterable[Any]) -> Any:
        """Return the vectors.

        Args:
            X: Strings, which are split into words, or lists of words.

        Returns:
            See the class.

        Raises:
            InputError: An argument or a sentence cannot be used.
        """
        return self._vectors(self._embedder(), self._sentences(X))

    def _vectors(self, embedder: Embedder, sentences: list[Any]) -> Any:
        raise NotImplementedError

    def _embedder(self) -> Embedder:
        path = resolve.locate(self.model)
        facts = path.stat() if path.exists() else None  # the prefix of a checkpoint is no file
        return _load(path, (facts.st_ino, facts.st_mtime_ns) if facts else (0, 0), self.precision, self.device)

    @staticmethod
    def _sentences(X: Any) -> list[Any]:
        if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
            raise InputError(f"expected a list of sentences, got {type(X).__name__}: {str(X)[:40]!r}")
        if getattr(X, "ndim", 1) != 1 or hasattr(X, "columns"):  # a loop over a data frame gives the names of columns
            raise InputError(
                f"expected a list of sentences, got a table ({type(X).__name__} of shape {getattr(X, 'shape', '?')}). "
                "Give one column, such as table['text']; in a ColumnTransformer, its name without brackets"
            )
        return list(X)

    @property
    def _n_features_out(self) -> int:
        return self._embedder().config.dim

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, True, False
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


class ElmoVectorizer(_ElmoTransformer):
    """One vector per sentence, as a matrix (N, D) of float32; the vector of a sentence without words is zero.

    Args:
        model: A source of `pyelmo.load`: a bundled model ("en", "ko"), a folder, a file or a Hub id.
        layers, pooling: As in `Embedder.encode`. Without either, the model's own sentence vector.
        precision, device: As in `pyelmo.load`.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from pyelmo.integrations.sklearn import ElmoVectorizer
        >>> classifier = make_pipeline(ElmoVectorizer("en"), LogisticRegression())
        >>> classifier.fit(["A lovely film.", "A dull film."], [1, 0]).predict(["So lovely!"])
        array([1])
    """

    def __init__(
        self,
        model: str | Path = "en",
        *,
        layers: str | int | Sequence[float] | None = None,
        pooling: str | None = None,
        precision: Precision = "float32",
        device: str = "cpu",
    ) -> None:
        self.model, self.layers, self.pooling = model, layers, pooling
        self.precision, self.device = precision, device

    def _vectors(self, embedder: Embedder, sentences: list[Any]) -> Float32Array:
        vectors: Float32Array = embedder.encode(sentences, layers=self.layers, pooling=self.pooling)
        empty = np.isnan(vectors).all(1)  # `encode` has no vector for them; estimators refuse NaN
        vectors[empty] = 0
        return vectors


class ElmoTokenVectorizer(_ElmoTransformer):
    """One vector per word in its sentence.

    With `output="rows"` the vectors of all sentences follow each other in one matrix (tokens, D): the input of
    estimators that label words, with the labels of all sentences in one list, too. There are more rows than sentences,
    so use it before a pipeline and not in one. With `output="dicts"` each sentence is a list of dictionaries from names
    to values, one per word: the input of sklearn-crfsuite, also in a pipeline.

    Args:
        model: A source of `pyelmo.load`: a bundled model ("en", "ko"), a folder, a file or a Hub id.
        layers: As in `Embedder.embed`, except "all".
        output: "rows" or "dicts".
        precision, device: As in `pyelmo.load`.

    Example:
        >>> from pyelmo.integrations.sklearn import ElmoTokenVectorizer
        >>> ElmoTokenVectorizer("en").transform([["Ann", "lives", "in", "Rome"], ["She", "sings"]]).shape
        (6, 1024)
    """

    def __init__(
        self,
        model: str | Path = "en",
        *,
        layers: str | int | Sequence[float] = "top",
        output: str = "rows",
        precision: Precision = "float32",
        device: str = "cpu",
    ) -> None:
        self.model, self.layers, self.output = model, layers, output
        self.precision, self.device = precision, device

    def _vectors(self, embedder: Embedder, sentences: list[Any]) -> Any:
        check_choice("output", self.output, ("rows", "dicts"))
        if isinstance(self.layers, str) and self.layers == "all":
            raise InputError("layers 'all' gives a word several vectors; choose 'top', 'average', a layer or a mix")
        arrays = embedder.embed(sentences, layers=self.layers)  # (T, D) each
        if self.output == "rows":
            return np.concatenate([np.empty((0, embedder.config.dim), np.float32), *arrays])
        names = self.get_feature_names_out().tolist()
        return [[dict(zip(names, row, strict=True)) for row in array.tolist()] for array in arrays]
