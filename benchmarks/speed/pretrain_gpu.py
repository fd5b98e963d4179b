"""How fast does pre-training run end to end, where does its time go, and does the fast path train the same model?

    elmo prepare en-wikinews.train.txt -o corpus --language en
    python benchmarks/speed/pretrain_gpu.py corpus --json results.json

Rows by graphs take the steps as `elmo pretrain` does on one GPU; rows by launches run the same kernels one by one.
Every row is the real step of `elmo pretrain` (data loading in its thread, character CNN over distinct words, biLSTM,
sampled softmax of 8,192 over 793,471 words, clipping, optimiser). Words a second count each of the batch's B x T tokens
once, both directions trained. The plain rows are the reference loops that judge the fast path. The last table trains
the same seeded model twice, fast in bf16 and plain in float32, and compares the losses.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from kernels_gpu import matmul_rate

from pyelmo.config import CharConfig, LstmConfig, ModelConfig
from pyelmo.corpus.corpus import Corpus
from pyelmo.formats.pretrained import Pretrained
from pyelmo.kernels import choice
from pyelmo.model.bilm import BiLM
from pyelmo.provenance import machine
from pyelmo.training.feed import Feed, open_stream, type_tables
from pyelmo.training.graphs import Stepper, stepper
from pyelmo.training.loop import new_model
from pyelmo.training.processes import Processes
from pyelmo.training.recipe import TrainingConfig, read_recipe
from pyelmo.training.trainer import Trainer

VOCABULARY = 793_471
SIZES = {
    "original": ModelConfig(),
    "medium": ModelConfig(chars=CharConfig(highways=1), lstm=LstmConfig(cells=2048, projection=256)),
    "small": ModelConfig(chars=CharConfig(highways=1), lstm=LstmConfig(cells=1024, projection=128)),
}
BUNDLED = read_recipe("en")
HERE = Processes(device=torch.device("cuda:0"))


def open_trainer(
    corpus: Corpus, config: ModelConfig, training: TrainingConfig, words: int = VOCABULARY, *, graphs: bool = True
) -> tuple[Stepper, Feed]:
    model = new_model(config, corpus, training.seed)
    bilm = BiLM(replace(model.bilm.config, softmax=max(words, corpus.vocab_size))).to(HERE.device)
    model = Pretrained(bilm, model.lexicon, "random", "random")
    trainer = Trainer(bilm, type_tables(corpus, bilm, model.lexicon, HERE), training, HERE)
    steps = stepper(trainer) if graphs else Stepper(None, trainer.step)
    return steps, Feed(open_stream(corpus, training, HERE), 2, HERE.device, steps.prepare)


def speed(
    corpus: Corpus, name: str, batch: int, precision: str, *, path: str, steps: int, profile: bool = False
) -> dict[str, Any]:
    """One row: `path` is plain (the reference loops), launches (fast kernels one by one) or graphs."""
    if name == "bundled":
        model, training, words = BUNDLED.model, replace(BUNDLED.training, words=10**12), corpus.vocab_size
    else:
        model, words = SIZES[name], VOCABULARY
        training = TrainingConfig(batch=batch, precision=precision, optimiser="adagrad", words=10**12, sum_steps=True)
    taken, feed = open_trainer(corpus, model, training, words, graphs=path == "graphs")
    torch.cuda.reset_peak_memory_stats()
    shares: dict[str, float] = {}
    try:
        with choice.plain_only() if path == "plain" else torch.enable_grad():
            batches = iter(feed)
            for _ in range(2 if path == "plain" else 30):
                taken.step(next(batches)[0], 0.2 if name != "bundled" else 0.001)
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(steps):
                means = taken.step(next(batches)[0], 0.2 if name != "bundled" else 0.001)
            torch.cuda.synchronize()
            spent = (time.perf_counter() - start) / steps
            if profile:
                shares = where_time_goes(taken, batches)
    finally:
        feed.close()
    row = {
        "model": name, "batch": training.batch, "path": path, "precision": precision,
        "ms_per_step": round(1000 * spent, 2), "words_per_s": round(training.batch * training.steps / spent),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 1), "loss": round(float(means.mean()), 3),
    }  # fmt: skip
    print(row, shares or "", flush=True)
    del taken, feed, batches
    gc.collect()
    torch.cuda.empty_cache()
    return {**row, "shares": shares}


GROUPS = {
    "matrix products": ("gemm", "nvjet", "cutlass", "cublas"),
    "LSTM cell kernels": ("_cell_", "_output_"),
    "character kernels": ("_spell", "_forward_kernel", "_weight_kernel", "_window_kernel", "_fold", "_table_kernel"),
    "softmax kernels": ("_row_kernel", "topk", "sort", "radix", "Sort", "exponential", "unique"),
    "optimiser": ("multi_tensor",),
    "copies and casts": ("memcpy", "Memcpy", "copy", "Memset"),
}


def where_time_goes(taken: Stepper, batches: Any) -> dict[str, float]:
    """Shares of the GPU's time by kind of kernel, over three steps."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(3):
            taken.step(next(batches)[0], 0.001)
        torch.cuda.synchronize()
    sums: dict[str, float] = {}
    for event in profiler.key_averages():
        group = next((g for g, parts in GROUPS.items() if any(part in event.key for part in parts)), "the rest")
        sums[group] = sums.get(group, 0.0) + event.self_device_time_total
    total = sum(sums.values()) or 1.0
    return {group: round(value / total, 3) for group, value in sorted(sums.items(), key=lambda item: -item[1])}


