"""gensim's own files: a pickle, and a .npy beside it for each large array.

A pickle can run code. This one is read without gensim and without running any: its classes become empty holders, and
only numpy's arrays are built.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, NotFoundError, UnsafeFileError, missing_extra
from pyelmo.vectors.fasttext import Subwords

_ARRAYS = {"_reconstruct", "scalar", "_frombuffer", "ndarray", "dtype"}
_ARRAY_MODULES = {
    "numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric",
}  # fmt: skip
_PLAIN = {("collections", "defaultdict"), ("collections", "OrderedDict"), ("builtins", "int")}
_WORDS, _MATRIX = ("index_to_key", "index2word", "index2entity"), ("vectors", "syn0")  # gensim 4, and before
_PARTS = "vectors_vocab"  # all there is of fastText's: gensim leaves out what it can make of these and the n-grams


class _Holder:
    """What an object of gensim's kept, without what it could do."""

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module in _ARRAY_MODULES and name in _ARRAYS) or (module, name) in _PLAIN:
            return super().find_class(module, name)
        unused = module.startswith("numpy.random") or (module, name) == ("builtins", "hash")  # parts of a whole model
        if module.split(".")[0] == "gensim" or unused:
            return _Holder
        raise UnsafeFileError(f"the file wants {module}.{name}, which vectors of gensim's have no use for")


def read(path: Path) -> tuple[list[str], Float32Array, Subwords | None]:
    """The words and vectors of KeyedVectors or of a whole model (Word2Vec, FastText)."""
    try:
        with path.open("rb") as file:
            stored = _PlainUnpickler(file).load()
    except UnsafeFileError as error:
        raise UnsafeFileError(f"{path}: {error}. It was not read.") from error
    except Exception as error:  # a damaged pickle fails in any way
        raise FormatError(f"{path}: not a whole file of gensim's ({type(error).__name__}: {error})") from error
    inner = getattr(stored, "wv", None)
    base, holder = (f"{path}.wv", inner) if isinstance(inner, _Holder) else (str(path), stored)
    kept = vars(holder) if isinstance(holder, _Holder) else {}
    for name in kept.get("__numpys", ()):
        kept[name] = _array(Path(f"{base}.{name}.npy"))
    words = next((kept[name] for name in _WORDS if name in kept), None)
    matrix = next((kept[name] for name in (*_MATRIX, _PARTS) if kept.get(name) is not None), None)
    if not isinstance(words, list) or not _is_matrix(matrix):
        raise FormatError(f"{path}: a file of gensim's, but without word vectors")
    assert matrix is not None
    if len(matrix) != len(words) or not all(isinstance(word, str) for word in words) or not np.isfinite(matrix).all():
        raise FormatError(
            f"{path}: {len(words)} words and {len(matrix)} vectors, or a number not finite. Is it damaged?"
        )
    subwords = _subwords(kept)
    vectors: Float32Array = matrix.astype(np.float32)
    return words, subwords.compose(words, vectors) if subwords and matrix is kept.get(_PARTS) else vectors, subwords


def write(path: Path, words: Sequence[str], matrix: Float32Array) -> None:
    """One file of KeyedVectors; arrays stay inside, so that it can replace an old one in one step."""
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        raise missing_extra("vectors", "writing gensim's format") from None
    keyed = KeyedVectors(matrix.shape[1])
    keyed.add_vectors(list(words), matrix)
    keyed.save(str(path), sep_limit=1 << 62)


def _array(path: Path) -> npt.NDArray[Any]:
    if not path.is_file():
        raise NotFoundError(f"{path}: not found; it belongs to the file of gensim's beside it. Copy both.")
    try:
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise FormatError(f"{path}: not a whole array of numpy's ({error})") from error
    return array


def _is_matrix(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f" and value.size > 0


def _subwords(kept: dict[str, Any]) -> Subwords | None:
    ngrams, least, most = (kept.get(name) for name in ("vectors_ngrams", "min_n", "max_n"))
    if not _is_matrix(ngrams) or not isinstance(least, int) or not isinstance(most, int):
        return None
    assert ngrams is not None
    return Subwords(ngrams.astype(np.float32, copy=False), least, most)
