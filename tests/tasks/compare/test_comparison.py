"""The comparison of runs: values computed by hand, a bootstrap of known cases, runs that cannot be compared."""

from __future__ import annotations

import json

import numpy as np
import pytest
from task_support import make_run

from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.tasks.compare import comparison
from pyelmo.tasks.compare.bootstrap import paired_bootstrap
from pyelmo.tasks.compare.items import read_items
from pyelmo.tasks.harness.metrics import SPAN_F1
from pyelmo.tasks.harness.run_folder import join_folds, read_run


def test_improvement_and_deviation_are_those_of_a_calculation_by_hand(tmp_path):
    right, wrong = [1, 1, 1], [0, 1, 1]
    old = make_run(tmp_path / "old", [[right] * 60 + [wrong] * 40, [right] * 50 + [wrong] * 50])  # 60 and 50
    new = make_run(tmp_path / "new", [[right] * 70 + [wrong] * 30, [right] * 74 + [wrong] * 26], encoder="en")
    base, row = comparison.compare_runs([read_run(old), read_run(new)], resamples=500)
    assert (base.score, base.deviation, base.absolute, base.bootstrap) == (55, pytest.approx(50**0.5), None, None)
    assert (row.score, row.deviation, row.seeds) == (72, pytest.approx(8**0.5), 2)
    assert (row.absolute, row.error_reduction) == (17, pytest.approx(100 * 17 / 45))
    assert (row.paper, row.elmo) == ("21 (CoNLL-2003)", "both; mix, lambda 0.001")
    assert row.bootstrap.p == pytest.approx(0.044, abs=0.04)  # t is 3.2 with 2 degrees of freedom
    lines = comparison.markdown([base, row]).splitlines()
    assert "| 55.00 ± 7.07 | span F1 55.00 ± 7.07 |  |  |  |  |" in lines[2]
    compared = f"21 (CoNLL-2003) | {row.bootstrap.p:.4f} | 100 examples; 2 and 2 seeds |"
    assert f"| span F1 72.00 ± 2.83 | +17.00 | 37.8 % | {compared}" in lines[3]


def test_a_table_is_written_as_markdown_json_and_a_picture(tmp_path):
    runs = [make_run(tmp_path / name, [[[1, 1, 1]]], encoder=encoder) for name, encoder in (("a", None), ("b", "en"))]
    written = comparison.write([read_run(run) for run in runs], tmp_path / "out.md", resamples=10)
    assert [path.name for path in written] == ["out.md", "out.json", "out.svg"]
    assert json.loads(written[1].read_text())[1]["encoder"] == "en"
    picture = written[2].read_text()
    assert ("b: input of ner" in picture, "a: " in picture, picture.count(">0.70<")) == (True, False, 2)
    assert comparison.write([read_run(runs[0])], tmp_path / "plain.md")[-1].suffix == ".json"


def test_runs_on_other_data_or_another_fraction_are_not_compared(tmp_path):
    one = make_run(tmp_path / "one", [[[1, 1, 1]]])
    part = make_run(tmp_path / "part", [[[1, 1, 1]]], fraction=0.1)
    found = comparison.compare_runs([read_run(one), read_run(part)])
    assert [row.absolute for row in found] == [None, None]
    assert "(10 %)" in comparison.markdown(found)
    picture = comparison.curve_picture(found)
    assert ("ner, wnut: no encoder" in picture, picture.count("<circle"), ">10<" in picture) == (True, 2, True)
    assert comparison.curve_picture(found[:1]) is None


def test_the_bootstrap_of_known_cases():
    random = np.random.default_rng(0)
    right = random.random(400) < 0.5
    counts = np.stack([right, np.ones(400), np.ones(400)], -1)[None].astype(float)
    same = paired_bootstrap(counts, counts, SPAN_F1, resamples=200)
    assert (same.p, same.low, same.high) == (1, 0, 0)
    # Flips of as many examples both ways: no better run, and half of the resamples say so.
    flipped = counts.copy()
    flipped[0, np.flatnonzero(right)[:40], 0] = 0
    flipped[0, np.flatnonzero(~right)[:40], 0] = 1
    assert 0.4 < paired_bootstrap(counts, flipped, SPAN_F1, resamples=2000).p < 0.6
    # 20 of 400 examples more: the difference is 5 %, its deviation sqrt(0.05 * 0.95 / 400).
    better = counts.copy()
    better[0, np.flatnonzero(~right)[:20], 0] = 1
    found = paired_bootstrap(counts, better, SPAN_F1, resamples=2000)
    deviation = 100 * (0.05 * 0.95 / 400) ** 0.5
    assert found.p == pytest.approx(1 / 2001)
    assert (found.low, found.high) == (
        pytest.approx(5 - 1.96 * deviation, abs=0.3),
        pytest.approx(5 + 1.96 * deviation, abs=0.3),
    )
    assert paired_bootstrap(counts, better, SPAN_F1, resamples=2000) == found


