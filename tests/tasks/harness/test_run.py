"""Runs: they learn, repeat, resume to the same scores, embed once, and reach every mix."""

from __future__ import annotations

import doctest
import json
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support import make_embedder
from task_support import run_settings

import pyelmo
from pyelmo import tasks
from pyelmo.encoders.base import NamedEncoder
from pyelmo.errors import ConfigError, DivergedError, FormatError, InputError, NotFoundError, OutputError
from pyelmo.files import locked
from pyelmo.recipes import read_settings, recipe_names
from pyelmo.tasks import load
from pyelmo.tasks.harness import training_loop
from pyelmo.tasks.harness.batching import epoch_batches, pad_ids
from pyelmo.tasks.harness.model import TaskModel
from pyelmo.tasks.harness.run import sample_examples, train_run
from pyelmo.tasks.harness.task import Example, find_task

RUN = """
import pickle, sys, torch
torch.set_num_threads(int(sys.argv[3]))
from pyelmo.tasks.harness.run import train_run
train_run(pickle.load(open(sys.argv[1], "rb")), sys.argv[2])
"""


def scores(output: Path) -> list[float]:
    files = sorted(output.glob("seed-*/result.json"))
    return [json.loads(file.read_text())[part]["f1"] for file in files for part in ("dev", "test")]


def weights(output: Path, seed: int = 1) -> dict[str, torch.Tensor]:
    return load_file(output / f"seed-{seed}" / "model" / "model.safetensors")


@pytest.fixture(scope="module")
def finished(ner_data, tmp_path_factory) -> Path:
    """A run of two seeds that has learnt its task."""
    output = tmp_path_factory.mktemp("runs") / "run"
    wanted = run_settings(
        ner_data, "training.epochs=8", "training.lr=0.03", "network.dropout=0.1", encoder=str(ner_data / "LM"), seeds=2
    )
    train_run(wanted, output)
    return output


