"""Read mutated files of every format that pyelmo reads, and count how the readers behave.

    python tests/fuzz/run.py --count 2000 --json benchmarks/results/fuzz.json
    python tests/fuzz/run.py --format nli-data --index 17      # one trial again, with its traceback

A trial changes one file and reads it by the library and by the command. Accepted and refused with pyelmo's own error
are both right. Everything else is a fault: another exception, a traceback or "a bug in pyelmo" from the command, a hang
of 30 seconds, more than 2 GB of memory, a crash, and a program that was started or a file that was written elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
HANG = 30.0  # seconds of CPU time, or of waiting without any
WAIT = 600.0  # seconds at most, however busy the machine is
FAULTS = ("foreign", "traceback", "hang", "memory", "crash", "executed")
COLUMNS = ("mutations", "accepted", "refused", *FAULTS)


class Campaign:
    """A worker process that is started again after a crash or a hang."""

    def __init__(self, root: Path, seed: int, hang: float = HANG) -> None:
        self.root, self.seed, self.hang, self.process = root, seed, hang, None

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer, or how the worker ended instead."""
        process = self._worker()
        process.stdin.write((json.dumps(request) + "\n").encode())
        process.stdin.flush()
        began, used = time.monotonic(), self._cpu()
        while not select.select([process.stdout], [], [], 1.0)[0]:
            waited, cpu = time.monotonic() - began, self._cpu() - used
            if "index" in request and (cpu > self.hang or (waited > self.hang and cpu < 1) or waited > WAIT):
                self.close(kill=True)
                return {"library": "hang", "line": "hang"}
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        status = process.wait()
        self.process = None
        fault = (self.root / "fault").read_text()[-2000:] if status < 0 else (self.root / "stderr").read_text()[-2000:]
        return {"library": "crash", "line": "crash", "foreign": f"status {status}\n{fault}"}

    def _worker(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            environment = {
                **os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                "TMPDIR": str(self.root / "tmp"), "HOME": str(self.root / "tmp"), "PYELMO_COMMIT": "fuzz",
                "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
            }  # fmt: skip
            (self.root / "tmp").mkdir(exist_ok=True)
            command = [sys.executable, str(TESTS / "fuzz" / "worker.py"), str(self.root)]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=self.root / "tmp"
            )
        return self.process

    def _cpu(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self, *, kill: bool = False) -> None:
        if self.process is not None:
            if kill:
                self.process.kill()
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def run(self, name: str, indices: range) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the row of a format in the table, and its faults."""
        made = self.ask(name=name)
        if "made" not in made:
            raise RuntimeError(f"{name}: the sample cannot be made\n{made.get('foreign')}")
        row: Counter[str] = Counter(mutations=len(indices))
        faults, peak = [], 0
        for index in indices:
            result = self.ask(name=name, index=index, seed=self.seed)
            # One outcome for each trial: the worse of the two ways.
            outcome = max(result["library"], result["line"], key=[*COLUMNS].index)
            row[outcome] += 1
            peak = max(peak, result.get("peak", 0))
            if outcome in FAULTS:
                faults.append({"format": name, "index": index, **result})
                self.report(faults[-1])
        return {"format": name, **{column: row[column] for column in COLUMNS}, "peak_mb": peak >> 20}, faults

    @staticmethod
    def report(fault: dict[str, Any]) -> None:
        what = (fault.get("foreign") or fault.get("traceback") or str(fault.get("events", ""))).strip()
        parts = [fault[key] for key in ("format", "index", "library", "line")] + [
            fault.get("file"),
            fault.get("mutation"),
        ]
        print("fault:", *parts, "|", " ".join(what.splitlines()[-1:])[:300], file=sys.stderr, flush=True)


def markdown(rows: list[dict[str, Any]]) -> str:
    total = {
        "format": "all",
        **{column: sum(row[column] for row in rows) for column in COLUMNS},
        "peak_mb": max(row["peak_mb"] for row in rows),
    }
    head = ["format", *COLUMNS, "peak_mb"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(
        lines
        + [
            "| " + " | ".join(f"{row[name]:,}" if isinstance(row[name], int) else row[name] for name in head) + " |"
            for row in [*rows, total]
        ]
    )


def names() -> list[str]:
    sys.path[:0] = [str(TESTS)]
    from fuzz.formats import formats

    return list(formats())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="mutations of each format (default: 50)")
    parser.add_argument("--format", action="append", help="only this format; may be repeated (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutations (default: 0)")
    parser.add_argument("--hang", type=float, default=HANG, help=f"seconds that are a hang (default: {HANG:g})")
    parser.add_argument("--index", type=int, help="only the mutation of this number, with all that is known of it")
    parser.add_argument(
        "--check", action="store_true", help="read the unchanged samples, all of which must be accepted"
    )
    parser.add_argument("--json", type=Path, help="file to write the table and the faults to")
    parser.add_argument(
        "--folder", type=Path, help="folder for samples and trials, which is kept (default: a temporary one)"
    )
    args = parser.parse_args()
    root = (args.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))).resolve()
    root.mkdir(exist_ok=True)
    campaign, rows, faults = Campaign(root, args.seed, args.hang), [], []
    began = time.monotonic()
    try:
        for name in args.format or names():
            if args.check:
                print(name, json.dumps(campaign.ask(name=name, check=True), indent=1, ensure_ascii=False))
                continue
            indices = range(args.count) if args.index is None else range(args.index, args.index + 1)
            start = time.monotonic()
            row, found = campaign.run(name, indices)
            rows.append(row)
            faults += found
            print(
                f"{time.monotonic() - start:6.1f} s",
                {key: value for key, value in row.items() if value},
                file=sys.stderr,
                flush=True,
            )
            if args.index is not None:
                print(json.dumps(campaign.ask(name=name, index=args.index, seed=args.seed), indent=1))
    finally:
        campaign.close()
        if args.folder is None:
            shutil.rmtree(root, ignore_errors=True)
    if args.check:
        return 0
    print(markdown(rows))
    if args.json:
        from pyelmo.provenance import machine

        facts = {
            "command": f"python tests/fuzz/run.py --count {args.count} --seed {args.seed}",
            "made": machine(),
            "seconds": round(time.monotonic() - began),
        }
        args.json.write_text(json.dumps({**facts, "formats": rows, "faults": faults}, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
