"""The files that recipes/table1.toml names, from published ones: copied, joined, or split where there are no parts.

    python benchmarks/table1_data.py PUBLISHED -o DIR [--only squad,snli,...]

Each set is found by the names of its files, in whatever folders below PUBLISHED; one that is not there is left out. No
choice is random: wikigold's documents go to train, dev and test by turns (3:1:1), the last 1,000 pairs of SNLI's
development set and the last 10,000 reviews of NSMC's training set are held out for the choice of the epoch. NSMC's
reviews are split into morphemes (the extra `ko`).
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyelmo.text.tokens import split_words

HELD_PAIRS, HELD_REVIEWS = 1000, 10_000
WNUT = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")


class MissingError(Exception):
    """A published file that is not there."""


def found(source: Path, pattern: str) -> list[Path]:
    paths = sorted(source.glob(f"**/{pattern}"))
    if not paths:
        raise MissingError(pattern)
    return paths


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def glove(source: Path, output: Path) -> None:
    shutil.copyfile(found(source, "*glove*.txt")[0], output.with_name("glove.txt"))


def copied(*patterns: str) -> Callable[[Path, Path], None]:
    """Files as they are; `.rebuilt` in a name is left out."""

    def make(source: Path, output: Path) -> None:
        paths = [found(source, pattern)[0] for pattern in patterns]
        output.mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copyfile(path, output / path.name.replace(".rebuilt", ""))

    return make


def lingnli(source: Path, output: Path) -> None:
    """All rounds of all protocols."""
    parts = {part: found(source, f"*protocol*/{part}_round*.jsonl") for part in ("train", "val")}
    output.mkdir(parents=True, exist_ok=True)
    for part, files in parts.items():
        (output / f"{part}.jsonl").write_text("".join(text_of(file).rstrip("\n") + "\n" for file in files), "utf-8")


def snli(source: Path, output: Path) -> None:
    """s1, s2 and labels of each part, a line a pair."""
    names = ("s1", "s2", "labels")
    dev, test = ({name: found(source, f"{name}.{part}")[0] for name in names} for part in ("dev", "test"))
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(test[name], output / f"{name}.test")
        lines = text_of(dev[name]).rstrip("\n").split("\n")
        for part, kept in {"train": lines[:-HELD_PAIRS], "held": lines[-HELD_PAIRS:]}.items():
            (output / f"{name}.{part}").write_text("\n".join(kept) + "\n", "utf-8")


def wikigold(source: Path, output: Path) -> None:
    text = text_of(found(source, "wikigold.conll.txt")[0])
    documents = [each.strip("\n") for each in re.split(r"(?m)^-DOCSTART-.*\n", text) if each.strip()]
    output.mkdir(parents=True, exist_ok=True)
    for part, places in {"train": (0, 1, 2), "dev": (3,), "test": (4,)}.items():
        kept = [each for number, each in enumerate(documents) if number % 5 in places]
        (output / f"{part}.conll").write_text("\n\n".join(kept) + "\n", "utf-8")


def litbank(source: Path, output: Path) -> None:
    documents, fold = found(source, "coref/conll/*_brat.conll"), found(source, "*fold*/0/*.ids")
    for folder, files in (("conll", documents), ("0", fold)):
        (output / folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, output / folder / file.name)


def ontogum(source: Path, output: Path) -> None:
    """The documents, and lists of their names from splits.md."""
    documents, splits = found(source, "ontogum/conll/*.conll"), text_of(found(source, "splits.md")[0])
    output.mkdir(parents=True, exist_ok=True)
    for file in documents:
        shutil.copyfile(file, output / file.name)
    for part in ("train", "dev", "test"):
        _, _, after = splits.partition(f"\n## {part}\n")
        names = re.findall(r"\* (\w+)", after.partition("\n## ")[0])
        (output / f"{part}.list").write_text("".join(f"{name}\n" for name in names), "utf-8")


def nsmc(source: Path, output: Path) -> None:
    texts = [text_of(found(source, f"ratings_{part}.txt")[0]) for part in ("train", "test")]
    output.mkdir(parents=True, exist_ok=True)
    (header, *train), (_, *test) = (text.rstrip("\n").split("\n") for text in texts)
    for part, lines in {"train": train[:-HELD_REVIEWS], "dev": train[-HELD_REVIEWS:], "test": test}.items():
        rows = (line.rstrip("\r").split("\t") for line in lines)
        split = (f"{number}\t{' '.join(split_words(text, 'ko-morph'))}\t{label}\n" for number, text, label in rows)
        (output / f"{part}.txt").write_text("".join([header.rstrip("\r") + "\n", *split]), "utf-8")


SETS: dict[str, Callable[[Path, Path], None]] = {
    "glove": glove,
    "squad": copied("train-v1.1*.json", "dev-v1.1*.json"),
    "snli": snli,
    "lingnli": lingnli,
    "propbank-ewt": copied(*(f"ewt-{part}.gold_conll" for part in ("train", "dev", "test"))),
    "litbank": litbank,
    "ontogum": ontogum,
    "wnut17": copied(*WNUT),
    "wikigold": wikigold,
    "trees": copied(*(f"trees/{part}.txt" for part in ("train", "dev", "test"))),
    "nsmc": nsmc,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("published", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SETS))
    args = parser.parse_args(arguments)
    args.output.mkdir(parents=True, exist_ok=True)
    for name in args.only:
        try:
            SETS[name](args.published, args.output / name)
            print(f"{name}: made", file=sys.stderr)
        except MissingError as missing:
            print(f"{name}: left out, there is no {missing} below {args.published}", file=sys.stderr)


if __name__ == "__main__":
    main()
