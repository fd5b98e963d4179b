"""Clipping: at a fixed norm, and at a multiple of the median of the last norms."""

from __future__ import annotations

import pytest
import torch

from pyelmo.errors import ConfigError
from pyelmo.training.optim import RECENT, clip_by_median, clip_gradients
from pyelmo.training.recipe import TrainingConfig


def clipped(norm, number, norms, *, clip_norm=1.0):
    """Clip a gradient of this norm and return what is left of it."""
    gradient = torch.tensor([0.6, 0.8]) * norm
    config = TrainingConfig(epochs=1, clip_norm=clip_norm, clip_median=2.0)
    before = clip_by_median([gradient], config, norms, torch.tensor(float(number), dtype=torch.float64))
    assert float(before) == pytest.approx(norm)
    return float(gradient.norm())


def test_a_fixed_limit_scales_all_gradients():
    gradients = [torch.tensor([3.0]), torch.tensor([4.0])]
    assert float(clip_gradients(gradients, 1.0)) == 5.0
    torch.testing.assert_close(torch.cat(gradients), torch.tensor([0.6, 0.8]))


def test_the_limit_is_fixed_until_enough_norms_are_known():
    norms = torch.zeros(RECENT)
    for number in range(1, RECENT + 1):
        assert clipped(50.0, number, norms) == pytest.approx(1.0, rel=1e-5)
    assert clipped(50.0, RECENT, norms, clip_norm=None) == pytest.approx(50.0)
    assert (norms == 50.0).all()


def test_usual_gradients_stay_large_ones_are_clipped_and_exploded_ones_are_left_out():
    norms = torch.full((RECENT,), 0.1)
    found = [clipped(norm, RECENT + 1 + step, norms) for step, norm in enumerate((0.15, 0.3, 0.41, 1e14, 0.1))]
    assert found == pytest.approx([0.15, 0.2, 0.0, 0.0, 0.1], rel=1e-5)
    assert norms[:5].tolist() == pytest.approx([0.15, 0.3, 0.41, 1e14, 0.1])


def test_a_multiple_below_one_is_refused():
    with pytest.raises(ConfigError, match="clip_median: 0.5 must be at least 1"):
        TrainingConfig(epochs=1, clip_median=0.5)
