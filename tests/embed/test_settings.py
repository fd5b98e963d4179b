"""The settings of embedding: one object, checked once, and the same in Python and on the command line."""

from __future__ import annotations

import dataclasses

import pytest

from pyelmo.cli import build_parser
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xml"}, "format 'xml' is none of hdf5"),
        ({"pooling": "sum"}, "pooling 'sum' is none of mean"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"layers": ["a"]}, "expected the weights of a mix as numbers"),
    ],
)
def test_a_wrong_setting_is_an_error_when_it_is_made(change, message):
    with pytest.raises(InputError, match=message):
        EmbedSettings(model="en", **change)


def test_names_of_files_become_absolute_and_other_names_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("")
    settings = EmbedSettings(model="en", vocab="words.txt", layers=(1, 2, 3))
    assert (settings.model, settings.vocab) == ("en", str(tmp_path / "words.txt"))
    assert settings.layers == [1.0, 2.0, 3.0]


def test_every_setting_is_an_option_of_the_command_line():
    arguments = vars(build_parser().parse_args(["embed", "in.txt", "-o", "out.npz", "--model", "en"]))
    assert {field.name for field in dataclasses.fields(EmbedSettings)} <= set(arguments)


def test_a_layer_that_the_model_does_not_have_is_an_error_before_any_work():
    with pytest.raises(InputError, match="layer 7 does not exist: the model has layers 0 to 2"):
        EmbedSettings(model="en", layers=7, format="npz").load()
