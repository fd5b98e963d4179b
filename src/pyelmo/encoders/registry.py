"""Encoders by name.

en, MODEL                     an ELMo model: a bundled name, or any path or Hub id that pyelmo.load accepts
vectors.txt, vectors.bin      static word vectors
cove:WEIGHTS+VECTORS          CoVe: the encoder of a translation model over static vectors
transformers:FOLDER or ID     a transformers model (extra `transformers`); a folder needs no prefix
NAME=...                      any of these, shown under the name NAME
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyelmo.embed.embedder import Precision
from pyelmo.encoders import elmo, static
from pyelmo.encoders.base import NamedEncoder
from pyelmo.errors import InputError, PyelmoError, require_torch
from pyelmo.files import sha256
from pyelmo.formats import bundled, resolve
from pyelmo.formats.native import MODEL_TYPE
from pyelmo.formats.sources import ARCHIVES
from pyelmo.parsing import read_json
from pyelmo.text.lines import existing

_VECTOR_FILES = (".txt", ".vec", ".bin", ".gz")
_NAMED = re.compile(r"([^/\\:+=]+)=(.+)")
_KIND = re.compile(r"(elmo|vectors|cove|transformers):(.+)")


def open_encoder(
    source: str, *, device: str = "cpu", precision: Precision = "float32", language: str | None = None
) -> NamedEncoder:
    """Open an encoder by name. Its weights are read at the first use.

    Args:
        source: An ELMo model (a bundled name, a path or a Hub id), a file of static vectors, `cove:WEIGHTS+VECTORS` or
            `transformers:FOLDER`. `NAME=` before it sets the encoder's name. A prefix `elmo:` or `vectors:` sets the
            kind where the file name does not show it.
        device: The device of the computation, such as "cpu" or "cuda".
        precision: The precision of an ELMo model: "float32", "int8" (CPU) or "bfloat16" (GPU).
        language: The rules that split text into the words of an ELMo model, such as "en" or "ko-morph" (default: those
            of the model).

    Returns:
        The encoder, which is called with tokenised sentences.

    Raises:
        NotFoundError: The file or the model does not exist.
        InputError: The name of a CoVe encoder does not consist of two files.

    Example:
        >>> from pyelmo.encoders import open_encoder
        >>> encoder = open_encoder("en")
        >>> encoder.layers
        ('token', 'LSTM 1', 'LSTM 2')
        >>> [vectors.shape for vectors in encoder([["A", "bank", "account"], ["Hello"]])]
        [(3, 3, 1024), (3, 1, 1024)]
    """
    named = _NAMED.fullmatch(source)
    name, source = named.groups() if named else (None, source)
    kind, source = _kind(source)
    if kind == "elmo":
        path = resolve.locate(source)
        facts = {**identity(path), "precision": precision}
        read = functools.partial(elmo.read, path, device, precision, language)
        return NamedEncoder(name or (source if source in bundled.bundled_names() else path.stem), facts, read)
    if kind == "vectors":
        path = existing(source)
        return NamedEncoder(name or path.stem, _float32(path), functools.partial(static.read, path))
    if kind == "cove":
        return _open_cove(name or "CoVe", source, device)
    require_torch("An encoder of transformers")
    from pyelmo.encoders import transformer

    facts = _float32(Path(source)) if Path(source).exists() else {"model": source, "precision": "float32"}
    return NamedEncoder(name or Path(source).name, facts, functools.partial(transformer.read, source, device))


def _open_cove(name: str, source: str, device: str) -> NamedEncoder:
    require_torch("CoVe")
    from pyelmo.encoders import cove

    weights, plus, vectors = source.partition("+")
    if not plus:
        raise InputError(f"cove:{source}: expected cove:WEIGHTS+VECTORS, the published weights and GloVe vectors")
    facts = {**_float32(existing(weights)), "vectors": identity(existing(vectors))}
    return NamedEncoder(name, facts, functools.partial(cove.read, Path(weights), Path(vectors), device))


def open_encoders(
    sources: Sequence[str], *, device: str = "cpu", precision: Precision = "float32", language: str | None = None
) -> list[NamedEncoder]:
    """Open several encoders, each under its own name.

    Args:
        sources: The encoders, as for `open_encoder`.
        device: The device of the computation, such as "cpu" or "cuda".
        precision: The precision of ELMo models.
        language: The rules that split text into the words of an ELMo model (default: those of the model).

    Returns:
        The encoders, in the same order.

    Raises:
        NotFoundError: A file or a model does not exist.
        InputError: Two encoders have the same name.

    Example:
        >>> from pyelmo.encoders import open_encoders
        >>> open_encoders(["en", "quantised=en"], precision="int8")
        [NamedEncoder('en'), NamedEncoder('quantised')]
    """
    encoders = [open_encoder(source, device=device, precision=precision, language=language) for source in sources]
    for source, encoder in zip(sources, encoders, strict=True):
        if sum(other.name == encoder.name for other in encoders) > 1:
            raise InputError(f"two encoders have the name {encoder.name!r}. Rename one of them: NAME={source}")
    return encoders


def model_language(source: str) -> str | None:
    """Return the language whose rules split the training text of an encoder, if it is an ELMo model that knows it."""
    named = _NAMED.fullmatch(source)
    kind, source = _kind(named[2] if named else source)
    return resolve.read(source).language if kind == "elmo" else None


def _kind(source: str) -> tuple[str, str]:
    if match := _KIND.fullmatch(source):
        return match[1], match[2]
    path = Path(source)
    if path.suffix in _VECTOR_FILES and not path.is_dir() and not source.endswith(ARCHIVES):
        return "vectors", source
    return "transformers" if _is_transformers(path) else "elmo", source


def _is_transformers(path: Path) -> bool:
    try:
        return bool(read_json(path / "config.json").get("model_type", MODEL_TYPE) != MODEL_TYPE)
    except PyelmoError:
        return False


def identity(path: Path) -> dict[str, Any]:
    """Return the name of a model and the checksums of its files, without its model card, which may change."""
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else path.parent.glob(f"{path.name}.*")
    weights = [file for file in files if file.is_file() and file.suffix != ".md"]
    return {"model": path.name, "sha256": {file.name: sha256(file) for file in weights}}


def _float32(path: Path) -> dict[str, Any]:
    return {**identity(path), "precision": "float32"}
