"""What every test may use: the golden data, tiny models, one table of tolerances."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

GOLDEN = Path(__file__).parent / "golden"
# Other people's fixtures are read where they lie and never copied: PYELMO_GOLDEN, or shared/golden beside the checkout.
FIXTURES = Path(os.environ.get("PYELMO_GOLDEN", Path(__file__).parents[2] / "shared" / "golden"))

# How near two computations of the same thing come, by dtype (absolute, on values of order 1).
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def fixture_folder(name: str) -> Path:
    if not (FIXTURES / name).is_dir():
        pytest.skip(f"the fixture {name} is not here (set PYELMO_GOLDEN)")
    return FIXTURES / name


TINY = ModelConfig(
    chars=CharConfig(dim=4, filters=((1, 4), (2, 8), (3, 8)), highways=1, max_length=16),
    lstm=LstmConfig(cells=16, projection=8, layers=2),
)


def make_embedder(config: ModelConfig = TINY, seed: int = 0) -> Embedder:
    torch.manual_seed(seed)
    alphabet = Bytes(config.chars.max_length) if config.chars else None
    return Embedder(Pretrained(BiLM(config).eval(), Lexicon(alphabet), "test", "test"))


def worst(got: object, want: object) -> float:
    """The largest absolute difference; a difference in shape fails."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{got.shape} is not {want.shape}"
    return float(np.abs(got.astype(np.float64) - want).max(initial=0.0))


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk; the error is "File too large"."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
