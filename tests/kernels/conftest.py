"""The compiled functions on one instruction set: of this processor, or of an AArch64 processor in an emulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from emulated import EMULATED, NATIVE, PROCESSORS, Emulated, chosen, compile_driver

from pyelmo.kernels.cpu import compiled as functions

NO_COMPILER = pytest.param("native base", marks=pytest.mark.skip(reason="installed without a compiler"))
CASES = [f"native {name}" for name in NATIVE] or [NO_COMPILER]
CASES += [
    pytest.param(f"{processor} {name}", marks=EMULATED)
    for processor, best in PROCESSORS.items()
    for name in ([best, "base"] if best == "neon" else [best])
]


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Emulated]]:
    """The functions on a processor, by its name; compiled once, and one process per processor for all tests."""
    driver = functools.cache(lambda: compile_driver(tmp_path_factory.mktemp("emulated") / "driver"))
    started: dict[str, Emulated] = {}

    def start(processor: str) -> Emulated:
        if processor not in started:
            started[processor] = Emulated(driver(), processor)
        return started[processor]

    yield start
    for process in started.values():
        process.close()


@pytest.fixture
def compiled(request: pytest.FixtureRequest, emulated: Callable[[str], Emulated]) -> Iterator[ModuleType]:
    """compiled.py on one instruction set."""
    processor, name = request.param.split()
    with chosen(name, None if processor == "native" else emulated(processor)):
        yield functions


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "compiled" in metafunc.fixturenames:
        metafunc.parametrize("compiled", CASES, indirect=True)
