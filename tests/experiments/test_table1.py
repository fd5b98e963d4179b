"""Table 1: which runs are trained, which are not trained again, and the numbers of the table. A script replaces elmo."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from task_support import make_run

from pyelmo.config import to_dict
from pyelmo.errors import NotFoundError, PyelmoError
from pyelmo.experiments import plans, table1

PLAN = """
[[set]]
name = "names"
task = "ner"
about = "made-up names"
data = ["train", "test"]
seeds = 2
[[set.run]]
name = "base"
encoder = "none"
[[set.run]]
name = "en"
[[set.run]]
name = "en"
fractions = [0.5]
[[set]]
task = "srl"
data = ["train", "test"]
seeds = 1
paper = false
[[set.run]]
name = "base"
encoder = "none"
"""
# Replaces `elmo`: logs its call, fails if a certain file exists, and otherwise writes the results of a seed.
PROGRAM = """
import pathlib, sys
words = sys.argv[1:]
run, cache = (pathlib.Path(words[words.index(name) + 1]) for name in ("-o", "--cache"))
seed = words[-1].split("-")[0]
open("calls", "a").write(f"{run.name} {seed}\\n")
if pathlib.Path(f"slow-{run.name}").exists():
    sys.exit(sys.stdin.read())  # until the parent closes the pipe
if pathlib.Path(f"fail-{run.name}-{seed}").exists():
    sys.exit("elmo: it is broken")
cache.mkdir(exist_ok=True)
if seed != "0":
    folder = run / f"seed-{seed}"
    folder.mkdir(parents=True)
    (run / "run.json").write_text(pathlib.Path(f"{run.name}.json").read_text())
    (folder / "result.json").write_text('{"seed": %s, "dev": {"score": 50}, "layers": {}}' % seed)
    (folder / "answers-dev.jsonl").write_text('{"counts": [1, 2, 2]}\\n')