def test_the_bootstrap_knows_the_variance_of_seeds():
    """All examples of a seed are right or wrong, so that the examples alone have no variance at all."""
    right, wrong = np.ones((50, 3)), np.tile([0.0, 1.0, 1.0], (50, 1))
    first, second = np.stack([wrong, wrong, right]), np.stack([wrong, right, right])
    drawn = paired_bootstrap(first, second, SPAN_F1, resamples=4000)
    # Student's t test of three seeds against three: t is 0.7071 with 4 degrees of freedom, and 2.776 is its 97.5 %.
    error = 200 / 3 * 0.5**0.5
    assert drawn.p == pytest.approx(0.259, abs=0.03)
    assert (drawn.low, drawn.high) == (
        pytest.approx(100 / 3 - 2.776 * error, rel=0.1),
        pytest.approx(100 / 3 + 2.776 * error, rel=0.1),
    )
    assert (drawn.units, drawn.seeds) == (50, (3, 3))


def test_a_single_seed_is_taken_to_vary_as_much_as_the_other_run():
    right, wrong = np.ones((50, 3)), np.tile([0.0, 1.0, 1.0], (50, 1))
    one, three = wrong[None], np.stack([wrong, right, right])
    assert 0.2 < paired_bootstrap(one, three, SPAN_F1, resamples=1000).p < 0.3  # t is 1 with 2 degrees of freedom
    assert paired_bootstrap(one, right[None], SPAN_F1, resamples=1000).p < 0.01  # nothing is known


def test_the_bootstrap_draws_units_as_a_whole():
    """Of two articles with 50 questions each, one is answered: half of the resamples have it once."""
    right, wrong = np.ones((50, 3)), np.tile([0.0, 1.0, 1.0], (50, 1))
    first, second = np.concatenate([wrong, wrong])[None], np.concatenate([right, wrong])[None]
    assert paired_bootstrap(first, second, SPAN_F1, resamples=2000).low > 35
    by_article = paired_bootstrap(first, second, SPAN_F1, units=np.repeat([7, 3], 50), resamples=2000)
    assert by_article.p == pytest.approx(0.25, abs=0.04)
    assert (by_article.low, by_article.high, by_article.units) == (0, 100, 2)


def save_units(run, units, *, seeds=(1,), task="srl"):
    """Add the units to the answers of a run, which becomes one of another task with the same counts."""
    facts = json.loads((run / "run.json").read_text()) | {"task": task}
    (run / "run.json").write_text(json.dumps(facts))
    for path in (run / f"seed-{seed}" / "answers-test.jsonl" for seed in seeds):
        lines = zip(path.read_text().splitlines(), units, strict=True)
        path.write_text("".join(json.dumps(json.loads(line) | {"unit": unit}) + "\n" for line, unit in lines))


def test_a_table_draws_the_units_that_a_run_saved(tmp_path):
    right, wrong, units = [1, 1, 1], [0, 1, 1], np.repeat([4, 9], 50).tolist()
    old = make_run(tmp_path / "old", [[wrong] * 100])
    new = make_run(tmp_path / "new", [[right] * 50 + [wrong] * 50] * 2, encoder="en")  # equal seeds
    for run in (old, new):
        save_units(run, [], seeds=())
    row = comparison.compare_runs([read_run(old), read_run(new)], resamples=500)[1]
    assert (row.bootstrap.low > 30, row.resampled) == (True, "100 examples (no sentence saved); 1 and 2 seeds")
    save_units(new, units, seeds=[2])  # an old run, and a run with an old and a new seed: all on the same data
    row = comparison.compare_runs([read_run(old), read_run(new)], resamples=500)[1]
    assert (row.bootstrap.low, row.bootstrap.high, row.resampled) == (0, 100, "2 sentences; 1 and 2 seeds")
    assert comparison.markdown([row]).endswith("| 2 sentences; 1 and 2 seeds |\n")
    save_units(old, units[::-1])
    with pytest.raises(FormatError, match="new: its examples have other units than those of .*old"):
        comparison.compare_runs([read_run(old), read_run(new)])
    save_units(new, units[::-1])
    with pytest.raises(FormatError, match="new: its seeds have examples of different units"):
        read_run(new).answers()
    save_units(old, [*units[1:], 1.5])
    with pytest.raises(FormatError, match="not the predictions of a run .*line 100: expected int under 'unit'"):
        read_run(old).answers()


