"""Arrays -> answers: the same network with and without ELMo. `load(path).predict(["raw text"])` uses a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyelmo.tasks.harness.model import TaskModel


def load(path: str | Path, *, encoder: str | None = None, device: str = "cpu") -> TaskModel:
    """A saved model, or the best of a run's; `encoder` says where its encoder lies now."""
    from pyelmo.tasks.harness.model import load as read

    return read(path, encoder=encoder, device=device)