"""
COORDINATOR = """
import pickle, sys
from pyelmo.experiments import table1
table1.make_runs(*pickle.load(open(sys.argv[1], "rb")))
"""


@pytest.fixture
def here(tmp_path) -> tuple[list[plans.RunSet], table1.JobSettings]:
    """The plan, and a folder with its data and the files of the script that replaces elmo."""
    for name, text in {"plan.toml": PLAN, "program": PROGRAM, "train": "", "test": ""}.items():
        (tmp_path / name).write_text(text)
    sets = plans.read_plan(tmp_path / "plan.toml")
    for run in (run for each in sets for run in each.runs):
        facts = {
            "task": run.task,
            "data": {"train": {"file": "train"}, "dev": {"file": "test"}},
            "encoder": run.encoder and {"model": "en"},
            "encoder_name": run.encoder,
            "fraction": run.options.fraction,
            "recipe": to_dict(run.recipe),
        }
        (tmp_path / f"{run.name}.json").write_text(json.dumps(facts))
    out = tmp_path / "out"
    return sets, table1.JobSettings(
        data=tmp_path, output=out, cache=out / "cache", device="cpu", jobs=1,
        program=(sys.executable, "-S", str(tmp_path / "program")),
    )  # fmt: skip


def calls(setting: table1.JobSettings) -> list[str]:
    """Return the calls since this function was last used."""
    path = setting.data / "calls"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def test_every_seed_is_trained_once_in_the_order_of_the_plan_after_its_vectors(here):
    sets, setting = here
    assert table1.make_runs(sets, setting) == []
    wanted = [
        "names-base 1",
        "names-base 2",
        "names-en 0",
        "names-en 1",
        "names-en 2",
        "names-en-0.5 1",
        "names-en-0.5 2",
    ]
    assert calls(setting) == [*wanted, "srl-base 1"]
    assert table1.make_runs(sets, setting) == []
    assert calls(setting) == []
    # A seed without a result is trained again, but its vectors are still in the cache.
    (setting.output / "names-en" / "seed-2" / "result.json").unlink()
    (setting.output / "names-en" / "seed-2" / "answers-dev.jsonl").unlink()
    (setting.output / "names-en" / "seed-2").rmdir()
    table1.make_runs(plans.choose(sets, ["names-en"]), setting)
    assert calls(setting) == ["names-en 2"]
    (setting.data / "test").write_text("other data")
    (setting.output / "srl-base" / "seed-1" / "result.json").unlink()
    embedding, training = table1.plan_jobs([table1.SeedRun(sets[0].runs[1], 3)], replace(setting, threads=2))
    assert (embedding.name, training.name) == ("vectors of en for names-en", "names-en-3")
    assert training.command[-4:] == ("--threads", "2", "--seeds", "3-3")


def test_only_chosen_runs_are_trained_and_the_table_lists_what_is_missing(here):
    sets, setting = here
    (setting.data / "train").unlink()
    with pytest.raises(NotFoundError, match="lacks these files of the plan: train"):
        table1.make_runs(sets, setting)
    (setting.data / "train").touch()
    with pytest.raises(PyelmoError, match="no run of the plan has a finished seed"):
        table1.write(sets, setting.output)
    table1.make_runs(plans.choose(sets, ["srl-base"]), setting)
    assert calls(setting) == ["srl-base 1"]
    text = table1.write(sets, setting.output)[0].read_text()
    assert "| srl | test, dev | span F1 | 1 | 50.00 |  |  |  |  |  |  |  |  |" in text
    assert "Not finished yet: names-base (seed 1, 2); names-en (seed 1, 2); names-en-0.5 (seed 1, 2)." in text


def test_a_failed_seed_stops_no_other_and_is_tried_again(here):
    sets, setting = here
    (setting.data / "fail-names-base-1").touch()
    (setting.data / "fail-names-en-0").touch()
    told = []
    failed = table1.make_runs(sets, replace(setting, jobs=3), on_finish=lambda ended, seed: told.append((ended, seed)))
    assert {each.job.name: each.error for each in failed} == {
        "names-base-1": "it is broken",
        "vectors of en for names-en": "it is broken",
        **{f"names-en{share}-{seed}": "not started, because it needs 'vectors of en for names-en', which failed" for share in ("", "-0.5") for seed in (1, 2)},
    }  # fmt: skip
    assert {seed.name for ended, seed in told if ended.error is None} == {"names-base-2", "srl-base-1"}
    for path in setting.data.glob("fail-*"):
        path.unlink()
    calls(setting)
    assert table1.make_runs(sets, setting) == []
    assert calls(setting)[:2] == ["names-base 1", "names-en 0"]


def test_a_killed_command_resumes(here):
    sets, setting = here
    (setting.data / "slow-names-en").touch()
    (setting.data / "given").write_bytes(pickle.dumps((sets, setting)))
    process = subprocess.Popen([sys.executable, "-c", COORDINATOR, str(setting.data / "given")])
    deadline = time.monotonic() + 60
    while "names-en" not in (calls_so_far := _text(setting.data / "calls")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert calls_so_far.split("\n")[:2] == ["names-base 1", "names-base 2"]
    calls(setting)
    (setting.data / "slow-names-en").unlink()
    assert table1.make_runs(sets, setting) == []
    assert calls(setting)[:2] == ["names-en 0", "names-en 1"]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_the_table_has_the_numbers_of_its_runs_and_those_of_the_paper(here, tmp_path):
    sets, setting = here
    setting.output.mkdir()
    right, wrong = [1, 1, 1], [0, 1, 1]
    make_run(setting.output / "names-base", [[right] * 60 + [wrong] * 40, [right] * 50 + [wrong] * 50])  # 60 and 50
    make_run(setting.output / "names-en", [[right] * 70 + [wrong] * 30, [right] * 74 + [wrong] * 26], encoder="en")
    make_run(setting.output / "names-en-0.5", [[right] * 30 + [wrong] * 70], encoder="en", fraction=0.5)
    written = table1.write(sets, setting.output, resamples=500)
    names = ["table1.md", "table1.json", "table1-names-curve.svg", "table1.svg"]
    assert [path.name for path in written] == names
    text = written[0].read_text()
    ours = "| ner | made-up names, test | span F1 | 2 | 55.00 ± 7.07 | 72.00 ± 2.83 | +17.00 | 37.8 % |"
    p = json.loads(written[1].read_text())["sets"]["names"][1]["bootstrap"]["p"]
    assert f"{ours} {p:.4f} | CoNLL-2003 | 90.15 | 92.22 ± 0.10 | 21 % |" in text
    assert "| names-en-0.5 | ner, wnut (50 %) | en |" in text
    assert "Not finished yet: names-en-0.5 (seed 2); srl-base (seed 1)." in text
    facts = json.loads(written[1].read_text())
    (row,) = facts["table1"]
    assert (row["absolute"], row["relative"], row["elmo"]["seeds"]) == (17, pytest.approx(100 * 17 / 45), 2)
    assert [each["run"] for each in facts["sets"]["names"]] == ["names-base", "names-en", "names-en-0.5"]
    assert "names-en: output of ner" in written[3].read_text()
    curve = written[2].read_text()
    assert ("wnut: en" in curve, "no encoder" in curve) == (True, False)  # one point makes no curve


def test_folds_are_one_row_scored_together_with_the_seeds_that_all_have(tmp_path):
    data = "data = ['{fold}/train', '{fold}/dev', '{fold}/test']"
    text = f"[[set]]\nname = 'n'\ntask = 'ner'\nfolds = 2\nseeds = 2\n{data}\n"
    runs = "[[set.run]]\nname = 'base'\nencoder = 'none'\n[[set.run]]\nname = 'en'\n"
    (tmp_path / "plan.toml").write_text(text + runs)
    sets = plans.read_plan(tmp_path / "plan.toml")
    right, wrong = [1, 1, 1], [0, 1, 1]
    out = tmp_path / "out"
    out.mkdir()
    make_run(out / "n-base-fold0", [[right] * 5 + [wrong] * 5, [right] * 9 + [wrong]])
    make_run(out / "n-base-fold1", [[wrong] * 10])
    make_run(out / "n-en-fold0", [[right] * 10], encoder="en")
    table1.write(sets, out, resamples=100)
    facts = json.loads((out / "table1.json").read_text())
    assert [row["run"] for row in facts["sets"]["n"]] == ["n-base"]  # a fold of the other run is missing
    make_run(out / "n-en-fold1", [[right] * 5 + [wrong] * 5], encoder="en")
    table1.write(sets, out, resamples=100)
    facts = json.loads((out / "table1.json").read_text())
    base, elmo = facts["sets"]["n"]
    assert (base["score"], base["dev"], base["seeds"], elmo["score"], elmo["absolute"]) == (25, 25, 1, 75, 50)
    assert base["data"] == "wnut and 1 other folds"
    assert facts["table1"][0]["relative"] == pytest.approx(100 * 50 / 75)
    assert facts["missing"] == ["n-base-fold1 (seed 2)", "n-en-fold0 (seed 2)", "n-en-fold1 (seed 2)"]
