"""Memory while a long text is embedded with `stream`: it must not grow.

    python benchmarks/speed/stream_memory.py --text FILE [--megabytes 200] [--size small] [--precision int8] \\
        [--json FILE]

FILE is plain text, a paragraph a line; a shorter one is read again from its start, with other words (a mark before
each), so that the word cache fills up as it does with a text that is really that long. Random weights.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyelmo.provenance import machine

PARTS = 20


def sentences(path: Path, size: int, parts: list[dict[str, Any]]) -> Iterator[list[str]]:
    """About `size` bytes of text in sentences of words; notes the memory at the end of each part."""
    from pyelmo.text.tokens import split_sentences, split_words

    read, words, start = 0, 0, time.perf_counter()
    for turn in itertools.count():
        with open(path, encoding="utf-8") as file:
            for line in file:
                for sentence in split_sentences(line):
                    tokens = split_words(sentence)
                    words += len(tokens)
                    yield [f"{turn}{word}" for word in tokens] if turn else tokens
                read += len(line.encode())
                if read >= size * (len(parts) + 1) / PARTS:
                    seconds = time.perf_counter() - start
                    parts.append({"megabytes": read / 1e6, "words": words, "seconds": seconds, **memory()})
                    print(parts[-1], file=sys.stderr)
                if read >= size:
                    return


def memory() -> dict[str, float]:
    """GB now, and at most so far."""
    status = Path("/proc/self/status").read_text()
    names = {"memory_gb": "VmRSS", "peak_gb": "VmHWM"}
    return {ours: int(re.search(rf"{theirs}:\s*(\d+)", status)[1]) * 1024 / 1e9 for ours, theirs in names.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="plain text, a paragraph a line")
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--size", choices=("small", "original"), default="small")
    parser.add_argument("--precision", choices=("float32", "int8"), default="int8")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    import pyelmo
    from pyelmo.embed.bench import random_model

    with tempfile.TemporaryDirectory() as folder:
        random_model(args.size).save(Path(folder) / "model", precision=args.precision)
        model = pyelmo.load(Path(folder) / "model", precision=args.precision)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again: making the weights is no part of it
    parts: list[dict[str, Any]] = []
    count = sum(1 for _ in model.stream(sentences(args.text, int(args.megabytes * 1e6), parts)))
    growth = parts[-1]["peak_gb"] - parts[PARTS // 10]["peak_gb"]
    print(f"{count:,} sentences, {parts[-1]['words']:,} words: peak {parts[-1]['peak_gb']:.3f} GB,", end=" ")
    print(f"{growth * 1000:.0f} MB more than after the first tenth")
    if args.json:
        facts = {"size": args.size, "precision": args.precision, "sentences": count}
        args.json.write_text(json.dumps({"machine": machine(), **facts, "parts": parts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
