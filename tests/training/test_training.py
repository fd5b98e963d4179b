"""Training: it learns, resumes exactly, runs in several processes, and says what went wrong."""

from __future__ import annotations

import json
import random
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
from safetensors.torch import load_file
from support import GOLDEN, fixture_folder

import pyelmo
from pyelmo.config import WordConfig, to_dict
from pyelmo.corpus.corpus import PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.errors import ConfigError, DivergedError, FormatError, InputError, NotFoundError, OutputError
from pyelmo.files import locked
from pyelmo.recipes import recipe_names
from pyelmo.training import checkpoint
from pyelmo.training.finetune import finetune
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import read_recipe

from .conftest import SMALL, TEXT, recipe

RUN = """
import json, sys, torch
torch.set_num_threads(1)
from pyelmo.config import from_dict
from pyelmo.training import processes
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import PretrainRecipe
pretrain(sys.argv[1], sys.argv[2], from_dict(PretrainRecipe, json.loads(sys.argv[3])), processes=processes.join("cpu"))
"""


def command(corpus: Path, output: Path, settings: object, *, ranks: int = 1) -> list[str]:
    script = output.with_suffix(".py")
    script.write_text(RUN)
    start = [sys.executable]
    if ranks > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [*start, str(script), str(corpus), str(output), json.dumps(to_dict(settings))]


def weights(output: Path) -> dict[str, torch.Tensor]:
    return load_file(output / "model" / "model.safetensors")


@pytest.mark.parametrize("loss", ["full", "sampled", "adaptive"])
def test_every_loss_learns(corpus, tmp_path, loss):
    model = replace(SMALL, softmax_cutoffs=(20, 50)) if loss == "adaptive" else SMALL
    result = pretrain(corpus, tmp_path / "run", recipe(model, loss=loss, words=24_000, batch=16, dropout=0.0))
    assert result.step
    assert result.valid.forward < 40  # a uniform guess over the vocabulary is 100
    assert result.valid.backward < 40
    again = pyelmo.load(tmp_path / "run" / "model")
    result_again = perplexity(
        again.pretrained, [[s.split()] for s in TEXT.read_text().splitlines()], context="sentence"
    )
    assert result_again.average == pytest.approx(result.valid.average, rel=1e-4)


@pytest.mark.parametrize("shares", [False, True])
def test_a_model_of_words_trains_too(corpus, tmp_path, shares):
    model = replace(SMALL, chars=None, words=WordConfig(size=1, dim=8), project=False, softmax_shares_words=shares)
    result = pretrain(corpus, tmp_path / "run", recipe(model, words=8000, optimiser="adagrad", lr=0.3))
    assert result.valid.forward < 60


