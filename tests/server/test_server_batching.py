"""The compute thread: jobs of one key run together, long jobs step aside, and nobody waits for a client that is gone."""

from __future__ import annotations

import asyncio
import io
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from server_support import LOCAL, Blocker, until

from pyelmo.server import batching
from pyelmo.server.app import create_app
from pyelmo.server.batching import ComputeThread, Job, QueueFullError


def job(key, items, function, cost=1) -> Job:
    future = asyncio.get_running_loop().create_future()
    return Job(key, function, items, [cost] * len(items), lambda results: results, future)


class Recorder:
    """A function of batches that notes them, and waits for `gate` before the first."""

    def __init__(self) -> None:
        self.batches: list[list[object]] = []
        self.taken, self.gate = threading.Event(), threading.Event()

    def __call__(self, items):
        self.taken.set()
        self.gate.wait(30)
        self.batches.append(list(items))
        return [item * 10 for item in items]


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_waiting_jobs_of_one_key_are_one_batch_and_each_gets_its_own_results():
    record = Recorder()

    async def crowd():
        thread = ComputeThread("test", 1000)
        tasks = [asyncio.create_task(thread.run(job("a", [0], record)))]
        await until(record.taken.is_set)
        tasks += [asyncio.create_task(thread.run(job("a", [number, number + 1], record))) for number in (1, 3)]
        tasks.append(asyncio.create_task(thread.run(job("b", [7], record))))
        tasks.append(asyncio.create_task(thread.run(job("a", [5], record))))
        await until(lambda: thread.words == 6)
        record.gate.set()
        return await asyncio.gather(*tasks)

    assert run(crowd()) == [[0], [10, 20], [30, 40], [70], [50]]
    assert record.batches == [[0], [1, 2, 3, 4, 5], [7]]


def test_a_long_job_shares_with_the_short_ones_that_come_after_it(monkeypatch):
    monkeypatch.setattr(batching, "BATCH_WORDS", 4)
    record = Recorder()

    async def crowd():
        thread = ComputeThread("test", 1000)
        tasks = [asyncio.create_task(thread.run(job("a", list(range(12)), record)))]
        await until(record.taken.is_set)
        tasks += [asyncio.create_task(thread.run(job("a", [n, n + 1, n + 2], record))) for n in (20, 30, 40)]
        await until(lambda: thread.words == 9)
        record.gate.set()
        return await asyncio.gather(*tasks)

    long, *others = run(crowd())
    assert long == [10 * number for number in range(12)]
    assert others == [[10 * n, 10 * n + 10, 10 * n + 20] for n in (20, 30, 40)]
    # Jobs that fit into a batch are not divided; the long one fills what is left, and has every second batch.
    assert record.batches == [[0, 1, 2, 3], [20, 21, 22], [30, 31, 32, 4], [40, 41, 42, 5], [6, 7, 8, 9], [10, 11]]


def test_a_job_larger_than_a_batch_or_the_queue_runs_when_nothing_waits():
    record = Recorder()
    record.gate.set()

    async def one():
        return await ComputeThread("test", 10).run(job("a", [1, 2], record, cost=5000))

    assert run(one()) == [10, 20]


def test_a_full_queue_refuses_and_takes_jobs_again_later():
    record = Recorder()

    async def crowd():
        thread = ComputeThread("test", 10)
        tasks = [asyncio.create_task(thread.run(job(None, [1], record, cost=8)))]
        await until(record.taken.is_set)
        tasks.append(asyncio.create_task(thread.run(job(None, [2], record, cost=8))))
        await until(lambda: thread.words == 8)
        with pytest.raises(QueueFullError) as caught:
            await thread.run(job("a", [3], record, cost=8))
        record.gate.set()
        await asyncio.gather(*tasks)
        assert thread.words == 0
        return caught.value.seconds, await thread.run(job("a", [3], record, cost=8))

    seconds, answer = run(crowd())
    assert (seconds >= 1, answer) == (True, [30])


def test_a_cancelled_job_is_not_computed_and_leaves_the_queue():
    record = Recorder()

    async def crowd():
        thread = ComputeThread("test", 1000)
        first = asyncio.create_task(thread.run(job("a", [1], record)))
        await until(record.taken.is_set)
        second = asyncio.create_task(thread.run(job("a", [2], record, cost=50)))
        await until(lambda: thread.words == 50)
        second.cancel()
        await until(lambda: thread.words == 0)
        record.gate.set()
        return await first

    assert run(crowd()) == [10]
    assert record.batches == [[1]]


