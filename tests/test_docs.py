"""The documents: links lead somewhere, files that are named exist, and the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_the_repository_that_is_named_exists(page):
    named = re.findall(r"\b((?:src/pyelmo|benchmarks|tests|docs|examples)/[\w./-]*\w)", page.read_text("utf-8"))
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing or page.name == "log.md", missing  # the log names files as they were then


def test_every_page_is_reachable_from_the_index_and_the_readme():
    index, readme = ROOT / "docs" / "index.md", ROOT / "README.md"
    reached = {(page.parent / link.partition("#")[0]).resolve() for page in (index, readme) for link in links(page)}
    assert {page for page in PAGES if page not in (index, readme)} <= reached
    assert index in reached


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


def test_the_architecture_names_only_files_that_exist():
    """In the layout, a line is `folder/` or names of files in the folder above it, then two spaces and a remark."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    layout = re.search(r"```\nsrc/pyelmo/\n(.*?)```", text, re.DOTALL)
    folders: list[tuple[int, Path]] = [(0, ROOT / "src" / "pyelmo")]
    for line in layout[1].splitlines():
        indent = len(line) - len(line.lstrip())
        names = re.split(r"  +", line.strip())[0].split()
        while folders[-1][0] >= indent and len(folders) > 1:
            folders.pop()
        for name in names:
            assert (folders[-1][1] / name).exists(), f"{folders[-1][1]}/{name}"
        if names[-1].endswith("/"):
            folders.append((indent, folders[-1][1] / names[-1]))


def test_the_walks_of_the_architecture_pass_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    missing = [
        path for path in re.findall(r"`([a-z_]+/[a-z_/0-9]+\.py)", text) if not (ROOT / "src/pyelmo" / path).exists()
    ]
    assert not missing
