"""Prepare published data sets: one folder with the files of the plans `table1` and `benchmarks/tasks/ablations.toml`.

    python benchmarks/tasks/task_data.py PUBLISHED -o DATA [--only wikigold,nsmc]

PUBLISHED holds the data sets as their authors distribute them, unpacked, in any folders. Most files are copied. If a
data set lacks a split, it is made here, the same for everyone:

    wikigold   has no splits: documents in their order, cut at the documents nearest to 70 and 85 % of the sentences
    nsmc       has no dev set: the last 5,000 training reviews; the text is split into morphemes, as `ko` expects it
    lingnli    the rounds of the three protocols in one file; the test set is the published validation set, and the dev
               set has the training pairs of one premise in fifteen
    snli       (from e-SNLI) the training set is SNLI's dev set without one premise in ten, which are the dev set
    squad      the test set is the published dev set, and the dev set is every twentieth article of the training set
    litbank    all ten folds
    ontogum    the splits of GUM's splits.md, without Reddit, whose words are not distributed

    text       the distinct sentences of some training and dev sets, one per line, to adapt a biLM with
               elmo prepare text/X-train.txt --valid text/X-dev.txt --tokenised -o corpus/X
               elmo finetune en corpus/X -o tuned/X

A data set that is missing is skipped with a message.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyelmo.recipes import read_settings
from pyelmo.tasks.harness.task import find_task
from pyelmo.text.tokens import split_words

PARTS = ("train", "dev", "test")
DOCUMENT = "-DOCSTART- O\n"
NSMC_DEV = 5_000
FOLDS = 10  # of LitBank
COPIED = {
    "wnut": ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"),
    "ewt": tuple(f"ewt-{part}.gold_conll" for part in PARTS),
}


class MissingError(Exception):
    """A file of a data set is missing."""


class Published:
    """The published files, found by the end of their paths."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(path for path in folder.rglob("*") if path.is_file())

    def all(self, pattern: str) -> list[Path]:
        paths = [path for path in self.files if path.match(pattern)]
        if not paths:
            raise MissingError(pattern)
        return paths

    def one(self, pattern: str) -> Path:
        return self.all(pattern)[0]

    def text(self, pattern: str) -> str:
        return self.one(pattern).read_text("utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("published", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", default=",".join(SETS), help=f"data sets to prepare (default: {','.join(SETS)})")
    args = parser.parse_args()
    if unknown := set(args.only.split(",")) - set(SETS):
        parser.error(f"--only: {', '.join(sorted(unknown))} unknown. Choose from {', '.join(SETS)}.")
    published = Published(args.published)
    args.output.mkdir(parents=True, exist_ok=True)
    for name in args.only.split(","):
        try:
            print(f"{name}: {SETS[name](published, args.output)}")
        except MissingError as error:
            print(f"{name}: skipped, because {args.published} has no {error}")


def copied(name: str) -> Callable[[Published, Path], str]:
    def copy(published: Published, output: Path) -> str:
        for file in COPIED[name]:
            shutil.copy(published.one(file), output / file)
        return ", ".join(COPIED[name])

    return copy


def sst(published: Published, output: Path) -> str:
    for part in PARTS:
        shutil.copy(published.one(f"trees/{part}.txt"), output / f"sst-{part}.txt")
    return "trees as published"


def wikigold(published: Published, output: Path) -> str:
    documents = [text.strip("\n") for text in published.text("wikigold.conll.txt").split(DOCUMENT)]
    documents = [text for text in documents if text]
    ends = [0]
    for text in documents:
        ends.append(ends[-1] + len(re.split(r"\n\n+", text)))
    first, second = (
        min(range(len(ends)), key=lambda index: abs(ends[index] - share * ends[-1])) for share in (0.7, 0.85)
    )
    parts = documents[:first], documents[first:second], documents[second:]
    for part, texts in zip(PARTS, parts, strict=True):
        (output / f"wikigold-{part}.conll").write_text(f"\n\n{DOCUMENT}\n".join(texts) + "\n", "utf-8")
    return f"{' / '.join(str(len(texts)) for texts in parts)} documents"


def nsmc(published: Published, output: Path) -> str:
    head, *train = published.text("ratings_train.txt").removesuffix("\n").split("\n")
    _, *test = published.text("ratings_test.txt").removesuffix("\n").split("\n")
    parts = train[:-NSMC_DEV], train[-NSMC_DEV:], test
    for part, lines in zip(PARTS, parts, strict=True):
        rows = [head]
        for line in lines:
            number, text, label = line.split("\t")
            rows.append("\t".join([number, " ".join(split_words(text, "ko-morph")), label]))
        (output / f"nsmc-{part}.txt").write_text("\n".join(rows) + "\n", "utf-8")
    return " / ".join(str(len(lines)) for lines in parts) + " reviews"