def test_only_the_job_with_the_cause_fails():
    def divide(items):
        return [1 / item for item in items]

    async def crowd():
        thread = ComputeThread("test", 1000)
        blocker = Blocker()
        blocked = asyncio.create_task(thread.run(job(None, [0], lambda items: [blocker()])))
        await until(blocker.taken.is_set)
        tasks = [asyncio.create_task(thread.run(job("a", [value], divide))) for value in (1, 2, 0, 4)]
        await until(lambda: thread.words == 4)
        blocker.release.set()
        await blocked
        return await asyncio.gather(*tasks, return_exceptions=True)

    one, half, failed, quarter = run(crowd())
    assert (one, half, quarter) == ([1], [0.5], [0.25])
    assert isinstance(failed, ZeroDivisionError)


def test_compute_runs_any_function_on_the_thread_of_a_model(app):
    service = app.state.pyelmo

    async def name():
        return await service.compute("tiny", lambda: threading.current_thread().name)

    assert run(name()) == "compute-tiny"


# --- through HTTP --------------------------------------------------------------------------------------------------


def test_vectors_are_bit_equal_whatever_other_clients_send(app: FastAPI, tiny):
    random = np.random.default_rng(0)
    words = ["The", "bank", "of", "the", "river", ".", "account", "Zyx"]
    requests = [
        {
            "sentences": [random.choice(words, random.integers(0, 12)).tolist() for _ in range(random.integers(1, 6))],
            "layers": ["all", "top", [0.2, 0.3, 0.5]][number % 3],
            "format": "npz",
        }
        for number in range(60)
    ]

    async def crowd() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL) as client:
            others = [client.post("/score", json={"sentences": ["The bank ."]}) for _ in range(5)]
            others += [client.post("/embed", json={"sentences": ["a"], "layers": 9}) for _ in range(5)]
            answers = await asyncio.gather(*(client.post("/embed", json=body) for body in requests), *others)
            return answers[: len(requests)]

    for body, answer in zip(requests, run(crowd()), strict=True):
        file = np.load(io.BytesIO(answer.content))
        wanted = tiny.embed(body["sentences"], layers=body["layers"])
        assert all(file[str(number)].tobytes() == array.tobytes() for number, array in enumerate(wanted))


def scope_of(path: str) -> dict:
    """A request as a server gives it to the application."""
    return {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")], "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000), "scheme": "http", "http_version": "1.1", "root_path": "",
        "asgi": {"version": "3.0"},
    }  # fmt: skip


def test_the_request_of_a_client_that_is_gone_is_cancelled(app: FastAPI):
    service = app.state.pyelmo
    thread = service._threads["tiny"]

    async def leave() -> None:
        blocker, gone = Blocker(), asyncio.Event()
        blocked = asyncio.create_task(service.compute("tiny", blocker))
        await until(blocker.taken.is_set)
        messages = [{"type": "http.request", "body": b'{"sentences": ["The bank of the river"]}'}]

        async def receive():
            if messages:
                return messages.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            raise AssertionError(f"nobody reads {message}")

        request = asyncio.create_task(app(scope_of("/embed"), receive, send))
        await until(lambda: thread.words == 7)
        gone.set()
        await request
        assert thread.words == 0
        blocker.release.set()
        await blocked

    run(leave())


def test_a_large_answer_arrives_whole_in_parts(app: FastAPI, tiny, monkeypatch):
    monkeypatch.setattr("pyelmo.server.bodies.CHUNK", 1000)
    sent: list[dict] = []

    async def ask() -> None:
        messages = [{"type": "http.request", "body": b'{"sentences": ["The bank of the river"], "format": "npz"}'}]

        async def receive():
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        await app(scope_of("/embed"), receive, send)

    run(ask())
    start, *parts = sent
    content = b"".join(part["body"] for part in parts)
    assert dict(start["headers"])[b"content-length"] == str(len(content)).encode()
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    assert len(parts) > 1
    assert np.load(io.BytesIO(content))["0"].tobytes() == tiny.embed(["The bank of the river"])[0].tobytes()


def test_a_client_that_reads_too_slowly_is_left(app: FastAPI, settings, monkeypatch):
    monkeypatch.setattr("pyelmo.server.bodies.CHUNK", 1000)
    service = app.state.pyelmo
    impatient = create_app(replace(settings, limits=replace(settings.limits, time=0.05)), service)
    sent: list[dict] = []

    async def ask() -> None:
        messages = [{"type": "http.request", "body": b'{"sentences": ["The bank of the river"], "format": "npz"}'}]

        async def receive():
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message):
            sent.append(message)
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        await impatient(scope_of("/embed"), receive, send)

    run(ask())
    assert [message.get("more_body") for message in sent] == [None, True]
