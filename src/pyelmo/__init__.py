"""pyelmo: ELMo, deep contextualized word representations (Peters et al. 2018), as current software."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyelmo.version import __version__ as __version__

# Names are imported when first used, so that `import pyelmo` and `elmo --help` load no torch.
_WHERE = {
    "load": "pyelmo.embed.embedder",
    "Embedder": "pyelmo.embed.embedder",
    "embed_corpus": "pyelmo.embed.bulk.run",
    "read_embeddings": "pyelmo.embed.files.store",
    "BiLM": "pyelmo.model.bilm",
    "Elmo": "pyelmo.model.elmo",
    "ScalarMix": "pyelmo.model.scalar_mix",
    "ModelConfig": "pyelmo.config",
    "Vocabulary": "pyelmo.text.vocabulary",
    "PyelmoError": "pyelmo.errors",
}

__all__ = [
    "BiLM",
    "Elmo",
    "Embedder",
    "ModelConfig",
    "PyelmoError",
    "ScalarMix",
    "Vocabulary",
    "embed_corpus",
    "load",
    "read_embeddings",
]

if TYPE_CHECKING:
    from pyelmo.config import ModelConfig
    from pyelmo.embed.bulk.run import embed_corpus
    from pyelmo.embed.embedder import Embedder, load
    from pyelmo.embed.files.store import read_embeddings
    from pyelmo.errors import PyelmoError
    from pyelmo.model.bilm import BiLM
    from pyelmo.model.elmo import Elmo
    from pyelmo.model.scalar_mix import ScalarMix
    from pyelmo.text.vocabulary import Vocabulary


def __getattr__(name: str) -> Any:
    if name == "tasks":
        return importlib.import_module("pyelmo.tasks")
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'pyelmo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
