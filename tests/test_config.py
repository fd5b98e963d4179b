"""Configurations: round trips, and settings that are unknown or invalid."""

from __future__ import annotations

import json

import pytest

from pyelmo.config import CharConfig, LstmConfig, ModelConfig, WordConfig, from_dict, to_dict
from pyelmo.errors import ConfigError


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(),
        ModelConfig(
            chars=None, words=WordConfig(size=10, dim=512), project=False, softmax=10, softmax_shares_words=True
        ),
        ModelConfig(
            lstm=LstmConfig(projection=None, cells=8, cell_clip=None, projection_clip=None), bidirectional=False
        ),
    ],
)
def test_a_config_survives_json(config):
    assert from_dict(ModelConfig, json.loads(json.dumps(to_dict(config)))) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lstm": {"cels": 3}}, r"lstm\.cels: no such setting\. Did you mean 'cells'\?"),
        ({"lstm": {"cells": "many"}}, r"lstm\.cells: expected int, got 'many'"),
        ({"lstm": {"cells": True}}, r"lstm\.cells: expected int, got True"),
        ({"lstm": 3}, "expected a table"),
        ({"chars": {"alphabet": "runes"}}, "'runes' is none of"),
        ({"chars": {"filters": [[1]]}}, "expected 2 values"),
        ({"words": {"size": 3}}, "missing dim"),
    ],
)
def test_a_wrong_setting_says_which(values, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(ModelConfig, values)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ModelConfig(chars=None), "needs chars or words"),
        (lambda: ModelConfig(project=False), "must have the size of the LSTM"),
        (lambda: CharConfig(max_length=2), "no room for a character"),
        (lambda: CharConfig(max_length=4), "wider than max_length"),
        (lambda: LstmConfig(cell_clip=-1.0), "cell_clip -1.0 must be positive"),
        (lambda: ModelConfig(softmax=5, softmax_shares_words=True), "embedding table with the shape of the softmax"),
    ],
)
def test_an_impossible_model_is_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
