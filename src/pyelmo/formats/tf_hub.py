"""Read the ELMo modules of TensorFlow Hub, versions 1 to 3, without TensorFlow: the variables of a saved model.

A module has no options: sizes follow from the shapes of its variables. What shapes do not show is that of the paper's
model, which all modules contain: clipping at 3, skip connections, ReLU, and 50 characters per word.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.errors import ConfigError, FormatError
from pyelmo.formats.allennlp import Naming, Shape, lexicon_for, read_linked
from pyelmo.formats.pretrained import Pretrained
from pyelmo.formats.tensorflow_bundle import read_bundle
from pyelmo.text.characters import BYTE_SYMBOLS

VARIABLES = Path("variables", "variables.index")
GRAPHS = ("saved_model.pb", "tfhub_module.pb")
CLIP = 3.0
MAX_CHARACTERS = 50
_CHARACTERS = "bilm/char_embed"
_CELL = "RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/rnn/lstm_cell"


def read(folder: Path) -> Pretrained:
    """Read a model from the folder of a module."""
    bundle = read_bundle(folder / VARIABLES)
    shapes: dict[str, Shape] = {name: bundle.shape(name) for name in bundle}
    table = next((name for name in shapes if name.endswith(_CHARACTERS)), None)
    if table is None:
        raise FormatError(
            f"{folder}: a saved model of TensorFlow, but not of ELMo: it has no variable {_CHARACTERS!r} (first "
            f"variables: {', '.join(sorted(shapes)[:5]) or 'none'})."
        )
    naming = Naming(table.removesuffix("char_embed"), _CELL, "kernel", "bias", "projection/kernel")
    # The module's table has a row for padding, which other files leave out; it is all zeros.
    padded = shapes[table][:1] == (BYTE_SYMBOLS,)
    if padded:
        shapes[table] = (BYTE_SYMBOLS - 1, *shapes[table][1:])

    def fetch(name: str) -> Float32Array:
        array = np.asarray(bundle[name], np.float32)
        return array[1:] if name == table and padded else array

    try:
        config = _config(shapes, naming)
    except (KeyError, IndexError, ValueError) as error:
        reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        raise FormatError(f"{folder}: the variables are not those of an ELMo module ({reason})") from error
    model = read_linked(config, naming, shapes, fetch, folder)
    return Pretrained(model, lexicon_for(config, None), "tf_hub", str(folder))


def _config(shapes: Mapping[str, Shape], naming: Naming) -> ModelConfig:
    root = naming.root
    filters = [shapes[f"{root}CNN/W_cnn_{number}"] for number in _numbers(shapes, root + "CNN/W_cnn_{}")]
    cell = root + naming.cell.format(direction=0, layer="{}")
    kernel = shapes[f"{cell.format(0)}/{naming.kernel}"]
    projection = shapes.get(f"{cell.format(0)}/{naming.projection}")
    return ModelConfig(
        chars=CharConfig(
            symbols=BYTE_SYMBOLS,
            max_length=MAX_CHARACTERS,
            dim=shapes[f"{root}char_embed"][1],
            filters=tuple((width, count) for _, width, _, count in filters),
            highways=len(_numbers(shapes, root + "CNN_high_{}/W_carry")),
        ),
        project=f"{root}CNN_proj/W_proj" in shapes,
        lstm=LstmConfig(
            cells=kernel[1] // 4,
            projection=projection[1] if projection else None,
            layers=len(_numbers(shapes, f"{cell}/{naming.kernel}")),
            cell_clip=CLIP,
            projection_clip=CLIP,
            skip=True,
        ),
    )


def _numbers(names: Collection[str], pattern: str) -> list[int]:
    """Return 0, 1, ... as long as there is a name with that number."""
    return list(itertools.takewhile(lambda number: pattern.format(number) in names, itertools.count()))
