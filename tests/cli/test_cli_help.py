"""--help: every example runs, and every option has one name, one meaning and a phrase that explains it."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyelmo.cli import VERBS, build_parser, main


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return groups[0].choices if groups else {}


COMMANDS = actions_of(build_parser())


def parsers() -> Iterator[argparse.ArgumentParser]:
    for command in COMMANDS.values():
        yield command
        yield from actions_of(command).values()


def example_of(parser: argparse.ArgumentParser) -> list[str]:
    assert parser.epilog.startswith("example: elmo ")
    return shlex.split(parser.epilog)[2:]


# The examples of the actions of a command run one after the other; those of `push`, `task` and `vectors` have tests of
# their own, and so has that of `serve`, which runs until it is stopped (tests/server).
CHAINS = {name: actions_of(parser) or {name: parser} for name, parser in COMMANDS.items()}


SLOW = ("bench", "finetune")
VERBS_WITH_EXAMPLE = [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
    for name in VERBS
    if name not in ("push", "task", "vectors", "serve")
]


def test_the_list_of_commands_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    assert max(map(len, build_parser().format_help().splitlines())) <= 72


@pytest.mark.parametrize("verb", VERBS_WITH_EXAMPLE)
def test_the_example_in_help_runs(verb, here, trained, capsys):
    shutil.copy(trained / "text.txt", "text.txt")
    if verb in ("evaluate", "finetune"):  # slow on a whole text with a model of real size
        short = "".join(Path("text.txt").read_text("utf-8").splitlines(keepends=True)[:10])
        Path("sentences.txt").write_text(short, "utf-8")
    if verb == "evaluate":
        shutil.move("sentences.txt", "text.txt")
    if verb == "finetune":
        assert main(["prepare", "text.txt", "-o", "corpus", "--valid", "sentences.txt", "--tokenised", "-q"]) == 0
    if verb == "sentences":
        assert main(["convert", "MODEL", "my-model"]) == 0
    if verb == "neighbours":
        pytest.importorskip("faiss")
    for parser in CHAINS[verb].values():
        command = example_of(parser)
        assert command[0] == verb
        assert main(command) == 0


def test_the_examples_of_explore_and_predict_show_what_they_promise(here, capsys):
    assert main([*example_of(COMMANDS["explore"]), "--layers", "top", "--json"]) == 0
    river, _, lake = json.loads(capsys.readouterr().out)["layers"][0]["cosines"]
    assert river[2] > max(river[1], lake[1]) + 0.1  # the banks of a river and of a lake are nearer than the account
    assert main([*example_of(COMMANDS["predict"]), "--json"]) == 0
    assert [guess["word"] for guess in json.loads(capsys.readouterr().out)][:2] == ["water", "lake"]


def test_a_command_with_actions_shows_the_example_of_one():
    for command in COMMANDS.values():
        examples = [example_of(action) for action in actions_of(command).values()]
        assert not examples or example_of(command) in examples


def test_every_description_is_a_sentence_and_every_option_is_explained():
    without_default = {"premise", "hypothesis", "passage", "question", "document", "input"}  # inputs, not settings
    for parser in parsers():
        assert parser.description[0].isupper(), parser.prog
        assert parser.description.endswith("."), parser.prog
        for action in parser._actions:
            if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
                continue
            name = f"{parser.prog} {action.dest}"
            assert action.help, name
            assert len(action.help.split()) > 2, name
            if (
                action.option_strings
                and action.nargs != 0
                and not action.required
                and action.dest not in without_default
            ):
                assert "(default: " in action.help, name


# Other shared options have defaults that depend on the command: --layers, --language, --column, --threads, --seed.
SAME = {
    "tokenised", "device", "workers", "force", "quiet", "json", "tensorboard", "set", "options", "vocab", "count", "cache",
}  # fmt: skip


def test_an_option_has_one_spelling_and_one_default_everywhere():
    seen: dict[str, tuple[object, ...]] = {}
    for parser in parsers():
        for action in parser._actions:
            if action.dest in SAME:
                facts = (tuple(action.option_strings), action.type, str(action.default), action.metavar, action.nargs)
                assert seen.setdefault(action.dest, facts) == facts, f"{parser.prog} {action.dest}"
    assert set(seen) == SAME


def test_every_command_that_computes_has_threads():
    for parser in parsers():
        names = {option for action in parser._actions for option in action.option_strings}
        assert "--device" not in names or "--threads" in names, parser.prog


def test_an_option_name_belongs_to_one_meaning():
    names = {option for parser in parsers() for action in parser._actions for option in action.option_strings}
    replaced = {"--text-column", "--processes", "--engine", "--layer", "--static", "--jobs"}
    assert not names & replaced
    assert "--model" not in COMMANDS["vectors"]._subparsers._group_actions[0].choices["train"].format_help()


def test_both_spellings_of_tokenised_are_one_option():
    for spelling in ("--tokenised", "--tokenized"):
        assert build_parser().parse_args(["score", "en", "text.txt", spelling]).tokenised is True


def test_help_lists_every_command_in_its_group(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    starts = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in VERBS]
    assert starts == list(VERBS)
