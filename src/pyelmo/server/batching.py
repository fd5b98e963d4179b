"""Requests of all clients -> batches of about as many words, one after the other on the thread of a model.

    async handlers --> queue (bounded in words) --> compute thread: batches of jobs with the same key --> futures

A job with more words than a batch is computed in parts, and others have their turn between them, so that it does not
hold up short ones. A job whose future was cancelled, because its client is gone or its time is over, is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyelmo.errors import PyelmoError

BATCH_WORDS = 1024  # of a batch: about 64 sentences, with which the LSTMs run at 95 % of their full speed or more
# After a batch of several jobs, their clients send the next ones in a moment. Waiting for them up to this share of the
# batch's time, and this many seconds, makes one large batch instead of a small and a large one.
LINGER_SHARE, LINGER_SECONDS = 0.1, 0.01
FADE = 0.9  # what a batch counts less than the next one in the speed by which the waiting time is estimated

Batch = Callable[[list[Any]], Iterable[Any]]  # items of all jobs of a batch -> a result for each


class QueueFullError(PyelmoError):
    """Too many words wait for a model; `seconds` is about how long they need."""

    def __init__(self, model: str, seconds: float) -> None:
        super().__init__(f"too many requests wait for {model}. Try again in {seconds:.0f} seconds")
        self.seconds = seconds


@dataclass(eq=False)
class Job:
    """The items of one request. Jobs with the same key are computed together by `function`; one without a key, alone.

    `costs` are the words of the items, and `finish` turns all results into the answer, on the compute thread.
    """

    key: Hashable
    function: Batch
    items: Sequence[Any]
    costs: Sequence[int]
    finish: Callable[[list[Any]], Any]
    future: asyncio.Future[Any]
    results: list[Any] = field(default_factory=list)

    @property
    def words(self) -> int:
        """The words that are still to be computed."""
        return sum(self.costs[len(self.results) :])

    def fit(self, room: int) -> int:
        """Return how many of the next items to compute in a batch with room for so many words.

        Only a job with more words than a batch is divided. An item with more words than a batch runs alone.
        """
        costs = self.costs[len(self.results) :]
        if self.words <= BATCH_WORDS:
            return len(costs) if self.words <= room else 0
        count = sum(1 for _ in itertools.takewhile(lambda words: words <= room, itertools.accumulate(costs)))
        return max(1, count) if room == BATCH_WORDS else count

    def settle(self, value: Any = None, error: BaseException | None = None) -> None:
        """Give the future its result, from any thread."""

        def give() -> None:
            if self.future.done():  # the client is gone
                return
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(value)

        with contextlib.suppress(RuntimeError):  # the event loop was closed
            self.future.get_loop().call_soon_threadsafe(give)


class ComputeThread:
    """The thread of one model, and the queue of the jobs that wait for it.

    The queue is full at `limit` words, or when computing what waits would take `seconds`. `observe` is called with the
    words and the number of jobs of each batch.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        seconds: float = 30.0,
        observe: Callable[[int, int], None] = lambda words, jobs: None,
    ) -> None:
        self.name, self.limit, self.seconds, self._observe = name, limit, seconds, observe
        self.words = 0  # of the waiting jobs
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # Of the last batches, older ones counting less; at first as if the queue had just the time for its words.
        self._recent_words, self._recent_seconds = limit / seconds, 1.0
        self._last_jobs, self._last_seconds = 1, 0.0

    async def run(self, job: Job) -> Any:
        """Compute a job and return its answer, or raise a QueueFullError at once."""
        self.submit(job)
        return await self.wait(job)

    async def wait(self, job: Job) -> Any:
        """Return the answer of a job that was submitted; the job is dropped if this is cancelled."""
        try:
            return await job.future
        finally:
            if job.future.cancelled():
                self._withdraw(job)

    def submit(self, job: Job) -> None:
        """Put a job into the queue, or raise a QueueFullError. An empty queue takes a job of any size."""
        with self._changed:
            speed = self._recent_words / self._recent_seconds
            if self._waiting and self.words + job.words > min(self.limit, self.seconds * speed):
                raise QueueFullError(self.name, max(1.0, self.words / speed))
            self._insert(job, len(self._waiting))
            if self._thread is None:  # started here, because threads do not survive a fork
                self._thread = threading.Thread(target=self._run, name=f"compute-{self.name}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _insert(self, job: Job, position: int) -> None:
        self._waiting.insert(position, job)
        self.words += job.words

    def _withdraw(self, job: Job) -> None:
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                self.words -= job.words

    def _run(self) -> None:
        while True:
            batch = self._take()
            if not batch:  # what waited was withdrawn
                continue
            words = sum(sum(job.costs[len(job.results) :][:count]) for job, count in batch)
            begin = time.perf_counter()
            unfinished = self._compute(batch)
            seconds = time.perf_counter() - begin
            self._last_jobs, self._last_seconds = len(batch), seconds
            self._recent_words = FADE * self._recent_words + words
            self._recent_seconds = FADE * self._recent_seconds + seconds
            self._observe(words, len(batch))
            with self._changed:
                for job in unfinished:
                    sums = itertools.accumulate(other.words for other in self._waiting)
                    self._insert(job, sum(1 for _ in itertools.takewhile(lambda total: total < BATCH_WORDS, sums)) + 1)

    def _take(self) -> list[tuple[Job, int]]:
        """Wait for jobs; return those of the next batch, and how many of their items it computes."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            patience = min(LINGER_SECONDS, LINGER_SHARE * self._last_seconds)
            self._changed.wait_for(lambda: len(self._waiting) >= self._last_jobs, patience)
            batch: list[tuple[Job, int]] = []
            room = BATCH_WORDS
            for job in list(self._waiting):
                if batch and (job.key is None or job.key != batch[0][0].key):
                    continue
                count = job.fit(room)
                if not count:
                    break
                self._waiting.remove(job)
                self.words -= job.words
                start = len(job.results)
                room -= sum(job.costs[start : start + count])
                batch.append((job, count))
            return batch

    def _compute(self, batch: list[tuple[Job, int]]) -> list[Job]:
        """Compute a batch, answer the jobs that it finishes, and return the others."""
        parts = [job.items[len(job.results) :][:count] for job, count in batch]
        try:
            results = iter(list(batch[0][0].function([item for part in parts for item in part])))
        except Exception as error:
            if len(batch) > 1:  # only the job with the cause shall fail
                return [job for part in batch for job in self._compute([part])]
            batch[0][0].settle(error=error)
            return []
        unfinished = []
        for (job, _), part in zip(batch, parts, strict=True):
            job.results += itertools.islice(results, len(part))
            if len(job.results) < len(job.items):
                if not job.future.cancelled():
                    unfinished.append(job)
                continue
            try:
                job.settle(job.finish(job.results))
            except Exception as error:
                job.settle(error=error)
        return unfinished
