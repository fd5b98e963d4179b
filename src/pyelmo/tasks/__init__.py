"""Downstream tasks with and without ELMo; `load` opens a trained model and predicts on raw text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyelmo.errors import require_torch
from pyelmo.tasks.answers import (
    CoreferenceAnswer,
    CoreferenceMention,
    LabelAnswer,
    LabelledSpan,
    PassageAnswer,
    SpansAnswer,
)

if TYPE_CHECKING:
    from pyelmo.tasks.harness.model import TaskModel

__all__ = [
    "CoreferenceAnswer",
    "CoreferenceMention",
    "LabelAnswer",
    "LabelledSpan",
    "PassageAnswer",
    "SpansAnswer",
    "load",
]


def load(path: str | Path, *, encoder: str | None = None, device: str = "cpu") -> TaskModel:
    """Load a trained task model.

    Args:
        path: A folder that `elmo task train` wrote: of a run (the seed with the best dev score is loaded), of one of
            its seeds, or of a model.
        encoder: Where the encoder of the model is now, if it has moved since training. It must be the same encoder;
            its checksums are compared.
        device: The device for the network and the encoder, for example "cpu" or "cuda".

    Returns:
        The model, ready for `TaskModel.predict` and `TaskModel.evaluate`.

    Raises:
        NotFoundError: There is no such folder, it holds no trained model, or the encoder is missing.
        FormatError: The files of the model are damaged, or the encoder is not the one of the training.

    Example:
        >>> from pyelmo import tasks
        >>> model = tasks.load("run")
        >>> [[answer]] = model.predict(["Ann Lee lives in New York ."])
        >>> answer.labels
        ('B-PER', 'I-PER', 'O', 'O', 'B-LOC', 'I-LOC', 'O')
        >>> [span.text for span in answer.spans]
        ['Ann Lee', 'New York']
    """
    require_torch("A task network")
    from pyelmo.tasks.harness.storage import load_model

    return load_model(path, encoder=encoder, device=device)
