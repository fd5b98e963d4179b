"""The C functions compiled for another processor and run by an emulator, in place of the library of this machine.

`Emulated` has the functions of the library by the same names. It sends what their arguments point to to a process of
emulated.c, and copies back what that process has written.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyelmo.kernels.cpu import compiled

HERE = Path(__file__).parent
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
NATIVE = [
    name
    for number, name in enumerate(compiled.INSTRUCTION_SETS)
    if compiled.library() and compiled.library().elmo_supported(number)
]
FUNCTIONS = (
    "elmo_supported", "elmo_lanes", "elmo_group", "elmo_linear", "elmo_highway", "elmo_char_features", "elmo_lstm",
)  # fmt: skip
# Processors of the emulator, and what is chosen on them: none has what the next one has.
PROCESSORS = {"cortex-a53": "neon", "neoverse-n1": "dotprod", "max": "i8mm"}
MISSING = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
EMULATED = (
    pytest.mark.emulated,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
)


@contextlib.contextmanager
def chosen(name: str, emulated: Emulated | None) -> Iterator[None]:
    """Let compiled.py run on an instruction set of this processor or of an emulated one."""
    cached = compiled.instruction_set, compiled.lanes, compiled.group
    with pytest.MonkeyPatch.context() as patch:
        if emulated is not None:
            emulated.forget()
            patch.setattr(compiled, "library", lambda: emulated)
            patch.setattr(compiled, "_address", emulated.address)
        patch.setenv("PYELMO_CPU", name)
        for function in cached:
            function.cache_clear()
        yield
    for function in cached:
        function.cache_clear()


def compile_driver(to: Path) -> Path:
    flags = ["-O3", "-static", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    subprocess.run([COMPILER, *flags, str(HERE / "emulated.c"), "-o", str(to), "-lm"], check=True)
    return to


class Emulated:
    def __init__(self, driver: Path, processor: str) -> None:
        self._process = subprocess.Popen(
            [EMULATOR, "-cpu", processor, str(driver)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._arrays: dict[int, np.ndarray] = {}
        self._alone = threading.Lock()  # both directions of a layer run at the same time

    def address(self, array: np.ndarray | None) -> ctypes.c_void_p | None:
        """Stand in for compiled._address: remember what lies at an address."""
        if array is None:
            return None
        self._arrays[array.ctypes.data] = array
        return ctypes.c_void_p(array.ctypes.data)

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._call, FUNCTIONS.index(name))

    def forget(self) -> None:
        """Let go of the arrays of the last test."""
        self._arrays.clear()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _call(self, function: int, isa: Any, *arguments: Any) -> int:
        if function == 0:
            isa, arguments = 0, (isa,)
        blocks: list[Any] = []
        addresses: list[int] = []
        given: list[int] = []
        returned: list[Any] = []
        for argument in arguments:
            memory = self._memory(argument)
            if memory is not None:
                given += (1, self._add(memory, blocks, addresses))
                returned.append(memory)
            else:
                given += (0, int(getattr(argument, "value", argument) or 0))
        parts = [_numbers(function, getattr(isa, "value", isa), len(blocks))]
        for block in blocks:
            parts += [_numbers(memoryview(block).nbytes), bytes(block)]
        parts += [_numbers(len(addresses) // 3, *addresses), _numbers(len(given) // 2, *given)]
        with self._alone:
            self._process.stdin.write(b"".join(parts))
            self._process.stdin.flush()
            status = struct.unpack("<q", self._read(8))[0]
            answers = [self._read(memoryview(memory).nbytes) for memory in returned]
        for memory, data in zip(returned, answers, strict=True):
            if isinstance(memory, np.ndarray):
                memory.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
        return int(status)

    def _memory(self, argument: Any) -> Any:
        """Return the array or ctypes object that an argument points to, or None if it is a value."""
        if isinstance(argument, ctypes.c_void_p) and argument.value:
            return self._arrays[argument.value]
        if isinstance(argument, ctypes.Array):
            return argument
        return getattr(argument, "_obj", None)  # what ctypes.byref was given

    def _add(self, memory: Any, blocks: list[Any], addresses: list[int]) -> int:
        """Append what an address refers to, and what its fields point to, to the blocks; return its number."""
        number = len(blocks)
        blocks.append(memory)
        if not isinstance(memory, np.ndarray):
            for position, value in _pointers(memory):
                addresses += (number, position, self._add(self._arrays[value], blocks, addresses))
        return number

    def _read(self, size: int) -> bytes:
        data = self._process.stdout.read(size)
        assert len(data) == size, f"the emulated process exited with {self._process.wait()}"
        return bytes(data)


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _pointers(memory: Any, start: int = 0) -> list[tuple[int, int]]:
    """(position, address) of all pointers inside a structure or an array of structures or pointers."""
    if isinstance(memory, ctypes.Structure):
        fields = [(getattr(type(memory), name).offset, kind, getattr(memory, name)) for name, kind in memory._fields_]
    elif isinstance(memory, ctypes.Array):
        size = ctypes.sizeof(memory._type_)
        fields = [(size * number, memory._type_, memory[number]) for number in range(len(memory))]
    else:
        return []
    pointers: list[tuple[int, int]] = []
    for position, kind, value in fields:
        if kind is ctypes.c_void_p:
            pointers += [(start + position, value)] if value else []
        else:
            pointers += _pointers(value, start + position)
    return pointers
