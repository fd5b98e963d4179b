"""A server on one core, and clients on another: starting and stopping it, requests in closed and open loops.

The client is a plain asyncio connection, so that it costs little beside the server. All traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVER_CORE, CLIENT_CORE = 0, 1
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# infinity-emb would report its use, and its model library look for updates.
OFFLINE = {"DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0", "HF_HUB_OFFLINE": "1"}


@dataclass
class Outcome:
    """What became of requests: their statuses, latencies of those answered with 200, and sizes."""

    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    texts: int = 0  # of requests answered with 200
    received: int = 0  # bytes

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "seconds": round(self.seconds, 2), "requests": sum(self.statuses.values()),
            "statuses": dict(sorted(self.statuses.items())),
            "requests_per_second": round(self.statuses["200"] / self.seconds, 2),
            "texts_per_second": round(self.texts / self.seconds, 1),
            "megabytes_per_second": round(self.received / self.seconds / 1e6, 1),
        }  # fmt: skip
        if len(self.latencies) > 1:
            cuts = statistics.quantiles(self.latencies, n=100, method="inclusive")
            facts["milliseconds"] = {"median": round(1e3 * cuts[49], 1), "p99": round(1e3 * cuts[98], 1)}
        return facts


@dataclass(frozen=True)
class Body:
    """A request: its bytes, and how many texts it has."""

    path: str
    content: bytes
    texts: int

    def head(self, extra: str = "") -> bytes:
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(self.content)}\r\n{extra}\r\n"
        ).encode()


def bodies(path: str, field_name: str, texts: Sequence[str], size: int, **options: Any) -> list[Body]:
    """Return requests of `size` texts each."""
    groups = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [Body(path, json.dumps({field_name: group, **options}).encode(), len(group)) for group in groups]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(core: int | None, command: Sequence[str]) -> list[str]:
    return ([] if core is None else ["taskset", "-c", str(core)]) + list(command)


@contextlib.contextmanager
def running(
    command: Sequence[str], port: int, *, ready: str = "/ready", core: int | None = SERVER_CORE, seconds: float = 120
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server and wait until it is ready; stop it at the end."""
    process = subprocess.Popen(pinned(core, command), env={**os.environ, **ONE_THREAD, **OFFLINE})
    try:
        end = time.monotonic() + seconds
        while get(port, ready) != 200:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{' '.join(command)}: the server did not start")
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def elmo_command(port: int, *arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "elmo"), "serve", *arguments, "--port", str(port)]


def get(port: int, path: str) -> int | None:
    """Return the status of a GET request; None if nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            line = connection.makefile("rb").readline().split()
            return int(line[1]) if len(line) > 1 else None
    except OSError:
        return None


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Connection:
    """One connection of a client; it is opened again after an error."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, body: Body) -> tuple[str, int]:
        """Return the status, or the kind of an error, and the bytes of the answer."""
        if self.writer is not None and self.reader.at_eof():  # closed while it was idle
            self.close()
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        except OSError:
            return "refused", 0
        started = False
        try:
            self.writer.write(body.head() + body.content)
            head = await self.reader.readuntil(b"\r\n\r\n")
            started = True
            lines = head.lower().split(b"\r\n")
            length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
            left = length
            while left:
                part = await self.reader.read(min(left, 2**18))
                if not part:
                    raise ConnectionError
                left -= len(part)
            if b"connection: close" in lines:
                self.close()
            return head.split()[1].decode(), length
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return "broken" if started else "closed", 0

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


async def closed_loop(port: int, requests: Sequence[Body], clients: int, seconds: float) -> Outcome:
    """Keep `clients` connections busy: each sends its next request when the last was answered."""
    outcome, begin = Outcome(), time.perf_counter()
    position = iter(range(10**9))

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() - begin < seconds:
            body = requests[next(position) % len(requests)]
            sent = time.perf_counter()
            if await note(outcome, connection, body, sent) == "429":
                await asyncio.sleep(0.1)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    outcome.seconds = time.perf_counter() - begin
    return outcome


async def open_loop(
    port: int,
    requests: Sequence[Body],
    rate: float,
    seconds: float,
    clients: int,
    each_second: Callable[[float], None] = lambda elapsed: None,
) -> Outcome:
    """Send requests at random times (Poisson), whatever the answers; latency counts from the planned time."""
    outcome, begin = Outcome(), time.perf_counter()
    randomly = random.Random(0)
    idle: list[Connection] = [Connection(port) for _ in range(clients)]
    tasks: set[asyncio.Task[None]] = set()
    due, number, tick = begin, 0, 0

    async def one(body: Body, planned: float) -> None:
        connection = idle.pop() if idle else Connection(port)
        await note(outcome, connection, body, planned)
        idle.append(connection)

    while due - begin < seconds:
        due += randomly.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(one(requests[number % len(requests)], due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        if time.perf_counter() - begin >= tick:
            each_second(time.perf_counter() - begin)
            tick += 1
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - begin
    for connection in idle:
        connection.close()
    return outcome


async def note(outcome: Outcome, connection: Connection, body: Body, sent: float) -> str:
    """Send a request, add what became of it to an outcome, and return its status."""
    status, size = await connection.ask(body)
    outcome.statuses[status] += 1
    if status == "200":
        outcome.latencies.append(time.perf_counter() - sent)
        outcome.texts += body.texts
        outcome.received += size
    elif status in ("refused", "closed"):
        await asyncio.sleep(0.05)
    return status


def sentences_of(path: Path, count: int) -> list[str]:
    """Return the first lines of a text with 4 to 60 words."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    chosen = [line for line in lines if 4 <= len(line.split()) <= 60][:count]
    if len(chosen) < count:
        raise SystemExit(f"{path}: has only {len(chosen)} lines of 4 to 60 words; {count} are needed")
    return chosen
