"""How often the paired bootstrap calls two equally good runs different, by simulation.

    python benchmarks/tasks/false_alarms.py --json benchmarks/results/false_alarms.json

The score of a seed on an example is a mean, an effect of the run on the unit of the example, an effect of the seed, and
noise. Both runs have the same mean. A false alarm is p of at most .05; ideally 5 % of the pairs of runs have one.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.arrays import Float64Array
from pyelmo.provenance import machine
from pyelmo.tasks.compare.bootstrap import paired_bootstrap
from pyelmo.tasks.harness.metrics import ACCURACY


@dataclass(frozen=True)
class Setting:
    """The size of the test set and the standard deviations of the effects, in shares of 1."""

    units: int
    examples_per_unit: int
    seeds: int
    unit_effect: float = 0.0
    seed_effect: float = 0.0
    noise: float = 0.4


SETTINGS = {
    "questions about 48 articles, one seed": Setting(48, 20, 1, unit_effect=0.1),
    "questions about 48 articles, three seeds": Setting(48, 20, 3, unit_effect=0.1, seed_effect=0.005),
    "300 sentences, three seeds that differ little": Setting(300, 1, 3, unit_effect=0.2, seed_effect=0.005),
    "300 sentences, three seeds that differ as much as sentences": Setting(
        300, 1, 3, unit_effect=0.2, seed_effect=0.02
    ),
    "300 sentences, only the seeds differ": Setting(300, 1, 3, seed_effect=0.05, noise=0.1),
    "300 sentences, only the five seeds differ": Setting(300, 1, 5, seed_effect=0.05, noise=0.1),
}


def counts(random: np.random.Generator, setting: Setting) -> Float64Array:  # (S, N, 2)
    """Return the counts of a run."""
    effects = np.repeat(random.normal(0, setting.unit_effect, setting.units), setting.examples_per_unit)
    values = 0.7 + effects + random.normal(0, setting.seed_effect, (setting.seeds, 1))
    values = values + random.normal(0, setting.noise, values.shape)
    return np.stack([values, np.ones_like(values)], -1)


def false_alarms(setting: Setting, trials: int, resamples: int) -> dict[str, float]:
    """Return the share of false alarms with examples drawn alone, as before, and with units and seeds drawn."""
    random = np.random.default_rng(1)
    units = np.repeat(np.arange(setting.units), setting.examples_per_unit)
    alarms = np.zeros(2)
    for _ in range(trials):
        first, second = counts(random, setting), counts(random, setting)
        means = first.mean(0, keepdims=True), second.mean(0, keepdims=True)  # so that no seeds are drawn
        before = paired_bootstrap(*means, ACCURACY, resamples=resamples)
        now = paired_bootstrap(first, second, ACCURACY, units=units, resamples=resamples)
        alarms += [before.p <= 0.05, now.p <= 0.05]
    before_share, now_share = (alarms / trials).tolist()
    return {"examples": before_share, "units and seeds": now_share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="pairs of runs (default: 2000)")
    parser.add_argument("--resamples", type=int, default=499, help="resamples of each bootstrap (default: 499)")
    parser.add_argument("--json", type=Path, help="file for the result")
    args = parser.parse_args()
    rates: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        rates[name] = false_alarms(setting, args.trials, args.resamples)
        shown = ", ".join(f"{100 * share:.1f} % ({drawn})" for drawn, share in rates[name].items())
        print(f"{name}: {shown}", flush=True)
    if args.json:
        command = f"python benchmarks/tasks/false_alarms.py --trials {args.trials} --resamples {args.resamples}"
        settings = {name: asdict(setting) for name, setting in SETTINGS.items()}
        result = {"machine": machine(), "command": command, "settings": settings, "false alarms at .05": rates}
        args.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
