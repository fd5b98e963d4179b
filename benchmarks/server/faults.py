"""What a server does when things go wrong: killed workers, clients that leave, crawl or send nonsense, SIGTERM.

    python benchmarks/server/faults.py --text FILE [--json FILE]

Each fault has a server of its own (the bundled `en` in int8 on core 0; clients on core 1), and ends with figures. The
script fails if a request was lost that should not be, or if the server does not answer afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from traffic import CLIENT_CORE, Body, Connection, bodies, closed_loop, elmo_command, free_port, get, memory, running
from traffic import sentences_of as read_sentences

from pyelmo.provenance import machine, plain_command

Facts = dict[str, Any]
ARGUMENTS = ("en", "--precision", "int8", "--threads", "1")


def check(facts: Facts, name: str, good: bool) -> None:
    """Note whether what a fault must not break still holds."""
    facts.setdefault("checks", {})[name] = good


def metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def killed_worker(texts: Sequence[str]) -> Facts:
    """Kill one of two workers under the load of 8 clients."""
    port, facts = free_port(), Facts()
    requests = bodies("/embed", "sentences", texts, 2, format="npz", layers="top")
    with running(elmo_command(port, *ARGUMENTS, "--workers", "2"), port, core=None) as server:
        workers = children(server.pid)

        async def attack() -> Any:
            load = asyncio.create_task(closed_loop(port, requests, 8, 10))
            await asyncio.sleep(3)
            os.kill(workers[0], signal.SIGKILL)
            killed = time.perf_counter()
            while len(set(children(server.pid)) - {workers[0]}) < 2:
                await asyncio.sleep(0.01)
            facts["seconds_until_replaced"] = round(time.perf_counter() - killed, 3)
            return await load

        facts.update(asyncio.run(attack()).facts())
        lost = sum(count for status, count in facts["statuses"].items() if status != "200")
        facts["lost_with_the_worker"] = lost
        check(facts, "only requests in flight at the killed worker are lost", lost <= 8)
        check(facts, "ready afterwards", get(port, "/ready") == 200)
    return facts


def client_gone(texts: Sequence[str]) -> Facts:
    """Twenty clients send a request of many words and leave; their work must not be done."""
    port, facts = free_port(), Facts()
    body = bodies("/embed", "sentences", texts, 40, format="npz")[0]
    with running(elmo_command(port, *ARGUMENTS), port):
        sockets = []
        for _ in range(20):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(body.head() + body.content)
            sockets.append(connection)
        time.sleep(1.0)
        facts["words_waiting"] = metric(port, "elmo_queue_words")
        before = metric(port, "elmo_words_total")
        for connection in sockets:
            connection.close()
        begin = time.perf_counter()
        status, _ = asyncio.run(Connection(port).ask(bodies("/embed", "sentences", texts[:1], 1, layers="top")[0]))
        facts["next_answer_seconds"] = round(time.perf_counter() - begin, 2)
        facts["words_computed_after_they_left"] = metric(port, "elmo_words_total") - before
        facts["words_asked_for"] = 20 * sum(len(text.split()) for text in texts[:40])
        facts["cancelled_requests"] = metric(port, 'elmo_requests_total{endpoint="/embed",status="499"}')
        check(facts, "the next request is answered", status == "200")
        check(facts, "the work was dropped", facts["words_computed_after_they_left"] < facts["words_asked_for"] / 4)
    return facts


def slow_clients(texts: Sequence[str]) -> Facts:
    """Fifty clients send a byte a second or never read their answer, while 4 others work."""
    port, facts = free_port(), Facts()
    requests = bodies("/embed", "sentences", texts, 2, format="npz", layers="top")
    large = bodies("/embed", "sentences", texts, 20, format="npz")[0]
    with running(elmo_command(port, *ARGUMENTS, "--max-time", "8"), port) as server:
        quiet = asyncio.run(closed_loop(port, requests, 4, 6)).facts()
        sockets = []
        for number in range(50):
            connection = socket.create_connection(("127.0.0.1", port))
            body = large if number < 5 else requests[0]
            sent = body.head() + body.content
            connection.sendall(sent if number < 5 else sent[: len(body.head()) + 10])
            sockets.append(connection)
        beside = asyncio.run(closed_loop(port, requests, 4, 12)).facts()
        facts.update({"without_slow_clients": quiet, "beside_slow_clients": beside})
        answers = [connection.recv(16) for connection in sockets[5:]]
        facts["slow_senders_refused_with_408"] = sum(answer.startswith(b"HTTP/1.1 408") for answer in answers)
        for connection in sockets:
            connection.close()
        facts["memory_mb"] = round(memory(server.pid) / 1e6, 1)
        check(facts, "others are answered", set(beside["statuses"]) == {"200"})
        check(facts, "slow senders are refused", facts["slow_senders_refused_with_408"] == 45)
    return facts


def large_body(texts: Sequence[str]) -> Facts:
    """A body of 100 MB, with its length and in chunks."""
    port, facts = free_port(), Facts()
    with running(elmo_command(port, *ARGUMENTS), port) as server:
        before = memory(server.pid)
        for name in ("with Content-Length", "in chunks"):
            begin = time.perf_counter()
            facts[name] = {"status": _send_large(port, chunked=name == "in chunks")}
            facts[name]["seconds"] = round(time.perf_counter() - begin, 3)
        facts["memory_growth_mb"] = round((memory(server.pid) - before) / 1e6, 1)
        check(facts, "refused with 413", all(facts[name]["status"] == 413 for name in list(facts)[:2]))
        check(facts, "memory stays small", facts["memory_growth_mb"] < 50)
        check(facts, "ready afterwards", get(port, "/ready") == 200)
    return facts


def _send_large(port: int, *, chunked: bool) -> int | None:
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {100 * 2**20}"
    head = f"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    part = b"a" * 2**20
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode())
        try:
            for _ in range(100):
                connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
        except OSError:  # the server has closed the connection
            pass
        try:
            line = connection.recv(64).split()
        except OSError:
            return None
        return int(line[1]) if len(line) > 1 else None


MALFORMED = (
    b"", b"{", b"null", b"[]", b"NaN", b"\xff\xfe", b"[" * 1_000_000, b'{"sentences": ["\\ud800"]}',
    b'{"sentences": [1]}', b'{"sentences": {"a": 1}}', b'{"sentences": ["a"], "layers": 1e999}',
    b'{"sentences": [null]}', b'{"a":' * 100_000,
    b'{"sentences": [' + b"1," * 1_000_000 + b"1]}",
)  # fmt: skip


def malformed_json(texts: Sequence[str]) -> Facts:
    """Malformed bodies, a hundred times each."""
    port, facts = free_port(), Facts()
    requests = [Body("/embed", content, 0) for content in MALFORMED]
    with running(elmo_command(port, *ARGUMENTS), port) as server:
        before, begin = memory(server.pid), time.perf_counter()

        async def send() -> dict[str, int]:
            connection, statuses = Connection(port), dict[str, int]()
            for number in range(100 * len(requests)):
                status, _ = await connection.ask(requests[number % len(requests)])
                statuses[status] = statuses.get(status, 0) + 1
            return statuses

        facts["statuses"] = asyncio.run(send())
        facts["seconds"] = round(time.perf_counter() - begin, 2)
        facts["memory_growth_mb"] = round((memory(server.pid) - before) / 1e6, 1)
        check(facts, "memory stays small", facts["memory_growth_mb"] < 150)
        check(facts, "all are 400", set(facts["statuses"]) == {"400"})
        check(facts, "ready afterwards", get(port, "/ready") == 200)
    return facts


def empty_strings(texts: Sequence[str]) -> Facts:
    """A million empty strings in one request, and as many as are allowed."""
    port, facts = free_port(), Facts()
    with running(elmo_command(port, *ARGUMENTS, "--max-body", str(2**24)), port) as server:
        before = memory(server.pid)
        statuses = []
        for path, field in (("/embed", "sentences"), ("/v1/embeddings", "input")):
            for count in (1_000_000, 2048):
                body = Body(path, json.dumps({field: [""] * count}).encode(), count)
                begin = time.perf_counter()
                status, size = asyncio.run(Connection(port).ask(body))
                statuses.append(status)
                facts[f"{path} {count}"] = {
                    "status": status, "seconds": round(time.perf_counter() - begin, 3), "answer_bytes": size
                }  # fmt: skip
        facts["memory_growth_mb"] = round((memory(server.pid) - before) / 1e6, 1)
        statuses = [
            facts[f"{path} {count}"]["status"] for path in ("/embed", "/v1/embeddings") for count in (10**6, 2048)
        ]
        check(facts, "a million are refused, 2048 are answered", statuses == ["400", "200"] * 2)
        check(facts, "ready afterwards", get(port, "/ready") == 200)
    return facts


def sigterm(texts: Sequence[str]) -> Facts:
    """SIGTERM under the load of 32 clients."""
    port, facts = free_port(), Facts()
    requests = bodies("/embed", "sentences", texts, 4, format="npz", layers="top")
    with running(elmo_command(port, *ARGUMENTS), port) as server:

        async def attack() -> Any:
            load = asyncio.create_task(closed_loop(port, requests, 32, 12))
            await asyncio.sleep(4)
            server.send_signal(signal.SIGTERM)
            begin = time.perf_counter()
            while server.poll() is None:
                await asyncio.sleep(0.01)
            facts["seconds_to_drain"] = round(time.perf_counter() - begin, 2)
            return await load

        outcome = asyncio.run(attack())
    facts.update(outcome.facts())
    facts["exit_status"] = server.returncode
    # "closed" and "refused" are requests that came after the signal; an answer that breaks off would be "broken".
    check(facts, "no answer breaks off", outcome.statuses["broken"] == 0)
    check(
        facts,
        "at most one request of each client is sent to a connection that closes",
        outcome.statuses["closed"] <= 32,
    )
    check(facts, "exit status 0", server.returncode == 0)
    return facts


FAULTS: dict[str, Callable[[Sequence[str]], Facts]] = {
    "worker killed": killed_worker, "client gone": client_gone, "slow clients": slow_clients,
    "100 MB body": large_body, "malformed JSON": malformed_json, "a million empty strings": empty_strings,
    "SIGTERM under load": sigterm,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--only", default="", help="only the faults whose name has this part")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    texts = read_sentences(args.text, 320)
    results = {}
    for name, fault in FAULTS.items():
        if args.only in name:
            results[name] = fault(texts)
            print(name, json.dumps(results[name], indent=1), flush=True)
    if args.json:
        command = plain_command("python benchmarks/server/faults.py", sys.argv[1:])
        args.json.write_text(json.dumps({**results, "command": command, "machine": machine()}, indent=1) + "\n")
    failed = [
        f"{name}: {text}" for name, facts in results.items() for text, good in facts["checks"].items() if not good
    ]
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
