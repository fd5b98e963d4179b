"""How fast does a GPU turn tokenised sentences into vectors on the host, and how far is that from its arithmetic?

    python benchmarks/embed_gpu.py tokens.txt.gz --json results.json     # a sentence a line, words apart by a blank

From lists of words to float16 arrays (L, T, D), one a sentence, in input order, which stay valid for as long as they
are kept; the table of word vectors is empty at the start. Kernels were compiled before, on other words. Only real words
count, the sentence marks do not. A row's arithmetic is that of its LSTMs; the limits are what the library's products
reach at 8192^3 and at one step of 2,048 rows. Weights are random: the time does not depend on them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from kernels_gpu import seconds
from report import machine

from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.embed.engine import Pending, WordTable
from pyelmo.embed.engine_torch import PRECISIONS, TorchEngine
from pyelmo.model.bilm import BiLM
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

SIZES = {
    "original": ModelConfig(),
    "small": ModelConfig(chars=CharConfig(highways=1), lstm=LstmConfig(cells=1024, projection=128)),
}
WINDOW = 16384  # sentences that are sorted by length together
TABLE = 1 << 19  # words whose vectors are kept
LEXICON = Lexicon(Bytes())


@dataclass
class Clock:
    """Seconds of the host's one Python thread, by what it did."""

    spent: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.spent[name] = self.spent.get(name, 0.0) + now - self.last
        self.last = now


def embed(
    engine: TorchEngine, sentences: list[list[str]], clock: Clock, *, window: int = WINDOW, dtype: str = "float16"
) -> Iterator[list[np.ndarray]]:
    """What the embedder does, window by window: look up, sort by length, submit, cut the results up by sentence."""
    table = WordTable(engine, LEXICON, TABLE)
    under_way: deque[tuple[list[np.ndarray], np.ndarray, np.ndarray, Pending]] = deque()
    windows: deque[list[np.ndarray]] = deque()

    def finish() -> None:
        results, places, lengths, pending = under_way.popleft()
        values = pending.result()
        clock.lap("wait for the GPU and the copy")
        ends = np.cumsum(lengths).tolist()
        for place, begin, end in zip(places.tolist(), [0, *ends], ends, strict=False):
            results[place] = values[:, begin + 1 : end - 1]
        clock.lap("cut")

    for start in range(0, len(sentences), window):
        group = sentences[start : start + window]
        # In the order of the text: sorted by length, a sentence's words lie far from the last one's in memory.
        rows = table.rows(group)
        lengths = np.fromiter(map(len, group), dtype=np.int64, count=len(group)) + 2
        begins = lengths.cumsum() - lengths
        windows.append([np.empty(0)] * len(group))
        clock.lap("look up and encode words")
        for places in batches(lengths, engine):
            own = lengths[places]
            tokens = np.arange(own.sum()) + np.repeat(begins[places] + own - own.cumsum(), own)
            pending = engine.submit(table.values, rows[tokens], own, lambda layers: layers, dtype)
            under_way.append((windows[-1], places, own, pending))
            clock.lap("submit")
            if len(under_way) > engine.depth:
                finish()
        while windows and not any(waiting[0] is windows[0] for waiting in under_way):
            yield windows.popleft()
            clock.lap("the caller")
    while under_way:
        finish()
    yield from windows


def batches(lengths: npt.NDArray[np.int64], engine: TorchEngine) -> Iterator[npt.NDArray[np.int64]]:
    """Places grouped by falling length, within the engine's bounds."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        count = min(engine.batch_rows, max(1, engine.batch_tokens // int(lengths[order[start]])))
        yield order[start : start + count]
        start += count


def measure(
    engine: TorchEngine, sentences: list[list[str]], *, keep: bool = False, window: int = WINDOW
) -> dict[str, Any]:
    """One run over everything; `keep` holds on to all arrays instead of letting go of each window's."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    clock, kept, words = Clock(), [], 0
    start = time.perf_counter()
    for results in embed(engine, sentences, clock, window=window):
        words += sum(array.shape[1] for array in results)
        if keep:
            kept.append(results)
    spent = time.perf_counter() - start
    assert words == sum(map(len, sentences))
    return {
        "precision": engine.precision, "batch_rows": engine.batch_rows, "batch_tokens": engine.batch_tokens,
        "window": window, "depth": engine.depth, "kept": keep, "seconds": round(spent, 3),
        "words_per_s": round(words / spent), "peak_gpu_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        "host_thread": {name: round(value / spent, 3) for name, value in clock.spent.items()},
    }  # fmt: skip


