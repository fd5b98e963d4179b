"""The pictures of the documentation are those that the scripts draw from the results."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["pictures", "diagrams"])
def test_every_picture_is_up_to_date_and_readable_on_a_dark_page(name, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", [name, "-o", str(tmp_path)])
    script(name).main()
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) > 4
    for path in drawn:
        text = path.read_text("utf-8")
        assert text == (ROOT / "docs" / "pictures" / path.name).read_text("utf-8"), path.name
        assert "prefers-color-scheme:dark" in text
        assert "<text" in text
