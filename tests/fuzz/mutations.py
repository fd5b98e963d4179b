"""Mutations of one file: bytes, numbers, lines, JSON and TOML values, and the file replaced by something else.

`mutate` chooses one by the kind of the file; those of containers (safetensors, HDF5, zip, pickle) are in containers.py.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

DEEP = 100_000
# JSON texts that a reader may not expect.
VALUES = (
    "null", "true", "false", "0", "-1", "1", "2", "3.5", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 5000,
    str(2**31), str(2**62), str(2**63), str(2**64), str(-(2**63)), "1e18", '""', '"x"', '"\\ud800"', '"\\u0000"',
    '"../../../etc/passwd"', '"/dev/zero"', '"%s"', "[]", "{}", "[[]]", "[1, 2]", '{"a": 1}', "[null]", '["a", 1]',
    '"' + "x" * 10_000 + '"', "[" * 100 + "]" * 100, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP,
)  # fmt: skip
TOML_VALUES = (
    "0", "-1", "1", "3.5", "inf", "-inf", "nan", "1e400", "9" * 5000, "0x" + "f" * 5000, str(2**63), str(2**64), '""',
    '"x"', "true", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "[]", "{}", "[[1], [2]]", "[1, 'a']", "{ a = 1 }",
    "[" * 100 + "]" * 100, "[" * 20_000 + "]" * 20_000, '"""' + "x" * 5000 + '"""', "'\\u0000'",
)  # fmt: skip
# Fields of a line of text; some are digits for str.isdigit but not for int.
WORDS = (
    "", " ", "0", "-1", "1", "NaN", "inf", "-inf", "1e400", "9" * 5000, "99999999999999999999", "²", "١", "½", "0x10",
    "\x00", "\ufeff", "\u2028", "\u0085", "\u3000", "x" * 100_000, "(", ")", "(" * 20_000, ")" * 50, "[", "{", '"', "'", "#",
    "-DOCSTART-", "B-", "-B", "I-X", "E-X", "*", "_", "-", "|", "(0)", "0)", "<b>", "</b>", "<a>", "&amp;", "&#0;", "%s", "T",
    "#begin document (x); part 0", "#end document", "\ud800", "\U0010ffff", "e\u0301", "ᄒ", "</S>", "<UNK>",
)  # fmt: skip
NUMBERS = (0, 1, -1, 127, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
FLOATS = (float("nan"), float("inf"), -float("inf"), 1e38, -1e300)


def mutate(path: Path, random: Random) -> str:
    """Change a file, and return what was done."""
    from fuzz import containers

    if random.random() < 0.08:
        return replace_file(path, random)
    data = path.read_bytes()
    structured = containers.mutation_of(path, data) or _text_mutation(path, data)
    if structured and random.random() < 0.65:
        try:
            return structured(path, random)
        except (OSError, ValueError, KeyError, IndexError, struct.error, RecursionError, TypeError):
            pass  # a sample that this mutation cannot take apart
    name = random.choice(list(BYTES))
    path.write_bytes(BYTES[name](data, random))
    return name


# --- the file itself -------------------------------------------------------------------------------------------------


def replace_file(path: Path, random: Random) -> str:
    kind = random.choice(["empty", "folder", "pipe", "zeros", "missing", "dangling", "loop", "sparse", "device"])
    path.unlink()
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "device":
        path.symlink_to("/dev/null")
    elif kind == "dangling":
        path.symlink_to(path.parent / "nothing")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(random.choice([1, 1000, 1 << 20]))
    return f"file: {kind}"


# --- bytes -----------------------------------------------------------------------------------------------------------


def _place(data: bytes, random: Random) -> int:
    """Return a position, more often near the begin or the end, where headers are."""
    share = random.random() ** random.choice([1, 4])
    return int(len(data) * (share if random.random() < 0.75 else 1 - share))


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        if changed:
            place = min(_place(data, random), len(changed) - 1)
            changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _delete(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    return data[:start] + data[start + random.choice([1, 2, 8, 100, 1000]) :]


def _duplicate(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    size = random.choice([1, 8, 100, 1000])
    return data[: start + size] + data[start : start + size] * random.choice([1, 1, 10]) + data[start + size :]


def _insert(data: bytes, random: Random) -> bytes:
    start = _place(data, random)
    chunk = random.choice([b"\x00", b"\xff", b"\xff\xfe", b"\r", b"\n\n", b"\t", b"\xed\xa0\x80", random.randbytes(64)])
    return data[:start] + chunk * random.choice([1, 1, 1000]) + data[start:]


def _overwrite(data: bytes, random: Random) -> bytes:
    """Write an extreme number as integer or float, as binary headers have them."""
    kind = random.choice(["<i", "<q", ">i", "<f", "<d", "<h", "B"])
    if kind in ("<f", "<d"):
        try:
            packed = struct.pack(kind, random.choice(FLOATS))
        except OverflowError:
            packed = struct.pack(kind, float("inf"))
    else:
        size = struct.calcsize(kind)
        number = random.choice(NUMBERS) % (1 << 8 * size)
        packed = number.to_bytes(size, "big" if kind[0] == ">" else "little")
    start = _place(data, random)
    start -= start % len(packed) if random.random() < 0.7 else 0
    return data[:start] + packed + data[start + len(packed) :]


def _number(data: bytes, random: Random) -> bytes:
    """Replace a decimal number."""
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data[: 1 << 16]))
    if not numbers:
        return _overwrite(data, random)
    match = random.choice(numbers)
    new = random.choice([b"0", b"-1", b"1e400", b"nan", b"9" * 5000, *(str(number).encode() for number in NUMBERS)])
    return data[: match.start()] + new + data[match.end() :]


BYTES: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip, "truncate": _truncate, "delete": _delete, "duplicate": _duplicate, "insert": _insert,
    "overwrite": _overwrite, "number": _number,
}  # fmt: skip


# --- JSON ------------------------------------------------------------------------------------------------------------


def _nodes(value: Any, parent: Any = None, key: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield each value below `value` as its container and its key."""
    if parent is not None:
        yield parent, key
    if isinstance(value, dict):
        for name in value:
            yield from _nodes(value[name], value, name)
    elif isinstance(value, list):
        for number in range(min(len(value), 50)):
            yield from _nodes(value[number], value, number)


