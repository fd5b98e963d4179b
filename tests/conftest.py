"""Fixtures for every test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import GOLDEN, make_embedder

from pyelmo.embed.embedder import Embedder


@pytest.fixture(scope="session")
def golden_inputs() -> dict[str, list[list[str]]]:
    return json.loads((GOLDEN / "allennlp-outputs" / "inputs.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def clip_model() -> Path:
    """A small model of AllenNLP's format in which much is clipped."""
    return GOLDEN / "allennlp-outputs" / "models" / "clip"


@pytest.fixture
def tiny() -> Embedder:
    return make_embedder()
