"""Which test examples share no eight words in a row with a training text, for `elmo task table --items`.

    python benchmarks/tasks/clean_items.py PLAN --data DIR --text TEXT... -o clean.json [--only squad,ontogum]

PLAN is a plan of `elmo task table1`, DIR the folder of its data, and TEXT the training text of an encoder or of static
vectors (one paragraph a line). Words are compared as benchmarks/models/training_text.py does. The words of a test set
that was split into morphemes are not those of a text in eojeols: give a text in morphemes for such sets.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from pyelmo.experiments.plans import PlannedRun, RunSet, read_plan
from pyelmo.provenance import machine, plain_command
from pyelmo.tasks.harness.formats import FORMATS, format_by_name
from pyelmo.tasks.harness.run import data_checksum
from pyelmo.tasks.harness.settings import resolve_data
from pyelmo.tasks.harness.task import Example, find_task, read_examples

sys.path.append(str(Path(__file__).parents[1] / "models"))
from training_text import Grams


def read_test(run: PlannedRun, folder: Path) -> tuple[str, list[Example]]:
    """Return the checksum of a run's test file and its examples; the paths of a plan are relative to the folder."""
    task, path = find_task(run.task), Path(run.data[-1])
    with contextlib.chdir(folder):
        form = format_by_name(run.task, run.data[0]) if run.task in FORMATS else None
        settings = resolve_data(run.recipe.data, None, form)
        return data_checksum(task.data_files(path, settings)), read_examples(task, path, settings, {})


def overlap(example: Example, known: Grams) -> float:
    """Return the share of an example's 8-grams that the training text has."""
    met, of = zip(*(known.count_met(" ".join(text)) for text in example.texts), strict=True)
    return sum(met) / max(1, sum(of))


def clean_items(sets: list[RunSet], folder: Path, texts: list[Path]) -> dict[str, Any]:
    """Return the facts of each set by the checksum of its test file, with the numbers of its clean examples."""
    tests = {(run_set.name, run.data[-1]): run for run_set in sets for run in run_set.runs}  # folds have a file each
    read = {key: read_test(run, folder) for key, run in tests.items()}
    distinct = dict.fromkeys(text for _, examples in read.values() for example in examples for text in example.texts)
    known = Grams(" ".join(text) for text in distinct)
    known.read(texts)
    chosen = {}
    for (name, path), (checksum, examples) in read.items():
        shares = [overlap(example, known) for example in examples]
        clean = [number for number, share in enumerate(shares) if share == 0]
        half = sum(share >= 0.5 for share in shares)
        facts = {"set": name, "file": Path(path).name, "examples": len(examples), "half": half, "items": clean}
        chosen[checksum] = facts
        print(f"{name}, {path}: {len(examples):,} examples, {len(clean):,} of them clean, {half:,} with half of their "
              "8-grams in the text", flush=True)  # fmt: skip
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--data", type=Path, required=True, help="folder of the plan's data")
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="training text")
    parser.add_argument("--only", help="sets, separated by commas (default: all)")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    sets = read_plan(args.plan)
    if args.only:
        if unknown := set(args.only.split(",")) - {each.name for each in sets}:
            parser.error(f"--only: the plan has no set {', '.join(sorted(unknown))}")
        sets = [each for each in sets if each.name in args.only.split(",")]
    chosen = clean_items(sets, args.data, [path.resolve() for path in args.text])
    command = plain_command("python benchmarks/tasks/clean_items.py", sys.argv[1:])
    facts = {"command": command, "machine": machine(), "sets": chosen}
    args.output.write_text(json.dumps(facts) + "\n", "utf-8")


if __name__ == "__main__":
    main()
