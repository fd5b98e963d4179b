"""Arguments and lines that several verbs share: which model, and sentences from a file or stdin."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pyelmo.errors import InputError, NotFoundError


def add_model_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--options", metavar="JSON", help="options.json, where it is not beside the weights")
    parser.add_argument(
        "--vocab", metavar="FILE", help="the vocabulary, one word a line, where the model has none with it"
    )


@contextlib.contextmanager
def open_text(path: str) -> Iterator[BinaryIO]:
    """A file, or stdin for "-"."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        raise NotFoundError(f"{path}: not found") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name a file, or - for stdin") from None
    with file:
        yield file


def read_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Lines split at line feeds alone, without their ends."""
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: not UTF-8 at byte {error.start} (0x{line[error.start]:02x}). "
                "Convert the file first, for example with iconv -t UTF-8."
            ) from error


def count_lines(path: str) -> int | None:
    """How many lines a regular file has; None for a stream."""
    if path == "-" or not Path(path).is_file():
        return None
    count, last = 0, b"\n"
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")
