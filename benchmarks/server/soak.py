"""Ten minutes at twice the capacity: every request is answered with 200 or 429, none is lost, memory does not grow.

    python benchmarks/server/soak.py --text FILE [--minutes 10] [--json FILE]

The server runs on core 0 with one thread, the clients on core 1. Requests of five kinds are mixed. The capacity is what
32 clients get answered; then requests come at random times, twice as many a second. Memory is that of the server
process each second; its growth is from the median of the second minute to that of the last one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from traffic import CLIENT_CORE, Body, bodies, closed_loop, elmo_command, free_port, get, memory, open_loop, running
from traffic import sentences_of as read_sentences

from pyelmo.provenance import machine, plain_command

CLIENTS = 32
GROWTH_BAR = 0.05


def mixed(texts: Sequence[str]) -> list[Body]:
    """Return requests of five kinds in turn."""
    kinds = [
        bodies("/embed", "sentences", texts, 8, format="npz", layers="top"),
        bodies("/v1/embeddings", "input", texts, 8, encoding_format="base64"),
        bodies("/embed", "sentences", texts, 2, format="json"),
        bodies("/score", "sentences", texts, 2),
        bodies("/embed", "sentences", texts, 4, format="npz"),
    ]
    return [kind[number % len(kind)] for number in range(200) for kind in kinds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--capacity-seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    requests = mixed(read_sentences(args.text, 320))
    port = free_port()
    with running(elmo_command(port, "en", "--precision", "int8", "--threads", "1"), port) as server:
        asyncio.run(closed_loop(port, requests, CLIENTS, args.capacity_seconds / 2))
        capacity = asyncio.run(closed_loop(port, requests, CLIENTS, args.capacity_seconds))
        rate = 2 * capacity.statuses["200"] / capacity.seconds
        print(f"capacity {rate / 2:.1f} requests/s; now {rate:.1f} for {args.minutes:g} minutes", flush=True)
        samples: list[int] = []
        outcome = asyncio.run(
            open_loop(port, requests, rate, 60 * args.minutes, CLIENTS, lambda _: samples.append(memory(server.pid)))
        )
        alive = get(port, "/ready")
    lost = sum(count for status, count in outcome.statuses.items() if status not in ("200", "429"))
    minute = max(1, min(60, len(samples) // 4))
    begin, end = statistics.median(samples[minute : 2 * minute]), statistics.median(samples[-minute:])
    result = {
        "capacity_requests_per_second": round(rate / 2, 2), "sent_per_second": round(rate, 2), **outcome.facts(),
        "neither_200_nor_429": lost, "ready_at_the_end": alive == 200, "exit_status": server.returncode,
        "memory_mb": {"second_minute": round(begin / 1e6, 1), "last_minute": round(end / 1e6, 1)},
        "memory_growth": round(end / begin - 1, 4), "memory_growth_bar": GROWTH_BAR,
        "command": plain_command("python benchmarks/server/soak.py", sys.argv[1:]), "machine": machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    if lost or alive != 200 or end / begin - 1 > GROWTH_BAR:
        raise SystemExit("soak: a bar was missed")


if __name__ == "__main__":
    main()