def test_a_run_learns_and_writes_down_its_settings(finished):
    assert max(scores(finished)) > 90
    facts = json.loads((finished / "run.json").read_text())
    assert (facts["task"], facts["encoder_name"], facts["data"]["test"]["file"]) == ("ner", "LM", "test.conll")
    assert {"date", "commit", "cpu", "torch"} <= set(facts["made"])
    assert str(finished.parent) not in (finished / "run.json").read_text()
    result = json.loads((finished / "seed-2" / "result.json").read_text())
    assert sum(result["layers"]["input"]["weights"]) == pytest.approx(1)
    assert "layer 2" in (finished / "layers.svg").read_text()
    lines = [json.loads(line) for line in (finished / "seed-1" / "log.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} == {"epoch", "dev", "test"}
    assert not (finished / "seed-1" / "checkpoint.safetensors").exists()


def test_a_saved_model_labels_raw_text_in_one_line(finished, ner_data):
    text = " Ann Lee  lives in New York."
    (found,) = load(finished).predict([text])[0]
    assert [(span.label, span.text, span.words) for span in found.spans] == [
        ("PER", "Ann Lee", (0, 2)), ("LOC", "New York", (4, 6)),
    ]  # fmt: skip
    assert [text[span.start : span.end] for span in found.spans] == ["Ann Lee", "New York"]
    assert [text[start:end] for start, end in found.offsets] == list(found.words)
    assert all(0.5 < span.probability <= 1 for span in found.spans)
    assert found.words == ("Ann", "Lee", "lives", "in", "New", "York", ".")
    assert found.labels == ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O")
    model = load(finished / "seed-1")
    assert model.task.format([found]) == "[PER Ann Lee] lives in [LOC New York] ."
    result = json.loads((finished / "seed-1" / "result.json").read_text())
    assert model.evaluate(ner_data / "test.conll").main == result["test"]["f1"]


def test_offsets_of_answers_are_those_of_the_text_as_it_was_written(finished):
    text = "\ufeffAnn L\u00adee liv\u200bes in Nu\u0308w York."
    (found,) = load(finished).predict([text])[0]
    (plain,) = load(finished).predict(["Ann Lee lives in N\u00fcw York."])[0]
    assert (found.words, found.labels) == (plain.words, plain.labels)
    assert [text[start:end] for start, end in found.offsets] == [
        "Ann", "L\u00adee", "liv\u200bes", "in", "Nu\u0308w", "York", "."
    ]  # fmt: skip
    (listed,) = load(finished).predict([["Ann", "L\u00adee", "lives", "in", "Nu\u0308w", "York", "."]])[0]
    assert (listed.words, listed.labels, listed.offsets[5]) == (plain.words, plain.labels, (23, 27))


def test_loading_a_model_skips_random_initialisation(finished):
    before = torch.get_rng_state()
    load(finished)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_seed_gives_the_same_weights_and_another_does_not(ner_data, tmp_path):
    for name in ("one", "two"):
        train_run(run_settings(ner_data, encoder=str(ner_data / "LM"), seeds=2), tmp_path / name)
    one, two, other = weights(tmp_path / "one"), weights(tmp_path / "two"), weights(tmp_path / "one", 2)
    assert all(torch.equal(two[name], tensor) for name, tensor in one.items())
    assert not torch.equal(one["network.crf.start"], other["network.crf.start"])


def test_a_run_past_its_time_limit_ends_with_the_epoch(ner_data, tmp_path):
    wanted = run_settings(ner_data, "training.minutes=1e-9", "training.epochs=5")
    assert wanted.recipe.training.epochs == 5
    assert (
        run_settings(ner_data, "training.minutes=1").recipe.training.epochs
        == run_settings(ner_data).recipe.training.epochs
    )
    (result,) = train_run(wanted, tmp_path / "run")
    assert (result["epochs"], result["best_epoch"]) == (1, 1)


def test_seeds_trained_separately_equal_those_of_one_run(ner_data, tmp_path):
    wanted = run_settings(ner_data, encoder=str(ner_data / "LM"), seeds=2)
    train_run(wanted, tmp_path / "one")
    (second,) = train_run(replace(wanted, seeds=1, first_seed=2), tmp_path / "two")
    assert second["seed"] == 2
    train_run(replace(wanted, seeds=1), tmp_path / "two")
    assert same(tmp_path / "one", tmp_path / "two")


def same(one: Path, other: Path) -> bool:
    """Whether two runs have the same scores and weights, to the bit."""
    seeds = range(1, len(scores(one)) // 2 + 1)
    pairs = [(weights(one, seed), weights(other, seed)) for seed in seeds]
    return scores(one) == scores(other) and all(
        torch.equal(left[name], right[name]) for left, right in pairs for name in left
    )


@pytest.mark.parametrize("average", ["0.0", "0.9"])
def test_stops_at_any_moment_change_no_score_and_no_weight(ner_data, tmp_path, monkeypatch, average):
    changes = ["training.epochs=3", "training.checkpoint_every=4", f"training.average={average}"]
    wanted = run_settings(ner_data, *changes, encoder=str(ner_data / "LM"), seeds=2)
    train_run(wanted, tmp_path / "whole")

    def stopped(name: str, call: int) -> None:
        """Start or resume, and stop at the n-th call of a function."""
        original, calls = getattr(training_loop, name), []

        def stopping(*arguments):
            calls.append(name)
            if len(calls) == call:
                raise KeyboardInterrupt
            return original(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(training_loop, name, stopping)
            with pytest.raises(KeyboardInterrupt):
                train_run(wanted, tmp_path / "stopped")

    stopped("_step", 3)  # before any checkpoint
    stopped("_save", 2)  # the first epoch's model is saved, its checkpoint is not
    stopped("_step", 5)  # in the middle of an epoch
    stopped("_step", 14)  # in the second seed
    train_run(wanted, tmp_path / "stopped")
    assert same(tmp_path / "stopped", tmp_path / "whole")


def test_averaged_weights_differ_from_the_last_ones(ner_data, tmp_path):
    for average in ("0.0", "0.9"):
        train_run(run_settings(ner_data, f"training.average={average}"), tmp_path / average)
    last, mean = (weights(tmp_path / average)["network.crf.start"] for average in ("0.0", "0.9"))
    assert not torch.equal(last, mean)
    with pytest.raises(ConfigError, match="training.average"):
        run_settings(ner_data, "training.average=1.0")


def test_a_killed_process_changes_no_score_and_no_weight(ner_data, tmp_path):
    wanted = run_settings(ner_data, "training.epochs=2", "training.checkpoint_every=2", encoder=str(ner_data / "LM"))
    train_run(wanted, tmp_path / "whole")
    (tmp_path / "settings").write_bytes(pickle.dumps(wanted))
    threads = str(torch.get_num_threads())
    process = subprocess.Popen([sys.executable, "-c", RUN, tmp_path / "settings", tmp_path / "killed", threads])
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("killed/seed-1/checkpoint.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    train_run(wanted, tmp_path / "killed")
    assert same(tmp_path / "killed", tmp_path / "whole")


def test_sentences_are_embedded_once_for_all_seeds_and_runs(ner_data, tmp_path, monkeypatch):
    embedded = []
    embed = NamedEncoder.__call__
    monkeypatch.setattr(NamedEncoder, "__call__", lambda self, given: embedded.extend(given) or embed(self, given))
    train_run(run_settings(ner_data, encoder=str(ner_data / "LM"), seeds=2), tmp_path / "one")
    once = len(embedded)
    assert once == len({tuple(words) for words in embedded}) > 10
    train_run(run_settings(ner_data, "elmo.layers=top", encoder=str(ner_data / "LM")), tmp_path / "two")
    assert len(embedded) == once


@pytest.mark.parametrize(
    ("changes", "moves"),
    [
        (["elmo.where=both"], {"input.logits", "input.gamma", "output.logits", "output.gamma"}),
        (["elmo.where=output", "elmo.layers=top"], {"output.gamma"}),
        (["elmo.layers=average", "elmo.layer_norm=true"], {"input.gamma"}),
    ],
)
def test_the_gradient_reaches_each_mix_and_only_what_is_learnt(ner_data, tmp_path, changes, moves):
    wanted = run_settings(ner_data, *changes, encoder=str(ner_data / "LM"), vectors=ner_data / "vectors.txt")
    train_run(wanted, tmp_path / "run")
    prefix = "representation.mixes."
    found = {name.removeprefix(prefix): tensor for name, tensor in weights(tmp_path / "run").items() if prefix in name}
    start = {"logits": 0.0, "gamma": 1.0}
    assert {name for name, tensor in found.items() if (tensor != start[name.split(".")[1]]).any()} == moves


def test_a_large_lambda_pulls_the_mix_to_the_mean(ner_data, tmp_path):
    spread = {}
    for penalty in (0.0, 100.0):
        wanted = run_settings(ner_data, f"elmo.penalty={penalty}", "training.lr=0.05", encoder=str(ner_data / "LM"))
        (result,) = train_run(wanted, tmp_path / str(penalty))
        spread[penalty] = np.std(result["layers"]["input"]["weights"])
    assert spread[100.0] < 0.2 * spread[0.0]


def test_a_tuned_encoder_changes_and_is_saved_with_the_model(ner_data, tmp_path):
    wanted = run_settings(ner_data, "elmo.tune=true", "training.encoder_lr=0.01", encoder=str(ner_data / "LM"), seeds=2)
    train_run(wanted, tmp_path / "run")
    assert not (tmp_path / "cache").exists()
    (before,), (after,), (other,) = (
        pyelmo.load(folder).embed(["Ann met Bob ."])
        for folder in (ner_data / "LM", *(tmp_path / "run" / f"seed-{seed}" / "model" / "encoder" for seed in (1, 2)))
    )
    assert np.abs(after - before).max() > 1e-3
    assert np.abs(after - other).max() > 1e-3
    model = load(tmp_path / "run" / "seed-1")
    result = json.loads((tmp_path / "run" / "seed-1" / "result.json").read_text())
    assert model.evaluate(ner_data / "dev.conll").main == result["dev"]["f1"]


def test_static_vectors_are_fixed_unless_tuned_and_can_be_the_encoder(ner_data, tmp_path):
    vectors = ner_data / "vectors.txt"
    for tune in ("false", "true"):
        train_run(run_settings(ner_data, f"words.tune={tune}", vectors=vectors), tmp_path / tune)
    first = float(vectors.read_text().split()[1])
    name = "representation.words.weight"
    assert float(weights(tmp_path / "false")[name][1, 0]) == pytest.approx(first)
    assert float(weights(tmp_path / "true")[name][1, 0]) != pytest.approx(first, abs=1e-5)
    words = json.loads((tmp_path / "true" / "seed-1" / "model" / "vocab.json").read_text())["words"]
    assert "lives" in words  # no vector in the file: a new one
    train_run(run_settings(ner_data, "words.dim=0", encoder=str(vectors)), tmp_path / "encoder")
    assert weights(tmp_path / "encoder")["representation.mixes.input.logits"].shape == (1,)


def test_a_loss_that_is_not_finite_stops_the_training_and_nothing_is_saved(ner_data, tmp_path, monkeypatch):
    original, calls = TaskModel.loss, []

    def diverging(model, examples):
        calls.append(1)
        return original(model, examples) * (float("nan") if len(calls) == 3 else 1.0)

    monkeypatch.setattr(TaskModel, "loss", diverging)
    with pytest.raises(DivergedError, match=r"the loss is nan at step 3\."):
        train_run(run_settings(ner_data), tmp_path / "run")
    assert not list((tmp_path / "run" / "seed-1").iterdir())


def test_training_stops_when_the_dev_score_no_longer_improves(ner_data, tmp_path):
    wanted = run_settings(ner_data, "training.epochs=50", "training.patience=2", "training.lr=1e-9")
    (result,) = train_run(wanted, tmp_path / "run")
    assert (result["epochs"], result["best_epoch"]) == (3, 1)


def test_the_learning_rate_is_halved_when_the_score_no_longer_improves(ner_data, tmp_path):
    wanted = run_settings(ner_data, "training.epochs=5", "training.halve_after=2", "training.lr=1e-9")
    train_run(wanted, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "seed-1" / "log.jsonl").read_text().splitlines()]
    rates = [line["lr"] / 1e-9 for line in lines if line["kind"] == "epoch"]
    assert rates == pytest.approx([1, 1, 1, 0.5, 0.5])


def test_batches_have_every_example_once_and_similar_lengths():
    lengths = np.random.default_rng(0).integers(1, 60, 1000).tolist()
    batches = epoch_batches(lengths, 10, 1, 0)
    assert sorted(row for batch in batches for row in batch) == list(range(1000))
    spread = [max(lengths[row] for row in batch) - min(lengths[row] for row in batch) for batch in batches]
    assert np.mean(spread) < 5
    assert batches == epoch_batches(lengths, 10, 1, 0)
    assert batches != epoch_batches(lengths, 10, 1, 1)
    assert sorted(map(len, epoch_batches([1] * 21, 10, 1, 0))) == [1, 10, 10]


def test_word_ids_become_padded_rows():
    rows = pad_ids(iter([5, 6, 7, 8]), [1, 0, 3], torch.device("cpu"), padding=-1)
    assert rows.tolist() == [[5, -1, -1], [-1, -1, -1], [6, 7, 8]]


def test_a_fraction_contains_every_smaller_one_and_depends_on_the_seed():
    examples = [Example(((str(number),),)) for number in range(100)]
    tenth, half = sample_examples(examples, 0.1, 1), sample_examples(examples, 0.5, 1)
    assert (len(tenth), set(tenth) < set(half)) == (10, True)
    assert tenth != sample_examples(examples, 0.1, 2)
    assert sample_examples(examples, 1.0, 1) == examples


def test_two_trainings_of_a_seed_at_once_are_refused(ner_data, tmp_path):
    folder = tmp_path / "run" / "seed-1"
    train_run(run_settings(ner_data), tmp_path / "run")
    with locked(folder):
        for force in (False, True):
            with pytest.raises(OutputError, match="seed-1: is locked by another process"):
                train_run(run_settings(ner_data), tmp_path / "run", force=force)
    assert (folder / "result.json").is_file()
    (folder / "result.json").unlink()
    with locked(folder):
        assert len(train_run(replace(run_settings(ner_data), first_seed=2), tmp_path / "run")) == 1


def test_a_finished_run_gets_more_seeds_and_refuses_other_settings(ner_data, tmp_path):
    train_run(run_settings(ner_data), tmp_path / "run")
    before = (tmp_path / "run" / "seed-1" / "result.json").stat().st_mtime_ns
    assert len(train_run(run_settings(ner_data, seeds=2), tmp_path / "run")) == 2
    assert (tmp_path / "run" / "seed-1" / "result.json").stat().st_mtime_ns == before
    with pytest.raises(OutputError, match="holds a run with another recipe"):
        train_run(run_settings(ner_data, "training.lr=0.5"), tmp_path / "run")
    assert len(train_run(run_settings(ner_data, "training.lr=0.5"), tmp_path / "run", force=True)) == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(OutputError, match="is not a run of a task"):
        train_run(run_settings(ner_data), tmp_path / "other")


def test_seeds_of_a_new_run_may_begin_at_once(ner_data, tmp_path):
    (tmp_path / "run" / ".run.json.x.part").mkdir(parents=True)  # another process is about to write run.json
    assert len(train_run(run_settings(ner_data, "training.epochs=1"), tmp_path / "run")) == 1


def test_a_run_may_have_the_name_of_a_bundled_model(ner_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seeds in (1, 2):
        train_run(run_settings(ner_data, "training.epochs=1", encoder="en", seeds=seeds), "en")
    assert load("en").predict(["Ann"])


def test_bad_data_is_one_clear_error_before_any_work(ner_data, tmp_path):
    def trained(text: str, part: int = 1) -> None:
        (tmp_path / "bad.conll").write_text(text)
        data = [ner_data / "train.conll", ner_data / "dev.conll"]
        data[part] = tmp_path / "bad.conll"
        train_run(run_settings(ner_data, data=data), tmp_path / "run")

    with pytest.raises(FormatError, match="bad.conll: the label 'B-GPE' .* is not one of the 5"):
        trained("Rome\tB-GPE\n")
    with pytest.raises(FormatError, match="bad.conll, line 2: 1 columns, but 2"):
        trained("Rome\tB-LOC\nlost\n")
    with pytest.raises(FormatError, match="bad.conll: holds no sentences"):
        trained("", part=0)
    with pytest.raises(InputError, match="has one example"):
        trained("Rome\tB-LOC\nAnn\tB-PER\n", part=0)
    with pytest.raises(NotFoundError, match="nowhere.conll: not found"):
        train_run(run_settings(ner_data, data=["nowhere.conll", ner_data / "dev.conll"]), tmp_path / "run")
    with pytest.raises(InputError, match="Give two files .train, dev. or three"):
        train_run(run_settings(ner_data, data=[ner_data / "dev.conll"]), tmp_path / "run")
    with pytest.raises(ConfigError, match="the network has no input vectors"):
        train_run(run_settings(ner_data, "words.dim=0"), tmp_path / "run")
    with pytest.raises(InputError, match="is not an ELMo model"):
        train_run(run_settings(ner_data, "elmo.tune=true", encoder=str(ner_data / "vectors.txt")), tmp_path / "tuned")


def test_labels_unseen_in_training_can_count_as_missed(ner_data, tmp_path):
    (tmp_path / "dev.conll").write_text("Rome\tB-GPE\n\nAnn\tB-PER\n")
    data = [ner_data / "train.conll", tmp_path / "dev.conll"]
    (result,) = train_run(run_settings(ner_data, "data.unseen=miss", data=data), tmp_path / "run")
    assert result["dev"]["gold"] == 2


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda model: (model / "model.safetensors").write_bytes(b"x" * 9), "not a complete safetensors file"),
        (lambda model: (model / "model.safetensors").unlink(), "model.safetensors: not found"),
        (lambda model: (model / "config.json").write_text("{}"), "not the config of a task model"),
        (lambda model: (model / "vocab.json").write_text('{"words": ["a"], "labels": ["O"]}'), "'.*' is .*, expected"),
        (lambda model: (model / "vocab.json").write_text("{}"), "do not fit together"),
    ],
)
def test_a_damaged_model_is_one_clear_error(finished, tmp_path, break_it, message):
    shutil.copytree(finished / "seed-1" / "model", tmp_path / "model")
    break_it(tmp_path / "model")
    with pytest.raises((FormatError, NotFoundError), match=message):
        load(tmp_path / "model")


def test_a_truncated_model_and_another_encoder_are_detected(finished, ner_data, tmp_path):
    shutil.copytree(finished / "seed-1" / "model", tmp_path / "cut")
    path = tmp_path / "cut" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError, match="not a complete safetensors file"):
        load(tmp_path / "cut")
    make_embedder(seed=1).save(tmp_path / "LM")
    with pytest.raises(FormatError, match=r"trained with another encoder than .*LM .checksum mismatch"):
        load(finished, encoder=str(tmp_path / "LM"))
    shutil.copytree(ner_data / "LM", tmp_path / "moved")
    assert load(finished, encoder=str(tmp_path / "moved")).predict([["Ann"]])
    with pytest.raises(NotFoundError, match="no trained model in this folder"):
        load(tmp_path)
    assert [len(answers) for answers in load(finished).predict(["Ann", " ", "", [], "Bob"])] == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("name", recipe_names("task"))
def test_every_bundled_task_recipe_parses(name):
    assert read_settings(find_task(name.partition("-")[0]).recipe, name, group="task").training.batch > 0


def test_the_names_of_saved_weights_are_those_of_older_models(ner_data, tmp_path):
    train_run(
        run_settings(ner_data, "training.epochs=1", "elmo.where=both", encoder=str(ner_data / "LM")), tmp_path / "run"
    )
    names = set(weights(tmp_path / "run"))
    assert {name for name in names if not name.startswith("network.")} == {
        "representation.words.weight",
        *(f"representation.mixes.{place}.{name}" for place in ("input", "output") for name in ("logits", "gamma")),
    }
    assert {name.split(".")[1] for name in names if name.startswith("network.")} == {"characters", "tagger", "crf"}


@pytest.mark.parametrize("documented", [tasks.load, TaskModel.predict, TaskModel.evaluate])
def test_the_examples_of_the_documentation_run(finished, ner_data, monkeypatch, documented):
    monkeypatch.chdir(finished.parent)
    shutil.copy(ner_data / "test.conll", finished.parent)
    (example,) = (test for test in doctest.DocTestFinder().find(documented, globs={}) if test.examples)
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_run_trains_on_one_thread_by_default_and_restores_the_number(ner_data, tmp_path, monkeypatch):
    step, seen, before = training_loop._step, [], torch.get_num_threads()

    def count_threads(*arguments):
        seen.append(torch.get_num_threads())
        return step(*arguments)

    monkeypatch.setattr(training_loop, "_step", count_threads)
    try:
        torch.set_num_threads(3)
        train_run(run_settings(ner_data, "training.epochs=1"), tmp_path / "one")
        train_run(run_settings(ner_data, "training.epochs=1"), tmp_path / "two", threads=2)
        assert (set(seen), seen[0], seen[-1], torch.get_num_threads()) == ({1, 2}, 1, 2, 3)
    finally:
        torch.set_num_threads(before)


def test_a_model_with_a_weight_that_is_no_number_is_refused(finished, tmp_path):
    shutil.copytree(finished / "seed-1" / "model", tmp_path / "nan")
    path = tmp_path / "nan" / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name, tensor in tensors.items() if tensor.dtype.is_floating_point)
    tensors[name].view(-1)[0] = float("nan")
    save_file(tensors, path)
    with pytest.raises(FormatError, match=r"holds 1 value.* NaN or infinite"):
        load(tmp_path / "nan")
