"""Plan files: the runs that they describe, and one clear error for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyelmo.config import to_dict
from pyelmo.errors import ConfigError, InputError, NotFoundError, OutputError
from pyelmo.experiments import plans
from pyelmo.experiments.table1 import PAPER
from pyelmo.tasks.harness.task import TASKS, find_task

SET = '[[set]]\nname = "n"\ntask = "ner"\ndata = ["train", "dev", "test"]\n'
RUN = '[[set.run]]\nname = "a"\n'
ABLATIONS = Path(__file__).parents[2] / "benchmarks" / "tasks" / "ablations.toml"


def read(folder: Path, text: str) -> list[plans.RunSet]:
    (folder / "plan.toml").write_text(text)
    return plans.read_plan(folder / "plan.toml")


def test_a_run_has_the_options_of_its_set_and_its_own(tmp_path):
    text = (
        f'{SET}vectors = "v.txt"\nseeds = 2\nset = ["training.batch=8"]\n[[set.run]]\nname = "base"\nencoder = "none"\n'
    )
    text += (
        '[[set.run]]\nname = "en"\nfractions = [0.01, 0.1]\nset = ["training.epochs=3"]\nlambda = 1\nelmo = "both"\n'
    )
    (found,) = read(tmp_path, text)
    assert [run.name for run in found.runs] == ["n-base", "n-en-0.01", "n-en-0.1"]
    base, small, _ = found.runs
    assert (base.encoder, base.recipe.training.batch, base.options.seeds, base.vectors_key) == (None, 8, 2, None)
    assert (small.recipe.training.batch, small.recipe.training.epochs, small.recipe.elmo.penalty) == (8, 3, 1)
    told = "task train ner --data train dev test --encoder en --vectors v.txt --elmo both --lambda 1.0 --fraction 0.01"
    assert (
        " ".join(small.arguments(Path("OUT")))
        == f"{told} --set training.batch=8 --set training.epochs=3 -o OUT/n-en-0.01"
    )


def test_runs_with_the_same_data_encoder_and_reader_share_vectors(tmp_path):
    changes = ['layers = "top"', "fractions = [0.5]", 'set = ["data.scheme=iob1"]', 'set = ["elmo.tune=true"]']
    text = SET + RUN + "".join(f'[[set.run]]\nname = "{number}"\n{each}\n' for number, each in enumerate(changes))
    keys = [run.vectors_key for run in read(tmp_path, text)[0].runs]
    assert (keys[0] == keys[1] == keys[2], keys[3] != keys[0], keys[4]) == (True, True, None)


def test_a_set_with_folds_has_a_run_for_each_that_share_vectors_and_a_row(tmp_path):
    text = '[[set]]\nname = "n"\ntask = "ner"\nfolds = 2\ndata = ["{fold}/train", "{fold}/dev", "{fold}/test"]\n'
    sets = read(tmp_path, f'{text}[[set.run]]\nname = "base"\nencoder = "none"\n{RUN}')
    runs = sets[0].runs
    assert [run.name for run in runs] == ["n-base-fold0", "n-base-fold1", "n-a-fold0", "n-a-fold1"]
    assert [run.row_name for run in runs] == ["n-base", "n-base", "n-a", "n-a"]
    assert runs[3].data == ("1/train", "1/dev", "1/test")
    assert runs[2].vectors_key == runs[3].vectors_key
    assert sets[0].row is runs[2]
    assert [run.name for run in plans.choose(sets, ["n-a"])[0].runs] == ["n-a-fold0", "n-a-fold1"]


def test_a_recipe_may_be_a_file_beside_the_plan(tmp_path):
    (tmp_path / "small.toml").write_text("[training]\nbatch = 5\n")
    ((run,),) = (each.runs for each in read(tmp_path, f'{SET}recipe = "small.toml"\n{RUN}'))
    assert (run.recipe.training.batch, run.recipe_source) == (5, str((tmp_path / "small.toml").resolve()))


def test_the_row_of_table_1_is_the_first_run_with_an_encoder_or_the_chosen_one(tmp_path):
    runs = '[[set.run]]\nname = "base"\nencoder = "none"\n[[set.run]]\nname = "b"\nfraction = 0.5\n[[set.run]]\nname = "c"\n'
    assert read(tmp_path, SET + runs)[0].row.name == "n-c"
    assert read(tmp_path, f'{SET}{runs}[[set.run]]\nname = "d"\nrow = true\n')[0].row.name == "n-d"
    assert read(tmp_path, SET + RUN)[0].row is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected tables .*set.* got nothing"),
        ("[model]\n", "expected tables .* got model"),
        ("x = [", "not a TOML file"),
        (f"set = 3\n{RUN}", "not a TOML file|must be tables"),
        ("set = [3]\n", "set must be a list of tables"),
        (SET, "set n: has no runs"),
        (SET.replace("task", "tsk") + RUN, "set n: tsk: no such setting. Did you mean 'task'"),
        (SET.replace('"ner"', '"nre"') + RUN, "unknown task 'nre'. Choose one of ner, srl"),
        (SET.replace(', "dev", "test"', "") + RUN, "set n: data: give two files or three"),
        (SET + "folds = 2\n" + RUN, "set n: with folds, the name of each data file must have {fold}"),
        (SET.replace("train", "{fold}") + RUN, "set n: with folds, the name of each"),
        (SET + RUN + 'layer = "top"\n', "set n, run a: layer: no such setting. Did you mean 'layers'"),
        (SET + RUN + 'layers = "low"\n', "set n, run a: layers: 'low' is none of"),
        (SET + RUN + "penalty = 1\n", "Did you mean 'lambda'"),
        (SET + RUN + 'set = "training.batch=3"\n', "set: expected a list"),
        (SET + RUN + 'set = ["training.bach=3"]\n', "set n, run a: .*bach: no such setting. Did you mean 'batch'"),
        (SET + RUN + 'recipe = "lost"\n', "no bundled recipe of that name"),
        (SET + RUN + "seeds = 0\n", "seeds must be 1 or more"),
        (SET + RUN + "fractions = [0.1, 2]\n", "fractions above 0"),
        (SET + RUN.replace('"a"', '"../a"'), "'n-../a' cannot be the name of a folder"),
        (SET + RUN + RUN, "two runs have the name 'n-a'"),
        (SET + RUN + SET + RUN, "two runs have the name 'n-a'"),
    ],
)
def test_a_mistake_in_a_plan_is_one_clear_error(tmp_path, text, message):
    with pytest.raises(ConfigError, match=f"plan.toml: .*(?:{message})"):
        read(tmp_path, text)


def test_runs_are_chosen_by_their_names_and_by_those_of_their_sets(tmp_path):
    other = SET.replace('"n"', '"m"')
    found = read(tmp_path, f'{SET}{RUN}[[set.run]]\nname = "b"\n{other}{RUN}[[set.run]]\nname = "b"\n')

    def names(only):
        return [run.name for each in plans.choose(found, only) for run in each.runs]

    assert names(["m-b", "n"]) == ["n-a", "n-b", "m-b"]
    assert names([]) == ["n-a", "n-b", "m-a", "m-b"]
    with pytest.raises(InputError, match="--only n-c: no run and no set of that name. Did you mean 'n-"):
        names(["n-c"])


def test_missing_files_are_named_together(tmp_path):
    runs = read(tmp_path, f'{SET}vectors = "v.txt"\nencoder = "LM"\n{RUN}')[0].runs
    (tmp_path / "dev").touch()
    with pytest.raises(NotFoundError, match=r"lacks these files of the plan: train, test, v\.txt, LM"):
        plans.check_files(runs, tmp_path)
    for name in ("train", "test", "v.txt", "LM"):
        (tmp_path / name).touch()
    plans.check_files(runs, tmp_path)


def test_a_folder_of_another_run_is_detected(tmp_path):
    (run,) = read(tmp_path, SET + RUN)[0].runs
    plans.check_existing(run, tmp_path)
    facts = {"task": "ner", "data": {part: {"file": part} for part in run.data}, "encoder": {}, "fraction": 1.0}
    (tmp_path / "n-a").mkdir()
    (tmp_path / "n-a" / "run.json").write_text(json.dumps({**facts, "recipe": to_dict(run.recipe)}))
    plans.check_existing(run, tmp_path)
    (tmp_path / "n-a" / "run.json").write_text(json.dumps({**facts, "fraction": 0.5, "recipe": {}}))
    with pytest.raises(OutputError, match="n-a: holds a run with another fraction and recipe"):
        plans.check_existing(run, tmp_path)


def test_the_plans_of_the_project_parse_and_share_their_runs():
    box, ablations = (
        {run.name: run for each in plans.read_plan(path) for run in each.runs} for path in ("table1", ABLATIONS)
    )
    assert {run.task for run in box.values()} == set(TASKS) == set(PAPER)
    assert {"srl-glove", "srl-en", "squad-glove", "squad-en", "lingnli-en", "sst5-en"} <= set(box) & set(ablations)
    assert all(box[name] == ablations[name] for name in set(box) & set(ablations))


def test_the_papers_figures_agree_with_each_other():
    for name, (old, new) in PAPER.items():
        first, second = float(old), float(new.split()[0])
        assert 100 * (second - first) / (100 - first) == pytest.approx(find_task(name).paper_reduction, abs=0.06), name
    with pytest.raises(NotFoundError, match="table2: not a file, and no bundled recipe"):
        plans.read_plan("table2")