def mutate_json(text: str, random: Random, values: tuple[str, ...] = VALUES) -> str:
    """Change one value of a JSON text; a string that is itself JSON is changed inside."""
    root = {"root": json.loads(text)}
    raw: dict[str, str] = {}
    parent, key = random.choice(list(_nodes(root)))
    value = parent[key]
    if isinstance(value, str) and value.startswith(("{", "[")) and random.random() < 0.7:
        parent[key] = mutate_json(value, random, values)
    else:
        _change(parent, key, value, root, raw, random, values)
    changed = json.dumps(root.get("root"), ensure_ascii=random.random() < 0.5)
    for mark, text in raw.items():
        changed = changed.replace(json.dumps(mark), text)
    return changed


def _change(
    parent: Any, key: Any, value: Any, root: Any, raw: dict[str, str], random: Random, values: tuple[str, ...]
) -> None:
    roll = random.random()
    if roll < 0.6:
        raw["@raw@"] = random.choice(values)
        parent[key] = "@raw@"
    elif roll < 0.7:
        del parent[key]
    elif roll < 0.8 and isinstance(parent, dict):
        parent[random.choice(["x", "", str(key).upper(), "\ud800"])] = parent.pop(key)
    elif roll < 0.9:
        other, place = random.choice(list(_nodes(root)))
        parent[key] = json.loads(json.dumps(other[place]))  # a copy: the value may hold the place itself
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        parent[key] = random.choice(
            [value + 1, value - 1, -value, value * 2, value * 1_000_000, value + 0.5, str(value)]
        )
    elif isinstance(value, list):
        parent[key] = random.choice(
            [value * 2, value[1:], [value], value[:1] * 1000, {str(i): v for i, v in enumerate(value)}]
        )
    else:
        parent[key] = [value]


def _json_file(path: Path, random: Random) -> str:
    path.write_bytes(mutate_json(path.read_text("utf-8"), random).encode("utf-8", "surrogatepass"))
    return "JSON"


def _json_lines(path: Path, random: Random) -> str:
    lines = path.read_text("utf-8").splitlines()
    number = random.randrange(len(lines))
    lines[number] = mutate_json(lines[number], random)
    path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    return "JSON line"


def _toml(path: Path, random: Random) -> str:
    lines = path.read_text("utf-8").splitlines()
    places = [number for number, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    number = random.choice(places)
    name = lines[number].partition("=")[0]
    roll = random.random()
    if roll < 0.75:
        lines[number] = f"{name}= {random.choice(TOML_VALUES)}"
    elif roll < 0.85:
        lines[number] = f"{name.strip()}.x = 1"
    elif roll < 0.93:
        lines.insert(
            random.randrange(len(lines) + 1), random.choice(["[" + "a." * 3000 + "a]", "[x]", "[[x]]", "x = 1"])
        )
    else:
        del lines[number]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return "TOML"


# --- lines -----------------------------------------------------------------------------------------------------------


def mutate_lines(text: str, random: Random) -> str:
    lines = text.split("\n")
    number = random.randrange(len(lines))
    roll = random.random()
    if roll < 0.6:  # one field
        separator = "\t" if "\t" in lines[number] else "," if lines[number].count(",") > 1 else " "
        fields = lines[number].split(separator)
        fields[random.randrange(len(fields))] = random.choice(WORDS)
        lines[number] = separator.join(fields)
    elif roll < 0.68:
        del lines[number]
    elif roll < 0.76:
        lines.insert(random.randrange(len(lines)), lines[number])
    elif roll < 0.84:
        lines.insert(number, random.choice(WORDS))
    elif roll < 0.9:
        other = random.randrange(len(lines))
        lines[number], lines[other] = lines[other], lines[number]
    elif roll < 0.95:
        lines = [line + "\r" for line in lines] if random.random() < 0.5 else ["\ufeff" + lines[0], *lines[1:]]
    else:
        lines[number] = lines[number] * 1000
    return "\n".join(lines)


def _lines_file(path: Path, random: Random) -> str:
    changed = mutate_lines(path.read_text("utf-8"), random)
    path.write_bytes(changed.encode("utf-8", "surrogatepass"))
    return "line"


def _text_mutation(path: Path, data: bytes) -> Callable[[Path, Random], str] | None:
    if path.suffix == ".json":
        return _json_file
    if path.suffix == ".jsonl":
        return _json_lines
    if path.suffix == ".toml":
        return _toml
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if b"\x00" in data else _lines_file
