"""The file format of gensim: a pickle, and a .npy file next to it for each large array.

The pickle is read without running it (`formats/numpy_pickle.py`), and without gensim.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.errors import FormatError, NotFoundError, UnsafeFileError, missing_extra
from pyelmo.files import open_regular
from pyelmo.formats.numpy_pickle import ArrayUnpickler, Holder, Items, LimitedFile, StoredArray
from pyelmo.vectors.fasttext import Subwords, check_ngram_lengths

# The start of a pickle whose outermost object is one of gensim's, in the protocols 2 to 5.
SIGNATURE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?(?:c|\x8c.|X.{4})gensim\.", re.DOTALL)
EXPORT = "Save the vectors with gensim's save_word2vec_format, which every version writes."
_WORDS, _MATRIX = ("index_to_key", "index2word", "index2entity"), ("vectors", "syn0")  # gensim 4, and earlier versions
_FASTTEXT = "vectors_vocab"  # gensim does not store fastText vectors that follow from these and the n-grams


_PLAIN = {
    ("collections", "defaultdict"): Items, ("collections", "OrderedDict"): Items, ("builtins", "int"): Holder,
    ("builtins", "hash"): Holder,
}  # fmt: skip


class _PlainUnpickler(ArrayUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return _PLAIN[module, name]
        if module.split(".")[0] == "gensim" or module.startswith("numpy.random"):
            return Holder
        try:
            return super().find_class(module, name)
        except UnsafeFileError as error:
            raise UnsafeFileError(f"{error}, which gensim vectors do not need") from None


def read(path: Path) -> tuple[list[str], Float32Array, Subwords | None]:
    """Read the words and vectors of KeyedVectors or of a complete model (Word2Vec, FastText)."""
    try:
        with open_regular(path) as file:
            stored = _PlainUnpickler(LimitedFile(file)).load()
    except UnsafeFileError as error:
        raise UnsafeFileError(f"{path}: {error}. It was not loaded, because it could run code. {EXPORT}") from error
    except Exception as error:  # a damaged pickle can raise any error
        reason = f"{type(error).__name__}: {error}"[:200]
        raise FormatError(f"{path}: not a complete gensim file ({reason}). {EXPORT}") from error
    inner = getattr(stored, "wv", None)
    base, holder = (f"{path}.wv", inner) if isinstance(inner, Holder) else (str(path), stored)
    values = _attributes(holder)
    names = values.get("__numpys", ())
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str) and name in (*_MATRIX, _FASTTEXT, "vectors_ngrams"):
            values[name] = _array(Path(f"{base}.{name}.npy"))
    words = next((values[name] for name in _WORDS if name in values), None)
    matrix = next((values[name] for name in (*_MATRIX, _FASTTEXT) if values.get(name) is not None), None)
    if not isinstance(words, list) or not _is_matrix(matrix):
        raise FormatError(f"{path}: a gensim file without word vectors. Save the KeyedVectors of the model. {EXPORT}")
    assert matrix is not None
    if len(matrix) != len(words) or not all(isinstance(word, str) for word in words) or not np.isfinite(matrix).all():
        raise FormatError(
            f"{path}: {len(words)} words and {len(matrix)} vectors, or vectors with NaN or infinity. Is it damaged?"
        )
    subwords = _subwords(path, values, matrix.shape[1])
    vectors: Float32Array = matrix.astype(np.float32)
    if subwords and matrix is values.get(_FASTTEXT):
        vectors = subwords.compose(words, vectors)
    return words, vectors, subwords


def _attributes(holder: object) -> dict[str, Any]:
    attributes = vars(holder).items() if isinstance(holder, Holder) else ()
    return {str(name): value.values() if isinstance(value, StoredArray) else value for name, value in attributes}


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
    """Read a .npy file of plain numbers, after comparing its shape with its size."""
    try:
        with open_regular(path) as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = header(file)
            expected = math.prod(shape) * dtype.itemsize
            if dtype.kind not in "fiu" or expected != os.fstat(file.fileno()).st_size - file.tell():
                raise ValueError(f"{expected} bytes of {dtype} expected")
            array: npt.NDArray[Any] = np.fromfile(file, dtype).reshape(shape, order="F" if by_columns else "C")
    except NotFoundError:
        raise NotFoundError(
            f"{path}: not found, but the gensim file next to it needs this array. Copy both files."
        ) from None
    except FormatError:
        raise
    except Exception as error:  # numpy parses the header as Python text, which can raise many errors
        raise FormatError(f"{path}: not a complete numpy array ({error})") from error
    return array


def _is_matrix(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f" and value.size > 0


def _subwords(path: Path, values: dict[str, Any], dim: int) -> Subwords | None:
    ngrams, shortest, longest = (values.get(name) for name in ("vectors_ngrams", "min_n", "max_n"))
    if not _is_matrix(ngrams) or not isinstance(shortest, int) or not isinstance(longest, int):
        return None
    assert ngrams is not None
    check_ngram_lengths(path, shortest, longest)
    if ngrams.shape[1] != dim or not np.isfinite(ngrams).all():
        raise FormatError(f"{path}: n-grams of {ngrams.shape[1]} numbers, words of {dim}, or NaN. Is it damaged?")
    return Subwords(ngrams.astype(np.float32, copy=False), shortest, longest)
