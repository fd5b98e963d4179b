"""Measure how fast a model embeds on this machine: words/s, latency, memory, and the share of the peak FLOP/s.

Each precision is measured in a separate process (`python -m pyelmo.embed.bench`), so that their peak memory does not
mix.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from pyelmo.config import CharConfig, LstmConfig, ModelConfig, weight_shapes
from pyelmo.embed.embedder import Embedder, Precision, load
from pyelmo.embed.engines.build import torch_engine
from pyelmo.errors import InputError, PyelmoError
from pyelmo.formats.pretrained import Pretrained, StoredWeight, Weights
from pyelmo.kernels.cpu import compiled
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

log = logging.getLogger("pyelmo")

SENTENCES = 512
CALLS = 500  # calls with one sentence, for the 99th percentile; fewer if they take too long
PRECISIONS: dict[str, tuple[Precision, ...]] = {"cpu": ("float32", "int8"), "cuda": ("float32", "bfloat16")}
# Batch sizes (None: the default), and whether the word vectors are cleared first.
RUNS: tuple[tuple[int | None, bool], ...] = ((None, True), (None, False), (32, False), (1, False))

SIZES = {
    "small": ModelConfig(chars=CharConfig(highways=1), lstm=LstmConfig(cells=1024, projection=128)),
    "original": ModelConfig(),
}


def lstm_flops(config: ModelConfig) -> int:
    """Return the multiplications and additions of the LSTM's matrix products for one token, in all layers."""
    cells, size = config.lstm.cells, config.lstm.dim
    products = 4 * cells * (size + size) + (cells * size if config.lstm.projection else 0)
    return 2 * products * config.lstm.layers * config.directions


def word_flops(config: ModelConfig) -> int:
    """Return the multiplications and additions for encoding one word: convolutions, highways and projection."""
    products = config.features * config.lstm.dim if config.project else 0
    if config.chars:
        chars = config.chars
        products += sum((chars.max_length - width + 1) * width * chars.dim * count for width, count in chars.filters)
        products += chars.highways * 2 * chars.features**2
    return 2 * products


def random_model(size: str) -> Embedder:
    """Return a model with seeded random weights. Its speed is that of a trained model."""
    generator, source = np.random.default_rng(0), f"random, {size} size"
    weights: dict[str, StoredWeight] = {}
    for name, shape in weight_shapes(SIZES[size]).items():
        inputs = shape[-1] if name.startswith("lstm.") else math.prod(shape[1:])
        spread = 0.0 if name.endswith("bias") else inputs**-0.5
        weights[name] = np.float32(spread) * generator.standard_normal(shape, np.float32)
    return Embedder(Pretrained(Weights(SIZES[size], weights, source), Lexicon(Bytes()), "random", source))


def standard_sentences(count: int = SENTENCES) -> list[list[str]]:
    """Return the built-in text, repeated with some words replaced, so that 3 in 10 words are distinct."""
    text = resources.files("pyelmo.embed").joinpath("bench_text.txt").read_text("utf-8")
    generator = random.Random(0)

    def vary(word: str) -> str:
        if not re.fullmatch("[a-z]{4,}", word) or generator.random() < 0.4:
            return word
        letters = ("bcdfghklmnprstvw", "aeiou")  # in turn
        return "".join(generator.choice(letters[position % 2]) for position in range(len(word)))

    lines = text.splitlines()
    once = [line.split() for line in lines]
    again = ([vary(word) for word in line.split()] for line in itertools.cycle(lines))
    return list(itertools.islice(itertools.chain(once, again), count))


def bench(
    source: str | Path,
    sentences: list[list[str]],
    *,
    device: str = "cpu",
    threads: int | None = None,
    seconds: float = 2.0,
    **files: Any,
) -> dict[str, Any]:
    """Measure every precision of a device, each speed for at least `seconds`. `files` are passed to `load`."""
    words = list(itertools.chain.from_iterable(sentences))
    if not words:
        raise InputError("the text has no words. Pass a text with one sentence per line")
    kind = device.split(":")[0]
    request = {"source": str(source), "sentences": sentences, "device": device, "threads": threads, "seconds": seconds}
    results = {
        precision: _measure_in_process({**request, "precision": precision, "files": files})
        for precision in PRECISIONS.get(kind, ("float32",))
    }
    return {
        "sentences": len(sentences),
        "words": len(words),
        "distinct_words": len(set(words)),
        "device": torch_engine(device).gpu_name(device) if kind == "cuda" else device,
        **next(iter(results.values()))["model"],
        "precisions": {precision: facts["measured"] for precision, facts in results.items()},
    }


def _measure_in_process(request: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "pyelmo.embed.bench"]
    environment = dict(os.environ)
    if request["threads"] is not None:  # for the peak FLOP/s, which numpy's library of matrices measures
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment |= dict.fromkeys(names, str(request["threads"]))
    run = subprocess.run(command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, env=environment)
    if run.returncode:
        raise PyelmoError(f"{request['precision']}: the measuring process exited with status {run.returncode}")
    answer: dict[str, Any] = json.loads(run.stdout)
    if "error" in answer:
        raise InputError(answer["error"])
    return answer


