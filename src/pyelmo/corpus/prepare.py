"""Prepare text files for training: text files -> a corpus in a folder.

    files --TextReader--> lines --cut_chunks--> chunks --encode_chunks--> chunk files --write_shards--> DIR

The text is read and split only once. All files are written to a working folder beside DIR, which is renamed to DIR at
the end. If the run is killed and started again, it keeps every finished chunk. The result does not depend on the number
of worker processes. The manifest stores the name, size and checksum of every text file.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyelmo.config import to_dict
from pyelmo.corpus.chunks import Chunk, ChunkSettings, SeenLines, cut_chunks
from pyelmo.corpus.corpus import (
    MANIFEST,
    VERSION,
    Manifest,
    PrepareSettings,
    SourceFile,
    SplitCounts,
    read_manifest,
    settings_to_json,
    write_manifest,
)
from pyelmo.corpus.encoding import OnProgress, encode_chunks
from pyelmo.corpus.reading import TextReader
from pyelmo.corpus.shards import (
    CorpusFile,
    TypeTable,
    checksum,
    count_file,
    count_types,
    order_types,
    type_file,
    write_file,
    write_shards,
)
from pyelmo.errors import FormatError, InputError, OutputError
from pyelmo.files import check_output, check_replaceable, locked, write_text
from pyelmo.parsing import parse_json

_JOURNAL = "journal.json"
_FILES = (MANIFEST, "types.txt", "vocab.txt", "counts.bin", "train-*", "valid-*", _JOURNAL)  # of a corpus
_log = logging.getLogger(__name__)


def prepare(
    settings: PrepareSettings,
    output: str | Path,
    *,
    workers: int = 1,
    progress: OnProgress | bool = False,
    force: bool = False,
) -> Manifest:
    """Prepare text files as a corpus in the folder `output`, or resume a run that was killed.

    Args:
        settings: The inputs, and how to split and count them.
        output: The folder to create.
        workers: Number of processes.
        progress: A callback for each finished chunk, or True for a progress bar on stderr.
        force: Whether to replace an existing corpus, and to drop an unfinished run with other settings.

    Returns:
        The manifest of the corpus.

    Raises:
        InputError: A setting is invalid, or an input cannot be read or contains no words.
        NotFoundError: An input does not exist.
        FormatError: An input is damaged or not UTF-8.
        OutputError: The output exists already or cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text.txt").write_text("A bank account. A river bank.")
        ...     settings = PrepareSettings(inputs=(f"{folder}/text.txt",), language="en", valid_fraction=0)
        ...     manifest = prepare(settings, f"{folder}/corpus")
        >>> manifest.train.sentences, manifest.train.words
        (2, 8)
    """
    output = Path(output)
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be at least 1")
    check_output(output, force=True)
    readers = [
        TextReader(paths, settings.reading, tokenised=settings.tokenised)
        for paths in (settings.inputs, settings.valid_inputs)
    ]
    work, old = (output.with_name(f".{output.name}.{name}") for name in ("preparing", "old"))
    with locked(output, beside=True):
        _recover(work, output, old)
        _check_replaced(output, force=force)
        sources = read_sources(settings)
        with _write_errors_explained(work), _removed_if_empty(work):
            _open_work(work, settings, sources, force=force)
            if not (work / MANIFEST).is_file():
                chunk_files = _encode(readers, work / "chunks", settings, workers, progress)
                _finish(work, chunk_files, settings, sources)
            manifest = read_manifest(work / MANIFEST)
            _move_to_output(work, output, old)
    return manifest


def read_sources(settings: PrepareSettings) -> tuple[SourceFile, ...]:
    """Return the name, size and checksum of each input file; standard input and pipes can be read only once."""
    names = [name for name in (*settings.inputs, *settings.valid_inputs) if name != "-" and Path(name).is_file()]
    return tuple(
        SourceFile(name=name, bytes=Path(name).stat().st_size, checksum=checksum(Path(name))) for name in names
    )


def differences(manifest: Manifest, settings: PrepareSettings) -> list[str]:
    """Return how a corpus differs from one that would be prepared now: other settings, or other text."""
    old, new = (_facts(value) for value in (manifest.settings, settings))
    changed = [f"{name} was {old.get(name)}, is now {new[name]}" for name in new if old.get(name) != new[name]]
    names = [", ".join((*value.inputs, *value.valid_inputs)) for value in (manifest.settings, settings)]
    sources = [[(file.bytes, file.checksum) for file in files] for files in (manifest.sources, read_sources(settings))]
    if names[0] != names[1] and (not sources[0] or sources[0] != sources[1]):
        return [f"its text is {names[0]}, not {names[1]}", *changed]
    if sources[0] and sources[0] != sources[1]:
        return [f"{names[1]} has changed since", *changed]
    return changed


def _facts(settings: PrepareSettings) -> dict[str, Any]:
    return {name: value for name, value in to_dict(settings).items() if name not in ("inputs", "valid_inputs")}


def _recover(work: Path, output: Path, old: Path) -> None:
    """Finish what a run that was killed while it replaced a corpus had begun."""
    if old.is_dir() and not output.exists() and not (work / MANIFEST).is_file():
        os.replace(old, output)
    elif output.exists():
        shutil.rmtree(old, ignore_errors=True)


def _check_replaced(output: Path, *, force: bool) -> None:
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / MANIFEST).is_file():
        raise OutputError(f"{output}: exists, but is not a prepared corpus. Choose another folder.")
    if not force:
        raise OutputError(f"{output}: contains a corpus already. Pass --force (force=True) to replace it.")
    check_replaceable(output, _FILES)


def _open_work(work: Path, settings: PrepareSettings, sources: tuple[SourceFile, ...], *, force: bool) -> None:
    """Resume a killed run if it had the same settings, or create the working folder of a new run."""
    journal = work / _JOURNAL
    text = json.dumps({"version": VERSION, **settings_to_json(settings)}, ensure_ascii=False, indent=1)
    manifest = work / MANIFEST
    if manifest.is_file() and read_manifest(manifest).sources != sources:
        shutil.rmtree(work)  # the text has changed after the corpus was finished, but for its name
    if journal.is_file() and _has_chunks(work):
        old_text = journal.read_text(encoding="utf-8", errors="replace")
        if old_text == text:
            _log.info("resuming the run in %s", work)
            return
        if not force:
            changed = ", ".join(_differences(old_text, text))
            problem = f"contains an unfinished run with other settings ({changed})"
            raise OutputError(f"{work}: {problem}. Pass --force to drop it, or use the same settings to resume it.")
    shutil.rmtree(work, ignore_errors=True)
    (work / "chunks").mkdir(parents=True)
    write_text(journal, text)


def _has_chunks(work: Path) -> bool:
    return (work / MANIFEST).is_file() or any((work / "chunks").glob("*.npz"))


def _differences(old_text: str, text: str) -> list[str]:
    try:
        old, new = parse_json(old_text, _JOURNAL), json.loads(text)
        return [f"{key} was {old.get(key)}, is now {new[key]}" for key in new if old.get(key) != new[key]]
    except (FormatError, AttributeError):
        return [f"{_JOURNAL} cannot be read"]


@contextlib.contextmanager
def _write_errors_explained(work: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # an error of pyelmo, which has a complete message
            raise
        advice = "Finished chunks are kept; run the same command again."
        raise OutputError(f"{work}: cannot be written: {error.strerror}. {advice}") from error


@contextlib.contextmanager
def _removed_if_empty(work: Path) -> Iterator[None]:
    """Remove the working folder at the end if it has no finished chunk."""
    try:
        yield
    finally:
        if work.exists() and not _has_chunks(work):
            shutil.rmtree(work, ignore_errors=True)


def _encode(
    readers: Sequence[TextReader], folder: Path, settings: PrepareSettings, workers: int, progress: OnProgress | bool
) -> list[Path]:
    chunk_settings = ChunkSettings(
        language=settings.language,
        tokenised=settings.tokenised,
        drop_duplicates=settings.drop_duplicates,
        valid_fraction=0.0 if settings.valid_inputs else settings.valid_fraction,
    )
    return encode_chunks(
        _chunks(readers, chunk_settings),
        folder,
        chunk_settings,
        workers=workers,
        total_bytes=_total([reader.total_bytes for reader in readers]),
        progress=progress,
    )


def _chunks(readers: Sequence[TextReader], settings: ChunkSettings) -> Iterator[Chunk]:
    """Yield the chunks of the training inputs, then those of the validation inputs."""
    train, valid = readers
    seen = SeenLines() if settings.drop_duplicates else None
    index = 0
    for reader, held_out in ((train, False), (valid, True)):
        before = train.bytes_read if held_out else 0
        bytes_read = functools.partial(lambda reader, before: before + reader.bytes_read, reader, before)
        for chunk in cut_chunks(
            reader, settings, held_out=held_out, first_index=index, seen=seen, bytes_read=bytes_read
        ):
            yield chunk
            index = chunk.index + 1


def _total(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size or 0 for size in sizes)


def _finish(
    work: Path, chunk_files: Sequence[Path], settings: PrepareSettings, sources: tuple[SourceFile, ...]
) -> None:
    """Assign ids to the types and write all files of the corpus, the manifest last."""
    types = order_types(
        count_types(chunk_files, settings.max_types),
        vocab_size=settings.vocab_size,
        min_count=settings.min_count,
        min_type_count=settings.min_type_count,
    )
    for stale in [*work.glob("train-*"), *work.glob("valid-*")]:  # of a killed run, maybe over other text
        stale.unlink()
    shards = write_shards(chunk_files, work, types, shard_words=settings.shard_words)
    if not any(file.words for file in shards["train"]):
        raise InputError(f"{', '.join(settings.inputs)}: no words to train on. Check that the text is not empty.")
    if settings.valid_fraction and not shards["valid"]:
        _log.warning("the validation set is empty: the text has too few lines")
    manifest = Manifest(
        version=VERSION,
        vocab_size=types.vocab_size,
        types=len(types.words),
        train=_split_counts(shards["train"]),
        valid=_split_counts(shards["valid"]),
        settings=settings,
        files=(*_write_tables(work, types), *shards["train"], *shards["valid"]),
        sources=sources,
    )
    write_manifest(work / MANIFEST, manifest)


def _write_tables(work: Path, types: TypeTable) -> list[CorpusFile]:
    return [
        write_file(work / "types.txt", type_file(types.words)),
        write_file(work / "vocab.txt", type_file(types.words[: types.vocab_size])),
        write_file(work / "counts.bin", count_file(types.counts)),
    ]


def _split_counts(files: Sequence[CorpusFile]) -> SplitCounts:
    return SplitCounts(
        sentences=sum(file.sentences for file in files),
        words=sum(file.words for file in files),
        unknown=sum(file.unknown for file in files),
    )


def _move_to_output(work: Path, output: Path, old: Path) -> None:
    """Rename the finished folder. An old corpus is moved away first, as a folder cannot be replaced in one step."""
    for leftover in [work / "chunks", *work.glob(".*.part")]:  # .part: temporary files of a killed run
        shutil.rmtree(leftover, ignore_errors=True)
    if output.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(output, old)
    os.replace(work, output)
    (output / _JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)
