"""Files that nobody wrote in good faith, or that were damaged and have right checksums: one error of pyelmo each."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support import make_embedder
from task_support import make_run

import pyelmo
from pyelmo.arrays import read_npz_member
from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.corpus.shards import checksum
from pyelmo.embed.bulk.folder import begin
from pyelmo.errors import FormatError, InputError, NotFoundError, OutputError
from pyelmo.probes import figures
from pyelmo.probes.pos import read_conllu
from pyelmo.probes.wic import read_wic
from pyelmo.probes.wsd_data import read_unified
from pyelmo.tasks.compare import comparison
from pyelmo.tasks.coref.data import read_documents
from pyelmo.tasks.harness.run_folder import read_run
from pyelmo.tasks.harness.training_loop import _optimiser_state
from pyelmo.tasks.nli.data import read_pairs
from pyelmo.text.lines import numbered_lines
from pyelmo.training.checkpoint import read_position
from pyelmo.training.report import Report

DEEP = "[" * 100_000 + "]" * 100_000
LONG = "9" * 5000
NUMBERS = [LONG, DEEP, "Infinity", "NaN", str(2**64), '"x"', "null", "true", "{}", "-1"]


def change(path: Path, keys: tuple[Any, ...], raw: str) -> None:
    """Replace a value of a JSON file by a raw text."""
    values = json.loads(path.read_text("utf-8"))
    parent = values
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = "@raw@"
    path.write_text(json.dumps(values).replace('"@raw@"', raw), "utf-8")


# --- corpora ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("A bank account. A river bank.\n\nIt rained.\n", "utf-8")
    prepare(PrepareSettings(inputs=(str(tmp_path / "text.txt"),), language="en", valid_fraction=0), tmp_path / "corpus")
    return tmp_path / "corpus"


@pytest.mark.parametrize("raw", NUMBERS)
def test_a_number_of_a_corpus_is_a_number(corpus, raw):
    change(corpus / "manifest.json", ("files", 0, "bytes"), raw)
    with pytest.raises(FormatError):
        Corpus.open(corpus)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("train-00000.bin", lambda data: data[:-1], "not a shard"),
        ("train-00000.bin", lambda data: b"\xff\xff\xff\x7f" + data[4:], "an id that is not below"),
        ("train-00000.index", lambda data: data[:8] + data[16:24] + data[8:16] + data[24:], "not an index of a shard"),
        ("train-00000.index", lambda data: b"", "not a shard"),
        ("counts.bin", lambda data: data + bytes(8), "do not fit"),
        ("types.txt", lambda data: data + b"more\n", "words, expected"),
        ("types.txt", lambda data: b"\xff" + data[1:], "not UTF-8"),
        ("vocab.txt", lambda data: data + b"more\n", "words, expected"),
    ],
)
def test_a_corpus_with_right_checksums_is_checked_all_the_same(corpus, name, edit: Callable[[bytes], bytes], message):
    (corpus / name).write_bytes(edit((corpus / name).read_bytes()))
    manifest = json.loads((corpus / "manifest.json").read_text("utf-8"))
    for facts in manifest["files"]:
        facts.update(bytes=(corpus / facts["name"]).stat().st_size, checksum=checksum(corpus / facts["name"]))
    (corpus / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(FormatError, match=message):
        opened = Corpus.open(corpus)
        opened.verify()
        opened.sentence_starts()
        assert opened.types
        assert opened.vocabulary


def test_sentences_of_a_corpus_have_known_words_even_before_checksums_are_compared(corpus):
    data = (corpus / "train-00000.bin").read_bytes()
    (corpus / "train-00000.bin").write_bytes(b"\xff\xff\xff\x7f" + data[4:])
    with pytest.raises(FormatError, match="an id that is not below"):
        list(Corpus.open(corpus).sentences())


# --- checkpoints and runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "position",
    [
        *(f'{{"step": {raw}, "words": 1, "seconds": 1, "streams": {{}}, "settings": {{}}}}' for raw in NUMBERS),
        '{"step": 1, "words": -1000000000000, "seconds": 1, "streams": {}, "settings": {}}',
        '{"step": 1, "words": 1, "seconds": 1, "streams": 5, "settings": {}}',
        '{"step": 1}',
        "[]",
    ],
)
def test_the_position_of_a_checkpoint_is_checked(tmp_path, position):
    path = tmp_path / "checkpoint-000000001.safetensors"
    save_file({"a": torch.zeros(1)}, path, metadata={"position": position})
    with pytest.raises(FormatError, match="not a complete checkpoint"):
        read_position(path)


def test_a_log_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "log.jsonl")
    with pytest.raises(OutputError, match="a pipe"):
        Report(tmp_path)


@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("run.json", ("fraction",)),
        ("run.json", ("data", "test", "file")),
        ("run.json", ("recipe", "elmo")),
        ("seed-1/result.json", ("seed",)),
        ("seed-1/result.json", ("test", "f1")),
        ("seed-1/result.json", ("layers", "input", "weights")),
    ],
)
@pytest.mark.parametrize("raw", [LONG, DEEP, "Infinity", "[]", "true"])
def test_a_run_of_wrong_types_is_refused(tmp_path, file, keys, raw):
    run = make_run(tmp_path / "run", [[[1, 2, 3], [2, 2, 2]]], encoder="en")
    change(run / file, keys, raw)
    with pytest.raises(FormatError):
        read_run(run)


@pytest.mark.parametrize(
    "line", ['{"counts": [1, 2, NaN]}', '{"counts": [1]}', '{"counts": 3}', f'{{"counts": [{LONG}]}}', DEEP]
)
def test_predictions_of_a_run_are_counts(tmp_path, line):
    run = make_run(tmp_path / "run", [[[1, 2, 3], [2, 2, 2]]])
    (run / "seed-1" / "answers-test.jsonl").write_text(line + "\n", "utf-8")
    with pytest.raises(FormatError, match="not the predictions of a run"):
        comparison.compare_runs([read_run(run), read_run(run)], resamples=5)


# --- indexes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path) -> Path:
    pytest.importorskip("faiss")
    make_embedder().save(tmp_path / "model")
    (tmp_path / "text.txt").write_text("The bank of a river.\nA bank account\n", "utf-8")
    pyelmo.neighbours.build([tmp_path / "text.txt"], tmp_path / "index", model=tmp_path / "model", language="en")
    return tmp_path / "index"


def forge(index: Path) -> None:
    """Write the checksums of an index again."""
    manifest = json.loads((index / "manifest.json").read_text("utf-8"))
    for name, facts in manifest["files"].items():
        data = (index / name).read_bytes()
        facts.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    manifest["sha256"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (index / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        (key, raw)
        for key in ("occurrences", "dim", "kind", "inputs")
        for raw in ("9223372036854775807", "[]", '"x"', "null", "-1", "0")
        if (key, raw) != ("inputs", "[]")  # read when a neighbour names its file
    ],
)
def test_a_manifest_with_a_right_checksum_is_checked_all_the_same(index, key, raw):
    change(index / "manifest.json", (key,), raw)
    forge(index)
    with pytest.raises(FormatError):
        pyelmo.neighbours.load(index)


@pytest.mark.parametrize("key", ["model", "precision", "language", "tokenised", "layer"])
def test_what_a_manifest_lacks_is_named_when_it_is_needed(index, key):
    embedder = pyelmo.neighbours.load(index).load_model()
    manifest = json.loads((index / "manifest.json").read_text("utf-8"))
    del manifest[key]
    (index / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    forge(index)
    opened = pyelmo.neighbours.load(index)
    with pytest.raises(FormatError, match=f"the index is damaged: '{key}' is missing"):
        opened.query(embedder, "A *bank* account") and opened.load_model()


@pytest.mark.parametrize("name", ["sentences.bin", "occurrences.bin", "vectors.f32"])
def test_an_index_of_incomplete_records_is_refused(index, name):
    (index / name).write_bytes((index / name).read_bytes()[:-1])
    forge(index)
    with pytest.raises(FormatError, match="the index is damaged"):
        pyelmo.neighbours.load(index)


def test_an_occurrence_outside_the_text_is_an_error_when_it_is_found(index):
    (index / "occurrences.bin").write_bytes(b"\xff" * (index / "occurrences.bin").stat().st_size)
    forge(index)
    opened = pyelmo.neighbours.load(index)
    with pytest.raises(FormatError, match="cannot be read"):
        opened.nearest(np.ones(opened.manifest["dim"], np.float32))


# --- embeddings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [*NUMBERS, str(2**62), "1e18"])
def test_the_number_of_parts_of_a_bulk_job_is_checked(tmp_path, raw):
    (tmp_path / "_job.json").write_text(f'{{"format": "npz", "parts": {raw}}}', "utf-8")
    with pytest.raises(FormatError):
        pyelmo.read_embeddings(tmp_path)


@pytest.mark.parametrize("text", [DEEP, f'{{"inputs": [{LONG}]}}', "[]", '{"inputs": 5, "model": 5}'])
def test_a_job_file_that_cannot_be_read_is_another_job(tmp_path, text):
    (tmp_path / "part-00000.npz").touch()
    (tmp_path / "_job.json").write_text(text, "utf-8")
    with pytest.raises(OutputError, match="_job.json cannot be read"):
        begin(tmp_path, {}, force=False)


def test_an_array_that_claims_terabytes_is_not_reserved(tmp_path):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**40},), }}\n".encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("0.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with zipfile.ZipFile(tmp_path / "a.npz") as file, pytest.raises(ValueError, match="but 0 bytes"):
        read_npz_member(file, "0")


@pytest.mark.parametrize("kind", ["empty", "text", "huge", "group"])
def test_a_dataset_that_is_no_array_of_floats_is_refused(tmp_path, kind):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        if kind == "empty":
            file["0"] = h5py.Empty("f")
        elif kind == "text":
            file["0"] = "text"
        elif kind == "group":
            file.create_group("0")
        else:
            file.create_dataset("0", (2**40,), "<f4", chunks=(1024,))
    with pytest.raises(FormatError, match="cannot be read as embeddings"):
        list(pyelmo.read_embeddings(tmp_path / "a.hdf5"))


# --- labelled data and text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [LONG, DEEP, "Infinity", "5", "null", "[]"])
def test_a_pair_of_wrong_types_is_refused(tmp_path, raw):
    (tmp_path / "a.jsonl").write_text(f'{{"sentence1": "a", "sentence2": "b", "gold_label": {raw}}}\n', "utf-8")
    with pytest.raises(FormatError, match="line 1"):
        read_pairs(tmp_path / "a.jsonl", "jsonl")
    (tmp_path / "a.json").write_text(f'[{{"sentence1": "a", "sentence2": "b", "gold_label": {raw}}}]', "utf-8")
    with pytest.raises(FormatError):
        read_pairs(tmp_path / "a.json", "json")


def test_a_long_cell_of_mentions_is_refused_at_once(tmp_path):
    (tmp_path / "a.conll").write_text(f"# begin document \n0\tThe\t{'x' * 100_000}\n# end document\n", "utf-8")
    with pytest.raises(FormatError, match="is not a mention"):
        read_documents(tmp_path / "a.conll", "ontogum")


def test_a_pipe_without_a_writer_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("pipe", "zeros"):
        with pytest.raises((InputError, FormatError), match="a pipe or a device"):
            list(numbered_lines(tmp_path / name))
        with pytest.raises((InputError, FormatError, NotFoundError)):
            pyelmo.read_embeddings(tmp_path / name)


def test_a_pipe_of_the_shell_is_read(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"A bank\n")
    os.close(writer)
    assert list(numbered_lines(f"/dev/fd/{reader}")) == [(1, "A bank")]
    os.close(reader)


# --- probes ----------------------------------------------------------------------------------------------------------


def test_a_word_number_of_a_treebank_may_have_thousands_of_digits(tmp_path):
    (tmp_path / "a.conllu").write_text(LONG + "\tbank\tbank\tNOUN" + "\t_" * 6 + "\n\n", "utf-8")
    with pytest.raises(FormatError, match="expected word 1 with a tag"):
        read_conllu(tmp_path / "a.conllu")


def test_a_position_of_wic_may_have_thousands_of_digits(tmp_path):
    (tmp_path / "a.data.txt").write_text(f"bank\tN\t1-{LONG}\ta bank\ta bank\n", "utf-8")
    (tmp_path / "a.gold.txt").write_text("T\n", "utf-8")
    with pytest.raises(FormatError, match="expected two positions"):
        read_wic(tmp_path / "a.data.txt")


def test_an_unknown_encoding_of_xml_is_named(tmp_path):
    (tmp_path / "a.data.xml").write_text('<?xml version="1.0" encoding="UTF-99"?><corpus/>', "utf-8")
    (tmp_path / "a.gold.key.txt").write_text("", "utf-8")
    with pytest.raises(FormatError, match="unknown encoding: UTF-99"):
        read_unified(tmp_path / "a.data.xml")


def test_figures_with_half_of_a_surrogate_pair_are_refused(tmp_path):
    (tmp_path / "figures.json").write_text('{"language": "\\ud800", "figures": {}}', "utf-8")
    with pytest.raises(FormatError, match="surrogates not allowed"):
        figures.read(tmp_path / "figures.json")


@pytest.mark.parametrize(
    ("name", "shape"), [("optimiser/0/exp_avg", (3,)), ("optimiser/9/step", ()), ("optimiser/0/a/b", ()), (None, ())]
)
def test_the_optimiser_of_a_task_checkpoint_fits_its_network(name, shape):
    network = torch.nn.Linear(2, 1)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    values = optimiser.state_dict()["state"]
    tensors = {f"optimiser/{number}/{key}": value for number, state in values.items() for key, value in state.items()}
    assert _optimiser_state(tensors, optimiser).keys() == {0, 1}
    if name is None:
        del tensors["optimiser/1/step"]
    else:
        tensors[name] = torch.zeros(shape)
    with pytest.raises(ValueError, match="does not fit the network|is missing"):
        _optimiser_state(tensors, optimiser)
