"""A small corpus, prepared once, and small runs over it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyelmo
from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.formats.pretrained import Pretrained
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import PretrainRecipe, TrainingConfig

TEXT = Path(__file__).parents[1] / "banks.txt"
SMALL = ModelConfig(
    chars=CharConfig(max_length=12, dim=4, filters=((1, 8), (2, 8)), highways=1),
    lstm=LstmConfig(cells=16, projection=8),
)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    prepare(PrepareSettings(inputs=[TEXT], tokenised=True, language="en", vocab_size=100, valid_inputs=[TEXT]), folder)
    return folder


def recipe(model: ModelConfig = SMALL, **training: object) -> PretrainRecipe:
    settings = {
        "batch": 8, "steps": 10, "samples": 32, "optimiser": "adamw", "lr": 0.01, "clip_norm": 1.0, "dropout": 0.1,
        "words": 800, "report_every": 5, "checkpoint_every": 4, "validate_every": 1000,
    }  # fmt: skip
    if {"epochs", "minutes"} & training.keys():
        del settings["words"]
    return PretrainRecipe(model=model, training=TrainingConfig(**{**settings, **training}))


@pytest.fixture(scope="session")
def model(corpus, tmp_path_factory) -> Pretrained:
    """A language model of 100 words after a short training."""
    folder = tmp_path_factory.mktemp("model") / "run"
    pretrain(corpus, folder, recipe(words=12_000))
    return pyelmo.load(folder / "model").pretrained
