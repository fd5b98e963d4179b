"""Recipes: TOML files of settings -> frozen dataclasses, with changes from the command line (`--set a.b=c`).

recipes/pretrain/      train or fine-tune a biLM
recipes/task/          train a network for a downstream task
recipes/experiment/    many runs from one file
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pyelmo.config import from_dict
from pyelmo.errors import ConfigError, NotFoundError
from pyelmo.parsing import parse_toml, read_toml

Group = Literal["pretrain", "task", "experiment"]
RECIPES = Path(__file__).parent

T = TypeVar("T")


def recipe_path(source: str | Path, group: Group) -> Path:
    """Return the path of a recipe: an existing file, or a bundled recipe of that name."""
    path = Path(source)
    if path.is_file():
        return path
    path = RECIPES / group / f"{source}.toml"
    if not path.is_file():
        known = ", ".join(recipe_names(group))
        raise NotFoundError(f"{source}: not a file, and no bundled recipe of that name (bundled: {known})")
    return path


def recipe_names(group: Group) -> list[str]:
    """Return the names of the bundled recipes."""
    return sorted(path.stem for path in (RECIPES / group).glob("*.toml"))


def read_settings(
    kind: type[T], source: str | Path, changes: Sequence[str] = (), *, group: Group, exclusive: Collection[str] = ()
) -> T:
    """Read a recipe and apply changes to it.

    Args:
        kind: The dataclass of the settings.
        source: A TOML file, or the name of a bundled recipe.
        changes: Changes in the form "section.setting=value".
        group: The folder of bundled recipes.
        exclusive: Settings of which only one can be set; a change to one of them removes the others.

    Returns:
        The settings.

    Raises:
        NotFoundError: The recipe does not exist.
        ConfigError: The recipe is not valid TOML, or a setting is unknown or invalid.
    """
    path = recipe_path(source, group)
    values = read_toml(path)
    for change in changes:
        _set(values, change, exclusive)
    try:
        return from_dict(kind, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _set(values: dict[str, Any], change: str, exclusive: Collection[str]) -> None:
    name, equals, text = change.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {change}: write it as section.setting=value, for example training.lr=0.1")
    try:
        value = parse_toml(f"value = {text}", "--set")["value"]
    except ConfigError:
        value = text.strip()  # text needs no quotes on the command line
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
