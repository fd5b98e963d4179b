"""The pages of the documentation that are written by hand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def is_generated(page: Path) -> bool:
    """Tell whether tools/mkdocs_hooks.py writes the page, which git ignores."""
    in_reference = page.parent.name == "reference" and page.name != "api.md"
    return in_reference or page.name in ("changelog.md", "contributing.md")


SITE_PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if not is_generated(page))