def _measure(
    source: str,
    sentences: list[list[str]],
    precision: Precision,
    device: str,
    threads: int | None,
    seconds: float,
    files: dict[str, Any],
) -> dict[str, Any]:
    start = time.perf_counter()
    model = load(source, device=device, precision=precision, threads=threads, **files)
    loaded = time.perf_counter() - start
    log.info("measuring %s: memory", precision)
    for _ in model.stream(sentences):  # results are dropped; afterwards all caches are warm
        pass
    memory = _peak_memory(model.device)
    limit = _arithmetic_limit(model.device, precision)
    speeds = []
    for batch, new in RUNS:
        log.info("measuring %s: batch %s, %s words", precision, batch or "default", "new" if new else "known")
        speed = _speed(model, sentences, batch, new, seconds)
        speeds.append({**speed, "share_of_limit": speed["gflops"] * 1e9 / limit})
    log.info("measuring %s: one sentence", precision)
    return {
        "model": {
            "threads": model.threads,
            "instructions": _instructions(model.device),
            "mflop_per_token": lstm_flops(model.config) / 1e6,
            "mflop_per_new_word": word_flops(model.config) / 1e6,
        },
        "measured": {
            "load_s": loaded,
            **memory,
            "limit_gflops": limit / 1e9,
            "speeds": speeds,
            "one_sentence_ms": _one_sentence(model, sentences, 5 * seconds),
        },
    }


def _speed(model: Embedder, sentences: list[list[str]], batch: int | None, new: bool, seconds: float) -> dict[str, Any]:
    """Return words per second over whole passes, and their FLOP/s without padding."""
    if batch == 1:  # slow; fewer sentences are enough for a median
        sentences = sentences[::16]
    times: list[float] = []
    while not times or sum(times) < seconds:
        if new:
            model.word_table().clear()
        start = time.perf_counter()
        model.embed(sentences, batch_size=batch)
        times.append(time.perf_counter() - start)
    words = sum(map(len, sentences))
    distinct = len(set(itertools.chain.from_iterable(sentences)))
    flops = (words + 2 * len(sentences)) * lstm_flops(model.config)  # the two boundary tokens count
    flops += (distinct + 2) * word_flops(model.config) if new else 0
    took = statistics.median(times)
    return {
        "batch": batch or "default",
        "words": "new" if new else "known",
        "words_per_s": words / took,
        "gflops": flops / took / 1e9,
    }


def _one_sentence(model: Embedder, sentences: list[list[str]], seconds: float) -> dict[str, float]:
    """Return the milliseconds for one sentence of 20 words whose vectors are cached."""
    sentence = list(itertools.islice(itertools.cycle(itertools.chain.from_iterable(sentences)), 20))
    model.embed([sentence])
    times: list[float] = []
    while len(times) < 20 or (len(times) < CALLS and sum(times) < seconds):
        start = time.perf_counter()
        model.embed([sentence])
        times.append(time.perf_counter() - start)
    ranked = sorted(times)
    return {
        "median": 1000 * statistics.median(times),
        "p99": 1000 * ranked[-(-99 * len(ranked) // 100) - 1],
        "calls": len(times),
    }


def _instructions(device: str) -> str:
    """Return the instruction set of the compiled functions that run here."""
    number = compiled.instruction_set() if device == "cpu" else None
    return ("numpy's" if device == "cpu" else "torch's") if number is None else compiled.INSTRUCTION_SETS[number]


def _arithmetic_limit(device: str, precision: Precision) -> float:
    """Return the FLOP/s of a large matrix product, the most that the products of a model can reach."""
    if device != "cpu":
        return float(torch_engine(device).product_speed(device, precision))
    size = 1024
    left, right = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    best = float("inf")
    for _ in range(10):  # the first warms up
        start = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def _peak_memory(device: str) -> dict[str, float | None]:
    """Return the peak memory in GB, of this process and of its GPU."""
    peaks = {"peak_memory_gb": _peak_bytes()}
    if device != "cpu":
        peaks["peak_gpu_memory_gb"] = torch_engine(device).peak_bytes(device)
    return {name: None if peak is None else peak / 1e9 for name, peak in peaks.items()}


def _peak_bytes() -> int | None:
    status = Path("/proc/self/status")
    if status.is_file():  # getrusage on Linux would include the peak of the parent process
        match = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        return int(match[1]) * 1024 if match else None
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")  # progress goes to stderr
    log.setLevel(logging.INFO)
    try:
        _answer = _measure(**json.load(sys.stdin))
    except PyelmoError as error:
        _answer = {"error": str(error)}
    print(json.dumps(_answer))
