"""An ELMo model as an encoder: the token layer and the outputs of the LSTM layers."""

from __future__ import annotations

from pathlib import Path

from pyelmo.embed.embedder import Precision, load
from pyelmo.encoders.base import LoadedEncoder


def read(path: Path, device: str, precision: Precision, language: str | None) -> LoadedEncoder:
    """Read a model of any format that `pyelmo.load` accepts."""
    embedder = load(path, device=device, precision=precision, language=language)
    layers = ("token", *(f"LSTM {number}" for number in range(1, embedder.config.layers)))
    own_language = language or embedder.pretrained.language
    return LoadedEncoder(embed=embedder.stream, layers=layers, language=own_language, embedder=embedder)
