"""What the tests of the server share: its address, and waiting without a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

LOCAL = "http://127.0.0.1"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the timeout of the whole test bounds it."""
    while not condition():
        await asyncio.sleep(0.002)


class Blocker:
    """A function that keeps a compute thread busy from `taken` to `release`."""

    def __init__(self) -> None:
        self.taken, self.release = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.taken.set()
        self.release.wait(30)
