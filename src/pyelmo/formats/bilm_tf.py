"""Read bilm-tf's TensorFlow checkpoints: the arrays of AllenNLP's HDF5 files, and the softmax."""

from __future__ import annotations

import re
from pathlib import Path, PureWindowsPath

import numpy as np

from pyelmo.errors import FormatError, NotFoundError
from pyelmo.files import read_regular
from pyelmo.formats.allennlp import find_naming, lexicon_for, read_linked, read_options
from pyelmo.formats.pretrained import Pretrained, find_vocabulary
from pyelmo.formats.tensorflow_bundle import read_bundle
from pyelmo.text.vocabulary import Vocabulary


def find_prefix(folder: Path) -> Path | None:
    """Return the prefix of a folder's newest checkpoint: from its `checkpoint` file, or the one of the highest step."""
    prefixes = {path.name.removesuffix(".index"): path.with_suffix("") for path in folder.glob("*.index")}
    state = folder / "checkpoint"
    text = read_regular(state, limit=1 << 20).decode("utf-8", "replace") if state.is_file() else ""
    if match := re.search(r'^model_checkpoint_path:\s*"(.+)"', text, re.MULTILINE):
        # Only the base name is useful: the path is one of the machine that trained the model.
        latest = PureWindowsPath(match[1]).name
        if latest in prefixes:
            return prefixes[latest]
    return max(prefixes.values(), key=lambda prefix: (_step(prefix), prefix.name), default=None)


def _step(prefix: Path) -> int:
    number = re.search(r"-(\d+)$", prefix.name)
    return int(number[1]) if number else -1


def read(prefix: Path, options: Path, vocab: Vocabulary | None = None) -> Pretrained:
    """Read a model from a checkpoint prefix (`.../model.ckpt-123`) and its options."""
    bundle = read_bundle(prefix)
    if not options.is_file():
        raise NotFoundError(
            f"{options}: not found. Copy options.json beside the checkpoint, or give its path as options= (--options)."
        )
    shapes = {name: bundle.shape(name) for name in bundle}
    config = read_options(options, shapes.keys(), shapes)
    naming = find_naming(shapes, prefix)
    if not naming.root:
        raise FormatError(f"{prefix}: not a checkpoint of bilm-tf: the names of its arrays do not begin with lm/")
    model = read_linked(config, naming, shapes, lambda name: np.asarray(bundle[name], np.float32), prefix)
    vocab = find_vocabulary(prefix.parent, vocab, config)
    return Pretrained(model, lexicon_for(config, vocab), "bilm_tf", str(prefix))
