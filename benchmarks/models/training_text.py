"""Build the training text of the bundled models from extracted text, free of every held-out and test set.

    python benchmarks/models/training_text.py tests PUBLISHED HELD_OUT... -o tests
    python benchmarks/models/training_text.py build training_text_en.toml --sources SOURCES --tests tests -o text
    python benchmarks/models/training_text.py check text/train.txt --tests tests
    python benchmarks/models/training_text.py sample text/train.txt --count 20

`tests` writes the plain text of each test set (one item a line) from the published files. `build` reads the sources
that the TOML file names (one paragraph a line, a blank line between documents), and for each of them

1. repairs and drops what is no prose (see CLEANERS),
2. holds out whole documents, chosen by a hash of their opening, as dev and test set of the genre,
3. drops every paragraph that shares 8 words in a row with a test set or with held-out text, and every paragraph that
   equals a test item of fewer than 8 words,
4. drops paragraphs whose first 100 letters and digits came before, in this source or an earlier one,
5. keeps documents at random up to the source's number of words, and writes a report (report.json).

The result depends on the inputs, the TOML file and its seed alone. `check` counts for each test set how many of its
items share 8 words in a row with a text, and how many have half of their 8-grams in it.
Words are runs of letters and digits in lower case: tokenisation, punctuation and case hide no match.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.recipes import read_toml

GRAM = 8  # words in a row that count as the same text
OPENING = 100  # letters and digits by which a paragraph is known again
CHUNK = 4_000  # paragraphs compared at once
BITS = 28  # of the bitmap that is asked before the exact search
Hashes = npt.NDArray[np.uint64]


# --- the plain text of the test sets


def columns(path: Path, column: int) -> Iterator[str]:
    """A sentence from each block of lines with one word each."""
    words: list[str] = []
    for row in path.read_text("utf-8", "replace").splitlines():
        cells = row.split("\t") if "\t" in row else row.split()
        if row.startswith(("#", "-DOCSTART-")) or len(cells) <= column:
            if not row.startswith("#") and words:
                yield " ".join(words)
                words = []
            continue
        words.append(cells[column])
    if words:
        yield " ".join(words)


def conllu(path: Path) -> Iterator[str]:
    for row in path.read_text("utf-8").splitlines():
        if row.startswith("# text = "):
            yield row.removeprefix("# text = ")


def conllu_forms(path: Path) -> Iterator[str]:
    """For treebanks without `# text`: the word forms."""
    for block in path.read_text("utf-8").split("\n\n"):
        rows = [row.split("\t") for row in block.splitlines() if row and not row.startswith("#")]
        yield " ".join(cells[1] for cells in rows if len(cells) > 1 and cells[0].isdigit())


def paragraphs(path: Path) -> Iterator[str]:
    for article in json.loads(path.read_text("utf-8"))["data"]:
        yield from (paragraph["context"] for paragraph in article["paragraphs"])


def questions(path: Path) -> Iterator[str]:
    for article in json.loads(path.read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            yield from (question["question"] for question in paragraph["qas"])


def trees(path: Path) -> Iterator[str]:
    for row in path.read_text("utf-8").splitlines():
        yield " ".join(re.findall(r"\(\d ([^()]+)\)", row)).replace("-LRB-", "(").replace("-RRB-", ")")


def lines(path: Path) -> Iterator[str]:
    yield from path.read_text("utf-8", "replace").splitlines()


def json_fields(*names: str) -> Callable[[Path], Iterator[str]]:
    def read(path: Path) -> Iterator[str]:
        text = path.read_text("utf-8")
        rows = json.loads(text) if text.lstrip().startswith("[") else map(json.loads, text.splitlines())
        for row in rows:
            yield from (str(row[name]) for name in names)

    return read


def cells(*numbers: int) -> Callable[[Path], Iterator[str]]:
    def read(path: Path) -> Iterator[str]:
        for row in path.read_text("utf-8", "replace").splitlines()[1:]:
            parts = row.split("\t")
            yield from (parts[number] for number in numbers if number < len(parts))

    return read


def senses(path: Path) -> Iterator[str]:
    for sentence in re.findall(r"<sentence [^>]*>(.*?)</sentence>", path.read_text("utf-8"), re.S):
        yield re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", sentence)).replace("&apos;", "'").replace("&amp;", "&").strip()


def scws(path: Path) -> Iterator[str]:
    for row in path.read_text("utf-8", "replace").splitlines():
        yield from (re.sub(r"</?b>", "", cell) for cell in row.split("\t")[5:7])


def klue_names(path: Path) -> Iterator[str]:
    for row in path.read_text("utf-8").splitlines():
        if row.startswith("## "):
            yield re.sub(r"<([^:>]+):[A-Z]+>", r"\1", row.split("\t", 1)[-1])


def column_of(number: int) -> Callable[[Path], Iterator[str]]:
    return lambda path: columns(path, number)


# name -> (patterns of the files, reader)
TESTS: dict[str, tuple[tuple[str, ...], Callable[[Path], Iterator[str]]]] = {
    "en-squad": (("dev-v1.1*.json",), paragraphs),
    "en-squad-questions": (("dev-v1.1*.json",), questions),
    "en-xquad": (("xquad.en.json",), paragraphs),
    "en-xquad-questions": (("xquad.en.json",), questions),
    "en-wikigold": (("wikigold.conll.txt",), column_of(0)),
    "en-wnut17": (("emerging.dev.conll", "emerging.test.conll"), column_of(0)),
    "en-roles": (("ewt-dev.gold_conll", "ewt-test.gold_conll"), column_of(3)),
    "en-ewt": (("en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu"), conllu),
    "en-litbank": (("litbank/coref/conll/*.conll",), column_of(3)),
    "en-ontogum": (("ontogum/conll/*.conll",), column_of(1)),
    "en-gap": (("gap-*.tsv",), cells(1)),
    "en-sst": (("trees/dev.txt", "trees/test.txt"), trees),
    "en-snli": (("eSNLI/s?.dev", "eSNLI/s?.test"), lines),
    "en-sick": (("SICK_test_annotated.txt", "SICK_trial.txt"), cells(1, 2)),
    "en-sts": (("sts-dev.csv", "sts-test.csv"), cells(5, 6)),
    "en-lingnli": (("NLI_data/*/val_round*.jsonl",), json_fields("premise", "hypothesis")),
    "en-senses": (("Evaluation_Datasets/*/se*.data.xml",), senses),
    "en-scws": (("scws/ratings.txt",), scws),
    "en-wic": (("dev.data.txt", "test.data.txt"), cells(3, 4)),
    "ko-nsmc": (("ratings_test.txt",), cells(1)),
    "ko-korquad": (("KorQuAD_v1.0_dev.json",), paragraphs),
    "ko-korquad-questions": (("KorQuAD_v1.0_dev.json",), questions),
    "ko-klue": (("klue-nli*.json", "klue-sts*.json"), lambda path: _klue(path)),
    "ko-klue-names": (("klue-ner*.tsv",), klue_names),
    "ko-kaist": (("ko_kaist-ud-dev.conllu", "ko_kaist-ud-test.conllu"), conllu_forms),
    "ko-gsd": (("ko_gsd-ud-dev.conllu", "ko_gsd-ud-test.conllu"), conllu),
    "ko-xnli": (("xnli.dev.ko.tsv", "xnli.test.ko.tsv"), cells(0, 1)),
    "ko-sts": (("KorSTS/sts-dev.tsv", "KorSTS/sts-test.tsv"), cells(5, 6)),
}


def _klue(path: Path) -> Iterator[str]:
    names = ("premise", "hypothesis") if "nli" in path.name else ("sentence1", "sentence2")
    return json_fields(*names)(path)


def write_tests(published: Path, held_out: Sequence[Path], output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in published.rglob("*") if path.is_file())
    for name, (patterns, read) in TESTS.items():
        items: dict[str, None] = {}
        for path in (path for path in files if any(path.match(pattern) for pattern in patterns)):
            items.update(dict.fromkeys(item for item in map(str.strip, read(path)) if item))
        write_items(output / f"{name}.txt", items)
    for path in held_out:
        rows = (row.strip() for row in path.read_text("utf-8").splitlines())
        write_items(output / f"{path.stem}.txt", dict.fromkeys(row for row in rows if row))


def write_items(path: Path, items: Iterable[str]) -> None:
    items = list(items)
    path.write_text("".join(" ".join(item.split()) + "\n" for item in items), "utf-8")
    print(f"{path.stem}: {len(items):,} items, {sum(item.count(' ') + 1 for item in items):,} words", flush=True)


# --- 8-grams


def words_of(text: str) -> list[str]:
    # Treebanks write "do n't" and "it 's", WikiText "@-@"; \w+ sees through everything but the first.
    return re.findall(r"\w+", text.lower().replace(" n't", "n't"))


def grams(words: Hashes) -> Hashes:
    """(n,) -> (n - 7,): a hash of each run of 8 words."""
    total = np.zeros(max(0, len(words) - GRAM + 1), np.uint64)
    for place in range(GRAM):
        total *= np.uint64(0x9E3779B97F4A7C15)
        total ^= words[place : place + len(total)] + (total >> np.uint64(29))
    return total


def hashed(words: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


class Grams:
    """The 8-grams of some texts, and their short items as a whole."""

    def __init__(self, items: Iterable[str]) -> None:
        parts, self.short = [], set[str]()
        for item in items:
            words = words_of(item)
            parts.append(grams(hashed(words)))
            if 3 <= len(words) < GRAM:
                self.short.add(" ".join(words))
        self.known = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
        self._bitmap = np.zeros(1 << BITS, bool)
        self._bitmap[self._slot(self.known)] = True
        self.met = np.zeros(len(self.known), bool)

    @staticmethod
    def _slot(hashes: Hashes) -> npt.NDArray[np.int64]:
        return (hashes >> np.uint64(64 - BITS)).astype(np.int64)

    def shared(self, paragraphs: Sequence[str]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Which paragraphs share an 8-gram or equal a short item, and how many words each has."""
        split = [words_of(paragraph) for paragraph in paragraphs]
        counts = np.array([len(words) for words in split])
        flat: list[str] = []
        for words in split:
            flat += words
            flat.append("\n")  # no gram crosses a paragraph
        found = np.zeros(len(paragraphs), bool)
        values = grams(hashed(flat))
        near = np.flatnonzero(self._bitmap[self._slot(values)])
        place = np.searchsorted(self.known, values[near])
        exact = self.known[np.minimum(place, len(self.known) - 1)] == values[near] if len(self.known) else near < 0
        self.met[place[exact]] = True
        starts = np.cumsum(counts + 1) - counts - 1
        found[np.searchsorted(starts, near[exact], "right") - 1] = True
        for number in np.flatnonzero((counts >= 3) & (counts < GRAM)):
            if " ".join(split[number]) in self.short:
                found[number] = True
        return found, counts

    def read(self, texts: Iterable[Path]) -> None:
        """Note which 8-grams occur in texts."""
        for path in texts:
            waiting: list[str] = []
            for document in documents(path):
                waiting += document
                if len(waiting) >= CHUNK:
                    self.shared(waiting)
                    waiting = []
            self.shared(waiting)

    def count_met(self, item: str) -> tuple[int, int]:
        """Return how many of an item's 8-grams occur in the texts that were read, and how many it has."""
        own = grams(hashed(words_of(item)))
        return int(self.met[np.searchsorted(self.known, own)].sum()), len(own)


