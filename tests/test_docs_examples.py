"""Code blocks of README.md and docs/: commands and Python run as written, on small files with the names they use."""

from __future__ import annotations

import glob
import re
import shlex
import shutil
from pathlib import Path

import pytest
import task_support

from pyelmo.cli import build_parser, main
from pyelmo.experiments.plans import read_plan

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "tests" / "banks.txt").read_text("utf-8").splitlines()
# docs/log.md and docs/results/ name the commands of experiments as they were at the commits that they state.
GUIDES = [f"docs/guides/{name}.md" for name in ("bulk", "experiments", "scaling", "sentences", "tasks", "training")]
PAGES = ["README.md", "docs/speed.md", *GUIDES]
# What a test cannot repeat, and why. All other commands run.
NOT_RUN = {
    "pip": "installs packages",
    "make": "builds an environment",
    "torchrun": "starts processes on GPUs",
    "python": "measures for minutes; tests/benchmarks tests the scripts",
    "--device cuda": "needs a GPU",
    "--runner ray": "needs Ray and a shared file system",
}
# What is smaller in the test than in the page: the last value of an option counts.
SMALLER = {
    "prepare": ["--valid", "held-out.txt"],
    "pretrain": ["--set", "training.words=2000", "--set", "training.batch=8", "--set", "model.lstm.cells=16"],
    "finetune": ["--set", "training.words=500", "--set", "training.batch=4"],
    "convert": ["--vocab-size", "100"],
    "embed": ["--workers", "2", "--threads", "1"],
    "task train": ["--seeds", "2", "--set", "training.epochs=1", "--set", "words.min_count=1"],
}


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of every code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[list[str]]:
    """Return the commands of a block, without comments, each as a list of words."""
    lines = block.replace("\\\n", " ").splitlines()
    programs = ("elmo", "pip", "make", "python", "torchrun")
    return [shlex.split(line, comments=True) for line in lines if line.split(" ")[0] in programs]


def all_commands(page: str) -> list[list[str]]:
    return [command for language, text in blocks(page) if not language for command in commands(text)]


def reason_not_to_run(command: list[str]) -> str | None:
    line = " ".join(command)
    return next((why for what, why in NOT_RUN.items() if command[0] == what or what in line), None)


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


def expand(words: list[str]) -> list[str]:
    """Replace patterns of files as a shell does."""
    return [name for word in words for name in (sorted(glob.glob(word)) if "*.txt" in word else [word])]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    for name in ("text.txt", "domain.txt", "corpus/a.txt", "corpus/b.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("\n".join(TEXT[:60]) + "\n", "utf-8")
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
    write_litbank()
    return tmp_path


def run_command(command: list[str]) -> None:
    name = " ".join(command[1:3]) if command[1] == "task" else command[1]
    if command[1] == "prepare" and Path("corpus").is_dir():
        shutil.rmtree("corpus")  # on another page it is a folder of texts
    arguments = expand(command[1:]) + SMALLER.get(name, [])
    assert main(arguments) == 0, arguments


@pytest.mark.parametrize("page", PAGES)
def test_every_elmo_command_of_a_page_can_be_parsed(page):
    for command in all_commands(page):
        if command[0] == "elmo":
            build_parser().parse_args(command[1:])


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run_one_after_the_other(page, files, capsys):
    values: dict[str, object] = {}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec"), values)
        for command in commands(text) if not language else []:
            if reason_not_to_run(command) is None:
                run_command(command)


def test_the_plan_of_the_experiments_page_can_be_read(files):
    text = next(text for language, text in blocks("docs/guides/experiments.md") if language == "toml")
    Path("plan.toml").write_text(text, "utf-8")
    (srl,) = read_plan("plan.toml")
    assert [run.name for run in srl.runs][:3] == ["srl-glove", "srl-en", "srl-en-top"]


def test_commands_that_do_not_run_are_few():
    skipped = [command for page in PAGES for command in all_commands(page) if reason_not_to_run(command)]
    assert len(skipped) <= 16