COPIES = "copies from and to the host"
GROUPS = {
    COPIES: ("Memcpy HtoD", "Memcpy DtoH"),
    "LSTM cell kernels": ("_cell_", "_output_"),
    "convolutions": ("_spell", "_forward_kernel"),
    "matrix products": ("gemm", "nvjet", "cutlass", "cublas"),
}


def gpu_shares(engine: TorchEngine, sentences: list[list[str]]) -> tuple[dict[str, float], float]:
    """Parts of the kernels' time by kind (copies run beside them), and the seconds of kernels for one word."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in embed(engine, sentences, Clock()):
            pass
        torch.cuda.synchronize()
    sums: dict[str, float] = {}
    for event in profiler.key_averages():
        group = next((g for g, parts in GROUPS.items() if any(part in event.key for part in parts)), "the rest")
        sums[group] = sums.get(group, 0.0) + event.self_device_time_total / 1e6
    busy = sum(sums.values()) - sums.get(COPIES, 0.0)
    shares = {name: round(value / busy, 3) for name, value in sorted(sums.items(), key=lambda item: -item[1])}
    return shares, busy / sum(map(len, sentences))


def product_rate(dtype: torch.dtype, *shape: int) -> float:  # N, rows, inner, columns
    count, rows, inner, columns = shape
    left = torch.randn(count, rows, inner, device="cuda").to(dtype)
    right = torch.randn(count, columns, inner, device="cuda").to(dtype).transpose(1, 2)
    return 2 * count * rows * inner * columns / seconds(lambda: torch.bmm(left, right))[0]


def arithmetic(config: ModelConfig) -> int:
    """Floating-point operations of the LSTMs for one word."""
    lstm = config.lstm
    return config.directions * lstm.layers * 2 * (2 * lstm.dim * 4 * lstm.cells + lstm.cells * lstm.dim)


def open_engine(name: str, precision: str) -> TorchEngine:
    """With its kernels compiled, for full batches and for odd ones."""
    torch.manual_seed(0)
    engine = TorchEngine(BiLM(SIZES[name]), "cuda", precision)
    made_up = [[f"w{number}x{place}" for place in range(5 + number % 40)] for number in range(1, 6000)]
    for sentences in (made_up, made_up[:19], made_up[:1]):
        for _ in embed(engine, sentences, Clock()):
            pass
    return engine


def rows(name: str, precision: str, sentences: list[list[str]]) -> Iterator[dict[str, Any]]:
    config, dtype, engine = SIZES[name], PRECISIONS[precision], open_engine(name, precision)
    square = product_rate(dtype, 1, 8192, 8192, 8192)
    step = product_rate(dtype, 2, 2048, 2 * config.lstm.dim, 4 * config.lstm.cells)
    fast = precision == "bfloat16"
    some = sentences if fast else sentences[: len(sentences) // 8]
    for keep in (False, True) if fast and name == "original" else (False,):
        row = {"model": name, "sentences": len(some), **measure(engine, some, keep=keep)}
        used = row["words_per_s"] * arithmetic(config)
        row |= {
            "mflop_a_word": round(arithmetic(config) / 1e6, 1), "tflops": round(used / 1e12, 1),
            "tflops_8192_cubed": round(square / 1e12), "of_8192_cubed": round(used / square, 3),
            "tflops_of_a_step": round(step / 1e12), "of_a_step": round(used / step, 3),
        }  # fmt: skip
        if fast and not keep:
            row["kernels"], busy = gpu_shares(engine, sentences[:WINDOW])
            row["kernels_busy"] = round(busy * row["words_per_s"], 3)
        yield row


def read(path: Path, most: int) -> list[list[str]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [line.split() for line, _ in zip(file, range(most), strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sentences", type=int, default=200_000)
    args = parser.parse_args()
    sentences = read(args.tokens, args.sentences)
    words, distinct = sum(map(len, sentences)), len({word for words in sentences for word in words})
    print(f"{len(sentences):,} sentences, {words:,} words, {distinct:,} of them distinct")
    result = {
        "machine": machine(), "text": {"sentences": len(sentences), "words": words, "distinct": distinct}, "rows": [],
    }  # fmt: skip
    for precision in reversed(PRECISIONS):
        for name in SIZES:
            for row in rows(name, precision, sentences):
                print(json.dumps(row), flush=True)
                result["rows"].append(row)
                if args.json:
                    args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
