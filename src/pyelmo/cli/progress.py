"""A progress bar over the words of a text that is read while earlier words are still computed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

# The share of the latest words in the estimate of the time left. Batches of long and of short sentences take turns, so
# that the speed of a single one says little.
SMOOTHING = 0.05


class WordProgress:
    """Counts the words that were read and those that are done.

    How many words the text has is known at its end. Until then it is estimated from the share of its lines that were
    read; for a stream, whose number of lines is unknown, no time is estimated.
    """

    def __init__(self, bar: Any, lines: int | None) -> None:
        self.bar, self.lines = bar, lines
        self.lines_read = self.words_read = 0

    def read(self, words: int) -> None:
        """Count one line of the text and its words."""
        self.lines_read += 1
        self.words_read += words
        if self.lines:
            self.bar.total = max(self.words_read, round(self.words_read * self.lines / self.lines_read))

    def read_all(self) -> None:
        """The text has ended, and the number of its words is exact."""
        self.bar.total = self.words_read

    def done(self, words: int) -> None:
        self.bar.update(words)


@contextlib.contextmanager
def word_progress(lines: int | None, quiet: bool) -> Iterator[WordProgress]:
    """Show a bar on stderr for a text of so many lines; None if their number is unknown."""
    from tqdm import tqdm

    with tqdm(unit=" words", file=sys.stderr, disable=quiet, smoothing=SMOOTHING, mininterval=0.5) as bar:
        yield WordProgress(bar, lines)
