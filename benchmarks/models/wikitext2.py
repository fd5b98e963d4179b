"""A plain LSTM's perplexity on WikiText-2, from scratch (the literature: 99.3 on the test part).

    elmo prepare wt2.train.tokens --valid wt2.valid.tokens -o wt2 --tokenised --vocab-size 40000
    python benchmarks/models/wikitext2.py wt2 wt2.test.tokens -o run [--set training.dropout=0.6] [--json FILE]

Trains by the recipe wikitext-2 and evaluates the test text forwards as one stream with the full softmax, over its words
and one end mark for each line that is not blank.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from pyelmo.formats import native
from pyelmo.provenance import machine
from pyelmo.training import processes
from pyelmo.training.evaluate import perplexity
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import read_recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    start = time.perf_counter()
    here = processes.join()
    recipe = read_recipe("wikitext-2", args.set)
    result = pretrain(args.corpus, args.output, recipe, processes=here, say=lambda line: print(line, file=sys.stderr))
    spent = time.perf_counter() - start
    model = native.read(args.output / "model")
    model.bilm.to(here.device)
    sentences = [line.split() for line in args.test.read_text("utf-8").split("\n") if line.strip()]
    found = perplexity(model, [sentences])
    row = {
        "test_perplexity": round(found.forward, 2), "words": found.words, "unknown": found.unknown,
        "valid_by_sentence": round(result.valid.forward, 2) if result.valid else None, "minutes": round(spent / 60, 2),
        "steps": result.step, "parameters": sum(p.numel() for p in model.bilm.parameters()), "set": args.set,
        "machine": machine(),
    }  # fmt: skip
    print(json.dumps(row))
    if args.json:
        args.json.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
