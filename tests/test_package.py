"""What a user meets first: importing, --help, and errors that fit in a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyelmo

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
