"""A choice of test examples to score, such as those that share no text with the training text of an encoder.

    {"sets": {"<SHA-256 of the test file>": {"file": "squad-test.json", "examples": 10570, "items": [0, 1, 4]}}}

`benchmarks/tasks/clean_items.py` writes such files. The checksum is that of run.json, so that a choice is never applied
to another test set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError, InputError
from pyelmo.parsing import field, read_json
from pyelmo.tasks.harness.run_folder import SavedAnswers, TaskRun

ItemChoice = Mapping[str, npt.NDArray[np.int64]]  # the chosen examples, numbered from 0, by checksum of the test file


def read_items(path: str | Path) -> ItemChoice:
    """Read the chosen examples of each test set in a file."""
    path = Path(path)
    choice = {}
    for checksum, facts in field(read_json(path), "sets", dict, path).items():
        where = f"{path}: sets.{checksum}"
        examples, items = field(facts, "examples", int, where), field(facts, "items", list, where)
        if not items or not all(type(item) is int and 0 <= item < examples for item in items):
            raise FormatError(
                f"{where}: items are not numbers of its {examples} examples, from 0. Make the file again."
            )
        choice[checksum] = np.unique(np.array(items, np.int64))
    return choice


def choose_items(run: TaskRun, answers: SavedAnswers, choice: ItemChoice) -> SavedAnswers:
    """Return the answers of a run to the chosen examples of its test set."""
    data = run.facts["data"][run.part]
    items = choice.get(data.get("sha256", ""))
    if items is None:
        raise InputError(f"{run.folder}: the file of items has none for its data {data['file']}. Add them to the file.")
    if items[-1] >= answers.counts.shape[1]:
        raise FormatError(f"{run.folder}: has {answers.counts.shape[1]} predictions, but the items go to {items[-1]}")
    units = None if answers.units is None else answers.units[items]
    return SavedAnswers(answers.counts[:, items], units)