def test_the_vocabulary_travels_with_the_model(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    model = pyelmo.load(tmp_path / "run" / "model")
    assert len(model.lexicon.vocab) == model.config.softmax == 100
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["training"]["batch"] == 8
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {"train", "valid", "note"} <= {line["kind"] for line in lines}


def test_a_model_has_the_language_of_its_corpus_and_keeps_it(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe(words=400))
    model = pyelmo.load(tmp_path / "run" / "model")
    assert model.language == "en"
    prepare(PrepareSettings(inputs=[TEXT], tokenised=True, language="ko"), tmp_path / "corpus-ko")
    for own, tuned in (("en", "en"), (None, "ko")):
        model.pretrained.language = own
        finetune(model.pretrained, tmp_path / "corpus-ko", tmp_path / tuned, recipe(words=400).training)
        assert pyelmo.load(tmp_path / tuned / "model").language == tuned


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_bit(corpus, tmp_path):
    settings = recipe(words=8 * 10 * 240, checkpoint_every=2)
    subprocess.run(command(corpus, tmp_path / "whole", settings), check=True)
    for kill in range(10):
        process = subprocess.Popen(command(corpus, tmp_path / "killed", settings))
        before = checkpoint.latest(tmp_path / "killed") if (tmp_path / "killed").is_dir() else None
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:  # not before it has come further
            now = checkpoint.latest(tmp_path / "killed") if (tmp_path / "killed").is_dir() else None
            if now != before:
                break
            time.sleep(0.002)
        time.sleep(random.Random(kill).uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    subprocess.run(command(corpus, tmp_path / "killed", settings), check=True)
    assert not list((tmp_path / "killed").glob(".*.part"))
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(resumed[name], tensor) for name, tensor in whole.items())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_stops(corpus, tmp_path, number):
    settings = recipe(minutes=5, checkpoint_every=100_000)
    process = subprocess.Popen(command(corpus, tmp_path / "run", settings))
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "log.jsonl").is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(timeout=60) == -number
    position = checkpoint.read_position(checkpoint.latest(tmp_path / "run"))
    assert position.step > 0
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.slow
def test_two_processes_train_what_one_does_and_one_resumes_from_two(corpus, tmp_path):
    settings = recipe(words=8 * 10 * 12, dropout=0.0, optimiser="adagrad", lr=0.1, checkpoint_every=6)
    subprocess.run(command(corpus, tmp_path / "one", settings), check=True)
    subprocess.run(command(corpus, tmp_path / "two", settings, ranks=2), check=True)
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert max(float((one[name] - two[name]).abs().max()) for name in one) < 1e-6
    # Let two ranks run half-way, and one go on from their checkpoint.
    half = replace(settings, training=replace(settings.training, words=8 * 10 * 6))
    subprocess.run(command(corpus, tmp_path / "first", half, ranks=2), check=True)
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    shutil.copy(tmp_path / "one" / "recipe.json", resumed / "recipe.json")
    shutil.copy(checkpoint.latest(tmp_path / "first"), resumed)
    subprocess.run(command(corpus, resumed, settings), check=True)
    three = weights(resumed)
    assert max(float((one[name] - three[name]).abs().max()) for name in one) < 1e-6


def test_the_golden_checkpoint_trains_on(tmp_path):
    train = fixture_folder("bilm-tf-fixture") / "train"
    folder = GOLDEN / "bilm-tf-training" / "bilm_chars_skip"
    model = pyelmo.load(folder / "model.ckpt-180", vocab=train / "vocab.txt").pretrained
    prepare(
        PrepareSettings(inputs=[train / "data.txt"], tokenised=True, valid_inputs=[train / "data.txt"]),
        tmp_path / "corpus",
    )
    settings = recipe(batch=2, steps=10, loss="full", optimiser="adagrad", lr=0.2, epochs=30, dropout=0.0).training
    tuned = finetune(model, tmp_path / "corpus", tmp_path / "run", settings)
    assert tuned.after.average < 0.8 * tuned.before.average
    sentences = [line.split() for line in (train / "data.txt").read_text("utf-8").splitlines()]
    after = perplexity(pyelmo.load(tmp_path / "run" / "model").pretrained, [sentences])
    assert after.average < 15.8914794921875


def test_a_checkpoint_without_softmax_gets_one_and_adapts(corpus, tmp_path, clip_model):
    model = pyelmo.load(clip_model).pretrained
    assert model.bilm.softmax is None
    still = {name: parameter.clone() for name, parameter in model.bilm.named_parameters()}
    tuned = finetune(model, corpus, tmp_path / "run", recipe(words=6000, dropout=0.0).training)
    assert tuned.after.average < tuned.before.average < 100
    first = load_file(checkpoint.latest(tmp_path / "run" / "softmax"))
    assert all(torch.equal(first[f"model/{name}"], tensor) for name, tensor in still.items())  # only the softmax moved
    assert tuned.model == tmp_path / "run" / "model"
    assert not list((tmp_path / "run").glob("*/model"))
    again = pyelmo.load(tmp_path / "run" / "model")
    assert (again.config.softmax, again.language) == (100, "en")