# --- what is no prose


def clean_book(document: list[str]) -> list[str]:
    """An English book without Project Gutenberg's frame, notes of transcribers, page numbers and marks of footnotes."""
    start = " ".join(document[20:220]).lower().split()
    if sum(word in ENGLISH for word in start) < 0.1 * len(start):
        return []
    kept = []
    for row in document:
        if re.search(r"gutenberg|transcriber|\be-?text|ebook|\bISBN\b|proofread", row, re.I):
            continue
        row = re.sub(r"\[(?:Illustration|Footnote|Sidenote|Pg|Page)[^\]]*\]?|\[[\d*]+\]|\{\d+\}", " ", row)
        row = re.sub(r"[_=~|^]+|\*(?:\s*\*)*", " ", row).replace("--", " -- ")
        kept.append(" ".join(row.split()))
    return [row for row in kept if is_prose(row)]


def clean_tweet(document: list[str]) -> list[str]:
    """Tweets without cut-off ends; a tweet and the one that it quotes ("QT @name") are two."""
    rows = (row for whole in document for row in re.split(r"(?:^|\s)QT @\w+:?", whole))
    rows = (re.sub(r"\S*(?:…|\.\.\.)\s*(?=@|$)", "", row).strip() for row in rows)
    return [row for row in rows if len(row.split()) >= 5 and sum(map(str.isalpha, row)) > 0.6 * len(row)]


