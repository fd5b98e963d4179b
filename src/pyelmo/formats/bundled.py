"""The bundled models: the folders under `pyelmo/models`, their facts and their cards.

A card is the README.md of a model in the form that the Hugging Face Hub reads: `key: value` lines between two `---`,
then text. The licence of a model is written there and nowhere else.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyelmo.errors import NotFoundError
from pyelmo.formats import native
from pyelmo.formats.describe import describe

BUNDLED = Path(__file__).parent.parent / "models"
CARD = "README.md"


def bundled_names() -> list[str]:
    """Return the names of the models that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{native.CONFIG}"))


def models() -> list[dict[str, Any]]:
    """Return the facts of each bundled model: name, language, bytes on disk, layers, sizes and licence."""
    return [_facts(name) for name in bundled_names()]


def card(name: str) -> str:
    """Return the text of a bundled model's card."""
    if name not in bundled_names():
        raise NotFoundError(f"{name}: no bundled model of that name (bundled: {', '.join(bundled_names()) or 'none'})")
    path = BUNDLED / name / CARD
    if not path.is_file():
        raise NotFoundError(f"{path}: not found; this model has no card")
    return path.read_text(encoding="utf-8")


def _facts(name: str) -> dict[str, Any]:
    folder = BUNDLED / name
    facts = describe(native.read(folder))
    head = re.match(r"---\n(.*?)^---$", card(name), re.DOTALL | re.MULTILINE)
    licence = re.search(r"^license: *(.+)$", head.group(1) if head else "", re.MULTILINE)
    return {
        "name": name,
        "language": facts["language"],
        "bytes": sum(path.stat().st_size for path in folder.iterdir()),
        "layers": facts["layers"],
        "dim": facts["dim"],
        "predicts_words": facts["vocabulary"]["predicts_words"],
        "licence": licence.group(1).strip() if licence else None,
    }