def held_out(premise: str, one_in: int) -> bool:
    """Return whether all pairs of a premise belong to the dev set; it depends on the text alone."""
    return int(hashlib.sha256(premise.encode()).hexdigest(), 16) % one_in == 0


def write_lines(path: Path, records: Iterable[Any]) -> int:
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path.write_text("".join(lines), "utf-8")
    return len(lines)


def lingnli(published: Published, output: Path) -> str:
    def rounds(part: str) -> list[Any]:
        paths = published.all(f"*_protocol/{part}_round*.jsonl")
        return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]

    train = rounds("train")
    parts = [[one for one in train if held_out(one["premise"], 15) == dev] for dev in (False, True)] + [rounds("val")]
    counts = [write_lines(output / f"lingnli-{part}.jsonl", each) for part, each in zip(PARTS, parts, strict=True)]
    return " / ".join(map(str, counts)) + " pairs"


def snli(published: Published, output: Path) -> str:
    def pairs(part: str) -> list[dict[str, str]]:
        columns = (published.text(f"{name}.{part}").splitlines() for name in ("s1", "s2", "labels"))
        names = ("sentence1", "sentence2", "gold_label")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    dev = pairs("dev")
    parts = [[one for one in dev if held_out(one["sentence1"], 10) == held] for held in (False, True)] + [pairs("test")]
    counts = [write_lines(output / f"snli-{part}.jsonl", each) for part, each in zip(PARTS, parts, strict=True)]
    return " / ".join(map(str, counts)) + " pairs"


def squad(published: Published, output: Path) -> str:
    articles = json.loads(published.text("train-v1.1*.json"))["data"]
    parts = (
        [one for number, one in enumerate(articles) if number % 20],
        articles[::20],
        json.loads(published.text("dev-v1.1*.json"))["data"],
    )
    for part, data in zip(PARTS, parts, strict=True):
        (output / f"squad-{part}.json").write_text(json.dumps({"data": data}, ensure_ascii=False) + "\n", "utf-8")
    counts = [sum(len(each["qas"]) for one in data for each in one["paragraphs"]) for data in parts]
    return " / ".join(map(str, counts)) + " questions"


def litbank(published: Published, output: Path) -> str:
    (output / "litbank").mkdir(exist_ok=True)
    for path in published.all("*_brat.conll"):
        shutil.copy(path, output / "litbank")
    for fold in range(FOLDS):
        for part in PARTS:
            shutil.copy(published.one(f"{fold}/{part}.ids"), output / f"litbank-{fold}-{part}.ids")
    return f"{FOLDS} folds"


def ontogum(published: Published, output: Path) -> str:
    (output / "ontogum").mkdir(exist_ok=True)
    for path in published.all("ontogum/conll/*.conll"):
        shutil.copy(path, output / "ontogum")
    sections = published.text("splits.md").split("\n## ")[1:]
    names = {each.split("\n", 1)[0].strip(): re.findall(r"\* (\S+)", each) for each in sections}
    counts = []
    for part in PARTS:
        kept = [name for name in names[part] if "_reddit_" not in name]
        (output / f"ontogum-{part}.ids").write_text("".join(f"{name}\n" for name in kept), "utf-8")
        counts.append(str(len(kept)))
    return " / ".join(counts) + " documents"


def text(published: Published, output: Path) -> str:
    (output / "text").mkdir(exist_ok=True)
    counts = []
    for name, (task, file, changes) in TEXTS.items():
        recipe = read_settings(find_task(task).recipe, task, changes, group="task")
        for part, path in zip(PARTS[:2], file, strict=True):
            if not (output / path).is_file():
                raise MissingError(path)
            examples = find_task(task).read(output / path, recipe.data, False)
            lines = dict.fromkeys(" ".join(words) for example in examples for words in example.texts)
            (output / "text" / f"{name}-{part}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
            counts.append(f"{name}-{part} {len(lines)}")
    return ", ".join(counts) + " sentences"


TEXTS: dict[str, tuple[str, tuple[str, str], list[str]]] = {
    "ewt": ("srl", ("ewt-train.gold_conll", "ewt-dev.gold_conll"), []),
    "sst": ("sentiment", ("sst-train.txt", "sst-dev.txt"), []),
    "wnut": ("ner", ("wnut17train.conll", "emerging.dev.conll"), []),
    "wikigold": ("ner", ("wikigold-train.conll", "wikigold-dev.conll"), ["data.scheme=iob1"]),
    "nsmc": ("sentiment", ("nsmc-train.txt", "nsmc-dev.txt"), ["data.format=nsmc", "data.tokenised=true"]),
}
SETS: dict[str, Callable[[Published, Path], str]] = {
    **{name: copied(name) for name in COPIED}, "sst": sst, "wikigold": wikigold, "nsmc": nsmc, "lingnli": lingnli,
    "snli": snli, "squad": squad, "litbank": litbank, "ontogum": ontogum, "text": text,
}  # fmt: skip


if __name__ == "__main__":
    main()