@pytest.mark.parametrize("name", recipe_names("pretrain"))
def test_every_bundled_recipe_parses(name):
    assert read_recipe(name).training.batch > 0


def test_the_paper_s_recipe_is_the_paper_s():
    model, training = read_recipe("original").model, read_recipe("original").training
    assert (model.lstm.cells, model.lstm.projection, model.chars.features) == (4096, 512, 2048)
    assert (training.samples, training.steps, training.optimiser, training.lr, training.epochs) == (
        8192,
        20,
        "adagrad",
        0.2,
        10,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["training.learning_rate=1"], "learning_rate: no such setting"),
        (["training.clipnorm=1"], "Did you mean 'clip_norm'"),
        (["model.lstm.cell=1"], "Did you mean 'cells'"),
        (["training.lr=fast"], "training.lr: expected float, got 'fast'"),
        (["training.lr"], "write it as section.setting=value"),
        (["training.batch=0"], "must be positive"),
        (["training.dropout=1.5"], "must be at least 0 and below 1"),
    ],
)
def test_a_wrong_setting_is_one_clear_error(changes, message):
    with pytest.raises(ConfigError, match=message):
        read_recipe("tiny-cpu", changes)


def test_several_processes_have_no_budget_in_minutes(corpus, tmp_path):
    from pyelmo.training.processes import Processes

    with pytest.raises(ConfigError, match="words or epochs"):
        pretrain(corpus, tmp_path / "run", recipe(minutes=1), processes=Processes(rank=1, count=2))


def test_a_new_budget_takes_the_place_of_the_recipe_s():
    assert read_recipe("small", ["training.minutes=3"]).training.epochs is None


def test_an_unknown_recipe_names_the_known_ones(tmp_path):
    with pytest.raises(NotFoundError, match="tiny-cpu"):
        read_recipe("huge")
    (tmp_path / "bad.toml").write_text("[model")
    with pytest.raises(ConfigError, match="not a TOML file"):
        read_recipe(tmp_path / "bad.toml")


def test_bad_corpora_are_one_clear_error(corpus, tmp_path):
    with pytest.raises(InputError, match="Use a smaller batch or more text"):
        pretrain(corpus, tmp_path / "run", recipe(batch=4000, steps=100))
    assert pretrain(corpus, tmp_path / "run", recipe()).step  # the failed start is not in the way
    shutil.copytree(corpus, tmp_path / "flipped")
    shard = tmp_path / "flipped" / "train-00000.bin"
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    with pytest.raises(FormatError, match="checksum"):
        pretrain(tmp_path / "flipped", tmp_path / "run2", recipe())
    with pytest.raises(NotFoundError, match="elmo prepare"):
        pretrain(tmp_path, tmp_path / "run3", recipe())


def test_a_folder_of_another_run_is_not_touched(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    before = weights(tmp_path / "run")
    with pytest.raises(OutputError, match="other settings"):
        pretrain(corpus, tmp_path / "run", recipe(lr=0.5))
    assert all(torch.equal(weights(tmp_path / "run")[name], tensor) for name, tensor in before.items())
    (tmp_path / "file").write_text("years of work")
    with pytest.raises(OutputError, match="not a training run"):
        pretrain(corpus, tmp_path / "file", recipe())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="not a training run"):
        pretrain(corpus, tmp_path / "mine", recipe())


