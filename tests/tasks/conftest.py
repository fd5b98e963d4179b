"""Fixtures for the tests of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a text to a file and returns its path."""

    def write(text: str, name: str = "tiny.data") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, "utf-8")
        return path

    return write
