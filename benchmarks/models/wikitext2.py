"""Train a plain LSTM on WikiText-2 and measure its perplexity (in the literature: 99.3 on the test set).

    elmo prepare wt2.train.tokens --valid wt2.valid.tokens -o wt2 --tokenised --vocab-size 40000
    python benchmarks/models/wikitext2.py wt2 wt2.test.tokens -o run [--set training.dropout=0.6] [--json FILE]

The script trains with the recipe wikitext-2. It evaluates the forward direction on the test set as one stream with the
full softmax, over its words and one end-of-sentence token for each line that is not blank.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from pyelmo.embed.engines.torch_perplexity import perplexity
from pyelmo.formats import native
from pyelmo.provenance import machine
from pyelmo.training import processes
from pyelmo.training.loop import pretrain
from pyelmo.training.recipe import read_recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the corpus that elmo prepare wrote")
    parser.add_argument("test", type=Path, help="the tokens of the test set")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the training run")
    parser.add_argument("--set", action="append", default=[], help="change a setting of the recipe: name=value")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the results")
    args = parser.parse_args()
    start = time.perf_counter()
    here = processes.join()
    recipe = read_recipe("wikitext-2", args.set)
    result = pretrain(args.corpus, args.output, recipe, processes=here, say=lambda line: print(line, file=sys.stderr))
    spent = time.perf_counter() - start
    model = native.read(args.output / "model")
    model.bilm.to(here.device)
    sentences = [line.split() for line in args.test.read_text("utf-8").split("\n") if line.strip()]
    score = perplexity(model, [sentences])
    row = {
        "test_perplexity": round(score.forward, 2), "words": score.words, "unknown": score.unknown,
        "valid_by_sentence": round(result.valid.forward, 2) if result.valid else None, "minutes": round(spent / 60, 2),
        "steps": result.step, "parameters": sum(p.numel() for p in model.bilm.parameters()), "set": args.set,
        "machine": machine(),
    }  # fmt: skip
    print(json.dumps(row))
    if args.json:
        args.json.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