def clean_wiki(document: list[str]) -> list[str]:
    """Articles without what their templates left: empty brackets, and sentences with a hole before a comma or stop."""
    rows = []
    for row in document:
        if "{{" in row or "|" in row or not is_prose(row):
            continue
        if any(mark in row for mark in ("()", "( ", "(,", "(;", "&", "[[", "''")):
            row = " ".join(re.sub(r"\s?\(\s*[;,]?\s*\)|&\w+;|\[\[|\]\]|'{2,}", "", row).split())
        if any(mark in row for mark in (" ,", " .", " ;", " :", " )", "( ", "(,", "(;")) and HOLE.search(row):
            row = " ".join(part for part in re.split(r"(?<=[.!?]) (?=[A-Z\"'])", row) if not HOLE.search(part))
        if len(row.split()) >= 4:
            rows.append(row)
    return rows


def clean_talk(document: list[str]) -> list[str]:
    """Transcripts without times and remarks in brackets, and without marks of Markdown."""
    rows = (re.sub(r"\\?\[[^\]]{0,40}\\?\]|[*_`\\]", "", html.unescape(row)) for row in document)
    return [row for row in (" ".join(row.split()) for row in rows) if len(row.split()) >= 3]


def clean_petition(document: list[str]) -> list[str]:
    """Korean petitions: names are masked with asterisks there, which are left out."""
    rows = (" ".join(re.sub(r"\*+", "", row).split()) for row in document if row.count("*") < 0.03 * len(row))
    return [row for row in rows if len(row.split()) >= 4]


