"""What a user meets first: importing, --help, and errors that fit in a sentence."""

from __future__ import annotations

import ctypes
import importlib.machinery
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyelmo
from pyelmo.formats.bundled import BUNDLED
from pyelmo.kernels.cpu import compiled

ROOT = Path(__file__).parents[1]
# How long start-up takes is measured by benchmarks/speed/startup.py; here, what it imports.
IMPORTED = "import sys; assert not {'torch', 'numpy'} & set(sys.modules); print(len(sys.modules))"


def imported_modules(code: str) -> int:
    command = [sys.executable, "-c", f"{code}\n{IMPORTED}"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_importing_loads_neither_torch_nor_much_else():
    assert imported_modules("import pyelmo") - imported_modules("") < 60


def test_help_loads_neither_torch_nor_much_else():
    code = (
        "import contextlib, io\nfrom pyelmo.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--help'])\n"
    )
    assert imported_modules(code) - imported_modules("") < 200


def test_every_public_name_is_there():
    for name in pyelmo.__all__:
        assert getattr(pyelmo, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        pyelmo.nothing_like_it  # noqa: B018


def test_an_unknown_model_is_one_clear_error():
    for name in ("no-such-model", "de"):
        with pytest.raises(
            pyelmo.PyelmoError, match=f"^{name}: no such file or folder, and no bundled model .* \\(bundled: en, ko\\)$"
        ):
            pyelmo.load(name)


def test_the_licence_of_the_package_covers_its_models():
    """The wheel contains the weights, so its licence is that of the code and those of all model cards."""
    licence = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license"].lower().split(" and ")
    cards = [path.read_text("utf-8") for path in BUNDLED.glob("*/README.md")]
    assert {re.search(r"^license: (.+)$", card, re.MULTILINE)[1] for card in cards} == set(licence) - {"apache-2.0"}


def test_the_library_for_every_python_comes_first(tmp_path, monkeypatch):
    """A file that an older build left for one version of Python must not hide a newer one."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        (tmp_path / f"_cpu{suffix}").write_bytes(b"")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    size = ctypes.sizeof(compiled._Layer)
    monkeypatch.setattr(compiled.ctypes, "CDLL", lambda path: SimpleNamespace(path=path, elmo_layer_size=lambda: size))
    assert compiled.library.__wrapped__().path == str(tmp_path / f"_cpu{importlib.machinery.EXTENSION_SUFFIXES[-1]}")
