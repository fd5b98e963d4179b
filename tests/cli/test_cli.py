"""The command line: examples that run, data on stdout, one line for an error, nothing lost."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import pyelmo
from pyelmo.cli import VERBS, build_parser, main
from pyelmo.embed.files.store import read_embeddings

TEXT = Path(__file__).parents[1] / "banks.txt"


@pytest.fixture
def here(tmp_path, monkeypatch, clip_model):
    """A folder with a model, some sentences, and what the examples of --help name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(clip_model, tmp_path / "MODEL")
    shutil.copytree(clip_model, tmp_path / "options_and_weights")
    (tmp_path / "sentences.txt").write_text("The bank of a river.\nA bank account\n", "utf-8")
    return tmp_path


def example_of(verb: str) -> str:
    parser = build_parser()._subparsers._group_actions[0].choices[verb]
    return re.sub(r"^example: ", "", parser.epilog)


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """From raw text to a usable model by two commands: the tiny recipe, in smaller form."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copy(TEXT, folder / "text.txt")
    small = ["training.words=20000", "training.batch=16", "model.lstm.cells=32", "model.lstm.projection=16"]
    prepare = ["prepare", str(TEXT), "-o", str(folder / "corpus"), "--tokenised", "--valid", str(TEXT), "-q"]
    prepare += ["--language", "en"]
    assert main(prepare) == 0
    changes = [part for change in small for part in ("--set", change)]
    pretrain = [
        "pretrain",
        str(folder / "corpus"),
        "-o",
        str(folder / "LMrun"),
        "--recipe",
        "tiny-cpu",
        "--device",
        "cpu",
    ]
    assert main([*pretrain, *changes, "-q"]) == 0
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_in_help_runs(verb, here, trained, capsys):
    shutil.copy(trained / "text.txt", "text.txt")
    shutil.copytree(trained / "LMrun" / "model", "LM")
    if verb in ("pretrain", "finetune"):
        shutil.copytree(trained / "corpus", "corpus")
    if verb == "task":
        for name in ("train.conll", "dev.conll"):
            Path(name).write_text("Ann\tB-PER\nsaw\tO\nParis\tB-LOC\n\n" * 4)
    if verb == "vectors":
        Path("VECTORS").write_text("man 1 0\nwoman 0 1\nking 2 0\nqueen 0 2\n")
    command = shlex.split(example_of(verb))
    assert command[:2] == ["elmo", verb]
    assert main(command[1:]) == 0


def test_embed_writes_what_allennlp_wrote(here):
    assert main(["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "-q"]) == 0
    with h5py.File("out.hdf5") as file:
        assert sorted(file) == ["0", "1", "sentence_to_index"]
        assert json.loads(file["sentence_to_index"][0]) == {"The bank of a river.": "0", "A bank account": "1"}
        want = pyelmo.load("MODEL").embed(["The bank of a river."])[0]
        assert file["0"].dtype == np.float32
        np.testing.assert_array_equal(file["0"][...], want)


@pytest.mark.parametrize("name", ["out.hdf5", "out.npz", "out.parquet", "out.jsonl"])
@pytest.mark.parametrize(
    ("layers", "pooling", "shape"), [("all", None, (3, 3, 32)), ("0.2,0.3,0.5", None, (3, 32)), ("1", "mean", (32,))]
)
def test_embed_in_every_format(here, name, layers, pooling, shape):
    arguments = ["embed", "sentences.txt", "-o", name, "--model", "MODEL", "--layers", layers, "--tokenised", "-q"]
    assert main(arguments + (["--pooling", pooling] if pooling else [])) == 0
    assert [row.vectors.shape for row in read_embeddings(name)][1] == shape


def test_embed_reads_stdin_and_writes_stdout(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("강 둑\n".encode())))
    assert main(["embed", "-", "-o", "-", "--model", "MODEL", "--layers", "top"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["tokens"] == ["강", "둑"]
    assert "1 sentences" in captured.err


def test_blank_lines_keep_their_numbers(here, capsys):
    Path("text").write_bytes(b"one\n\n   \r\ntwo\x00words\n")
    assert main(["embed", "text", "-o", "out.hdf5", "--model", "MODEL", "--tokenised"]) == 0
    with h5py.File("out.hdf5") as file:
        assert [file[str(i)].shape for i in range(4)] == [(3, 1, 32), (3, 0, 32), (3, 0, 32), (3, 1, 32)]
    assert "2 blank lines" in capsys.readouterr().err


def test_a_folder_of_parts_from_several_files(here, capsys):
    Path("more.txt").write_text("one\n\ntwo\n")
    arguments = ["embed", "sentences.txt", "more.txt", "-o", "out/", "--model", "MODEL", "--part-sentences", "2"]
    assert main([*arguments, "--float16", "--layers", "top"]) == 0
    assert "out/: 5 sentences in 3 parts\n" in capsys.readouterr().err
    rows = list(read_embeddings("out"))
    assert [row.sentence for row in rows] == ["The bank of a river.", "A bank account", "one", "", "two"]
    assert rows[4].vectors.dtype == np.float16
    os.remove("out/part-00001.parquet")
    assert main([*arguments, "--float16", "--layers", "top"]) == 0
    assert "out/: 5 sentences in 3 parts, 2 of them from before\n" in capsys.readouterr().err
    assert main([*arguments, "--layers", "top"]) == 1
    assert "(float16: True then, False now)" in capsys.readouterr().err


def test_one_file_from_parquet_and_text(here):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"line": ["A bank", None]}), "in.parquet")
    arguments = ["embed", "in.parquet", "sentences.txt", "-o", "out.npz", "--model", "MODEL", "--column", "line", "-q"]
    assert main(arguments) == 0
    assert [row.sentence for row in read_embeddings("out.npz")] == [
        "A bank",
        "",
        "The bank of a river.",
        "A bank account",
    ]


def test_boundaries_may_be_kept(here, capsys):
    assert main(["embed", "sentences.txt", "-o", "-", "--model", "MODEL", "--keep-boundaries", "-q"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[1])
    assert first["tokens"] == ["<S>", "A", "bank", "account", "</S>"]
    assert first["shape"] == [3, 5, 32]


def test_convert_and_inspect(here, capsys):
    assert main(["convert", "MODEL", "native"]) == 0
    assert main(["convert", "native", "back", "--to", "allennlp"]) == 0
    assert main(["convert", "native", "w.hdf5"]) == 0
    assert main(["convert", "native", "small", "--precision", "int8"]) == 0
    assert main(["inspect", "small"]) == 0
    assert "weights: int8" in capsys.readouterr().out
    assert main(["convert", "native", "no", "--to", "allennlp", "--precision", "int8"]) == 1
    assert "only pyelmo's own format" in capsys.readouterr().err
    assert (here / "w_options.json").is_file()
    for name, kind in (("native", "pyelmo"), ("back", "allennlp"), ("w.hdf5", "allennlp")):
        capsys.readouterr()
        assert main(["inspect", name, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["format"], facts["layers"], facts["dim"]) == (kind, 3, 32)
        assert facts["parameters"]["total"] == sum(p.numel() for p in pyelmo.load("MODEL").bilm.parameters())
    assert main(["inspect", "native"]) == 0
    assert "cells: 64" in capsys.readouterr().out


def test_models_lists_the_bundled_models_and_prints_a_card(here, capsys, monkeypatch):
    monkeypatch.setattr("pyelmo.formats.bundled.BUNDLED", here / "box")
    Path("box").mkdir()
    assert main(["models"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["convert", "MODEL", "box/xx", "--language", "ko"]) == 0
    card = "---\nlanguage: ko\nlicense: CC0-1.0\n---\n# 카드\n\nlicense: said above.\n"
    Path("box/xx/README.md").write_text(card, "utf-8")
    size = sum(path.stat().st_size for path in Path("box/xx").iterdir())
    capsys.readouterr()
    assert main(["models", "--json"]) == 0
    facts = {"name": "xx", "language": "ko", "bytes": size, "layers": 3, "dim": 32, "predicts_words": 0}
    assert json.loads(capsys.readouterr().out) == [{**facts, "licence": "CC0-1.0"}]
    assert main(["models"]) == 0
    line = capsys.readouterr().out
    assert line.split() == f"xx language ko {size / 2**20:.1f} MiB 3 layers x 32 0 words CC0-1.0".split()
    assert main(["models", "xx"]) == 0
    assert capsys.readouterr().out == card
    for name in ("yy", "../MODEL", ""):
        assert main(["models", name]) == 1
        assert capsys.readouterr().err == f"elmo: {name}: no bundled model of that name (bundled: xx)\n"
    os.remove("box/xx/README.md")
    assert main(["models"]) == 1
    assert "README.md: not found" in capsys.readouterr().err


BAD = {
    "no input": (["embed", "nothing.txt", "-o", "out.hdf5", "--model", "MODEL"], "nothing.txt: not found"),
    "no model": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "nowhere"], "nowhere: no such file or folder"),
    "a language without a bundled model": (["inspect", "de"], "no bundled model of that name (bundled: en, ko)"),
    "a folder as input": (["embed", ".", "-o", "out.hdf5", "--model", "MODEL"], "is a folder"),
    "no suffix": (["embed", "sentences.txt", "-o", "out", "--model", "MODEL"], "--format"),
    "existing output": (
        ["embed", "sentences.txt", "-o", "sentences.txt", "--format", "npz", "--model", "MODEL"],
        "--force",
    ),
    "existing folder": (["convert", "MODEL", "options_and_weights"], "--force"),
    "no folder": (["embed", "sentences.txt", "-o", "a/b.npz", "--model", "MODEL"], "does not exist"),
    "not UTF-8": (
        ["embed", "latin.txt", "-o", "out.hdf5", "--model", "MODEL"],
        "latin.txt, line 2: not UTF-8 at byte 3",
    ),
    "odd layers": (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--layers", "a,b"],
        "numbers with commas",
    ),
    "odd layer": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--layers", "7"], "layers 0 to 2"),
    "odd language": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--language", "xx"], "xx"),
    "odd device": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--device", "toaster"], "toaster"),
    "odd batch": (["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--batch-size", "0"], "at least 1"),
    "workers and a file": (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "--workers", "2"],
        "out.hdf5: workers write a folder of parts, not a file",
    ),
    "a folder from stdin": (["embed", "-", "-o", "out/", "--model", "MODEL"], "-: is a stream"),
    "a folder with other files": (["embed", "sentences.txt", "-o", "MODEL", "--model", "MODEL"], "no bulk job wrote"),
    "not a model": (["inspect", "sentences.txt"], "not a model file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_no_file(here, case, capsys):
    Path("latin.txt").write_bytes(b"good\ncaf\xe9\n")
    arguments, message = BAD[case]
    before = sorted(os.listdir("."))
    assert main([*arguments, "-q"] if arguments[0] == "embed" else arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("elmo: ")
    assert error.count("\n") == 1
    assert message in error
    assert "Traceback" not in error
    assert sorted(os.listdir(".")) == before


def test_a_bug_is_told_without_a_traceback(here, capsys, monkeypatch):
    monkeypatch.setattr("pyelmo.formats.describe.describe", lambda model: 1 / 0)
    assert main(["inspect", "MODEL"]) == 70
    assert "a bug in pyelmo: ZeroDivisionError" in capsys.readouterr().err


def test_a_full_gpu_is_told_by_its_own_status(here, capsys, monkeypatch):
    def full(model):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 74.00 MiB.")

    monkeypatch.setattr("pyelmo.formats.describe.describe", full)
    assert main(["inspect", "MODEL"]) == 75
    assert capsys.readouterr().err == "elmo: the GPU's memory is full; try smaller batches, or fewer processes on it\n"


def test_force_replaces(here):
    assert main(["embed", "sentences.txt", "-o", "sentences.npz", "--model", "MODEL", "-q"]) == 0
    assert main(["embed", "sentences.txt", "-o", "sentences.npz", "--model", "MODEL", "-q", "--force"]) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_old_file_and_leaves_no_half(here, number):
    Path("out.hdf5").write_text("old")
    command = [
        sys.executable,
        "-m",
        "pyelmo",
        "embed",
        "-",
        "-o",
        "out.hdf5",
        "--model",
        "MODEL",
        "--force",
        "--batch-size",
        "1",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"a b c\n" * 64)  # a full window: the first vectors are written
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not any(path.name.endswith(".part") for path in here.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in error
    assert Path("out.hdf5").read_text() == "old"
    assert sorted(path.name for path in here.iterdir()) == ["MODEL", "options_and_weights", "out.hdf5", "sentences.txt"]


def test_a_full_disk_is_one_line_and_no_file(here):
    """RLIMIT_FSIZE stands for the disk: a write past it fails as on a full one."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));"
        "from pyelmo.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for arguments in (
        ["embed", "sentences.txt", "-o", "out.hdf5", "--model", "MODEL", "-q"],
        ["convert", "MODEL", "native"],
        ["convert", "MODEL", "w.hdf5"],
    ):
        run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert run.returncode == 1, run.stderr
        assert run.stderr.startswith("elmo: "), run.stderr
        assert run.stderr.count("\n") == 1, run.stderr
    assert sorted(os.listdir(".")) == ["MODEL", "options_and_weights", "sentences.txt"]


