"""Arguments that several verbs share: which model."""

from __future__ import annotations

import argparse


def add_model_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--options", metavar="JSON", help="options.json, where it is not beside the weights")
    parser.add_argument(
        "--vocab", metavar="FILE", help="the vocabulary, one word a line, where the model has none with it"
    )
