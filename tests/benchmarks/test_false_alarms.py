"""The paired bootstrap calls equally good runs different about as often as p says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tasks" / "false_alarms.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("false_alarms", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["false_alarms"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("effects", "before"),
    [
        ({"seeds": 1, "unit_effect": 0.2}, 0.15),  # articles
        ({"seeds": 3, "seed_effect": 0.02}, 0.15),  # seeds that differ as much as the examples
        ({"seeds": 2, "seed_effect": 0.1}, 0.30),  # hardly anything but the seeds
    ],
)
def test_equal_runs_are_seldom_called_different(script, effects, before):
    setting = script.Setting(30, 5, noise=0.1, **effects)
    rates = script.false_alarms(setting, 200, 99)
    assert rates["examples"] > before
    assert rates["units and seeds"] < 0.09