def test_a_run_on_another_corpus_is_not_resumed(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    prepare(PrepareSettings(inputs=[TEXT], tokenised=True, language="en", vocab_size=100), tmp_path / "other")
    with pytest.raises(OutputError, match="has a run on another corpus"):
        pretrain(tmp_path / "other", tmp_path / "run", recipe())
    shutil.copytree(corpus, tmp_path / "copy")
    pretrain(tmp_path / "copy", tmp_path / "run", recipe())


def test_a_restarted_run_has_no_model_until_it_has_finished(corpus, tmp_path, monkeypatch):
    pretrain(corpus, tmp_path / "run", recipe())
    monkeypatch.setattr(checkpoint, "save", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pretrain(corpus, tmp_path / "run", recipe(lr=0.1), force=True)
    with pytest.raises(NotFoundError, match="has not finished"):
        pyelmo.load(tmp_path / "run")


def test_two_trainings_in_one_folder_are_refused(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    before = weights(tmp_path / "run")
    with locked(tmp_path / "run"), pytest.raises(OutputError, match="is locked by another process"):
        pretrain(corpus, tmp_path / "run", recipe(), force=True)
    assert all(torch.equal(weights(tmp_path / "run")[name], tensor) for name, tensor in before.items())


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_checkpoint(corpus, tmp_path, monkeypatch):
    from pyelmo.training.trainer import Trainer

    plain = Trainer._losses

    def poisoned(self, top, batch):
        losses, rows = plain(self, top, batch)
        return (losses * float("nan") if batch.samples.number == 7 else losses), rows

    monkeypatch.setattr(Trainer, "_losses", poisoned)
    with pytest.raises(
        DivergedError, match="NaN or infinite since step 7; stopped, the last good checkpoint is checkpoint-000000004"
    ):
        pretrain(corpus, tmp_path / "run", recipe())
    kept = load_file(checkpoint.latest(tmp_path / "run"))
    assert all(np.isfinite(tensor.numpy()).all() for tensor in kept.values())


def test_a_loss_that_rises_far_stops_and_keeps_the_last_checkpoint(corpus, tmp_path, monkeypatch):
    from pyelmo.training.trainer import Trainer

    plain = Trainer._losses

    def rising(self, top, batch):
        losses, rows = plain(self, top, batch)
        return (losses * 3 if batch.samples.number >= 6 else losses), rows

    monkeypatch.setattr(Trainer, "_losses", rising)
    with pytest.raises(DivergedError, match=r"the loss rose from 3\.\d+ to 1\d\.\d+ by step 8; stopped, .*-000000004"):
        pretrain(corpus, tmp_path / "run", recipe(report_every=4))


def test_the_gradient_norm_is_logged(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert all(row["norm"] > 0 for row in rows if row["kind"] == "train")


def test_a_full_disk_keeps_the_checkpoint_before(corpus, tmp_path, monkeypatch):
    import pyelmo.files

    def full(path):
        if "checkpoint-000000008" in str(path):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyelmo.files, "_sync", full)
    with pytest.raises(OutputError, match="No space left"):
        pretrain(corpus, tmp_path / "run", recipe())
    assert checkpoint.read_position(checkpoint.latest(tmp_path / "run")).step == 4


def test_a_damaged_checkpoint_is_one_clear_error(corpus, tmp_path):
    pretrain(corpus, tmp_path / "run", recipe())
    path = checkpoint.latest(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FormatError, match="not a complete checkpoint"):
        pretrain(corpus, tmp_path / "run", recipe())


def test_the_time_left_is_that_of_the_rate_now(corpus, tmp_path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))  # each call takes a second
    lines: list[str] = []
    pretrain(corpus, tmp_path / "run", recipe(words=8 * 10 * 20, report_every=1), say=lines.append)
    reports = [line for line in lines if "words/s" in line]
    assert len(reports) == 20
    for number, line in enumerate(reports[:-1], 1):
        rate = float(line.split(" words/s")[0].split()[-1])
        minutes, seconds = line.split("| ")[-1].split()[0].split(":")
        assert abs(60 * int(minutes) + int(seconds) - (20 - number) * 80 / rate) < 0.1 * (20 - number) * 80 / rate + 1


def test_a_slow_run_reports_before_its_first_regular_report(corpus, tmp_path, monkeypatch):
    clock = iter(range(0, 100_000, 6))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    lines: list[str] = []
    pretrain(corpus, tmp_path / "run", recipe(words=8 * 10 * 20, report_every=10_000), say=lines.append)
    assert "step 1 |" in lines[0]