def loss_curve(corpus: Corpus, *, path: str, precision: str = "bf16", steps: int = 200) -> list[float]:
    training = TrainingConfig(
        batch=256, precision=precision, optimiser="adamw", lr=0.001, clip_norm=1.0, dropout=0.0,
        words=10**12,
    )  # fmt: skip
    taken, feed = open_trainer(corpus, SIZES["small"], training, graphs=path == "graphs")
    losses = []
    try:
        with choice.plain_only() if path == "plain" else torch.enable_grad():
            for (batch, _), _ in zip(feed, range(steps), strict=False):
                losses.append(taken.step(batch, training.lr).mean())
    finally:
        feed.close()
    return torch.stack(losses).tolist()


def arithmetic(config: ModelConfig, distinct: float) -> float:
    """Floating-point operations a word, forward and backward: LSTMs, 8,192 samples, and the encoder's share."""
    lstm, chars = config.lstm, config.chars
    assert chars is not None
    cell = 2 * (2 * lstm.dim * 4 * lstm.cells + lstm.cells * lstm.dim)
    filters = sum(2 * width * chars.dim * count * (chars.max_length - width + 1) for width, count in chars.filters)
    encoder = filters + chars.highways * 4 * chars.features**2 + 2 * chars.features * lstm.dim
    return 3 * (2 * lstm.layers * cell + 2 * 2 * 8192 * lstm.dim + distinct * encoder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    corpus = Corpus.open(args.corpus)
    rate = matmul_rate()
    print(f"matrix products at {rate / 1e12:.0f} TFLOP/s (8192^3, bf16)")
    rows = [speed(corpus, "original", 2048, "bf16", path="graphs", steps=args.steps, profile=True)]
    rows.append(speed(corpus, "original", 1024, "bf16", path="graphs", steps=args.steps))
    rows.append(speed(corpus, "original", 2048, "float32", path="plain", steps=4))
    rows.append(speed(corpus, "original", 2048, "bf16", path="plain", steps=6))
    for name in ("medium", "small", "bundled"):
        rows.append(speed(corpus, name, 2048, "bf16", path="launches", steps=args.steps))
        rows.append(speed(corpus, name, 2048, "bf16", path="graphs", steps=5 * args.steps, profile=True))
    fast = rows[0]["words_per_s"]
    ceiling = rate / arithmetic(SIZES["original"], 0.12)
    over_float32, over_bf16 = (fast / row["words_per_s"] for row in rows[2:4])
    print(
        f"original, batch 2048: {over_float32:.1f} x the plain loop in float32, {over_bf16:.1f} x in bf16, "
        f"{fast / ceiling:.2f} of the ceiling by arithmetic ({ceiling:,.0f} words/s)"
    )
    curves = [
        loss_curve(corpus, path="graphs"), loss_curve(corpus, path="launches"),
        loss_curve(corpus, path="plain", precision="float32"),
    ]  # fmt: skip
    gaps = [max(abs(a - b) / b for a, b in zip(curves[0], other, strict=True)) for other in curves[1:]]
    print(f"seeded loss over {len(curves[0])} steps: by graphs in bf16 ends at {curves[0][-1]:.4f}, by launches at "
          f"{curves[1][-1]:.4f} (largest relative difference {gaps[0]:.6f}), plain in float32 at {curves[2][-1]:.4f} "
          f"({gaps[1]:.4f})")  # fmt: skip
    if args.json:
        result = {"machine": machine(), "matmul_tflops": rate / 1e12, "rows": rows, "ceiling_words_per_s": ceiling,
                  "curve_gaps": gaps, "curves": curves}  # fmt: skip
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
