"""Launches of one kernel for many time steps.

Triton looks at all arguments of every launch, to find the kernel that was compiled for such arguments. That takes the
host 30 us, and a compiled kernel can be launched in 7.
"""

from __future__ import annotations

from typing import Any

import triton

# Older versions take the arguments of compiled kernels without the constants.
_KEEPS_COMPILED = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 3)


class StepKernel:
    """A kernel whose launches differ in the grid and the step alone; the step is the argument between the others."""

    def __init__(self, kernel: Any, before: tuple[Any, ...], after: tuple[Any, ...], **constants: Any) -> None:
        self._kernel, self._before, self._after, self._constants = kernel, before, after, constants
        self._compiled: Any = None  # remains None in Triton's interpreter

    def __call__(self, grid: tuple[int, int, int], step: int) -> None:
        if self._compiled is not None:
            self._compiled[grid](*self._before, step, *self._after, *self._constants.values())
            return
        compiled = self._kernel[grid](*self._before, step, *self._after, **self._constants)
        if _KEEPS_COMPILED:
            self._compiled = compiled
