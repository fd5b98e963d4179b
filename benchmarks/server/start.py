"""From the start of `elmo serve en` to its first answer: wall clock and CPU time.

    python benchmarks/server/start.py [--rounds 5] [--json FILE]

Each round starts a server and asks for the vectors of one sentence until it answers. On a machine with other work only
the CPU time means something.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from traffic import Connection, bodies, cpu_seconds, elmo_command, free_port, memory

from pyelmo.provenance import machine, plain_command

BAR = 1.0  # seconds


def start(*arguments: str) -> dict[str, float]:
    """Start a server, and return the seconds until its first answer and its memory then."""
    port = free_port()
    (request,) = bodies("/embed", "sentences", ["A bank account."], 1, layers="top")
    begin = time.perf_counter()
    process = subprocess.Popen(elmo_command(port, *arguments), stderr=subprocess.DEVNULL)

    async def ask() -> None:
        while (await Connection(port).ask(request))[0] != "200":
            await asyncio.sleep(0.005)

    try:
        asyncio.run(asyncio.wait_for(ask(), 60))
        wall, cpu = time.perf_counter() - begin, cpu_seconds(process.pid)
        return {"wall": round(wall, 3), "cpu": cpu, "memory_mb": round(memory(process.pid) / 1e6, 1)}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    result = {}
    for precision in ("float32", "int8"):
        rounds = [start("en", "--precision", precision) for _ in range(args.rounds)]
        medians = {name: round(statistics.median(each[name] for each in rounds), 3) for name in rounds[0]}
        result[precision] = {"median": medians, "rounds": rounds}
        print(f"{precision}: {medians['wall']:.2f} s, {medians['cpu']:.2f} s of CPU time, {medians['memory_mb']} MB")
    if args.json:
        command = plain_command("python benchmarks/server/start.py", sys.argv[1:])
        facts = {**result, "bar": BAR, "load_average": os.getloadavg()[0], "command": command, "machine": machine()}
        args.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
