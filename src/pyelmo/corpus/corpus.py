"""A prepared corpus: the files in its folder, and how to read them.

    DIR/manifest.json                        settings, sizes, and a checksum of every other file
    DIR/types.txt, counts.bin                every word type, one per line (line number = id), and its count (int64)
    DIR/vocab.txt                            the first `vocab_size` types: the softmax vocabulary
    DIR/train-00000.bin, train-00000.index   ids of whole sentences (int32), and the start of each sentence (int64)
    DIR/valid-00000.bin, ...                 the same for the validation set

The first three types are the special tokens <S>, </S> and <UNK>; the others follow by falling count in the training
text.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.config import from_dict, to_dict
from pyelmo.corpus.shards import ID, OFFSET, CorpusFile, checksum
from pyelmo.errors import ConfigError, FormatError, InputError, NotFoundError
from pyelmo.files import write_text
from pyelmo.parsing import read_json
from pyelmo.text.rows import ReadOptions
from pyelmo.text.tokens import check_language
from pyelmo.text.vocabulary import Vocabulary

VERSION = 1
SPLITS = ("train", "valid")
MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """Settings of `prepare` that determine the result; a run can only be resumed with the same settings.

    Args:
        inputs: Files to train on: text, csv, tsv, JSON lines or Parquet, compressed or not; "-" is standard input.
        valid_inputs: Text files for validation; if there are any, `valid_fraction` is ignored.
        language: Rules for splitting text into words: "en", "ko", "ko-morph" or "general".
        tokenised: Whether each line is a sentence with spaces between its words.
        vocab_size: Number of words in the softmax vocabulary, including the three special tokens.
        min_count: Minimum count of a word in the softmax vocabulary.
        min_type_count: Minimum count of a word type; rarer types become <UNK>.
        max_types: Maximum number of word types; the rarest types beyond it become <UNK>.
        valid_fraction: Fraction of the documents that is held out for validation; of a text with too few documents,
            the last tenth of the lines, at most 100.
        drop_duplicates: Whether to drop each line that has occurred before.
        column: Column of csv, tsv, JSON lines and Parquet files that contains the text.
        input_format: Format of the inputs: "text", "csv", "tsv", "jsonl", "parquet", or "auto" to recognise it.
        encoding: Encoding of the inputs; None is UTF-8.
        shard_words: Number of tokens after which a new shard starts, at the end of a sentence.

    Raises:
        InputError: A setting is invalid.
    """

    inputs: tuple[str, ...]
    valid_inputs: tuple[str, ...] = ()
    language: str = "general"
    tokenised: bool = False
    vocab_size: int = 100_000
    min_count: int = 1
    min_type_count: int = 1
    max_types: int = 4_000_000
    valid_fraction: float = 0.005
    drop_duplicates: bool = False
    column: str | None = None
    input_format: str = "auto"
    encoding: str | None = None
    shard_words: int = 20_000_000

    def __post_init__(self) -> None:
        for name in ("inputs", "valid_inputs"):
            if isinstance(getattr(self, name), (str, Path)):
                raise InputError(f"{name} must be a list of files, even for one file")
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        if not self.inputs:
            raise InputError("no input: name at least one text file, or - for standard input")
        if (*self.inputs, *self.valid_inputs).count("-") > 1:
            raise InputError("standard input (-) can be read only once, but it is named more than once")
        check_language(self.language)
        least_values = {"vocab_size": 4, "min_count": 1, "min_type_count": 1, "max_types": 1, "shard_words": 1}
        for name, least in least_values.items():
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if not 0 <= self.valid_fraction < 1:
            raise InputError(f"valid_fraction is {self.valid_fraction}; it must be at least 0 and less than 1")
        _ = self.reading  # checks its values

    @property
    def reading(self) -> ReadOptions:
        return ReadOptions(column=self.column, input_format=self.input_format, encoding=self.encoding)


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """The size of one split. `unknown` counts the out-of-vocabulary words."""

    sentences: int = 0
    words: int = 0
    unknown: int = 0

    @property
    def unknown_rate(self) -> float:
        return self.unknown / self.words if self.words else 0.0


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A text file that a corpus was prepared from; standard input is not listed."""

    name: str
    bytes: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of a prepared corpus and the settings it was made with."""

    version: int
    vocab_size: int  # size of the softmax vocabulary, including the special tokens
    types: int  # number of word types, including the special tokens
    train: SplitCounts
    valid: SplitCounts
    settings: PrepareSettings
    files: tuple[CorpusFile, ...]
    sources: tuple[SourceFile, ...] = ()  # missing in a corpus of an earlier version


class Corpus:
    """A prepared corpus, memory-mapped. `open` checks the manifest and the file sizes, `verify` the checksums."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        folder = Path(folder)
        path = folder / MANIFEST
        if not folder.exists():
            raise NotFoundError(f"{folder}: not found. Name a corpus that elmo prepare wrote.")
        if not path.is_file():
            raise NotFoundError(f"{folder}: not a prepared corpus ({MANIFEST} is missing). Make one with elmo prepare.")
        manifest = read_manifest(path)
        for file in manifest.files:
            size = (folder / file.name).stat().st_size if (folder / file.name).is_file() else None
            if size != file.bytes:
                problem = "is missing" if size is None else f"has {size} bytes, expected {file.bytes}"
                raise _damaged(folder / file.name, problem)
        _check_layout(folder, manifest)
        return cls(folder, manifest)

    @property
    def vocab_size(self) -> int:
        return self.manifest.vocab_size

    @property
    def identity(self) -> str:
        """A checksum of the content, which a copy of the corpus shares."""
        names = "".join(f"{file.name} {file.checksum}\n" for file in self.manifest.files)
        return hashlib.blake2b(names.encode("utf-8"), digest_size=16).hexdigest()

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """All word types in the order of their ids."""
        path = self.folder / "types.txt"
        try:
            types = tuple(path.read_bytes().decode("utf-8").split("\n")[:-1])
        except UnicodeDecodeError as error:
            raise _damaged(path, f"is not UTF-8 at byte {error.start}") from error
        if len(types) != self.manifest.types:
            raise _damaged(path, f"has {len(types)} words, expected {self.manifest.types}")
        return types

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        path = self.folder / "vocab.txt"
        vocabulary = Vocabulary.load(path)
        if len(vocabulary) != self.vocab_size:
            raise _damaged(path, f"has {len(vocabulary)} words, expected {self.vocab_size}")
        return vocabulary

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The count of each type in the training text; 0 for the special tokens."""
        return np.fromfile(self.folder / "counts.bin", OFFSET)

    def shards(self, split: str = "train") -> list[npt.NDArray[np.int32]]:
        """Return the ids of each shard: sentences one after another, each followed by </S>."""
        return self._map(split, ".bin", ID)

    def sentence_starts(self, split: str = "train") -> list[npt.NDArray[np.int64]]:
        """Return for each shard the start of its sentences, and at the end the length of the shard."""
        indexes = self._map(split, ".index", OFFSET)
        for file, starts, ids in zip(self._files(split, ".index"), indexes, self.shards(split), strict=True):
            if starts[0] != 0 or starts[-1] != len(ids) or (np.diff(starts) < 1).any():
                raise _damaged(self.folder / file, f"is not an index of a shard of {len(ids)} tokens")
        return indexes

    def sentences(self, split: str = "train") -> Iterator[npt.NDArray[np.int32]]:
        """Yield the ids of each sentence in the order of the text, without </S>."""
        names, indexes = self._files(split, ".bin"), self.sentence_starts(split)
        for name, ids, starts in zip(names, self.shards(split), indexes, strict=True):
            self._check_ids(name, ids)
            for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                yield ids[start : end - 1]

    def verify(self) -> None:
        """Compare the checksum of every file with the manifest, and the ids with the number of types."""
        for file in self.manifest.files:
            actual = checksum(self.folder / file.name)
            if actual != file.checksum:
                raise _damaged(self.folder / file.name, f"checksum mismatch: {actual}, expected {file.checksum}")
        for split in SPLITS:
            for name, ids in zip(self._files(split, ".bin"), self.shards(split), strict=True):
                self._check_ids(name, ids)

    def _check_ids(self, name: str, ids: npt.NDArray[np.int32]) -> None:
        if ids.min() < 0 or ids.max() >= self.manifest.types:
            raise _damaged(self.folder / name, f"has an id that is not below {self.manifest.types}")

    def _files(self, split: str, suffix: str) -> list[str]:
        names = (file.name for file in self.manifest.files)
        return [name for name in names if name.startswith(f"{split}-") and name.endswith(suffix)]

    def _map(self, split: str, suffix: str, kind: np.dtype[Any]) -> list[npt.NDArray[Any]]:
        if split not in SPLITS:
            raise InputError(f"split {split!r} is unknown. Use one of {', '.join(SPLITS)}.")
        return [np.memmap(self.folder / name, kind, "r") for name in self._files(split, suffix)]


def _damaged(path: Path, problem: str) -> FormatError:
    return FormatError(f"{path}: {problem}. Copy the corpus again, or prepare it again.")


def _check_layout(folder: Path, manifest: Manifest) -> None:
    """Check that the files are those of a corpus and have whole numbers of ids and offsets."""
    sizes = {file.name: file.bytes for file in manifest.files}
    missing = [name for name in ("types.txt", "vocab.txt", "counts.bin") if name not in sizes]
    if missing or len(sizes) != len(manifest.files):
        raise _damaged(folder / MANIFEST, f"does not list {' and '.join(missing) or 'each file once'}")
    if not 3 <= manifest.vocab_size <= manifest.types or sizes["counts.bin"] != OFFSET.itemsize * manifest.types:
        raise _damaged(
            folder / MANIFEST, f"{manifest.types} types do not fit {manifest.vocab_size} words or counts.bin"
        )
    for name, size in sizes.items():
        stem, _, suffix = name.rpartition(".")
        if name.startswith(tuple(f"{split}-" for split in SPLITS)):
            item = {"bin": ID.itemsize, "index": OFFSET.itemsize}.get(suffix)
            if item is None or not size or size % item or not {f"{stem}.bin", f"{stem}.index"} <= sizes.keys():
                raise _damaged(folder / name, f"is not a shard or its index ({size} bytes)")


def settings_to_json(settings: PrepareSettings) -> dict[str, Any]:
    """Return the settings with the keys of JSON files, which call the column `text_column`."""
    return {"text_column" if name == "column" else name: value for name, value in to_dict(settings).items()}


def write_manifest(path: Path, manifest: Manifest) -> None:
    values = {**to_dict(manifest), "settings": settings_to_json(manifest.settings)}
    write_text(path, json.dumps(values, ensure_ascii=False, indent=1) + "\n")


def read_manifest(path: Path) -> Manifest:
    try:
        values = read_json(path)
        version = values.get("version", VERSION)
        settings = values.get("settings")
        if isinstance(settings, dict) and "text_column" in settings:
            settings["column"] = settings.pop("text_column")
        if version == VERSION:
            manifest = from_dict(Manifest, values)
    except (ConfigError, InputError, FormatError) as error:
        raise FormatError(f"{path}: not the manifest of a corpus ({error}). Prepare the corpus again.") from error
    if version != VERSION:
        problem = f"has version {version!r}, this program reads version {VERSION}"
        raise FormatError(f"{path}: {problem}. Prepare the corpus again.")
    for file in manifest.files:
        if Path(file.name).name != file.name:
            raise FormatError(f"{path}: lists a file outside its folder, {file.name!r}. Prepare the corpus again.")
    return manifest
