"""What a user meets first: importing, --help, and errors that fit in a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyelmo

# CPU seconds: start-up is measured in a process of its own, against a bare Python.
USED = "import os; t = os.times(); print(t.user + t.system)"


def cpu_seconds(code: str) -> float:
    runs = [
        float(
            subprocess.run([sys.executable, "-c", f"{code}\n{USED}"], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(3)
    ]
    return min(runs)


def test_importing_loads_no_torch_and_is_quick():
    code = "import pyelmo, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    assert cpu_seconds(code) - cpu_seconds("") < 0.1


def test_help_loads_no_torch_and_is_quick():
    code = (
        "import contextlib, io, sys\nfrom pyelmo.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main(['--help'])\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    assert cpu_seconds(code) < 0.3


def test_every_public_name_is_there():
    for name in pyelmo.__all__:
        assert getattr(pyelmo, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        pyelmo.nothing_like_it  # noqa: B018


def test_an_unknown_model_is_one_clear_error():
    for name in ("no-such-model", "de"):
        with pytest.raises(pyelmo.PyelmoError, match=f"^{name}: no such file or folder, and no model .* \\(en, ko\\)$"):
            pyelmo.load(name)