def test_folds_have_units_of_their_own(tmp_path):
    runs = [make_run(tmp_path / name, [[[1, 1, 1]] * 3]) for name in ("fold0", "fold1")]
    save_units(runs[0], [4, 4, 7])
    assert join_folds([read_run(run) for run in runs], tmp_path).answers().units is None
    save_units(runs[1], [4, 7, 7])
    assert join_folds([read_run(run) for run in runs], tmp_path).answers().units.tolist() == [0, 0, 1, 2, 3, 3]


def test_a_table_of_chosen_items_scores_these_alone(tmp_path):
    right, wrong = [1, 1, 1], [0, 1, 1]
    old = make_run(tmp_path / "old", [[right, wrong, wrong, wrong]])
    new = make_run(tmp_path / "new", [[right, wrong, right, wrong], [right, wrong, right, right]], encoder="en")
    save_units(new, [0, 1, 1, 2])
    save_units(old, [0, 1, 1, 2])
    path = tmp_path / "items.json"
    path.write_text('{"sets": {"1": {"file": "wnut", "examples": 4, "items": [3, 1, 2]}}}')
    rows = comparison.compare_runs([read_run(old), read_run(new)], resamples=50, items=read_items(path))
    assert [row.score for row in rows] == [0, pytest.approx(50)]  # 1 and 2 of 3
    assert (rows[1].deviation, rows[1].items) == (pytest.approx(100 / 3 / 2**0.5), 3)
    assert rows[1].resampled == "2 sentences; 1 and 2 seeds"
    assert "srl, wnut, 3 chosen items" in comparison.markdown(rows)
    for items, message in (("[4]", "not numbers of its 4"), ("[]", "not numbers of its 4"), ("[true]", "not numbers")):
        path.write_text(f'{{"sets": {{"1": {{"examples": 4, "items": {items}}}}}}}')
        with pytest.raises(FormatError, match=message):
            read_items(path)
    for sets, message in (('{"2": ', "has none for its data wnut"), ('{"1": ', "4 predictions, but the items go to 8")):
        path.write_text(f'{{"sets": {sets}{{"examples": 9, "items": [8]}}}}}}')
        with pytest.raises((FormatError, InputError), match=message):
            comparison.compare_runs([read_run(old)], items=read_items(path))


def test_old_seeds_with_a_third_count_are_compared_with_new_ones(tmp_path):
    run = make_run(tmp_path / "run", [[[1, 1, 1], [0, 1, 1]], [[1, 1, 1], [1, 1, 1]]])
    facts = json.loads((run / "run.json").read_text()) | {"task": "sentiment"}
    (run / "run.json").write_text(json.dumps(facts))
    (run / "seed-2" / "answers-test.jsonl").write_text('{"counts": [1, 1]}\n' * 2)
    (run / "seed-2" / "result.json").write_text(
        '{"seed": 2, "dev": {"score": 0}, "test": {"score": 100}, "layers": {}}'
    )
    found = read_run(run)
    assert (found.scores("test"), found.answers().counts.tolist()) == ([50, 100], [[[1, 1], [0, 1]], [[1, 1], [1, 1]]])


def test_a_folder_that_is_not_a_run_is_one_clear_error(tmp_path):
    with pytest.raises(NotFoundError, match="no run.json in this folder"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(FormatError, match="no seed of this run has finished"):
        read_run(tmp_path)
    with pytest.raises(InputError, match="predictions for 1 and 2 examples"):
        paired_bootstrap(np.ones((1, 1, 3)), np.ones((1, 2, 3)), SPAN_F1)
    run = make_run(tmp_path / "run", [[[1, 1, 1]]])
    for text in ("{}\n", ""):
        (run / "seed-1" / "answers-test.jsonl").write_text(text)
        with pytest.raises(FormatError, match="answers-test.jsonl: not the predictions of a run"):
            read_run(run).answers()
