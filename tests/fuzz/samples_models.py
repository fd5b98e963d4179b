"""Models: pyelmo's own format in three precisions, AllenNLP, bilm-tf, ELMoForManyLangs, TensorFlow, and task models."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from fuzz.formats import Command, Format

GOLDEN = Path(__file__).parents[1] / "golden"


def _copy(target: Path, source: Path, *names: str) -> None:
    target.mkdir(parents=True)
    for name in names:
        for path in source.glob(name):
            shutil.copy(path, target / path.name)


def _native(precision: str):
    def make(folder: Path, shared: Path) -> None:
        from collections import Counter

        import pyelmo
        from pyelmo.embed.sentence import make_form

        folder.mkdir()
        model = pyelmo.load(shared / "LM")
        model.pretrained.sentence = make_form(
            model.word_table(), Counter(["the", "bank", "of", "the", "river"]), smoothing=0.001, directions=2
        )
        model.save(folder / "LM", precision=precision)

    return make


def _make_int4(folder: Path, shared: Path) -> None:
    """Write a model whose rows are whole groups, so that they are packed, and one with a dictionary of characters."""
    from dataclasses import replace

    from support import TINY, make_embedder

    from pyelmo.config import CharConfig, LstmConfig

    wide = replace(
        TINY,
        chars=CharConfig(dim=4, filters=((1, 64),), highways=1, max_length=16),
        lstm=LstmConfig(cells=64, projection=64, layers=1),
    )
    folder.mkdir()
    make_embedder(wide).save(folder / "LM", precision="int4")


def _make_allennlp(folder: Path, shared: Path) -> None:
    import pyelmo

    _copy(folder / "layers1_noclip", GOLDEN / "allennlp-outputs/models/layers1_noclip", "*")
    pyelmo.load(shared / "LM").save(folder / "LM", format="allennlp")


def _make_bilm_tf(folder: Path, shared: Path) -> None:
    for name in ("lm_unidirectional_words", "bilm_words_shared_softmax"):
        _copy(folder / name, GOLDEN / "bilm-tf-training" / name, "weights.hdf5", "options.json")
        _write_vocabulary(folder / name)


def _make_bundle(folder: Path, shared: Path) -> None:
    for name in ("lm_unidirectional_words", "bilm_words_shared_softmax"):
        _copy(folder / name, GOLDEN / "bilm-tf-training" / name, "model.ckpt*", "checkpoint", "options.json")
        _write_vocabulary(folder / name)


def _write_vocabulary(folder: Path) -> None:
    count = int(json.loads((folder / "options.json").read_text())["n_tokens_vocab"])
    words = ["</S>", "<S>", "<UNK>", *(f"w{number}" for number in range(count - 3))]
    (folder / "vocab.txt").write_text("\n".join(words[:count]) + "\n")


def _make_many_langs(folder: Path, shared: Path) -> None:
    _copy(folder / "model", GOLDEN / "many-langs" / "model", "*")


def _read(folder: Path) -> None:
    import pyelmo

    vocabulary = folder / "vocab.txt"
    vocab = vocabulary if vocabulary.exists() and not (folder / "config.json").exists() else None
    model = pyelmo.load(folder, vocab=vocab)
    model.embed(["The bank of the river .", ""])
    model.encode(["The bank of the river .", ""])
    if model.config.softmax:
        model.score("A bank account")


def _commands(folder: Path, shared: Path) -> list[Command]:
    model = str(folder)
    text = str(shared / "text.txt")
    vocabulary = folder / "vocab.txt"
    vocab = ["--vocab", str(vocabulary)] if vocabulary.exists() and not (folder / "config.json").exists() else []
    return [
        ["inspect", model, *vocab], ["inspect", model, "--json", *vocab],
        ["embed", text, "-o", f"{folder}.npz", "--model", model, "--quiet", *vocab],
        ["embed", text, "-o", f"{folder}.npz", "--model", model, "--quiet", "--precision", "int8", *vocab],
        ["score", model, text, *vocab], ["predict", model, "A ___ account", *vocab],
        ["convert", model, f"{folder}-converted", *vocab],
        ["convert", model, f"{folder}-converted", "--precision", "int8", *vocab],
    ]  # fmt: skip


def _forge_bundle(folder: Path) -> None:
    """Write the checksums of all tensors in the index again, and those of the index's blocks."""
    import numpy as np
    from fuzz.containers import _blocks

    from pyelmo.formats.crc32c import crc32c, masked
    from pyelmo.formats.tensorflow_bundle import read_bundle

    def checksum(data: bytes) -> bytes:
        return struct.pack("<I", masked(crc32c(np.frombuffer(data, np.uint8))))

    (path,) = folder.glob("*.index")
    index = bytearray(path.read_bytes())
    for tensor in read_bundle(path).tensors.values():
        data = tensor.shard.read_bytes()[tensor.offset : tensor.offset + tensor.size]
        place = index.find(struct.pack("<I", tensor.checksum))
        if place >= 0:
            index[place : place + 4] = checksum(data)
    for start, size in _blocks(bytes(index)):
        index[start + size + 1 : start + size + 5] = checksum(bytes(index[start : start + size + 1]))
    path.write_bytes(index)


