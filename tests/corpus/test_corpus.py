"""A prepared corpus: what opening it and verifying it notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyelmo.corpus.corpus import Corpus, PrepareSettings
from pyelmo.corpus.prepare import prepare
from pyelmo.errors import FormatError, InputError, NotFoundError


@pytest.fixture
def prepared(text: Path, tmp_path: Path) -> Path:
    prepare(PrepareSettings(inputs=[text], language="en", valid_fraction=0.2, shard_words=500), tmp_path / "out")
    return tmp_path / "out"


def test_a_flipped_byte_is_a_checksum_mismatch(prepared: Path) -> None:
    Corpus.open(prepared).verify()
    for path in prepared.iterdir():
        if path.name == "manifest.json":
            continue
        before = path.read_bytes()
        path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        with pytest.raises(FormatError, match=rf"{path.name}: checksum mismatch: .* expected"):
            Corpus.open(prepared).verify()
        path.write_bytes(before)


def test_a_short_or_missing_file_is_an_error_when_opening(prepared: Path) -> None:
    shard = prepared / "train-00001.bin"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(FormatError, match=r"train-00001\.bin: has \d+ bytes, expected"):
        Corpus.open(prepared)
    shard.unlink()
    with pytest.raises(FormatError, match=r"train-00001\.bin: is missing"):
        Corpus.open(prepared)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values | {"version": 99}, "has version 99, this program reads version 1"),
        (lambda values: {key: value for key, value in values.items() if key != "files"}, "missing files"),
        (lambda values: [values], "not the manifest"),
        (lambda values: values | {"files": [values["files"][0] | {"name": "../x"}]}, "outside its folder"),
        (lambda values: values | {"settings": {"inputs": []}}, "no input"),
    ],
)
def test_a_bad_manifest_is_one_clear_error(prepared: Path, change: Any, message: str) -> None:
    path = prepared / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(FormatError, match=message):
        Corpus.open(prepared)


def test_other_files_and_no_corpus_are_clear_errors(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Make one with elmo prepare"):
        Corpus.open(tmp_path)
    (prepared / "manifest.json").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="not the manifest"):
        Corpus.open(prepared)


def test_an_unknown_split_names_the_known_ones(prepared: Path) -> None:
    with pytest.raises(InputError, match="Use one of train, valid"):
        Corpus.open(prepared).shards("test")
