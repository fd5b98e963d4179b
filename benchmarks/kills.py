"""Kill commands at random moments (SIGKILL), run them again, and compare the result with an uninterrupted run.

    python benchmarks/kills.py --kills 30 --json benchmarks/results/kills.json

After each kill, a file under its final name must already have its final bytes, unless the command is known to rewrite
it as it proceeds. After the same command again, every file must have the bytes of the uninterrupted run, and nothing
temporary may be left. Each command runs in a forked process, so that the moments are not spent on imports; the workers
of `elmo embed` are new processes. The text, the models and the chunks are tiny.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

TEXT = Path(__file__).parents[1] / "tests" / "banks.txt"
TRAINING = [
    "training.words=8000", "training.batch=8", "training.steps=10", "training.checkpoint_every=7",
    "training.samples=64",
]  # fmt: skip
TINY = ["model.lstm.cells=16", "model.lstm.projection=8", "model.chars.filters=[[1,8],[2,8]]"]
# Values of the files that differ from run to run.
TIMES = ("seconds", "made", "date", "time")


@dataclass(frozen=True)
class Killed:
    """A command, the file or folder it writes, and the files that it rewrites as it proceeds."""

    arguments: list[str]
    output: str
    rewritten: tuple[str, ...] = ()


def sets(changes: Sequence[str]) -> list[str]:
    return [part for change in changes for part in ("--set", change)]


RUN_FILES = ("*log.jsonl", "*checkpoint-*.safetensors", "*recipe.json")
TASK = ["task", "train", "ner", "--data", "ner.txt", "ner.txt"]
TASK_TRAINING = ["training.epochs=3", "training.batch=8", "training.checkpoint_every=5"]
COMMANDS = {
    "prepare": Killed(["prepare", "text.txt", "-o", "out", "--tokenised", "--language", "en"], "out"),
    "pretrain": Killed(["pretrain", "corpus", "-o", "out", *sets([*TRAINING, *TINY])], "out", RUN_FILES),
    "finetune": Killed(["finetune", "model", "corpus", "-o", "out", *sets(TRAINING)], "out", RUN_FILES),
    "task train": Killed(
        [*TASK, "--encoder", "model", "-o", "out", "--seeds", "1", *sets(TASK_TRAINING)],
        "out",
        ("*log.jsonl", "*/checkpoint.safetensors", "seed-1/model/*", "run.json"),
    ),
    "embed, two workers": Killed(
        ["embed", "text.txt", "-o", "out/", "--model", "model", "--workers", "2", "--part-sentences", "40"], "out"
    ),
    "neighbours build": Killed(["neighbours", "build", "text.txt", "-o", "out", "--model", "model"], "out"),
    "vectors train": Killed(
        ["vectors", "train", "corpus", "-o", "out.vec", "--min-count", "1", "--dim", "32", "--epochs", "10"], "out.vec"
    ),
}  # fmt: skip


def make_small() -> None:
    """Make a small text have several chunks, and a small index inverted lists."""
    import torch

    from pyelmo.corpus import chunks
    from pyelmo.neighbours import vector_index

    torch.set_num_threads(1)
    chunks.CHUNK_CHARACTERS = 4_000
    vector_index.EXACT_AT_MOST, vector_index.BLOCK, vector_index.PART = 1_000, 512, 1_024


def start(arguments: list[str], folder: Path) -> int:
    """Start a command in a forked process and return its number."""
    process = os.fork()
    if process:
        return process
    status = 70
    try:
        os.chdir(folder)
        log = os.open(folder.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        make_small()
        from pyelmo.cli import main

        status = main([*arguments, "-q"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def run(arguments: list[str], folder: Path) -> tuple[int, str]:
    _, status = os.waitpid(start(arguments, folder), 0)
    return os.waitstatus_to_exitcode(status), (folder.parent / "log.txt").read_text("utf-8", "replace")


def files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
    for file in sorted(path.rglob("*")) if path.is_dir() else ():
        if file.is_file():
            yield str(file.relative_to(path)), file


def content(path: Path) -> bytes:
    """Return the bytes of a file, without times."""
    if path.suffix != ".json":
        return path.read_bytes()
    values = json.loads(path.read_text("utf-8"))
    return json.dumps({name: value for name, value in values.items() if name not in TIMES}).encode()


def contents(path: Path, left_out: Sequence[str]) -> dict[str, bytes]:
    return {name: content(file) for name, file in files(path) if not any(fnmatch(name, glob) for glob in left_out)}


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)


def problems_after_kill(folder: Path, command: Killed, whole: dict[str, bytes]) -> list[str]:
    """Return which files have their final name but not their final bytes."""
    output = folder / command.output
    return [
        f"after the kill: {name}"
        for name, value in contents(output, command.rewritten).items()
        if not is_hidden(name) and whole.get(name) != value
    ]


def problems_after_rerun(
    folder: Path, command: Killed, inputs: set[str], whole: dict[str, bytes], status: int, log: str
) -> list[str]:
    result = contents(folder / command.output, RUN_FILES)
    wrong = [f"after the rerun: {name}" for name in {*whole, *result} if whole.get(name) != result.get(name)]
    complete = status == 1 and ("already" in log)  # the kill came when all was done
    wrong += [] if status == 0 or complete else [f"exit status {status}: {log.strip()[-200:]}"]
    names = {path.name for path in folder.iterdir()} - inputs - {command.output, "cache"}
    hidden = [name for name, _ in files(folder) if is_hidden(name)]
    return wrong + [f"left: {name}" for name in sorted(names) + hidden]


def campaign(name: str, folder: Path, inputs: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill one command `kills` times and return the figures."""
    command, drawn = COMMANDS[name], random.Random(f"{name} {seed}")
    names = {path.name for path in inputs.iterdir()}

    def fresh() -> Path:
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(inputs, work)
        return work

    work, began = fresh(), time.monotonic()
    status, log = run(command.arguments, work)
    seconds = time.monotonic() - began
    assert status == 0, f"{name}: exit status {status}: {log}"
    whole = contents(work / command.output, RUN_FILES)
    final = contents(work / command.output, command.rewritten)
    facts: dict[str, Any] = {"command": f"elmo {' '.join(command.arguments)}", "seconds_uninterrupted": seconds}
    facts |= {"kills": 0, "finished_before_the_kill": 0, "output_existed": 0, "equal": 0, "problems": []}
    while facts["kills"] < kills:
        work = fresh()
        process, began, moment = start(command.arguments, work), time.monotonic(), drawn.uniform(0, seconds)
        ended = 0
        while not ended and time.monotonic() - began < moment:
            time.sleep(0.005)
            ended, status = os.waitpid(process, os.WNOHANG)
        if ended:  # the machine was less busy than before: draw from the shorter time
            facts["finished_before_the_kill"] += 1
            seconds = min(seconds, time.monotonic() - began)
            continue
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        facts["kills"] += 1
        facts["output_existed"] += (work / command.output).exists()
        wrong = problems_after_kill(work, command, final)
        status, log = run(command.arguments, work)
        wrong += problems_after_rerun(work, command, names, whole, status, log)
        facts["equal"] += not wrong
        facts["problems"] += [f"kill {facts['kills']}: {problem}" for problem in wrong]
    return facts


