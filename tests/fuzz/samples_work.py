"""What pyelmo writes while it works: indexes, corpora, runs, checkpoints, caches, and folders of embeddings."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from pathlib import Path
from unittest import mock

from fuzz.formats import Command, Format
from fuzz.samples_models import NETWORKS, SMALL, train_task

TEXT = "\n\n".join(f"The bank number {number} of the river . Ann lives in Paris ." for number in range(40)) + "\n"
RECIPE = """[model.chars]
dim = 4
filters = [[1, 4], [2, 8]]
highways = 1
max_length = 16
[model.lstm]
cells = 8
projection = 8
layers = 1
[training]
batch = 4
steps = 5
samples = 8
words = 40
checkpoint_every = 1
"""


def _text(folder: Path) -> Path:
    path = folder.parent / "long.txt"
    path.write_text(TEXT, "utf-8")
    return path


# --- neighbours ------------------------------------------------------------------------------------------------------


def _make_index(folder: Path, shared: Path) -> None:
    from pyelmo import neighbours
    from pyelmo.neighbours import vector_index

    folder.mkdir()
    text = _text(folder)
    neighbours.build([text], folder / "exact", model=shared / "LM", words=["bank", "river"], language="en")
    with (
        mock.patch.object(vector_index, "EXACT_AT_MOST", 10),
        mock.patch.object(vector_index, "PART", 50),
        mock.patch.object(vector_index, "LIST_ROWS", 20),
    ):
        neighbours.build([text], folder / "lists", model=shared / "LM", words=["bank", "river"], language="en")


def _read_index(folder: Path) -> None:
    from pyelmo import neighbours

    index = neighbours.load(folder)
    model = index.load_model(folder.parents[1] / "shared" / "LM")
    index.query(model, "My *bank* account is empty .", count=3)
    index.query(model, "My *bank* account is empty .", count=3, same_word=True)


def _index_commands(folder: Path, shared: Path) -> list[Command]:
    query = ["neighbours", "query", str(folder), "The *bank* is closed ."]
    return [query, [*query, "--json", "--same-word"], [*query, "--quick", "-k", "100"]]


def _forge_index(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    for name, facts in manifest["files"].items():
        data = (folder / name).read_bytes() if (folder / name).is_file() else b""
        facts.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    manifest["sha256"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(manifest), "utf-8")


# --- corpora ---------------------------------------------------------------------------------------------------------


def _prepare(text: Path, output: Path) -> None:
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    prepare(PrepareSettings(inputs=(str(text),), language="en", valid_fraction=0.2), output)


def _make_corpus(folder: Path, shared: Path) -> None:
    folder.mkdir()
    _prepare(_text(folder), folder / "corpus")
    (folder.parent / "recipe.toml").write_text(RECIPE, "utf-8")


def _pretrain(corpus: Path, output: Path) -> None:
    from pyelmo.training.loop import pretrain
    from pyelmo.training.recipe import read_recipe

    pretrain(
        corpus,
        output,
        read_recipe(
            corpus.parents[1] / "recipe.toml"
            if corpus.parent.name == "corpus"
            else corpus.parents[1] / "samples" / "recipe.toml"
        ),
    )


def _read_corpus(folder: Path) -> None:
    from pyelmo.corpus.corpus import Corpus

    corpus = Corpus.open(folder)
    corpus.verify()
    _ = corpus.types, corpus.vocabulary, corpus.counts
    for split in ("train", "valid"):
        for sentence in corpus.sentences(split):
            [corpus.types[number] for number in sentence.tolist()]
    _pretrain(folder, folder.with_name("run"))


def _corpus_commands(folder: Path, shared: Path) -> list[Command]:
    recipe = str(folder.parents[1] / "samples" / "recipe.toml")
    return [
        ["pretrain", str(folder), "-o", f"{folder}-run", "--recipe", recipe, "--quiet"],
        ["finetune", str(shared / "LM"), str(folder), "-o", f"{folder}-tuned", "--recipe", "finetune", "--quiet",
         "--set", "training.words=40", "--set", "training.batch=4", "--set", "training.steps=5", "--set", "training.samples=8"],
        ["vectors", "train", str(folder), "-o", f"{folder}.vec", "--dim", "4", "--epochs", "1", "--quiet", "--threads", "1"],
    ]  # fmt: skip


def _forge_corpus(folder: Path) -> None:
    from pyelmo.corpus.shards import checksum

    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    for facts in manifest["files"]:
        file = folder / facts["name"]
        if file.is_file() and file.parent == folder:
            facts.update(bytes=file.stat().st_size, checksum=checksum(file))
    path.write_text(json.dumps(manifest), "utf-8")


def _make_journal(folder: Path, shared: Path) -> None:
    """Write the working folder of a killed `prepare`, with its finished chunks."""
    from pyelmo.corpus import prepare as module

    (folder / "killed").mkdir(parents=True)
    (folder / "killed" / "text.txt").write_text(TEXT, "utf-8")
    # The paths in the journal are those of the trial, so that the run there is the same one.
    trial = folder.parents[1] / "trial" / "killed"
    trial.parent.mkdir(exist_ok=True)
    shutil.copytree(folder / "killed", trial)
    killed = mock.patch.object(module, "_finish", side_effect=KeyboardInterrupt)
    with killed, contextlib.suppress(KeyboardInterrupt):
        _prepare(trial / "text.txt", trial / "corpus")
    shutil.rmtree(folder / "killed")
    shutil.move(trial, folder / "killed")


def _read_journal(folder: Path) -> None:
    _prepare(folder / "text.txt", folder / "corpus")


def _journal_commands(folder: Path, shared: Path) -> list[Command]:
    return [
        [
            "prepare",
            str(folder / "text.txt"),
            "-o",
            str(folder / "corpus"),
            "--language",
            "en",
            "--valid-fraction",
            "0.2",
            "--quiet",
        ]
    ]


# --- runs ------------------------------------------------------------------------------------------------------------


def _make_checkpoint(folder: Path, shared: Path) -> None:
    """Write a run of `pretrain` that was stopped after its last checkpoint, before its model was written."""
    folder.mkdir()
    run = folder / "run"
    _pretrain(folder.parent / "corpus" / "corpus", run)
    shutil.rmtree(run / "model")


def _read_checkpoint(folder: Path) -> None:
    from pyelmo.training.loop import pretrain
    from pyelmo.training.recipe import read_recipe

    samples = folder.parents[1] / "samples"
    pretrain(samples / "corpus" / "corpus", folder, read_recipe(samples / "recipe.toml"))


def _checkpoint_commands(folder: Path, shared: Path) -> list[Command]:
    samples = folder.parents[1] / "samples"
    return [
        [
            "pretrain",
            str(samples / "corpus" / "corpus"),
            "-o",
            str(folder),
            "--recipe",
            str(samples / "recipe.toml"),
            "--quiet",
        ]
    ]


def _make_task_checkpoint(folder: Path, shared: Path) -> None:
    """Write a run of `task train` that was stopped after its last epoch, before its results were written."""
    from pyelmo.tasks.harness import run as module

    folder.mkdir()
    killed = mock.patch.object(module, "_write_predictions", side_effect=KeyboardInterrupt)
    with killed, contextlib.suppress(KeyboardInterrupt):
        train_task("ner", shared / "ner.conll", folder / "run", None)


def _read_task_checkpoint(folder: Path) -> None:
    train_task("ner", folder.parents[1] / "shared" / "ner.conll", folder, None)


def _task_checkpoint_commands(folder: Path, shared: Path) -> list[Command]:
    data = str(shared / "ner.conll")
    settings = [part for change in [*SMALL, *NETWORKS["ner"]] for part in ("--set", change)]
    return [
        [
            "task",
            "train",
            "ner",
            "--data",
            data,
            data,
            "--encoder",
            "none",
            "-o",
            str(folder),
            "--seeds",
            "1",
            "-q",
            *settings,
        ]
    ]


def _make_runs(folder: Path, shared: Path) -> None:
    from task_support import make_run

    (folder / "runs").mkdir(parents=True)
    counts = [[[1, 2, 3], [2, 2, 2], [0, 1, 1], [3, 3, 4]] for _ in range(2)]
    make_run(folder / "runs" / "baseline", counts)
    make_run(folder / "runs" / "elmo", counts[::-1], encoder="en")
    (folder / "ensemble").mkdir()
    shutil.copytree(folder.parent / "task-runs" / "nli", folder / "ensemble" / "nli")


def _read_runs(folder: Path) -> None:
    from pyelmo.tasks.compare import comparison
    from pyelmo.tasks.harness.run_folder import layers_picture, read_run

    runs = [read_run(path) for path in sorted(folder.iterdir())]
    rows = comparison.compare_runs(runs, resamples=10)
    comparison.markdown(rows)
    comparison.curve_picture(rows)
    layers_picture(runs)


def _runs_commands(folder: Path, shared: Path) -> list[Command]:
    if folder.name == "ensemble":
        data = str(folder.parents[1] / "samples" / "task-data" / "nli.jsonl")
        run = str(folder / "nli")
        return [
            ["task", "ensemble", run, run, "--data", data],
            ["task", "predict", run, "--premise", "A dog", "--hypothesis", "It runs"],
            ["task", "table", run],
        ]
    runs = [str(folder / name) for name in ("baseline", "elmo")]
    return [
        ["task", "table", *runs],
        ["task", "table", *runs, "--json"],
        ["task", "table", *runs, "-o", f"{folder}-table"],
    ]


def _make_cache(folder: Path, shared: Path) -> None:
    from pyelmo.cli import main

    main(_cache_commands(folder / "cache", shared)[0])


def _cache_commands(folder: Path, shared: Path) -> list[Command]:
    data = str(shared / "ner.conll")
    return [
        [
            "task",
            "train",
            "ner",
            "--data",
            data,
            data,
            "--encoder",
            str(shared / "LM"),
            "-o",
            f"{folder}-run",
            "--cache",
            str(folder),
            "--seeds",
            "0",
            "-q",
        ]
    ]


def _read_cache(folder: Path) -> None:
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.run import RunSettings, fill_cache
    from pyelmo.tasks.harness.task import find_task

    shared = folder.parents[1] / "shared"
    recipe = read_settings(find_task("ner").recipe, "ner", group="task")
    fill_cache(
        RunSettings(task="ner", data=[shared / "ner.conll"] * 2, recipe=recipe, encoder=str(shared / "LM")), folder
    )


def _forge_cache(folder: Path) -> None:
    for path in folder.glob("*/cache.json"):
        facts = json.loads(path.read_text("utf-8"))
        facts["sha256"] = hashlib.sha256((path.parent / "vectors.npy").read_bytes()).hexdigest()
        path.write_text(json.dumps(facts), "utf-8")


# --- embeddings ------------------------------------------------------------------------------------------------------


def _make_embeddings(folder: Path, shared: Path) -> None:
    import pyelmo

    for format in ("hdf5", "npz", "parquet", "jsonl"):
        (folder / format).mkdir(parents=True)
        for pooling in (None, "mean"):
            pyelmo.embed_corpus(
                [shared / "text.txt"],
                folder / format / str(pooling),
                model=shared / "LM",
                format=format,
                pooling=pooling,
                part_sentences=2,
            )


def _read_embeddings(folder: Path) -> None:
    import pyelmo

    for path in sorted(folder.iterdir()):
        for row in pyelmo.read_embeddings(path):
            _ = row.index, row.sentence, row.vectors.sum() if row.vectors.dtype.kind == "f" else None


def _embeddings_commands(folder: Path, shared: Path) -> list[Command]:
    embed = ["embed", str(shared / "text.txt"), "-o", str(folder / "None"), "--model", str(shared / "LM"), "--quiet"]
    return [
        [*embed, "--format", folder.name, "--part-sentences", "2"],
        [*embed, "--format", folder.name, "--part-sentences", "2", "--force"],
    ]


FORMATS = (
    Format("index", _make_index, _read_index, _index_commands, forge=_forge_index),
    Format("corpus", _make_corpus, _read_corpus, _corpus_commands, forge=_forge_corpus),
    Format("prepare-chunks", _make_journal, _read_journal, _journal_commands, writes=True),
    Format(
        "checkpoint",
        _make_checkpoint,
        _read_checkpoint,
        _checkpoint_commands,
        files="*",
        needs=("corpus",),
        writes=True,
    ),
    Format("task-checkpoint", _make_task_checkpoint, _read_task_checkpoint, _task_checkpoint_commands, writes=True),
    Format("runs", _make_runs, _read_runs, _runs_commands, needs=("task-model",), writes=True),
    Format("layer-cache", _make_cache, _read_cache, _cache_commands, forge=_forge_cache, writes=True),
    Format("embeddings", _make_embeddings, _read_embeddings, _embeddings_commands, writes=True),
)
