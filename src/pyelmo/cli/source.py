"""Arguments that several verbs share: which model, and how its text is split."""

from __future__ import annotations

import argparse


def add_model_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--options", metavar="JSON", help="options.json, where it is not beside the weights")
    parser.add_argument(
        "--vocab", metavar="FILE", help="the vocabulary, one word a line, where the model has none with it"
    )


def add_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language", help="how text is split: en, ko, ko-morph, general (default: as the model's text, else general)"
    )
