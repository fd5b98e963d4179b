"""How long a model of the paper's size takes to load, and how much memory it takes to embed.

    python benchmarks/speed/original_size.py [--json FILE]

Random weights of 2 x 4096/512 cells and 2,048 filters (93.6 M parameters) are written once in AllenNLP's format and in
pyelmo's own; each is then loaded and used in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyelmo.provenance import machine

CHILD = """
import json, resource, sys, time
start = time.perf_counter()
import pyelmo, torch, pyelmo.embed.embedder, h5py, safetensors.torch
imported = time.perf_counter()
model = pyelmo.load(sys.argv[1])
loaded = time.perf_counter()
sentences = json.loads(sys.argv[2])
vectors = model.embed(sentences, batch_size=32)
done = time.perf_counter()
print(json.dumps({
    "import_s": round(imported - start, 2), "load_s": round(loaded - imported, 2),
    "embed_words_per_s": round(sum(map(len, sentences)) / (done - loaded)),
    "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
    "parameters": sum(p.numel() for p in model.bilm.parameters()),
}))
"""


def make_sentences(count: int = 64, mean: float = 22.5) -> list[list[str]]:
    """Sentences of made-up words, with the lengths and repetitions of English text."""
    import numpy as np

    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("etaoinshrdlu"), size=random.integers(1, 12))) for _ in range(3000)]
    ranks = 1.0 / np.arange(1, 3001)
    lengths = np.clip(random.gamma(4.0, mean / 4.0, count).astype(int), 3, 60)
    return [[words[i] for i in random.choice(3000, size=n, p=ranks / ranks.sum())] for n in lengths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    import torch

    from pyelmo import BiLM, Embedder, ModelConfig
    from pyelmo.formats.pretrained import Pretrained
    from pyelmo.text.characters import Bytes
    from pyelmo.text.lexicon import Lexicon

    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        embedder = Embedder(Pretrained(BiLM(ModelConfig()), Lexicon(Bytes()), "random", "random"))
        for kind in ("allennlp", "pyelmo"):
            embedder.save(Path(folder) / kind, format=kind)
        del embedder
        for kind in ("allennlp", "pyelmo"):
            time.sleep(1)
            command = [sys.executable, "-c", CHILD, str(Path(folder) / kind), json.dumps(make_sentences())]
            rows[kind] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(kind, rows[kind])
    result = {"machine": machine(), "rows": rows}
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
