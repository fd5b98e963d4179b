"""Encoders by name: whatever turns words into vectors -> one protocol, with a name to show and names for its layers.

    en, MODEL                     an ELMo: all that pyelmo.load takes
    vectors.txt, vectors.bin      static vectors: a word has one, whatever stands around it
    cove:WEIGHTS+VECTORS          CoVe: the encoder of a translator over static vectors
    transformers:FOLDER or ID     a transformers model (the extra `transformers`); a folder of one needs no prefix
    NAME=...                      any of these under a name of its own

L layers, T tokens, D vector.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Precision, load
from pyelmo.encoders import static
from pyelmo.encoders.base import Loaded, of_whole_words
from pyelmo.errors import InputError
from pyelmo.files import sha256
from pyelmo.formats import bundled, resolve
from pyelmo.text.lines import existing

_VECTOR_FILES = (".txt", ".vec", ".bin", ".gz")
_NAMED = re.compile(r"([^/\\:+=]+)=(.+)")
_KIND = re.compile(r"(elmo|vectors|cove|transformers):(.+)")


class NamedEncoder:
    """An encoder with what identifies it; its weights are read when they are first needed."""

    def __init__(self, name: str, facts: dict[str, Any], read: Callable[[], Loaded]) -> None:
        self.name, self.facts, self._read = name, facts, read

    def __repr__(self) -> str:
        return f"NamedEncoder({self.name!r})"

    @functools.cached_property
    def loaded(self) -> Loaded:
        return self._read()

    @property
    def layers(self) -> tuple[str, ...]:
        return self.loaded.layers

    def __call__(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        """The arrays (L, T, D) of sentences of whole words, as treebanks and word lists give them."""
        embed = self.loaded.embed
        if self.loaded.split == "ko-morph":
            embed = of_whole_words(embed, "ko-morph")
        yield from embed(sentences)

    def of_own_words(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        """The same for sentences that were split as the encoder's own text was (`loaded.split`)."""
        yield from self.loaded.embed(sentences)


def open_encoder(
    text: str, *, device: str = "cpu", precision: Precision = "float32", language: str | None = None
) -> NamedEncoder:
    """An encoder by its name (see above). `precision` and `language` are those of `pyelmo.load`, for an ELMo."""
    named = _NAMED.fullmatch(text)
    name, text = named.groups() if named else (None, text)
    kind, place = _kind(text)
    if kind == "elmo":
        path = resolve.locate(place)
        facts = {**identity(path), "precision": precision}
        read = functools.partial(_read_elmo, path, device, precision, language)
        return NamedEncoder(name or (place if place in bundled.bundled_names() else path.stem), facts, read)
    if kind == "vectors":
        path = existing(place)
        return NamedEncoder(name or path.stem, _exact(path), functools.partial(static.read, path))
    if kind == "cove":
        from pyelmo.encoders import cove

        weights, plus, vectors = place.partition("+")
        if not plus:
            raise InputError(f"cove:{place}: expected cove:WEIGHTS+VECTORS, the published weights and GloVe's vectors")
        facts = {**_exact(existing(weights)), "vectors": identity(existing(vectors))}
        read = functools.partial(cove.read, Path(weights), Path(vectors), device)
        return NamedEncoder(name or "CoVe", facts, read)
    from pyelmo.encoders import transformer

    facts = _exact(Path(place)) if Path(place).exists() else {"model": place, "precision": "float32"}
    return NamedEncoder(name or Path(place).name, facts, functools.partial(transformer.read, place, device))


def open_encoders(texts: Sequence[str], **options: Any) -> list[NamedEncoder]:
    """Several, each under another name."""
    opened = [open_encoder(text, **options) for text in texts]
    for text, encoder in zip(texts, opened, strict=True):
        if sum(other.name == encoder.name for other in opened) > 1:
            raise InputError(f"two encoders are called {encoder.name!r}; give one another name: NAME={text}")
    return opened


def _kind(text: str) -> tuple[str, str]:
    if match := _KIND.fullmatch(text):
        return match[1], match[2]
    path = Path(text)
    if path.suffix in _VECTOR_FILES and not path.is_dir():
        return "vectors", text
    return "transformers" if _is_transformers(path) else "elmo", text


def _is_transformers(path: Path) -> bool:
    try:
        return "model_type" in json.loads((path / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False


def identity(path: Path) -> dict[str, Any]:
    """The name of a model and the checksums of its files; a card may change."""
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else path.parent.glob(f"{path.name}.*")
    kept = [file for file in files if file.is_file() and file.suffix != ".md"]
    return {"model": path.name, "sha256": {file.name: sha256(file) for file in kept}}


def _exact(path: Path) -> dict[str, Any]:
    return {**identity(path), "precision": "float32"}


def _read_elmo(path: Path, device: str, precision: Precision, language: str | None) -> Loaded:
    embedder = load(path, device=device, precision=precision, language=language)
    layers = ("token", *(f"LSTM {number}" for number in range(1, embedder.config.layers)))
    split = language or embedder.pretrained.language
    return Loaded(embed=embedder.stream, layers=layers, split=split, embedder=embedder)
