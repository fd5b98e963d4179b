"""Vectors -> bytes of an answer: JSON, npz, Arrow, base64.

L layers, T tokens, D vector.
"""

from __future__ import annotations

import binascii
import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from pyelmo.errors import missing_extra

MEDIA_TYPES = {
    "json": "application/json",
    "npz": "application/octet-stream",
    "arrow": "application/vnd.apache.arrow.stream",
}


def to_json(value: Any) -> bytes:
    """Return JSON with arrays as nested lists; their numbers have as few digits as restore them. NaN becomes null."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def vectors_to_json(model: str, tokens: Sequence[list[str]], vectors: Sequence[np.ndarray]) -> bytes:
    half = any(array.dtype == np.float16 for array in vectors)  # whose shortest digits orjson does not know
    arrays = [array.astype(np.float32) for array in vectors] if half else vectors
    sentences = [{"tokens": words, "vectors": array} for words, array in zip(tokens, arrays, strict=True)]
    return to_json({"model": model, "sentences": sentences})


def vectors_to_npz(model: str, tokens: Sequence[list[str]], vectors: Sequence[np.ndarray]) -> bytes:
    """Return a file for `numpy.load`: "0", "1", ..., and "tokens", the bytes of a JSON list of lists of strings."""
    names = np.frombuffer(json.dumps(list(tokens)).encode("ascii"), np.uint8)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in [*((str(number), array) for number, array in enumerate(vectors)), ("tokens", names)]:
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return file.getvalue()


def vectors_to_arrow(model: str, tokens: Sequence[list[str]], vectors: Sequence[np.ndarray]) -> bytes:
    """Return an Arrow stream with a row for each sentence: tokens, shape, and the values of the array as one list."""
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("parquet", "the format arrow") from None
    dtype = vectors[0].dtype if vectors else np.dtype(np.float32)
    ends = np.cumsum([0, *(array.size for array in vectors)], dtype=np.int64)
    flat = np.concatenate([np.empty(0, dtype), *(array.reshape(-1) for array in vectors)])
    columns = {
        "tokens": pa.array(list(tokens), pa.list_(pa.string())),
        "shape": pa.array([list(array.shape) for array in vectors], pa.list_(pa.int32())),
        "vectors": pa.LargeListArray.from_arrays(pa.array(ends), pa.array(flat)),
    }
    table = pa.table(columns, metadata={"model": model})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


ENCODERS = {"json": vectors_to_json, "npz": vectors_to_npz, "arrow": vectors_to_arrow}


def embeddings_to_json(model: str, vectors: Sequence[np.ndarray], *, words: int, as_base64: bool) -> bytes:
    """Return the answer of OpenAI's embeddings: a vector (D,) for each text."""
    data = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%b}'
        % (number, _base64(vector) if as_base64 else to_json(vector))
        for number, vector in enumerate(vectors)
    )
    usage = {"prompt_tokens": words, "total_tokens": words}
    rest = to_json({"object": "list", "model": model, "usage": usage})
    return b'{"data":[%b],%b' % (data, rest[1:])


def _base64(vector: np.ndarray) -> bytes:
    """Return little-endian float32 numbers as a string of JSON. Base64 has no character that JSON escapes."""
    return b'"%b"' % binascii.b2a_base64(vector.astype("<f4", copy=False).data, newline=False)
