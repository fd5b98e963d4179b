"""Code blocks of README.md and docs/: commands and Python run as written, on small files with the names they use.

A block without a language is commands, `text` after a block is its output, and `<!-- not run: why -->` before a block
says why a test cannot run it.
"""

from __future__ import annotations

import codeop
import glob
import itertools
import math
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import task_support
import torch
from docs_support import ROOT, SITE_PAGES
from hub_server import HubServer
from support import make_embedder

from pyelmo.cli import build_parser, main
from pyelmo.experiments.plans import read_plan

TEXT = (ROOT / "tests" / "banks.txt").read_text("utf-8").splitlines()
KOREAN = ROOT / "src" / "pyelmo" / "probes" / "lists" / "senses.ko.tsv"
BLOCK = re.compile(r"^(?:<!-- not run: (.+?) -->\n)?```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DATA = ("text", "toml", "ini", "json", "yaml")  # languages of outputs and files
NUMBER = r"\d+(?:\.\d*)?"
# What is smaller in the test than in the page: the last value of an option counts.
SMALLER = {
    "prepare": ["--valid", "held-out.txt"],
    "pretrain": ["--set", "training.words=2000", "--set", "training.batch=8", "--set", "model.lstm.cells=16"],
    "finetune": ["--set", "training.words=160", "--set", "training.batch=4"],
    "embed": ["--workers", "2", "--threads", "1"],
    "vectors distill": ["--vocab-size", "20", "--occurrences", "2", "--min-count", "1"],
    "task train": ["--seeds", "2", "--set", "training.epochs=1", "--set", "words.min_count=1"],
}


@dataclass(frozen=True)
class Block:
    why_not: str  # the reason why it is not run, or ""
    language: str
    text: str
    output: str | None  # what the page shows as its output


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page, each with the output that follows it."""
    text = (ROOT / page).read_text("utf-8")
    matches = list(BLOCK.finditer(text))
    found = []
    for match, after in itertools.zip_longest(matches, matches[1:]):
        shown = after is not None and after[2] == "text" and not text[match.end() : after.start()].strip()
        found.append(Block(match[1] or "", match[2], match[3], after[3] if after and shown else None))
    return found


ELSEWHERE = ("docs/guides/server.md",)  # tests/server/test_server_docs.py runs its blocks against a server
NAMES = [str(page.relative_to(ROOT)) for page in [*sorted(ROOT.glob("README*.md")), *SITE_PAGES]]
PAGES = [name for name in NAMES if name not in ELSEWHERE and blocks(name)]


def commands(block: Block) -> list[list[str]]:
    """Return the commands of a block, without comments, each as a list of words."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def same_output(shown: str, printed: str) -> bool:
    """Tell whether the words are equal and the numbers nearly so; `...` stands for anything."""
    pattern = ""
    for piece in re.split(rf"({NUMBER}|\.\.\.)", " ".join(shown.split())):
        is_number = re.fullmatch(NUMBER, piece) is not None
        pattern += f"({NUMBER})" if is_number else ".*?" if piece == "..." else re.escape(piece)
    match = re.fullmatch(pattern, " ".join(printed.split()))
    wanted = re.findall(NUMBER, shown)
    return match is not None and all(
        math.isclose(float(number), float(want), rel_tol=0.05, abs_tol=0.03)
        for number, want in zip(match.groups(), wanted, strict=True)
    )


LITBANK_ROW = "{name}\t0\t{number}\t{word}" + "\t_" * 8 + "\t{mark}\n"
LITBANK_WORDS = [("Ann", "(0)"), ("ran", "_"), (".", "_"), ("She", "(0)"), ("sat", "_"), (".", "_")]


def write_litbank() -> None:
    """Write two documents, and lists of documents that name them."""
    Path("coref/conll").mkdir(parents=True)
    Path("0").mkdir()
    names = ("1_a_brat", "2_b_brat")
    for name in names:
        rows = [
            LITBANK_ROW.format(name=name, number=number, word=word, mark=mark)
            for number, (word, mark) in enumerate(LITBANK_WORDS)
        ]
        text = f"#begin document ({name}); part 0\n" + "".join(rows) + "\n#end document\n"
        Path(f"coref/conll/{name}.conll").write_text(text, "utf-8")
    for file in ("train", "dev", "test"):
        Path(f"0/{file}.ids").write_text("".join(f"{name}.tsv\n" for name in names), "utf-8")


def write_old_weights() -> None:
    """Write a small model as a zip and as SeqVec's files, an alignment, and proteins."""
    model = make_embedder()
    model.save("seqvec", format="allennlp")
    shutil.make_archive("144", "zip", "seqvec")
    torch.save(np.eye(model.config.dim, dtype=np.float32), "align.pth")
    Path("proteins.fasta").write_text(">P69905 Hemoglobin\nMVLSPADKTN\n>P01308 Insulin\nMALWMRLL\n", "utf-8")


def expand(words: list[str]) -> list[str]:
    """Replace patterns of files as a shell does."""
    return [name for word in words for name in (sorted(glob.glob(word)) if "*.txt" in word else [word])]


@pytest.fixture(scope="module")
def hub():
    server = HubServer()
    yield server
    server.close()


@pytest.fixture
def files(tmp_path, monkeypatch, request, hub):
    """A folder with the files that the pages name, and a server in place of the Hub.

    Tutorials make their files themselves.
    """
    monkeypatch.chdir(tmp_path)
    if "tutorials/" in request.node.name:
        return tmp_path
    hub.replace_hub(monkeypatch, tmp_path / "cache")
    make_embedder().save(tmp_path / "uploaded")
    hub.add("user/my-model", tmp_path / "uploaded")
    for name in ("text.txt", "domain.txt", "corpus/a.txt", "corpus/b.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("\n".join(TEXT[:60]) + "\n", "utf-8")
    korean = [line.split("\t")[2].replace("*", "") for line in KOREAN.read_text("utf-8").splitlines()]
    Path("ko.txt").write_text("\n".join(korean) + "\n", "utf-8")
    Path("en-wikipedia.train.txt").write_text("She wrote a play .\nHe made a play at first base .\n", "utf-8")
    for name in ("sentences.txt", "held-out.txt"):
        Path(name).write_text("\n".join(TEXT[:5]) + "\n", "utf-8")
    for number, name in enumerate(("train", "dev", "test")):
        Path(f"{name}.conll").write_text(task_support.sentences(6, number), "utf-8")
        Path(f"{name}.jsonl").write_text(task_support.PAIRS, "utf-8")
    for name in ("", "-dev"):
        Path(f"reviews{name}.csv").write_text("body,stars\nA lovely film.,5\nDull.,1\n", "utf-8")
        entities = '{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}\n'
        Path(f"entities{name}.jsonl").write_text(entities * 2, "utf-8")
        Path(f"treebank{name}.conllu").write_text(("1\tAnn\t_\tPROPN" + "\t_" * 6 + "\n\n") * 2, "utf-8")
    Path("glove.txt").write_text("lives 0.1 0.2\nin 0.3 0.1\n", "utf-8")
    Path("novel.txt").write_text("Ann ran. She sat.\n", "utf-8")
    write_old_weights()
    write_litbank()
    return tmp_path


def smaller(name: str, command: list[str]) -> list[str]:
    if name == "embed" and not command[command.index("-o") + 1].endswith("/"):
        return []  # one process writes a file
    return [*SMALLER.get(name, []), *(["--vocab-size", "100"] if "--vocab-size" in command else [])]


def run_elmo(command: list[str]) -> None:
    name = " ".join(command[1:3]) if command[1] in ("task", "vectors") else command[1]
    if command[1] == "prepare" and Path("corpus").is_dir():
        shutil.rmtree("corpus")  # on another page it is a folder of texts
    arguments = expand(command[1:]) + smaller(name, command)
    assert main(arguments) == 0, arguments


def check_pip(command: list[str]) -> None:
    """`make` and tests/install install the package; here, the extras that a page names must exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for named in re.findall(r"\[(.*?)\]", " ".join(command)):
        assert set(named.split(",")) <= set(extras)


def check_make(command: list[str]) -> None:
    assert f"\n{command[1]}:" in (ROOT / "Makefile").read_text("utf-8")


def check_environment(command: list[str]) -> None:
    """The tests have their own environment; here, making and activating must name the same folder."""
    assert command in (["python3", "-m", "venv", ".venv"], ["source", ".venv/bin/activate"])


RUN = {
    "elmo": run_elmo,
    "pip": check_pip,
    "make": check_make,
    "python3": check_environment,
    "source": check_environment,
}


@pytest.mark.parametrize("page", PAGES)
def test_every_elmo_command_of_a_page_can_be_parsed(page):
    for block in blocks(page):
        for command in commands(block) if not block.language else []:
            if command[0] == "elmo":
                build_parser(command[1]).parse_args(command[1:])


@pytest.fixture
def values():
    """The variables of a page. A server that it started is stopped, also if the page fails before it stops it."""
    values: dict[str, object] = {}
    yield values
    for value in values.values():
        if isinstance(value, subprocess.Popen) and value.poll() is None:
            value.kill()
            value.wait()


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_one_after_the_other(page, files, values, capsys):
    for block in blocks(page):
        capsys.readouterr()
        if block.why_not:
            continue
        if block.language == "python":
            exec(compile(block.text, page, "exec"), values)
        elif not block.language:
            for command in commands(block):
                RUN[command[0]](command)
        printed = capsys.readouterr().out
        assert block.output is None or same_output(block.output, printed), printed


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_python_commands_or_data(page):
    assert {block.language for block in blocks(page) if not block.why_not} <= {"", "python", *DATA}


def paste_at_the_prompt(text: str) -> None:
    """Raise SyntaxError where `python` would: there, a blank line ends what is indented, and only a blank line does."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if codeop.compile_command("\n".join(lines)) is not None:
            lines = []


@pytest.mark.parametrize("page", [page for page in PAGES if re.search("README|tutorials|explanations", page)])
def test_the_python_of_a_lesson_can_be_pasted_at_the_prompt(page):
    for block in blocks(page):
        if block.language == "python":
            paste_at_the_prompt(block.text)


def test_blocks_that_do_not_run_are_few():
    assert len([block for page in PAGES for block in blocks(page) if block.why_not]) <= 5


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("cosine 0.82 of bank", True),
        ("cosine 0.83\nof bank", True),
        ("cosine 0.62 of bank", False),
        ("cosine 0.82", False),
    ],
)
def test_outputs_are_compared_by_words_and_rounded_numbers(printed, same):
    assert same_output("cosine 0.82 of ...", printed) is same


def test_the_plan_of_the_experiments_page_can_be_read(files):
    plan = next(block.text for block in blocks("docs/guides/experiments.md") if block.language == "toml")
    Path("plan.toml").write_text(plan, "utf-8")
    (srl,) = read_plan("plan.toml")
    assert [run.name for run in srl.runs][:3] == ["srl-glove", "srl-en", "srl-en-top"]