def clean_decision(document: list[str]) -> list[str]:
    """Korean court decisions without numbers of sections, references to other decisions and the judges' names."""
    rows = (re.sub(r"^(?:\[\d+\]|[\d가-하][.)]|\(?[\d가-하]\)|[①-⑳ⓐ-ⓩ])\s*", "", row).strip() for row in document)
    return [
        row
        for row in rows
        if len(row.split()) >= 8 and is_prose(row) and not row.startswith(("대법원", "대법관", "판사"))
    ]


def clean_any(document: list[str]) -> list[str]:
    return document


def is_prose(row: str) -> bool:
    """Mostly letters, not all of them capitals, and few figures, by its first 300 characters without spaces."""
    row = row[:300].replace(" ", "")
    letters = sum(map(str.isalpha, row))
    capitals, figures = sum(map(str.isupper, row)), sum(map(str.isdigit, row))
    return letters > 0.7 * len(row) and capitals < 0.4 * letters and figures < 0.2 * len(row)


HOLE = re.compile(r"\s[,.;:)](?:\s|$)|\(\s*[,;]")
ENGLISH = frozenset(["the", "of", "and", "to", "a", "in", "that", "is", "was", "he", "for", "it", "with", "as", "his"])
CLEANERS: dict[str, Callable[[list[str]], list[str]]] = {
    "book": clean_book, "tweet": clean_tweet, "wiki": clean_wiki, "talk": clean_talk, "petition": clean_petition,
    "decision": clean_decision, "any": clean_any,
}  # fmt: skip


