"""Commands that consist of several actions, such as `elmo task train` and `elmo task evaluate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """One action of a command: a description, an example, and the functions that add its options and run it."""

    help: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


def add_actions(parser: argparse.ArgumentParser, actions: Mapping[str, Action]) -> None:
    """Add a parser for each action; `args.run` is the function of the chosen one."""
    title = f"actions (`{parser.prog} ACTION --help` describes one and its options)"
    parsers = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title=title)
    for name, action in actions.items():
        own = parsers.add_parser(name, help=action.help, description=action.help, epilog=f"example: {action.example}")
        action.add_arguments(own)
        own.set_defaults(run=action.run)
