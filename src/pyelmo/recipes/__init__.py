"""Recipes: TOML files of settings -> frozen dataclasses, with changes from the command line (`--set a.b=c`).

recipes/pretrain/      training and fine-tuning of a biLM
recipes/task/          downstream tasks
recipes/experiment/    many runs from one file
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pyelmo.config import from_dict
from pyelmo.errors import ConfigError, NotFoundError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Group = Literal["pretrain", "task", "experiment"]
RECIPES = Path(__file__).parent

T = TypeVar("T")


def recipe_path(source: str | Path, group: Group) -> Path:
    """Return the path of a recipe: a file, or the name of one of the package's own."""
    path = Path(source)
    if path.is_file():
        return path
    path = RECIPES / group / f"{source}.toml"
    if not path.is_file():
        known = ", ".join(recipe_names(group))
        raise NotFoundError(f"{source}: no such recipe file, and no bundled recipe of that name (bundled: {known})")
    return path


def recipe_names(group: Group) -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(path.stem for path in (RECIPES / group).glob("*.toml"))


def read_settings(
    kind: type[T], source: str | Path, changes: Sequence[str] = (), *, group: Group, exclusive: Collection[str] = ()
) -> T:
    """Read settings of a kind from a recipe, changed by `a.b=c` texts.

    Of the `exclusive` settings a recipe keeps one: a change to one of them removes the others.
    """
    path = recipe_path(source, group)
    values = read_toml(path)
    for change in changes:
        _set(values, change, exclusive)
    try:
        return from_dict(kind, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or raise one clear error."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error})") from error


def _set(values: dict[str, Any], change: str, exclusive: Collection[str]) -> None:
    name, equals, text = change.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {change}: write it as section.setting=value, for example training.lr=0.1")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a word needs no quotes
    if name.strip() in exclusive:
        for other in exclusive:
            section, _, setting = other.partition(".")
            values.get(section, {}).pop(setting, None)
    table = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change}: {key} is a value, not a section")
    table[keys[-1]] = value
