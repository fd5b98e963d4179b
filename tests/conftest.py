"""Fixtures for every test."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

# One thread, here and in processes that tests start: tiny networks on several OpenMP threads spin, and beside other
# work a test that takes a second then takes minutes. Set before torch is imported.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

# A shell starts background jobs with SIGINT ignored, and tests send it. Python's own handler is not inherited as such:
# processes that tests start get the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest
import torch

# Without a GPU, Triton's interpreter runs the GPU kernels on the CPU, slowly, with small shapes. Set before the modules
# of pyelmo.kernels.gpu are imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

from hypothesis import settings
from support import GOLDEN, make_embedder
from task_support import NAMES, sentences

from pyelmo.embed.embedder import Embedder

settings.register_profile("untimed", deadline=None)  # the first example may compile patterns on a busy machine
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of downloads and archives, away from that of the user."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["PYELMO_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def golden_inputs() -> dict[str, list[list[str]]]:
    return json.loads((GOLDEN / "allennlp-outputs" / "inputs.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def clip_model() -> Path:
    """A small model of AllenNLP's format in which much is clipped."""
    return GOLDEN / "allennlp-outputs" / "models" / "clip"


@pytest.fixture
def tiny() -> Embedder:
    return make_embedder()


@pytest.fixture(scope="session")
def ner_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.conll, dev.conll, test.conll, a small ELMo in LM and static vectors."""
    folder = tmp_path_factory.mktemp("ner")
    for seed, (part, count) in enumerate({"train": 48, "dev": 12, "test": 12}.items()):
        (folder / f"{part}.conll").write_text(sentences(count, seed), "utf-8")
    make_embedder().save(folder / "LM")
    words = sorted({word.lower() for names in NAMES.values() for name in names for word in name.split()})
    rows = np.random.default_rng(0).normal(size=(len(words), 4))
    text = "".join(f"{word} {' '.join(f'{x:.3f}' for x in row)}\n" for word, row in zip(words, rows, strict=True))
    (folder / "vectors.txt").write_text(text, "utf-8")
    return folder
