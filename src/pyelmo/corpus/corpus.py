"""A corpus made ready for training: what lies in its folder, and the reading of it.

    DIR/manifest.json                        what is in it, how it was made, and a checksum of every other file
    DIR/types.txt, counts.bin                every word type, one a line (line number = id), and its count (int64)
    DIR/vocab.txt                            the first `vocab_size` of them: the softmax vocabulary
    DIR/train-00000.bin, train-00000.index   ids of whole sentences (int32), and where each begins (int64)
    DIR/valid-00000.bin, ...                 the same for the documents that are held out

The first three types are the marks <S>, </S> and <UNK>; the others stand by falling count in the training text.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.config import from_dict
from pyelmo.corpus.shards import ID, OFFSET, ShardFile, checksum
from pyelmo.errors import ConfigError, FormatError, InputError, NotFoundError
from pyelmo.text.tokens import LANGUAGES
from pyelmo.text.vocabulary import Vocabulary

VERSION = 1
SPLITS = ("train", "valid")
MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """The arguments of `prepare` that decide its result; a run can only be taken up again with the same ones."""

    inputs: tuple[str, ...]
    valid_inputs: tuple[str, ...] = ()
    language: str = "general"
    tokenised: bool = False
    vocab_size: int = 100_000
    min_count: int = 1
    min_type_count: int = 1
    max_types: int = 4_000_000  # more than this many types: the rarest become <UNK>
    valid_fraction: float = 0.005
    drop_duplicates: bool = False
    text_column: str = "text"
    input_format: str = "auto"
    shard_words: int = 20_000_000

    def __post_init__(self) -> None:
        if not self.inputs:
            raise InputError("no input: name one text file or more, or - for standard input")
        if (*self.inputs, *self.valid_inputs).count("-") > 1:
            raise InputError("standard input (-) can be read only once; name it once")
        if self.language not in LANGUAGES:
            raise InputError(f"language {self.language!r} is not known. Use one of {', '.join(LANGUAGES)}.")
        least_values = {"vocab_size": 4, "min_count": 1, "min_type_count": 1, "max_types": 1, "shard_words": 1}
        for name, least in least_values.items():
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if not 0 <= self.valid_fraction < 1:
            raise InputError(f"valid_fraction is {self.valid_fraction}; it must be at least 0 and less than 1")


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """The size of one split. `unknown` counts the words outside the vocabulary."""

    sentences: int = 0
    words: int = 0
    unknown: int = 0

    @property
    def unknown_rate(self) -> float:
        return self.unknown / self.words if self.words else 0.0


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a prepared corpus holds and how it was made."""

    version: int
    vocab_size: int  # words of the softmax, the three marks counted in
    types: int  # rows of types.txt, the marks counted in
    train: SplitCounts
    valid: SplitCounts
    settings: PrepareSettings
    files: tuple[ShardFile, ...]


class Corpus:
    """A prepared corpus, memory-mapped. Opening it checks the manifest and the files' sizes; `verify` every byte."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            raise NotFoundError(f"{folder}: no prepared corpus ({MANIFEST} is missing). Make one with elmo prepare.")
        manifest = read_manifest(path)
        for file in manifest.files:
            size = (folder / file.name).stat().st_size if (folder / file.name).is_file() else None
            if size != file.bytes:
                got = "is missing" if size is None else f"has {size} bytes, expected {file.bytes}"
                raise FormatError(f"{folder / file.name}: {got}. Copy the corpus again, or prepare it again.")
        return cls(folder, manifest)

    @property
    def vocab_size(self) -> int:
        return self.manifest.vocab_size

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """Every word type in the order of the ids, the three marks first."""
        return tuple((self.folder / "types.txt").read_bytes().decode("utf-8").split("\n")[:-1])

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self.folder / "vocab.txt")

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each type stands in the training text; 0 for the marks."""
        return np.fromfile(self.folder / "counts.bin", OFFSET)

    def shards(self, split: str = "train") -> list[npt.NDArray[np.int32]]:
        """The ids of each shard: sentences one after another, each closed by the end mark."""
        return self._map(split, ".bin", ID)

    def sentence_starts(self, split: str = "train") -> list[npt.NDArray[np.int64]]:
        """For each shard where its sentences begin, and last where the shard ends."""
        return self._map(split, ".index", OFFSET)

    def sentences(self, split: str = "train") -> Iterator[npt.NDArray[np.int32]]:
        """The ids of each sentence in the order of the text, without its end mark."""
        for ids, starts in zip(self.shards(split), self.sentence_starts(split), strict=True):
            for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                yield ids[start : end - 1]

    def verify(self) -> None:
        """Compare every file with its checksum."""
        for file in self.manifest.files:
            got = checksum(self.folder / file.name)
            if got != file.checksum:
                advice = "Its bytes have changed since it was written. Copy the corpus again, or prepare it again."
                raise FormatError(f"{self.folder / file.name}: checksum {got}, expected {file.checksum}. {advice}")

    def _map(self, split: str, suffix: str, kind: np.dtype[Any]) -> list[npt.NDArray[Any]]:
        if split not in SPLITS:
            raise InputError(f"split {split!r} is not known. Use one of {', '.join(SPLITS)}.")
        names = [file.name for file in self.manifest.files if file.name.startswith(f"{split}-")]
        return [np.memmap(self.folder / name, kind, "r") for name in names if name.endswith(suffix)]


def read_manifest(path: Path) -> Manifest:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict) and values.get("version") != VERSION:
            known = f"this program reads version {VERSION}"
            raise FormatError(f"{path}: has version {values.get('version')!r}, {known}. Prepare the corpus again.")
        manifest = from_dict(Manifest, values)
    except (json.JSONDecodeError, UnicodeDecodeError, ConfigError, InputError) as error:
        raise FormatError(f"{path}: is not a manifest of a corpus ({error}). Prepare the corpus again.") from error
    for file in manifest.files:
        if Path(file.name).name != file.name:
            raise FormatError(f"{path}: names a file outside its folder, {file.name!r}. Prepare the corpus again.")
    return manifest
