"""Embed with the installed package, and print checksums of the vectors: `python tests/install/embed.py`.

It fails if the C functions are missing (with --plain: if they are there), or if torch can be imported (unless --torch).
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import sys

import numpy as np

import pyelmo
from pyelmo.kernels.cpu import compiled

SENTENCES = {
    "en": [["A", "bank", "account", "."], ["The", "bank", "of", "the", "river", "in", "Zyzzyvaville", "."]],
    "ko": [["배", "를", "타", "고", "바다", "로", "나가", "ㄴ다", "."], ["배", "가", "아프", "다"]],
}


def checksum(model: str, precision: str) -> str:
    vectors = pyelmo.load(model, precision=precision).embed(SENTENCES[model])
    shapes = [array.shape for array in vectors]
    if [shape[1] for shape in shapes] != [len(words) for words in SENTENCES[model]]:
        sys.exit(f"{model}: one vector per word expected, found arrays of shapes {shapes}")
    if not all(np.isfinite(array).all() for array in vectors):
        sys.exit(f"{model}: vectors that are not finite")
    return hashlib.sha256(b"".join(array.tobytes() for array in vectors)).hexdigest()


def main() -> None:
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("pyelmo").addHandler(handler)
    if "--torch" not in sys.argv and importlib.util.find_spec("torch") is not None:
        sys.exit("torch is installed, but nothing asked for it")
    for model in SENTENCES:
        for precision in ("float32", "int8"):
            print(model, precision, checksum(model, precision))
    plain = [text for text in warnings if "without a C compiler" in text]
    if len(plain) != int("--plain" in sys.argv) or (compiled.library() is None) != ("--plain" in sys.argv):
        sys.exit(f"library: {compiled.library()}, warnings: {warnings}")


if __name__ == "__main__":
    main()
