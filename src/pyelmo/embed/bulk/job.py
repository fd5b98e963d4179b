"""What a bulk job is: the settings, the input files, and the parts that its workers write.

OUT/_job.json            what the folder holds: checksums of input and model, and every setting
OUT/part-00000.parquet   the first sentences; then part-00001.parquet, ... (or .hdf5, .npz, .jsonl)
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyelmo.embed.embedder import Embedder
from pyelmo.embed.engines.build import torch_engine
from pyelmo.embed.files.inputs import InputPosition, read, read_written_rows
from pyelmo.embed.files.store import part_name
from pyelmo.embed.files.write import write_embeddings
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError, ScriptWarning
from pyelmo.text.rows import ReadOptions, TextRow

PART_SENTENCES = 5000
RUNNERS = ("processes", "ray")
RESUME = "Finished parts are kept. Run the command again without --force to resume."

Advance = Callable[[int], object]  # called with the number of sentences that were finished since the last call


@dataclass(frozen=True)
class BulkPart:
    """Consecutive sentences that go into one file, and where the input holds them."""

    number: int
    first: int
    count: int
    position: InputPosition


RunParts = Callable[[Sequence[BulkPart], Advance], None]


@dataclass(frozen=True, kw_only=True)
class BulkJob:
    """Everything that the main process and each worker know about a job. It is sent to the workers as it is."""

    settings: EmbedSettings
    inputs: Sequence[str]
    output: str
    reading: ReadOptions = field(default_factory=ReadOptions)
    extra: Sequence[tuple[str, str]] = ()  # names and types of the columns that come from the input
    rows_file: str | None = None  # the rows of inputs in which no part can begin in the middle
    part_sentences: int = PART_SENTENCES
    workers: int = 1
    runner: str = "processes"

    def __post_init__(self) -> None:
        for name in ("workers", "part_sentences"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.runner not in RUNNERS:
            raise InputError(f"runner {self.runner!r} is none of {', '.join(RUNNERS)}")
        object.__setattr__(self, "inputs", [_absolute_input(path) for path in self.inputs])
        object.__setattr__(self, "output", str(Path(self.output).resolve()))

    @property
    def folder(self) -> Path:
        return Path(self.output)

    @property
    def has_workers(self) -> bool:
        """Whether other processes write the parts; otherwise the main process does."""
        return self.workers > 1 or self.runner == "ray"

    @property
    def common_words_path(self) -> Path:
        """The file with the vectors of the most frequent words, so that not every worker encodes them again."""
        return self.folder / ".words.part"

    @property
    def rows_path(self) -> Path:
        """The file for the rows of inputs in which no part can begin in the middle."""
        return self.folder / ".rows.part"

    @property
    def worker_threads(self) -> int | None:
        """Threads of one worker. By default, one of several workers uses one thread, and a single worker uses all."""
        if self.settings.threads is None and self.workers > 1:
            return 1
        return self.settings.threads

    def path(self, part: BulkPart) -> Path:
        return self.folder / part_name(part.number, self.settings.format)

    def load_model(self, worker: int = 0) -> Embedder:
        """Load the model for the worker of this number. Workers take the GPUs of a machine in turn."""
        settings = dataclasses.replace(self.settings, threads=self.worker_threads)
        if settings.device == "cuda":
            settings = dataclasses.replace(settings, device=torch_engine("device 'cuda'").gpu_in_turn(worker))
        warnings.simplefilter("ignore", ScriptWarning)  # the main process has read the first sentences, and warned
        return settings.load()

    def rows(self, position: InputPosition | None = None) -> Iterator[TextRow]:
        """Yield the sentences of all inputs from a position on."""
        if self.rows_file is not None:
            return read_written_rows(self.rows_file, position or InputPosition())
        return read(self.inputs, self.reading, position)

    def write_part(self, embedder: Embedder, part: BulkPart, advance: Advance) -> None:
        sentences = itertools.islice(self.rows(part.position), part.count)
        write_embeddings(
            self.settings, embedder, sentences, self.path(part),
            extra=self.extra, first=part.first, count=part.count, force=True, advance=advance,
        )  # fmt: skip


def _absolute_input(path: str) -> str:
    if path == "-" or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()):
        raise InputError(f"{path}: is a stream, but a bulk job reads its input several times. Save it to a file first.")
    # A missing file keeps the name that the user gave, for the error that reading it raises.
    return str(Path(path).resolve()) if Path(path).is_file() else path