# --- building


@dataclass(frozen=True, kw_only=True)
class Source:
    """One source as the TOML file has it."""

    name: str
    file: str
    genre: str
    licence: str
    clean: str = "any"
    million_words: float | None = None  # at most; all where none is given
    held_out: int = 0  # words for each of the dev and the test set of its genre


@dataclass
class Counts:
    """What became of a source."""

    documents: int = 0
    words: int = 0
    held_out_words: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, why: str, paragraphs: int) -> None:
        self.dropped[why] = self.dropped.get(why, 0) + int(paragraphs)


def documents(path: Path) -> Iterator[list[str]]:
    document: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as stream:
        for row in stream:
            if row.strip():
                document.append(row.rstrip("\n"))
            elif document:
                yield document
                document = []
    if document:
        yield document


def word_count(path: Path) -> float:
    """About how many words a file has, by its size and its first megabytes."""
    with path.open("rb") as stream:
        start = stream.read(4 << 20)
    return path.stat().st_size / max(1, len(start)) * max(1, len(start.split()))


def chance(seed: int, *parts: str) -> float:
    """A number between 0 and 1 that these texts decide."""
    digest = hashlib.blake2b("\0".join([str(seed), *parts]).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def opening(paragraph: str) -> int:
    key = re.sub(r"\W+", "", paragraph[: 3 * OPENING].lower())[:OPENING]
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")


def split_held_out(source: Source, path: Path, seed: int, output: Path) -> list[str]:
    """Write the dev and test set of a source; gives their paragraphs. About twice `held_out` words in all."""
    if not source.held_out:
        return []
    share = 2.2 * source.held_out / word_count(path)
    sets: dict[str, list[list[str]]] = {"dev": [], "test": []}
    for document in documents(path):
        lot = chance(seed, source.name, document[0])
        if lot < share and (kept := CLEANERS[source.clean](document)):
            sets["dev" if lot < share / 2 else "test"].append(kept)
    paragraphs = []
    for part, chosen in sets.items():
        words = 0
        with (output / f"{source.name}.{part}.txt").open("w", encoding="utf-8") as out:
            for document in chosen:
                paragraphs += document  # never trained on, even where the set is full
                if words < source.held_out:
                    out.write("\n".join(document) + "\n\n")
                    words += sum(row.count(" ") + 1 for row in document)
    return paragraphs


def build(config: dict[str, Any], sources: Path, tests: Path, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    seed = int(config.get("seed", 1))
    chosen = [Source(**each) for each in config["source"]]
    items = [row for path in sorted(tests.glob("*.txt")) for row in path.read_text("utf-8").splitlines()]
    held: dict[str, list[str]] = {}
    for source in chosen:
        held[source.name] = split_held_out(source, sources / source.file, seed, output)
        items += held[source.name]
    forbidden = Grams(items)
    print(f"{len(forbidden.known):,} 8-grams and {len(forbidden.short):,} short items to keep out", flush=True)
    seen: set[int] = set()
    report: dict[str, Any] = {"seed": seed, "sources": {}}
    for source in chosen:
        counts = build_source(source, sources / source.file, held[source.name], forbidden, seen, seed, output)
        report["sources"][source.name] = {"genre": source.genre, "licence": source.licence, **vars(counts)}
        print(f"{source.name}: {counts.words:,} words, {counts.documents:,} documents, dropped {counts.dropped}")
        sys.stdout.flush()
    total = max(1, sum(each["words"] for each in report["sources"].values()))
    for each in report["sources"].values():
        each["share"] = round(each["words"] / total, 4)
    (output / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")


def build_source(
    source: Source, path: Path, held: list[str], forbidden: Grams, seen: set[int], seed: int, output: Path
) -> Counts:
    counts = Counts(held_out_words=sum(row.count(" ") + 1 for row in held))
    most = None if source.million_words is None else source.million_words * 1e6
    share = 1.0 if most is None else min(1.0, 1.15 * most / word_count(path))
    clean = CLEANERS[source.clean]
    with (output / f"{source.name}.train.txt").open("w", encoding="utf-8") as out:
        waiting: list[list[str]] = []
        size = 0

        def flush() -> None:
            nonlocal waiting, size
            found, _ = forbidden.shared([row for document in waiting for row in document])
            counts.drop("in a test set", found.sum())
            at = 0
            for document in waiting:
                kept = []
                for row, bad in zip(document, found[at : at + len(document)].tolist(), strict=True):
                    if bad:
                        continue
                    key = opening(row)
                    if key in seen:
                        counts.drop("duplicate", 1)
                        continue
                    seen.add(key)
                    kept.append(row)
                at += len(document)
                if kept and (most is None or counts.words < most):
                    out.write("\n".join(kept) + "\n\n")
                    counts.documents += 1
                    counts.words += sum(row.count(" ") + 1 for row in kept)
            waiting, size = [], 0

        for document in documents(path):
            # Documents are taken at random, so that a limit on words cuts no part of the source off.
            if share < 1 and chance(seed + 1, source.name, document[0]) >= share:
                continue
            rows = clean(document)
            counts.drop("no prose", max(0, len(document) - len(rows)))  # a tweet and its quotation are two rows
            if rows:
                waiting.append(rows)
                size += len(rows)
            if size >= CHUNK:
                flush()
            if most is not None and counts.words >= most:
                break
        flush()
    return counts


def check(texts: Sequence[Path], tests: Path) -> dict[str, dict[str, int]]:
    """For each test set: its items of 8 words or more, those with an 8-gram in the texts, those with half of theirs."""
    sets = {path.stem: path.read_text("utf-8").splitlines() for path in sorted(tests.glob("*.txt"))}
    everything = Grams(item for items in sets.values() for item in items)
    everything.read(texts)
    result = {}
    for name, items in sets.items():
        long = anything = half = 0
        for item in items:
            met, of = everything.count_met(item)
            if of:
                long, anything, half = long + 1, anything + bool(met), half + bool(2 * met >= of)
        result[name] = {"items": len(items), "of 8 words": long, "an 8-gram": anything, "half of them": half}
        print(f"{name:24} {len(items):7,} items, {long:7,} of 8 words or more: an 8-gram of {anything:6,}, "
              f"half of the 8-grams of {half:6,}", flush=True)  # fmt: skip
    return result


def sample(path: Path, count: int, seed: int) -> None:
    """Paragraphs from random places of a text."""
    rng = random.Random(seed)
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        for _ in range(count):
            stream.seek(rng.randrange(size))
            stream.readline()
            row = stream.readline() or b"\n"
            print("-", (row if row.strip() else stream.readline()).decode("utf-8", "replace")[:400].strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("tests", help="plain text of the test sets")
    command.add_argument("published", type=Path)
    command.add_argument("held_out", type=Path, nargs="*")
    command.add_argument("-o", "--output", type=Path, required=True)
    command = commands.add_parser("build", help="training text from extracted sources")
    command.add_argument("config", type=Path)
    command.add_argument("--sources", type=Path, required=True, help="folder of the extracted texts")
    command.add_argument("--tests", type=Path, required=True, help="folder that `tests` wrote")
    command.add_argument("-o", "--output", type=Path, required=True)
    command = commands.add_parser("check", help="how much of each test set a text holds")
    command.add_argument("texts", type=Path, nargs="+")
    command.add_argument("--tests", type=Path, required=True)
    command.add_argument("--json", type=Path)
    command = commands.add_parser("sample", help="random paragraphs of a text")
    command.add_argument("text", type=Path)
    command.add_argument("--count", type=int, default=20)
    command.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.command == "tests":
        write_tests(args.published, args.held_out, args.output)
    elif args.command == "build":
        build(read_toml(args.config), args.sources, args.tests, args.output)
    elif args.command == "check":
        result = check(args.texts, args.tests)
        if args.json:
            args.json.write_text(json.dumps(result, indent=1) + "\n")
    else:
        sample(args.text, args.count, args.seed)


if __name__ == "__main__":
    main()