def write_inputs(folder: Path) -> None:
    """Write a text, a corpus, a model and labelled sentences."""
    folder.mkdir()
    shutil.copy(TEXT, folder / "text.txt")
    sentences = [line.split() for line in TEXT.read_text("utf-8").splitlines()[:120]]
    labels = {word: "B-LOC" if word in ("London", "Vienna", "Boston") else "O" for text in sentences for word in text}
    lines = ["".join(f"{word} {labels[word]}\n" for word in text) + "\n" for text in sentences]
    (folder / "ner.txt").write_text("".join(lines), "utf-8")
    for arguments in (
        ["prepare", "text.txt", "-o", "corpus", "--tokenised", "--language", "en", "--valid", "text.txt"],
        ["pretrain", "corpus", "-o", "run", *sets([*TRAINING, *TINY])],
    ):
        status, log = run(arguments, folder)
        assert status == 0, log
    (folder / "run" / "model").rename(folder / "model")
    shutil.rmtree(folder / "run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, metavar="N", help="kills of each command (default: 30)")
    parser.add_argument("--only", nargs="+", default=list(COMMANDS), choices=COMMANDS, help="commands (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also add the figures to this file")
    args = parser.parse_args()
    import faiss  # noqa: F401
    import gensim.models  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import pyelmo.experiments.jobs
    import pyelmo.tasks.harness.run
    import pyelmo.training.finetune  # noqa: F401
    from pyelmo.provenance import machine

    figures = json.loads(args.json.read_text("utf-8")) if args.json and args.json.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder / "inputs")
        for verb in args.only:
            facts = campaign(verb, folder, folder / "inputs", args.kills, args.seed)
            figures[verb] = {"machine": machine(), **facts}
            print(f"{verb}: {facts['equal']} of {facts['kills']} equal", *facts["problems"], sep="\n  ", flush=True)
            if args.json:
                args.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    sys.exit(any(figures[verb]["problems"] for verb in args.only))


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    main()
