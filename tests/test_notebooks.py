"""The notebooks of the tutorials: they have the code of their pages, and run."""

from __future__ import annotations

from pathlib import Path

import notebooks
import pytest

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = sorted(TUTORIALS.glob("[1-9]*.md"))


def code(page: Path) -> list[str]:
    book = notebooks.notebook(page.read_text("utf-8"))
    return [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]


def test_blocks_become_cells_and_shown_outputs_are_left_out():
    page = "# A\n\nText.\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```\nelmo embed a \\\n  -o b\nelmo models\n```\n"
    cells = notebooks.notebook(page)["cells"]
    assert [cell["source"] for cell in cells] == ["# A\n\nText.", "print(1)", "!elmo embed a \\\n  -o b\n!elmo models"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_notebook_of_a_tutorial_has_all_python_of_its_page(page):
    blocks = page.read_text("utf-8").split("```python\n")[1:]
    assert [cell for cell in code(page) if not cell.startswith("!")] == [block.split("\n```")[0] for block in blocks]


@pytest.mark.slow
def test_a_notebook_executes():
    book = notebooks.notebook((TUTORIALS / "1-context.md").read_text("utf-8"))
    notebooks.run(book)
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", [])]
    assert any("(3, 10, 1024)" in output.get("text", "") for output in outputs)