def test_a_trained_model_is_usable_at_once(trained, capsys, monkeypatch):
    monkeypatch.chdir(trained)
    assert main(["evaluate", "LMrun/model", "text.txt", "--tokenised", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["forward"] < 80  # a uniform guess over its vocabulary is 162
    assert found["words"] == sum(len(line.split()) + 1 for line in TEXT.read_text().splitlines())
    assert main(["predict", "LMrun/model", "The bank of the ___ .", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 10
    Path("one.txt").write_text("The bank lent money .\n")
    assert main(["score", "LMrun/model", "one.txt", "--json"]) == 0
    assert [word["word"] for word in json.loads(capsys.readouterr().out)["words"]] == [
        "The",
        "bank",
        "lent",
        "money",
        ".",
    ]


def test_text_is_split_as_the_model_s_own_was_unless_told_otherwise(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("They don't lend.\n")
    model, general = str(trained / "LMrun" / "model"), ["--language", "general"]
    for more, words in ([], ["They", "do", "n't", "lend", "."]), (general, ["They", "don", "'", "t", "lend", "."]):
        assert main(["evaluate", model, "text.txt", "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)["words"] == len(words) + 1
        assert main(["score", model, "text.txt", "--json", *more]) == 0
        assert [word["word"] for word in json.loads(capsys.readouterr().out)["words"]] == words
        assert main(["embed", "text.txt", "-o", "-", "--model", model, "-q", *more]) == 0
        assert json.loads(capsys.readouterr().out)["tokens"] == words
        assert main(["embed", "text.txt", "-o", "parts/", "--model", model, "--force", "-q", *more]) == 0
        assert [row.tokens for row in read_embeddings("parts")] == [words]
        assert json.loads(Path("parts/_job.json").read_text())["language"] == (more or ["en"])[-1]
    guesses = []
    for more in [], ["--language", "en"], general:
        assert main(["predict", model, "They don't ___ .", *more]) == 0
        guesses.append(capsys.readouterr().out)
    assert guesses[0] == guesses[1] != guesses[2]


def test_convert_keeps_the_first_words_in_int8_too(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = str(trained / "LMrun" / "model")
    assert main(["convert", model, "small", "--vocab-size", "50", "--precision", "int8", "--language", "ko"]) == 0
    small, whole = pyelmo.load("small"), pyelmo.load(model)
    assert (small.config.softmax, small.language) == (50, "ko")
    assert small.lexicon.vocab.words == whole.lexicon.vocab.words[:50]
    assert Path("small/vocab.txt").read_text().count("\n") == 50
    assert main(["convert", model, "int8", "--precision", "int8"]) == 0
    for name in ("softmax.weight", "softmax.bias"):
        pair = (dict(pyelmo.load(m).bilm.named_parameters())[name].detach().numpy() for m in ("small", "int8"))
        np.testing.assert_array_equal(*(array[:50] for array in pair))
    capsys.readouterr()
    assert main(["convert", model, "none", "--vocab-size", "1000"]) == 1
    assert "cannot keep 1000 words" in capsys.readouterr().err
    assert not Path("none").exists()


TRAINING_ERRORS = {
    "no text": (["prepare", "nothing.txt", "-o", "out"], "nothing.txt"),
    "empty text": (["prepare", "empty.txt", "-o", "out"], "empty"),
    "one word": (["pretrain", "word", "-o", "out", "--device", "cpu"], "smaller batch or more text"),
    "unknown key": (["pretrain", "corpus", "-o", "out", "--set", "training.batchsize=3"], "Did you mean 'batch'"),
    "unknown recipe": (["pretrain", "corpus", "-o", "out", "--recipe", "none-such"], "tiny-cpu"),
    "no cuda": (["pretrain", "corpus", "-o", "out", "--device", "tpu"], "neither cpu nor cuda"),
    "no corpus": (["pretrain", "MODEL", "-o", "out"], "not a prepared corpus"),
    "no softmax": (["evaluate", "MODEL", "sentences.txt"], "has no softmax"),
    "no gap": (["predict", "MODEL", "nothing to fill"], "0 gaps"),
    "no words": (["evaluate", "LM", "empty.txt"], "no text"),
}


@pytest.mark.parametrize("case", TRAINING_ERRORS)
def test_bad_input_to_training_is_one_line(here, trained, case, capsys):
    Path("empty.txt").write_text("\n\n")
    Path("word.txt").write_text("word\n")
    shutil.copytree(trained / "LMrun" / "model", "LM")
    shutil.copytree(trained / "corpus", "corpus")
    assert main(["prepare", "word.txt", "-o", "word", "-q"]) == 0
    capsys.readouterr()
    arguments, message = TRAINING_ERRORS[case]
    assert main(arguments) == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("elmo: ")
    assert message in error[-1]
    assert "Traceback" not in "".join(error)
