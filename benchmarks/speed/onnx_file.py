"""Speed of a model in onnxruntime beside pyelmo's own engine on a CPU, in one run, and how far their vectors differ.

    python benchmarks/speed/onnx_file.py [--model en] [--json benchmarks/results/onnx.json]

All contenders have one thread and take turns; a figure is the median of the rounds, in tokens a CPU second. The text is
that of `elmo bench`. Every word is encoded anew: onnxruntime has no cache of words, so pyelmo's is cleared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import pyelmo
from pyelmo.embed.bench import standard_sentences
from pyelmo.integrations import onnx
from pyelmo.provenance import machine, plain_command

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from onnx_runtime import OnnxElmo


def contenders(model: str, file: Path) -> dict[str, Callable[[list[list[str]]], list[Any]]]:
    """Return a function from sentences to all layers for each contender."""
    exact, fast = (pyelmo.load(model, precision=precision, threads=1) for precision in ("float32", "int8"))
    onnx.write(exact.pretrained, file)

    def cold(embedder: pyelmo.Embedder, sentences: list[list[str]]) -> list[Any]:
        embedder.word_table().clear()
        return embedder.embed(sentences)

    return {
        "pyelmo float32": lambda sentences: cold(exact, sentences),
        "pyelmo int8": lambda sentences: cold(fast, sentences),
        "onnxruntime": OnnxElmo(str(file), threads=1).embed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en", help="model (default: en)")
    parser.add_argument("--sentences", type=int, default=256, help="sentences (default: 256)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--json", type=Path, help="file for the result")
    args = parser.parse_args()
    sentences = standard_sentences(args.sentences)
    tokens = sum(map(len, sentences))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        runs = contenders(args.model, file)
        size = file.stat().st_size
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, run in runs.items():
                start = time.process_time()
                run(sentences)
                seconds[name].append(time.process_time() - start)
        wanted, got = runs["pyelmo float32"](sentences), runs["onnxruntime"](sentences)
        difference = max(float(np.abs(one - other).max()) for one, other in zip(wanted, got, strict=True))
    speeds = {name: round(tokens / statistics.median(values), 1) for name, values in seconds.items()}
    ratios = {name: round(speed / speeds["onnxruntime"], 2) for name, speed in speeds.items()}
    for name, speed in speeds.items():
        print(f"{name:16} {speed:8,.0f} tokens/CPU s   {ratios[name]:5.2f} x onnxruntime")
    print(f"largest difference {difference:.1e}, file {size / 2**20:.0f} MiB")
    if args.json:
        report = {
            "machine": machine(), "command": plain_command("python benchmarks/speed/onnx_file.py", sys.argv[1:]),
            "onnxruntime": onnxruntime.__version__, "sentences": len(sentences), "tokens": tokens, "file_bytes": size,
            "tokens_per_cpu_second": speeds, "times_onnxruntime": ratios, "cpu_seconds": seconds,
            "largest_difference": difference,
        }  # fmt: skip
        args.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
