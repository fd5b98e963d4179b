"""pyelmo: ELMo, deep contextualized word representations (Peters et al. 2018), as current software.

The names in `__all__` are the public API. Each is imported at its first use, so that `import pyelmo` and `elmo --help`
do not wait for torch.
"""

from __future__ import annotations

import importlib

from pyelmo.version import __version__ as __version__

TYPE_CHECKING = False  # true for type checkers; not imported, as Ctrl-C is not handled before `pyelmo.__main__`

if TYPE_CHECKING:
    from pyelmo import encoders, neighbours, tasks
    from pyelmo.config import ModelConfig
    from pyelmo.embed.bulk.run import embed_corpus
    from pyelmo.embed.embedder import Embedder, load
    from pyelmo.embed.files.store import read_embeddings
    from pyelmo.errors import PyelmoError
    from pyelmo.model.bilm import BiLM
    from pyelmo.model.elmo import Elmo
    from pyelmo.model.scalar_mix import ScalarMix
    from pyelmo.text.fasta import read_fasta
    from pyelmo.text.vocabulary import Vocabulary

__all__ = [
    "BiLM",
    "Elmo",
    "Embedder",
    "ModelConfig",
    "PyelmoError",
    "ScalarMix",
    "Vocabulary",
    "embed_corpus",
    "encoders",
    "load",
    "neighbours",
    "read_embeddings",
    "read_fasta",
    "tasks",
]

_MODULES = {
    "BiLM": "pyelmo.model.bilm",
    "Elmo": "pyelmo.model.elmo",
    "Embedder": "pyelmo.embed.embedder",
    "ModelConfig": "pyelmo.config",
    "PyelmoError": "pyelmo.errors",
    "ScalarMix": "pyelmo.model.scalar_mix",
    "Vocabulary": "pyelmo.text.vocabulary",
    "embed_corpus": "pyelmo.embed.bulk.run",
    "load": "pyelmo.embed.embedder",
    "read_embeddings": "pyelmo.embed.files.store",
    "read_fasta": "pyelmo.text.fasta",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = getattr(importlib.import_module(_MODULES[name]), name)
        return value
    if name in __all__:
        return importlib.import_module(f"pyelmo.{name}")
    raise AttributeError(f"module 'pyelmo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
