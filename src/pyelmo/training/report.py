"""The progress of a training run: a line of text, a JSON line in log.jsonl and, on request, TensorBoard."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyelmo.errors import OutputError, missing_extra

log = logging.getLogger("pyelmo")
Say = Callable[[str], None]  # a callback that gets each line of text


class Report:
    """Reports the progress of a run to `say` (by default the log) and to `log.jsonl` in the folder of the run.

    With `active=False`, nothing is reported: of several processes, only the first is active.
    """

    def __init__(self, folder: Path, say: Say | None = None, *, tensorboard: bool = False, active: bool = True) -> None:
        self.active = active
        self.say = say or log.info
        self.path = folder / "log.jsonl"
        if active and (self.path.exists() or self.path.is_symlink()) and not self.path.is_file():
            raise OutputError(f"{self.path}: is a folder, a pipe or a device. Remove it, or choose another folder.")
        self.board: Any = None
        if tensorboard and active:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise missing_extra("tensorboard", "--tensorboard") from None
            self.board = SummaryWriter(str(folder / "tensorboard"))

    def step(
        self, *, step: int, words: int, losses: list[float], norm: float, rate: float, lr: float, left: float | None
    ) -> None:
        """Report the losses of a step and the norm of its gradient before clipping.

        `rate` is in words per second, `left` is the remaining time in seconds.
        """
        loss = sum(losses) / len(losses)
        parts = [f"step {step:,}", f"words {words:,}", f"loss {loss:.4f}", f"perplexity {_exp(loss):,.1f}"]
        parts += [f"{rate:,.0f} words/s"] + ([f"{_clock(left)} left"] if left is not None else [])
        self.write(
            " | ".join(parts), "train", step=step, words=words, loss=loss, losses=losses, norm=norm, rate=rate, lr=lr
        )

    def validation(self, *, step: int, words: int, forward: float, backward: float | None, average: float) -> None:
        """Report the perplexity on the held-out set."""
        directions = f"forward {forward:,.1f}" + ("" if backward is None else f", backward {backward:,.1f}")
        self.write(
            f"step {step:,} | held-out perplexity: {directions}, average {average:,.1f}",
            "valid", step=step, words=words, forward=forward, backward=backward, average=average,
        )  # fmt: skip

    def note(self, text: str, **values: Any) -> None:
        """Report a text."""
        self.write(text, "note", text=text, **values)

    def write(self, line: str, kind: str, **values: Any) -> None:
        """Pass a line to the callback, and write its values to log.jsonl and TensorBoard."""
        if not self.active:
            return
        self.say(line)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "time": round(time.time(), 1), **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                if isinstance(value, float) and "step" in values:
                    self.board.add_scalar(f"{kind}/{name}", value, values["step"])


def counter(say: Say | None, what: str, total: int, *, every: float = 10.0) -> Callable[[int], None]:
    """Return a callback for parts of a long computation; every few seconds it says how much of it is done."""
    done, last = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        if time.monotonic() - last >= every:
            last = time.monotonic()
            (say or log.info)(f"{what}: {done:,} of {total:,} words")

    return advance


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 50 else math.inf


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
