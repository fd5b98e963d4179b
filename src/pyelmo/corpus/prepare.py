"""Text files -> a corpus made ready for training.

    files --Reader--> lines --cut_chunks--> chunks --encode_chunks--> chunk files --write_shards--> DIR

The text is read and split once. Work goes on in a folder beside DIR, which takes DIR's name when all is done; killed
and started again, it keeps every chunk that was finished. The result does not depend on the number of processes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyelmo.config import to_dict
from pyelmo.corpus.chunks import Chunk, ChunkSettings, SeenLines, cut_chunks
from pyelmo.corpus.corpus import MANIFEST, VERSION, Manifest, PrepareSettings, SplitCounts, read_manifest
from pyelmo.corpus.encode import Progress, encode_chunks
from pyelmo.corpus.reading import TextReader
from pyelmo.corpus.shards import (
    ShardFile,
    TypeTable,
    count_file,
    count_types,
    order_types,
    type_file,
    write_file,
    write_shards,
)
from pyelmo.errors import InputError, OutputError
from pyelmo.files import write_text

_JOURNAL = "journal.json"
_log = logging.getLogger(__name__)


def prepare(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    valid_inputs: Sequence[str | Path] = (),
    language: str = "general",
    tokenised: bool = False,
    vocab_size: int = 100_000,
    min_count: int = 1,
    min_type_count: int = 1,
    max_types: int = 4_000_000,
    valid_fraction: float = 0.005,
    drop_duplicates: bool = False,
    text_column: str = "text",
    input_format: str = "auto",
    shard_words: int = 20_000_000,
    processes: int = 1,
    progress: Callable[[Progress], None] | bool = False,
    force: bool = False,
) -> Manifest:
    """Make text files into a corpus in the folder `output`.

    `vocab_size` (the three marks counted in) and `min_count` bound the softmax vocabulary; `max_types` and
    `min_type_count` bound the types that the input knows, the others become <UNK>. `valid_fraction` of the documents is
    held out, unless `valid_inputs` names text for validation. `drop_duplicates` drops each line that came before.
    `progress` is called now and then; True draws a bar on stderr. `force` replaces a corpus that stands at `output`,
    and forgets a run with other settings that was killed.
    """
    output = Path(output)
    if processes < 1:
        raise InputError(f"processes is {processes}; it must be at least 1")
    if isinstance(inputs, (str, Path)) or isinstance(valid_inputs, (str, Path)):
        raise InputError("inputs and valid_inputs are lists of files, even for one file")
    settings = PrepareSettings(
        inputs=tuple(map(str, inputs)),
        valid_inputs=tuple(map(str, valid_inputs)),
        language=language,
        tokenised=tokenised,
        vocab_size=vocab_size,
        min_count=min_count,
        min_type_count=min_type_count,
        max_types=max_types,
        valid_fraction=valid_fraction,
        drop_duplicates=drop_duplicates,
        text_column=text_column,
        input_format=input_format,
        shard_words=shard_words,
    )
    _check_output(output, force=force)
    return _prepare(settings, output, processes=processes, progress=progress, force=force)


def _prepare(
    settings: PrepareSettings, output: Path, *, processes: int, progress: Callable[[Progress], None] | bool, force: bool
) -> Manifest:
    readers = [
        TextReader(paths, text_column=settings.text_column, input_format=settings.input_format)
        for paths in (settings.inputs, settings.valid_inputs)
    ]
    chunk_settings = ChunkSettings(
        language=settings.language,
        tokenised=settings.tokenised,
        drop_duplicates=settings.drop_duplicates,
        valid_fraction=0.0 if settings.valid_inputs else settings.valid_fraction,
    )
    work = output.with_name(f".{output.name}.preparing")
    with _explained(work), _removed_if_empty(work):
        _open_work(work, settings, force=force)
        if not (work / MANIFEST).is_file():
            chunk_files = encode_chunks(
                _chunks(readers, chunk_settings),
                work / "chunks",
                chunk_settings,
                processes=processes,
                total_bytes=_total([reader.total_bytes for reader in readers]),
                progress=progress,
            )
            _finish(work, chunk_files, settings)
        manifest = read_manifest(work / MANIFEST)
        _take_name(work, output)
    return manifest


def _check_output(output: Path, *, force: bool) -> None:
    if not output.parent.is_dir():
        raise OutputError(f"{output}: its folder {output.parent} does not exist. Create it first.")
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / MANIFEST).is_file():
        raise OutputError(f"{output}: exists and is not a prepared corpus. Choose another name.")
    if not force:
        raise OutputError(f"{output}: holds a corpus already. Pass --force (force=True) to replace it.")


def _open_work(work: Path, settings: PrepareSettings, *, force: bool) -> None:
    """Take up a run that was killed, if it had the same settings, or begin one."""
    journal = work / _JOURNAL
    described = json.dumps({"version": VERSION, **to_dict(settings)}, ensure_ascii=False, indent=1)
    if journal.is_file() and _has_chunks(work):
        before = journal.read_text(encoding="utf-8")
        if before == described:
            _log.info("taking up the run in %s", work)
            return
        if not force:
            changed = ", ".join(_differences(before, described))
            raise OutputError(f"{work}: a run with other settings was begun here ({changed}). Pass --force to drop it.")
    shutil.rmtree(work, ignore_errors=True)
    (work / "chunks").mkdir(parents=True)
    write_text(journal, described)


def _has_chunks(work: Path) -> bool:
    return (work / MANIFEST).is_file() or any((work / "chunks").glob("*.npz"))


def _differences(before: str, now: str) -> list[str]:
    try:
        old, new = json.loads(before), json.loads(now)
        return [f"{key}: {old.get(key)} then, {new[key]} now" for key in new if old.get(key) != new[key]]
    except (json.JSONDecodeError, AttributeError):
        return ["its journal cannot be read"]


@contextlib.contextmanager
def _explained(work: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # one of ours, which explains itself
            raise
        advice = "What is done is kept; run the same command again."
        raise OutputError(f"{work}: cannot be written: {error.strerror}. {advice}") from error


@contextlib.contextmanager
def _removed_if_empty(work: Path) -> Iterator[None]:
    """Leave nothing behind where an error came before any work was done."""
    try:
        yield
    finally:
        if work.exists() and not _has_chunks(work):
            shutil.rmtree(work, ignore_errors=True)


def _chunks(readers: Sequence[TextReader], settings: ChunkSettings) -> Iterator[Chunk]:
    train, valid = readers
    seen = SeenLines() if settings.drop_duplicates else None
    index = 0
    for reader, held_out in ((train, False), (valid, True)):
        before = train.bytes_read if held_out else 0
        position = functools.partial(lambda reader, before: before + reader.bytes_read, reader, before)
        for chunk in cut_chunks(reader, settings, held_out=held_out, first_index=index, seen=seen, bytes_read=position):
            yield chunk
            index = chunk.index + 1


def _total(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size or 0 for size in sizes)


def _finish(work: Path, chunk_files: Sequence[Path], settings: PrepareSettings) -> None:
    """Number the types and write everything that the corpus consists of, the manifest last."""
    found = count_types(chunk_files, settings.max_types)
    types = order_types(
        found, vocab_size=settings.vocab_size, min_count=settings.min_count, min_type_count=settings.min_type_count
    )
    del found
    shards = write_shards(chunk_files, work, types, shard_words=settings.shard_words)
    if not any(file.words for file in shards["train"]):
        raise InputError(f"{', '.join(settings.inputs)}: no words to train on. Is the text empty?")
    if settings.valid_fraction and not shards["valid"]:
        _log.warning("no document was held out for validation: there are too few, or valid_fraction is too small")
    manifest = Manifest(
        version=VERSION,
        vocab_size=types.vocab_size,
        types=len(types.words),
        train=_split_counts(shards["train"]),
        valid=_split_counts(shards["valid"]),
        settings=settings,
        files=(*_write_tables(work, types), *shards["train"], *shards["valid"]),
    )
    write_text(work / MANIFEST, json.dumps(to_dict(manifest), ensure_ascii=False, indent=1) + "\n")


def _write_tables(work: Path, types: TypeTable) -> list[ShardFile]:
    return [
        write_file(work / "types.txt", type_file(types.words)),
        write_file(work / "vocab.txt", type_file(types.words[: types.vocab_size])),
        write_file(work / "counts.bin", count_file(types.counts)),
    ]


def _split_counts(files: Sequence[ShardFile]) -> SplitCounts:
    return SplitCounts(
        sentences=sum(file.sentences for file in files),
        words=sum(file.words for file in files),
        unknown=sum(file.unknown for file in files),
    )


def _take_name(work: Path, output: Path) -> None:
    """Put the finished folder in place. An old corpus moves aside first: a folder cannot be replaced in one step."""
    for leftover in [work / "chunks", *work.glob(".*.part")]:  # parts of writes that were killed
        shutil.rmtree(leftover, ignore_errors=True)
    old = output.with_name(f".{output.name}.old")
    if output.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(output, old)
    os.replace(work, output)
    (output / _JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)
