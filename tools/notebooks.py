"""Notebooks from the Markdown pages of the tutorials: one text, two forms.

A `python` block becomes a code cell, a block of commands (no language) a cell of `!` lines, everything else Markdown.
A `text` block after a code block is its output, which the notebook makes itself, and is left out.

    python tools/notebooks.py docs/tutorials/1-context.md -o .        write the notebook of a page
    python tools/notebooks.py docs/tutorials/[1-9]*.md --run          execute them and print the time of each
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def notebook(markdown: str) -> nbformat.NotebookNode:
    """Return the notebook of a page."""
    cells: list[nbformat.NotebookNode] = []
    end = 0
    for block in BLOCK.finditer(markdown):
        between = markdown[end : block.start()].strip()
        language, text = block.groups()
        end = block.end()
        if between:
            cells.append(nbformat.v4.new_markdown_cell(between))
        if language == "python":
            cells.append(nbformat.v4.new_code_cell(text.rstrip()))
        elif language == "":
            cells.append(nbformat.v4.new_code_cell(shell(text)))
        elif not (language == "text" and not between):
            cells.append(nbformat.v4.new_markdown_cell(block[0].strip()))
    if rest := markdown[end:].strip():
        cells.append(nbformat.v4.new_markdown_cell(rest))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same page gives the same file
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


def shell(text: str) -> str:
    """Return commands as lines for IPython; a command goes on after a backslash."""
    lines = text.rstrip().splitlines()
    begins = [number == 0 or not lines[number - 1].endswith("\\") for number in range(len(lines))]
    return "\n".join(f"!{line}" if begin and line else line for begin, line in zip(begins, lines, strict=True))


def as_json(markdown: str) -> str:
    return nbformat.writes(notebook(markdown))


def run(book: nbformat.NotebookNode) -> float:
    """Execute a notebook in an empty folder, with this Python, and return the seconds that it took."""
    from nbclient import NotebookClient

    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for `!elmo`
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--run", action="store_true", help="execute the notebooks")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="folder for the notebooks (default: none)")
    arguments = parser.parse_args()
    for page in arguments.pages:
        book = notebook(page.read_text("utf-8"))
        if arguments.run:
            print(f"{page}: {run(book):.0f} s", flush=True)
        if arguments.output:
            (arguments.output / f"{page.stem}.ipynb").write_text(nbformat.writes(book), "utf-8")


if __name__ == "__main__":
    main()
