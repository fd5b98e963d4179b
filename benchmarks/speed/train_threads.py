"""Does the language model train faster on one CPU thread or on two? Words per second, and CPU seconds per 1,000 words.

    python benchmarks/speed/train_threads.py                # the machine as it is
    python benchmarks/speed/train_threads.py --busy 2       # beside two processes that never sleep

Each line is a process of its own that trains on made-up text of 20,000 different words, with threads that spin while
they wait for each other (`OMP_WAIT_POLICY=active`) and with threads that sleep (`passive`, as the command sets it).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS = 12.0
TRAINING = ["training.words=100000000", "training.precision=float32", "training.decay=none"]
# The name of a line, its recipe, and the settings it changes.
SIZES = {
    "16 x 20, 64/16": ("tiny-cpu", ["training.batch=16", "model.lstm.cells=64", "model.lstm.projection=16"]),
    "16 x 20, 256/64": ("tiny-cpu", ["training.batch=16"]),
    "64 x 20, 256/64 (tiny-cpu)": ("tiny-cpu", []),
    "32 x 20, 1024/128": ("small", ["training.batch=32"]),
    "128 x 20, 1024/128": ("small", ["training.batch=128"]),
    "32 x 20, 1792/256 (fine-tuning en)": ("en", ["training.batch=32"]),
}


def write_text(path: Path) -> None:
    numbers = np.random.default_rng(1).zipf(1.2, 400_000) % 20_000
    path.write_text("".join(f"w{number}{' ' if place % 25 else chr(10)}" for place, number in enumerate(numbers, 1)))


def measure(corpus: Path, name: str, threads: int) -> dict[str, float]:
    """Train for some seconds on a number of threads."""
    import torch

    from pyelmo.corpus.corpus import Corpus
    from pyelmo.training.feed import Feed, open_stream, type_tables
    from pyelmo.training.loop import new_model
    from pyelmo.training.processes import Processes
    from pyelmo.training.recipe import read_recipe
    from pyelmo.training.trainer import Trainer

    torch.set_num_threads(threads)
    recipe, changes = SIZES[name]
    settings = read_recipe(recipe, [*TRAINING, *changes])
    opened, processes = Corpus.open(corpus), Processes()
    model = new_model(settings.model, opened, 1)
    tables = type_tables(opened, model.bilm, model.lexicon, processes)
    trainer = Trainer(model.bilm, tables, settings.training, processes)
    feed = Feed(open_stream(opened, settings.training, processes), 2, processes.device)
    batches, steps = iter(feed), 0
    trainer.step(next(batches)[0], 1e-3)  # the first step allocates
    began, cpu = time.monotonic(), time.process_time()
    while time.monotonic() - began < SECONDS or steps < 3:
        trainer.step(next(batches)[0], 1e-3)
        steps += 1
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    feed.close()
    words = steps * settings.training.batch * settings.training.steps
    return {"steps": steps, "words_per_second": words / seconds, "cpu_per_1000_words": 1000 * cpu / words}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that never sleep (default: 0)")
    parser.add_argument("--one", nargs=3, metavar=("CORPUS", "NAME", "THREADS"), help="measure one line, as JSON")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(Path(args.one[0]), args.one[1], int(args.one[2]))))
        return
    from pyelmo.corpus.corpus import PrepareSettings
    from pyelmo.corpus.prepare import prepare

    with tempfile.TemporaryDirectory() as name:
        text, corpus = Path(name, "text.txt"), Path(name, "corpus")
        write_text(text)
        prepare(PrepareSettings(inputs=(str(text),), tokenised=True, vocab_size=20_000), corpus)
        beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
        try:
            for size in SIZES:
                for threads, policy in ((1, "passive"), (os.cpu_count(), "active"), (os.cpu_count(), "passive")):
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    command = [sys.executable, __file__, "--one", str(corpus), size, str(threads)]
                    environment = {**os.environ, "OMP_WAIT_POLICY": policy}
                    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                    switches = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw - before.ru_nivcsw
                    facts = {"size": size, "threads": threads, "policy": policy, **json.loads(done.stdout)}
                    facts |= {"involuntary_switches": switches, "load": os.getloadavg()[0]}
                    print(json.dumps(facts), flush=True)
        finally:
            for process in beside:
                process.kill()


if __name__ == "__main__":
    main()
