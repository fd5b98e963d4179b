"""Read bilm-tf's TensorFlow checkpoints: the arrays of AllenNLP's HDF5 files, and the softmax."""

from __future__ import annotations

import logging
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PureWindowsPath

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.config import ModelConfig
from pyelmo.errors import FormatError, NotFoundError
from pyelmo.files import read_regular
from pyelmo.formats.allennlp import Link, find_naming, lexicon_for, links, read_linked, read_options
from pyelmo.formats.pretrained import Pretrained, StoredWeight, Weights, find_vocabulary
from pyelmo.formats.tensorflow_bundle import Bundle, read_bundle
from pyelmo.text.vocabulary import Vocabulary

log = logging.getLogger(__name__)


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


def add_softmax(model: Pretrained, prefix: Path, options: Path, vocab: Vocabulary | None) -> Pretrained:
    """Return a model of an HDF5 file with the softmax of the checkpoint beside it, which is read when it is needed.

    If the checkpoint is damaged, has no softmax, or is of another model, the model is returned as it is.
    """
    try:
        softmax = _softmax(model, prefix, options)
        words = None if softmax is None else find_vocabulary(prefix.parent, vocab, softmax.config)
    except (FormatError, NotFoundError) as error:
        log.warning("%s: its softmax is not used: %s", prefix.name, error)
        return model
    if softmax is None:
        return model
    assert isinstance(model.model, Weights)
    # What is removed from a ChainMap is removed from its first mapping.
    stored = ChainMap[str, StoredWeight](dict(model.model.stored), softmax)  # type: ignore[arg-type]
    weights = Weights(softmax.config, stored, model.model.where)
    return replace(
        model,
        model=weights,
        lexicon=lexicon_for(softmax.config, words),
        format=f"{model.format}, softmax of {prefix.name}",
    )


def _softmax(model: Pretrained, prefix: Path, options: Path) -> _Softmax | None:
    """Return the softmax of a checkpoint, or None if it has none; raise an error if it is of another model."""
    bundle = read_bundle(prefix)
    shapes = {name: bundle.shape(name) for name in bundle}
    config = read_options(options, shapes.keys(), shapes)
    if config.softmax is None:
        return None
    table = {name: link for link in links(config, find_naming(shapes, prefix)) for name in link.ours}
    bias = "lstm.layers.0.bias"
    own = model.weights[bias]
    assert isinstance(own, np.ndarray)
    link = table[bias]  # of the last direction, as later links replace earlier ones
    same = replace(config, softmax=None, softmax_shares_words=False) == model.config
    if not same or not np.array_equal(link.read(bundle[link.theirs])[0], own[link.direction]):
        raise FormatError(f"{prefix}: other weights than {model.source}. Name the file that you want to load.")
    return _Softmax(config, {name: link for name, link in table.items() if name.startswith("softmax.")}, bundle)


class _Softmax(Mapping[str, StoredWeight]):
    """The weights of a softmax, read from a checkpoint on access."""

    def __init__(self, config: ModelConfig, table: dict[str, Link], bundle: Bundle) -> None:
        self.config, self._table, self._bundle = config, table, bundle

    def __getitem__(self, name: str) -> Float32Array:
        link = self._table[name]
        return link.read(np.asarray(self._bundle[link.theirs], np.float32))[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
