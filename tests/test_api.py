"""The public API: it is listed, it is documented, and the examples of its docstrings run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import pyelmo
import pyelmo.compat.allennlp

MODULES = [pyelmo, pyelmo.encoders, pyelmo.neighbours, pyelmo.tasks, pyelmo.compat.allennlp]
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"


def objects() -> dict[str, object]:
    """Every public function and class by its full name."""
    named = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
    return {name: value for name, value in named.items() if not inspect.ismodule(value)}


def methods() -> dict[str, tuple[type, object]]:
    """Every public method that a public class defines, itself or in a base class of pyelmo, by its full name."""
    named: dict[str, tuple[type, object]] = {}
    for name, kind in objects().items():
        if inspect.isclass(kind):
            bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("pyelmo.")]
            for own, value in {own: value for base in bases for own, value in vars(base).items()}.items():
                function = getattr(value, "__func__", value)  # of a class method
                if inspect.isfunction(function) and not own.startswith("_"):
                    named[f"{name}.{own}"] = (kind, function)
    return named


def sections(value: object) -> set[str]:
    return set(re.findall(r"^(Args|Attributes|Returns|Raises|Example):$", inspect.getdoc(value) or "", re.MULTILINE))


def missing_sections(function: object) -> set[str]:
    """Which of Args, Returns and Raises a function needs and does not have."""
    signature = inspect.signature(function)
    needed = {"Args"} if set(signature.parameters) - {"self", "cls"} else set()
    if signature.return_annotation not in (None, "None"):
        needed.add("Returns")
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree)):
        needed.add("Raises")
    return needed - sections(function)


@pytest.mark.parametrize("name", objects())
def test_every_public_name_is_documented_with_an_example(name):
    value = objects()[name]
    assert "Example" in sections(value)
    if inspect.isclass(value):
        takes_arguments = "__init__" in vars(value) and not getattr(value, "_is_protocol", False)
        assert not takes_arguments or sections(value) & {"Args", "Attributes"}
    else:
        assert not missing_sections(value)


@pytest.mark.parametrize("name", methods())
def test_every_public_method_is_documented_and_shown_in_an_example(name):
    kind, function = methods()[name]
    assert not missing_sections(function)
    shown = f".{function.__name__}(" in inspect.getdoc(kind) or function.__name__ == "forward"  # called as the object
    assert shown or "Example" in sections(function)


# The example of pyelmo.tasks needs a trained model: tests/tasks/harness/test_run.py runs it.
DOCUMENTED = sorted(
    {value.__module__ for value in objects().values()} - {"pyelmo.tasks"} | {"pyelmo.embed.language_model"}
)


@pytest.mark.parametrize("module", DOCUMENTED)
def test_the_examples_of_public_docstrings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_page_of_the_api_lists_every_public_name(module):
    match = re.search(rf"^## `{re.escape(module.__name__)}`\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
    listed = re.findall(r"^\| `(\w+)", match[1], re.MULTILINE)
    assert sorted(listed) == sorted(module.__all__)


def test_the_page_of_the_api_lists_every_method_of_an_embedder():
    match = re.search(r"^## Methods of `Embedder`\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
    listed = re.findall(r"^\| `(\w+)\(", match[1], re.MULTILINE)
    assert sorted(listed) == sorted(
        name.removeprefix("pyelmo.Embedder.") for name in methods() if name.startswith("pyelmo.Embedder.")
    )


def test_dir_shows_every_public_name():
    assert set(pyelmo.__all__) <= set(dir(pyelmo))
