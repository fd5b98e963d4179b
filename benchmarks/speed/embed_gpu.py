"""How fast does a GPU turn tokenised sentences into vectors on the host, and how far is that from its arithmetic?

    python benchmarks/speed/embed_gpu.py tokens.txt.gz --json results.json    # a sentence a line, tokenised

From lists of words to float16 arrays (L, T, D), one a sentence, in input order, which stay valid for as long as they
are kept; the table of word vectors is empty at the start. Kernels were compiled before, on other words. A row in
bfloat16 is the median of three passes in one process, all of which it lists: in the first one, the system still gives
the process its memory. Only real words count, the sentence marks do not. A row's arithmetic is that of its LSTMs; the
limits are what the library's products reach at 8192^3 and at one step of 2,048 rows. Weights are random: the time does
not depend on them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from kernels_gpu import seconds

from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.engines.torch import PRECISIONS
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.provenance import machine
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon

SIZES = {
    "original": ModelConfig(),
    "small": ModelConfig(chars=CharConfig(highways=1), lstm=LstmConfig(cells=1024, projection=128)),
}


def measure(embedder: Embedder, sentences: list[list[str]], *, keep: bool = False) -> dict[str, Any]:
    """One run over everything; `keep` holds on to all arrays instead of letting go of each."""
    embedder.word_table().clear()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start, words, kept = time.perf_counter(), 0, []
    for array in embedder.stream(sentences, dtype="float16"):
        words += array.shape[1]
        if keep:
            kept.append(array)
    spent = time.perf_counter() - start
    assert words == sum(map(len, sentences))
    return {
        "precision": embedder.precision, "kept": keep, "seconds": round(spent, 3), "words_per_s": round(words / spent),
        "peak_gpu_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
    }  # fmt: skip


COPIES = "copies from and to the host"
GROUPS = {
    COPIES: ("Memcpy HtoD", "Memcpy DtoH"),
    "LSTM cell kernels": ("_cell_", "_output_"),
    "convolutions": ("_spell", "_forward_kernel"),
    "matrix products": ("gemm", "nvjet", "cutlass", "cublas"),
}


def gpu_shares(embedder: Embedder, sentences: list[list[str]]) -> tuple[dict[str, float], float]:
    """Parts of the kernels' time by kind (copies run beside them), and the seconds of kernels for one word."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in embedder.stream(sentences, dtype="float16"):
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


def open_embedder(name: str, precision: str) -> Embedder:
    """With its kernels compiled, for full batches and for odd ones."""
    torch.manual_seed(0)
    pretrained = Pretrained(BiLM(SIZES[name]), Lexicon(Bytes()), "random", name)
    embedder = Embedder(pretrained, device="cuda", precision=precision)
    made_up = [[f"w{number}x{place}" for place in range(5 + number % 40)] for number in range(1, 6000)]
    for sentences in (made_up, made_up[:19], made_up[:1]):
        for _ in embedder.stream(sentences, dtype="float16"):
            pass
    return embedder


def rows(name: str, precision: str, sentences: list[list[str]]) -> Iterator[dict[str, Any]]:
    config, dtype, embedder = SIZES[name], PRECISIONS[precision], open_embedder(name, precision)
    square = product_rate(dtype, 1, 8192, 8192, 8192)
    step = product_rate(dtype, 2, 2048, 2 * config.lstm.dim, 4 * config.lstm.cells)
    fast = precision == "bfloat16"
    some = sentences if fast else sentences[: len(sentences) // 8]
    for keep in (False, True) if fast and name == "original" else (False,):
        passes = [measure(embedder, some, keep=keep) for _ in range(3 if fast and not keep else 1)]
        speeds = [each["words_per_s"] for each in passes]
        median = sorted(passes, key=lambda each: each["words_per_s"])[len(passes) // 2]
        row = {"model": name, "sentences": len(some), **median, "words_per_s_of_passes": speeds}
        used = row["words_per_s"] * arithmetic(config)
        row |= {
            "mflop_a_word": round(arithmetic(config) / 1e6, 1), "tflops": round(used / 1e12, 1),
            "tflops_8192_cubed": round(square / 1e12), "of_8192_cubed": round(used / square, 3),
            "tflops_of_a_step": round(step / 1e12), "of_a_step": round(used / step, 3),
        }  # fmt: skip
        if fast and not keep:
            row["kernels"], busy = gpu_shares(embedder, sentences[: len(sentences) // 8])
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
