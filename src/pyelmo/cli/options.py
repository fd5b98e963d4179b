"""What several verbs share: which model, how its text is split, and actions of a verb."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

# What an action does in a line, what adds its arguments, and what runs it.
Action = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, Action], examples: Mapping[str, str]) -> None:
    """A parser for each action of a verb; `args.act` runs the one that was chosen."""
    parsers = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (summary, add, run) in actions.items():
        action = parsers.add_parser(name, help=summary, description=summary, epilog=f"example: {examples[name]}")
        action.set_defaults(act=run)
        add(action)


def add_model_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--options", metavar="JSON", help="options.json, where it is not beside the weights")
    parser.add_argument(
        "--vocab", metavar="FILE", help="the vocabulary, one word a line, where the model has none with it"
    )


def add_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language", help="how text is split: en, ko, ko-morph, general (default: as the model's text, else general)"
    )
