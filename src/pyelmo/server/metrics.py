"""Counters of all worker processes in one shared block of memory, and their text for Prometheus.

Each worker adds to its own row, so no lock is needed; `/metrics` of any worker gives the sums of all rows. A worker
that replaces a killed one continues its row, so that counters never fall.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
STATUSES = ("200", "304", "400", "401", "403", "404", "405", "408", "413", "415", "429", "499", "500", "503", "other")
OTHER = "other"  # requests of paths that do not exist, and of the files of the page


class Metrics:
    """The counters of a server. `use_row` chooses the row of this process."""

    def __init__(self, endpoints: Sequence[str], models: Sequence[str], workers: int = 1) -> None:
        names: list[tuple[str, ...]] = []
        for endpoint in (*endpoints, OTHER):
            names += [("requests", endpoint, status) for status in STATUSES]
            names += [("bucket", endpoint, str(edge)) for edge in (*BUCKETS, "+Inf")]
            names += [("seconds", endpoint)]
        for model in models:
            names += [("words", model), ("batches", model), ("jobs", model), ("refused", model), ("queue", model)]
        self.endpoints, self.models = (*endpoints, OTHER), tuple(models)
        self._slots = {name: number for number, name in enumerate(names)}
        memory = mmap.mmap(-1, 8 * workers * len(names))  # anonymous and shared: a fork keeps it common
        self._rows: npt.NDArray[np.float64] = np.frombuffer(memory, np.float64).reshape(workers, len(names))
        self.use_row(0)

    def use_row(self, worker: int) -> None:
        """Count in the row of a worker from now on; its queues are empty now."""
        self._own = self._rows[worker]
        for model in self.models:
            self.set(0, "queue", model)

    def add(self, value: float, *name: str) -> None:
        self._own[self._slots[name]] += value

    def set(self, value: float, *name: str) -> None:
        self._own[self._slots[name]] = value

    def total(self, *name: str) -> float:
        """Return the sum over all workers."""
        return float(self._rows[:, self._slots[name]].sum())

    def observe_request(self, endpoint: str, status: int, seconds: float) -> None:
        endpoint = endpoint if endpoint in self.endpoints else OTHER
        code = str(status)
        self.add(1, "requests", endpoint, code if code in STATUSES else "other")
        self.add(1, "bucket", endpoint, next((str(edge) for edge in BUCKETS if seconds <= edge), "+Inf"))
        self.add(seconds, "seconds", endpoint)

    def observe_batch(self, model: str, words: int, jobs: int) -> None:
        self.add(words, "words", model)
        self.add(1, "batches", model)
        self.add(jobs, "jobs", model)

    def text(self) -> bytes:
        """Return all counters in the text format of Prometheus."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self))
        return generate_latest(registry)


class _Collector:
    """What prometheus_client asks for the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        total = self._metrics.total
        requests = CounterMetricFamily("elmo_requests", "Requests answered.", labels=("endpoint", "status"))
        seconds = HistogramMetricFamily("elmo_request_seconds", "Seconds until the answer.", labels=("endpoint",))
        for endpoint in self._metrics.endpoints:
            for status in STATUSES:
                if count := total("requests", endpoint, status):
                    requests.add_metric((endpoint, status), count)
            edges = [str(edge) for edge in (*BUCKETS, "+Inf")]
            counts = np.cumsum([total("bucket", endpoint, edge) for edge in edges]).tolist()
            if counts[-1]:
                seconds.add_metric((endpoint,), list(zip(edges, counts, strict=True)), total("seconds", endpoint))
        yield requests
        yield seconds
        for name, text in (
            ("words", "Words computed."),
            ("batches", "Batches computed."),
            ("jobs", "Requests, or parts of long requests, in these batches."),
            ("refused", "Requests refused because the queue was full."),
        ):
            counter = CounterMetricFamily(f"elmo_{name}", text, labels=("model",))
            for model in self._metrics.models:
                counter.add_metric((model,), total(name, model))
            yield counter
        queue = GaugeMetricFamily("elmo_queue_words", "Words that wait for the model.", labels=("model",))
        for model in self._metrics.models:
            queue.add_metric((model,), total("queue", model))
        yield queue


class MeasureRequests:
    """ASGI middleware that counts requests and their time by endpoint and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 499  # as nginx: the client went before the answer

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note)
        except Exception:
            status = 500
            raise
        finally:
            explore = scope["path"].startswith("/explore")
            endpoint = "/explore" if explore else getattr(scope.get("route"), "path", OTHER)
            self.metrics.observe_request(endpoint, status, time.perf_counter() - begin)
