"""JSON and TOML within limits, and files that are no files."""

from __future__ import annotations

import os

import pytest

from pyelmo.config import LstmConfig, from_dict
from pyelmo.errors import ConfigError, FormatError, NotFoundError
from pyelmo.files import check_regular, open_regular, read_regular
from pyelmo.parsing import MAX_DEPTH, parse_json, parse_toml, read_json, read_toml


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ' + "9" * 5000 + "}", r"99999\.\.\. of 5000 digits does not fit into 64 bits"),
        ('{"a": 9223372036854775808}', "9223372036854775808 does not fit into 64 bits"),
        ('{"a": Infinity}', "Infinity is not a number of JSON"),
        ('{"a": [NaN]}', "NaN is not a number of JSON"),
        ('{"a": 1e999}', "1e999 is not finite"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "nested more than 64 levels deep"),
        (b'{"a": "\xff"}', "can't decode byte"),
        ("[1]", "expected a JSON object, got list"),
        ("", "Expecting value"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_beyond_the_limits_is_one_clear_error(text, message, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=message) as error:
        read_json(path)
    assert str(error.value).startswith(f"{path}: ")


def test_ordinary_json_is_read_as_it_is():
    values = {"a": [1, -(2**63), 2**63 - 1, 1.5e300, 0.1234567890123456789, "x" * 100, None, True]}
    assert parse_json(repr(values).replace("'", '"').replace("None", "null").replace("True", "true"), "x") == values
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "x")[0] is not None
    assert parse_json(b"\xef\xbb\xbf[3]", "x") == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "9" * 5000, "limit|64 bits"),
        ("a = 9223372036854775808", "does not fit into 64 bits"),
        ("a = inf", "inf is not finite"),
        ("a = 1e999", "1e999 is not finite"),
        ("a = nan", "nan is not finite"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested"),
        ("a." * 100_000 + "a = 1", "a key has more than 64 parts"),
        ("x = {" + "a . " * 100_000 + "a = 1}", "a key has more than 64 parts"),
        ("\n".join(f"[{'.'.join('a' * depth)}]" for depth in range(1, 99)), "more than 64"),
        ("a = '" + "x" * (1 << 20) + "'", "has more than 1,048,576 bytes"),
        (b"a = '\xff'", "can't decode byte"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_toml_beyond_the_limits_is_one_clear_error(text, message, tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message) as error:
        read_toml(path)
    assert str(error.value).startswith(f"{path}: ")


def test_ordinary_toml_is_read_as_it_is():
    text = "a.b = [0.1, 0.2]\nlong = " + repr([0.5] * 200) + '\nprose = "' + "A word, and more. " * 200 + '"'
    assert parse_toml(text, "x")["a"] == {"b": [0.1, 0.2]}


def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (open_regular, check_regular, read_json, lambda path: read_regular(path, limit=9)):
        with pytest.raises(FormatError, match="pipe: is a pipe or a device, expected a file"):
            read(pipe)
        with pytest.raises(FormatError, match="is a folder, expected a file"):
            read(tmp_path)
        with pytest.raises(NotFoundError, match="a: not found"):
            read(tmp_path / "a")
    with pytest.raises(ConfigError, match="is a pipe"):
        read_toml(pipe)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, [], {}, "1", True])
def test_a_setting_that_is_no_finite_number_is_refused(value):
    with pytest.raises(ConfigError, match="forget_bias: "):
        from_dict(LstmConfig, {"forget_bias": value})
