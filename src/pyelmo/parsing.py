"""Read JSON and TOML of any origin; what is too large, too deep or has numbers beyond all use is one clear error.

Python's own readers accept NaN and Infinity, fail on numbers of thousands of digits with errors of several types, and
return structures so deep that the next function that walks through them fails.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from pyelmo.errors import ConfigError, FormatError
from pyelmo.files import read_regular

MAX_BYTES = 1 << 28
MAX_TOML_BYTES = 1 << 20
MAX_DEPTH = 64
# Only text with such a number is read by the slower functions that check each number.
_LARGE_NUMBER = re.compile(r"[0-9]{19}|[eE]\+?[0-9]{3}")


def read_json(path: Path, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    """Read a file with one JSON object.

    Args:
        path: A regular file; a pipe or a device is refused.
        limit: The largest number of bytes that is read.

    Returns:
        The object. Its integers fit into 64 bits, its floats are finite, and it is at most `MAX_DEPTH` levels deep.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The file cannot be read, is too large, or is not a JSON object within these limits.
    """
    values = parse_json(read_regular(path, limit=limit), path, what="a JSON file")
    if not isinstance(values, dict):
        raise FormatError(f"{path}: expected a JSON object, got {type(values).__name__}")
    return values


def parse_json(text: str | bytes, where: str | Path, *, what: str = "JSON") -> Any:
    """Return the value of a JSON text, within the limits of `read_json`; an error says "`where`: not `what`"."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        checked: dict[str, Any] = {}
        if _LARGE_NUMBER.search(text):
            checked = {"parse_int": _integer, "parse_float": _number}
        values = json.loads(text, parse_constant=_not_finite, **checked)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(values)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: not {what} ({_reason(error)})") from error
    return values


def field(values: Any, name: str, kind: type | tuple[type, ...], where: str | Path) -> Any:
    """Return a field of a JSON object after checking its type; true and false are no numbers.

    Raises:
        FormatError: There is no such field, or it has another type.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    value = values.get(name) if isinstance(values, dict) else None
    is_there = isinstance(values, dict) and name in values
    if not is_there or not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        shown = repr(value)[:60] if is_there else "nothing"
        raise FormatError(f"{where}: expected {expected} under {name!r}, found {shown}")
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; `parse_toml` has the limits.

    Raises:
        NotFoundError: The file does not exist.
        ConfigError: The file is not valid TOML within the limits.
    """
    try:
        text = read_regular(path, limit=MAX_TOML_BYTES)
    except FormatError as error:
        raise ConfigError(str(error)) from error
    return parse_toml(text, path)


def parse_toml(text: str | bytes, where: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML text: 64-bit integers, finite numbers and at most `MAX_DEPTH` levels."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        if any(_has_long_key(line) for line in text.splitlines()):
            raise ValueError(f"a key has more than {MAX_DEPTH} parts")
        values = tomllib.loads(text, parse_float=_number)
        _check_depth(values)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not a TOML file ({_reason(error)})") from error
    return values


def _has_long_key(line: str) -> bool:
    """Find a key with many dots, for which Python's TOML reader needs quadratic time."""
    if line.count(".") <= MAX_DEPTH or line.lstrip().startswith("#"):
        return False
    return any(part.count(".") > MAX_DEPTH for part in re.split("[=,]", line))


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"the number {_shortened(digits)} does not fit into 64 bits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {_shortened(digits)} is not finite")
    return value


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _shortened(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:20]}... of {len(digits)} digits"


def _check_depth(values: Any) -> None:
    """Raise a ValueError if lists and objects are nested too deeply, or an integer does not fit into 64 bits."""
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError("a number does not fit into 64 bits")
        level = below
        if not level:
            return
    raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