# --- task models -----------------------------------------------------------------------------------------------------

SMALL = ["training.epochs=1", "training.batch=4", "words.dim=4", "words.min_count=1"]
NETWORKS = {
    "ner": ["network.hidden=[4,4]", "network.characters=4"],
    "srl": ["network.hidden=4", "network.layers=2", "network.flag=2"],
    "sentiment": ["network.hidden=4"],
    "nli": ["network.hidden=4"],
    "qa": ["network.hidden=4", "network.characters=4"],
    "coref": ["network.hidden=4", "network.scorer=4", "network.feature=2", "network.characters=4"],
}


def train_task(task: str, data: Path, output: Path, encoder: Path | None, *changes: str) -> None:
    from pyelmo.recipes import read_settings
    from pyelmo.tasks.harness.run import RunSettings, train_run
    from pyelmo.tasks.harness.task import find_task

    recipe = read_settings(find_task(task).recipe, task, [*SMALL, *NETWORKS[task], *changes], group="task")
    train_run(RunSettings(task=task, data=[data, data], recipe=recipe, encoder=encoder and str(encoder)), output)


def _make_tasks(folder: Path, shared: Path) -> None:
    from fuzz.samples_data import TASK_DATA

    folder.mkdir()
    for task, (name, text) in TASK_DATA.items():
        data = folder.parent / "task-data" / name
        data.parent.mkdir(exist_ok=True)
        data.write_text(text, "utf-8")
        changes = ["elmo.tune=true"] if task == "sentiment" else []
        output = folder.parent / "task-runs" / task
        train_task(task, data, output, None if task == "coref" else shared / "LM", *changes)
        shutil.copytree(output / "seed-1" / "model", folder / task)


INPUTS = {
    "ner": ["Ann Lee lives in Paris ."], "srl": ["Bob saw fish"], "sentiment": ["A lovely film"],
    "nli": [("The man sleeps .", "A man is old .")], "qa": [("Ann lives in Paris.", "Who lives there?")],
    "coref": ["John saw his mother . She ran ."],
}  # fmt: skip


def _read_task(folder: Path) -> None:
    from pyelmo import tasks

    tasks.load(folder).predict(INPUTS[folder.name])


def _task_commands(folder: Path, shared: Path) -> list[Command]:
    run, data = str(folder), folder.parents[1] / "samples" / "task-data"
    from fuzz.samples_data import TASK_DATA

    labelled = str(data / TASK_DATA[folder.name][0])
    text = str(shared / "text.txt")
    inputs = {
        "nli": ["--premise", "A man sleeps", "--hypothesis", "He rests"],
        "qa": ["--passage", text, "--question", "Who lives there?"],
        "coref": ["--document", text],
    }.get(folder.name, ["Ann saw a lovely film in Paris ."])
    return [
        ["task", "predict", run, *inputs],
        ["task", "predict", run, *inputs, "--json"],
        ["task", "evaluate", run, labelled, "--quiet"],
    ]


def forge_task(folder: Path) -> None:
    """Write the checksums of a biLM that was trained with the network again."""
    from pyelmo.encoders.registry import identity

    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8"))
    if config["encoder"] and config["encoder"]["source"] == "encoder":
        config["encoder"]["facts"] = identity(folder / "encoder")
        path.write_text(json.dumps(config), "utf-8")


FORMATS = (
    Format("native", _native("float32"), _read, _commands),
    Format("int8", _native("int8"), _read, _commands),
    Format("int4", _make_int4, _read, _commands),
    Format("allennlp", _make_allennlp, _read, _commands),
    Format("bilm-tf", _make_bilm_tf, _read, _commands),
    Format("tensorflow", _make_bundle, _read, _commands, forge=_forge_bundle),
    Format("many-langs", _make_many_langs, _read, _commands),
    Format("task-model", _make_tasks, _read_task, _task_commands, forge=forge_task),
)
