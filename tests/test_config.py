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
        (lambda: CharConfig(max_length=2), "max_length is 2; it must be 3"),
        (lambda: CharConfig(max_length=4), "wider than max_length"),
        (lambda: LstmConfig(cell_clip=-1.0), "cell_clip -1.0 must be positive"),
        (lambda: ModelConfig(softmax=5, softmax_shares_words=True), "embedding table with the shape of the softmax"),
    ],
)
def test_an_impossible_model_is_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LstmConfig(forget_bias=float("nan")), "forget_bias nan must be a finite number"),
        (lambda: LstmConfig(forget_bias=float("inf")), "forget_bias inf must be a finite number"),
        (lambda: LstmConfig(cell_clip=float("nan")), "cell_clip nan must be positive and finite"),
        (lambda: LstmConfig(projection_clip=float("inf")), "projection_clip inf must be positive and finite"),
        (lambda: LstmConfig(layers=10**5), "layers is 100000; it must be 1 to 100"),
        (lambda: LstmConfig(cells=10**9), "cells is 1000000000"),
        (lambda: CharConfig(max_length=10**8), "max_length is 100000000; it must be 3 to 1,000"),
        (lambda: CharConfig(highways=10**5), "highways is 100000"),
        (lambda: CharConfig(filters=((1, 10**9),)), "filters of width 1 is 1000000000"),
        (lambda: CharConfig(filters=((1, 1),) * 101), "the number of filter widths is 101"),
        (lambda: ModelConfig(softmax=2**63), "softmax is 9223372036854775808"),
        (lambda: ModelConfig(softmax=0), "softmax is 0"),
        (lambda: WordConfig(size=2**40, dim=1), "size is 1099511627776"),
    ],
)
def test_sizes_beyond_all_use_and_numbers_that_are_none_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
