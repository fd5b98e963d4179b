"""The file format of gensim: a pickle, and a .npy file next to it for each large array.

A pickle can run code. This reader needs no gensim and runs no code: objects of gensim become plain holders of their
attributes, and only numpy arrays are built.
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
_WORDS, _MATRIX = ("index_to_key", "index2word", "index2entity"), ("vectors", "syn0")  # gensim 4, and earlier versions
_FASTTEXT = "vectors_vocab"  # gensim does not store fastText vectors that follow from these and the n-grams


class _Holder:
    """The attributes of a gensim object, without its methods."""

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module in _ARRAY_MODULES and name in _ARRAYS) or (module, name) in _PLAIN:
            return super().find_class(module, name)
        unused = module.startswith("numpy.random") or (module, name) == ("builtins", "hash")  # in a complete model
        if module.split(".")[0] == "gensim" or unused:
            return _Holder
        raise UnsafeFileError(f"the file asks for {module}.{name}, which gensim vectors do not need")


def read(path: Path) -> tuple[list[str], Float32Array, Subwords | None]:
    """Read the words and vectors of KeyedVectors or of a complete model (Word2Vec, FastText)."""
    try:
        with path.open("rb") as file:
            stored = _PlainUnpickler(file).load()
    except UnsafeFileError as error:
        raise UnsafeFileError(f"{path}: {error}. The file was not loaded, because it could run code.") from error
    except Exception as error:  # a damaged pickle can raise any error
        raise FormatError(f"{path}: not a complete gensim file ({type(error).__name__}: {error})") from error
    inner = getattr(stored, "wv", None)
    base, holder = (f"{path}.wv", inner) if isinstance(inner, _Holder) else (str(path), stored)
    values = vars(holder) if isinstance(holder, _Holder) else {}
    for name in values.get("__numpys", ()):
        values[name] = _array(Path(f"{base}.{name}.npy"))
    words = next((values[name] for name in _WORDS if name in values), None)
    matrix = next((values[name] for name in (*_MATRIX, _FASTTEXT) if values.get(name) is not None), None)
    if not isinstance(words, list) or not _is_matrix(matrix):
        raise FormatError(f"{path}: a gensim file without word vectors. Save the KeyedVectors of the model.")
    assert matrix is not None
    if len(matrix) != len(words) or not all(isinstance(word, str) for word in words) or not np.isfinite(matrix).all():
        raise FormatError(
            f"{path}: {len(words)} words and {len(matrix)} vectors, or vectors with NaN or infinity. Is it damaged?"
        )
    subwords = _subwords(values)
    vectors: Float32Array = matrix.astype(np.float32)
    if subwords and matrix is values.get(_FASTTEXT):
        vectors = subwords.compose(words, vectors)
    return words, vectors, subwords


def write(path: Path, words: Sequence[str], matrix: Float32Array) -> None:
    """Write KeyedVectors as one file, with the arrays inside, so that replacing an old file is atomic."""
    try:
        from gensim.models import KeyedVectors
    except ImportError:
        raise missing_extra("vectors", "writing the gensim format") from None
    keyed = KeyedVectors(matrix.shape[1])
    keyed.add_vectors(list(words), matrix)
    keyed.save(str(path), sep_limit=1 << 62)


def _array(path: Path) -> npt.NDArray[Any]:
    if not path.is_file():
        raise NotFoundError(f"{path}: not found, but the gensim file next to it needs this array. Copy both files.")
    try:
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise FormatError(f"{path}: not a complete numpy array ({error})") from error
    return array


def _is_matrix(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f" and value.size > 0


def _subwords(values: dict[str, Any]) -> Subwords | None:
    ngrams, shortest, longest = (values.get(name) for name in ("vectors_ngrams", "min_n", "max_n"))
    if not _is_matrix(ngrams) or not isinstance(shortest, int) or not isinstance(longest, int):
        return None
    assert ngrams is not None
    return Subwords(ngrams.astype(np.float32, copy=False), shortest, longest)
