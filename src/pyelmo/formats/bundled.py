"""The models that come with the package: what each is, and its card.

A card is the model's README.md as the Hub reads it: `key: value` lines between two `---`, then text for people. The
licence is said there and nowhere else.
"""

from __future__ import annotations

import re
from typing import Any

from pyelmo.errors import NotFoundError
from pyelmo.formats import resolve
from pyelmo.formats.describe import describe

CARD = "README.md"


def models() -> list[dict[str, Any]]:
    """Name, language, bytes on disk, layers and their size, words predicted and licence of each model."""
    return [_facts(name) for name in resolve.names_in_box()]


def card(name: str) -> str:
    """A model's card."""
    if name not in resolve.names_in_box():
        raise NotFoundError(f"{name}: no model of that name in the box ({resolve.listed_box()})")
    path = resolve.BOX / name / CARD
    if not path.is_file():
        raise NotFoundError(f"{path}: not found; this model has no card")
    return path.read_text(encoding="utf-8")


def _facts(name: str) -> dict[str, Any]:
    found = describe(resolve.read(resolve.BOX / name))
    head = re.match(r"---\n(.*?)^---$", card(name), re.DOTALL | re.MULTILINE)
    licence = re.search(r"^license: *(.+)$", head.group(1) if head else "", re.MULTILINE)
    return {
        "name": name,
        "language": found["language"],
        "bytes": sum(path.stat().st_size for path in (resolve.BOX / name).iterdir()),
        "layers": found["layers"],
        "dim": found["dim"],
        "predicts_words": found["vocabulary"]["predicts_words"],
        "licence": licence.group(1).strip() if licence else None,
    }
