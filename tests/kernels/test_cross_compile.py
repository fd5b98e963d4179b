"""The C source compiles for systems that this machine is not, with the clang of the package `ziglang`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import ziglang

SOURCE = Path(__file__).parents[2] / "src" / "pyelmo" / "kernels" / "cpu" / "cpu.c"

# How an object file of each system and processor begins.
OBJECTS = {
    "x86_64-windows-gnu": "6486",
    "aarch64-windows-gnu": "64aa",
    "aarch64-macos": "cffaedfe0c000001",
    "aarch64-linux-gnu": "7f454c46020101000000000000000000" + "0100b700",
}


def zig(cache: Path, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", "ziglang", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache)}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", OBJECTS)
def test_the_source_compiles_with_clang(tmp_path, target):
    compiled = tmp_path / "cpu.o"
    flags = ["-c", "-O0", "-fno-sanitize=all", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"]
    zig(tmp_path, "cc", "-target", target, *flags, SOURCE, "-o", compiled)
    assert compiled.read_bytes().startswith(bytes.fromhex(OBJECTS[target]))


@pytest.mark.parametrize(("processor", "start"), [("x86_64", "6486"), ("aarch64", "64aa")])
def test_the_source_compiles_with_clang_s_front_end_for_msvc(tmp_path, processor, start):
    """As clang-cl compiles it in setup.py, but with the headers of MinGW, which ask for a version of GCC."""
    library = Path(ziglang.__file__).parent / "lib"
    headers = ["-imsvc", library / "include", "-imsvc", library / "libc" / "include" / "any-windows-any"]
    compiled = tmp_path / "cpu.obj"
    zig(
        tmp_path, "clang", "--driver-mode=cl", f"--target={processor}-pc-windows-msvc", "/c", "/W4", "/WX",
        "/clang:-fgnuc-version=4.2.1", *headers, "-o", compiled, "--", SOURCE,
    )  # fmt: skip
    assert compiled.read_bytes().startswith(bytes.fromhex(start))
