"""Files of sentences -> a folder of parts with their vectors, in constant memory, on several processes or machines.

A part gets its final name when it is complete. The same job, run again, writes only the parts that are missing, so that
every sentence is in the folder exactly once. `read_embeddings(OUT)` reads all parts in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.embed.bulk.folder import begin, check_folder, describe, explaining_resume, removing_leftovers
from pyelmo.embed.bulk.job import PART_SENTENCES, Advance, BulkJob, BulkPart
from pyelmo.embed.bulk.process_runner import process_workers
from pyelmo.embed.bulk.ray_runner import import_ray, ray_workers
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.files.inputs import InputScan, has_positions, scan, write_rows
from pyelmo.embed.layers import WORDS
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError
from pyelmo.files import locked, sha256
from pyelmo.text.fasta import keep_ids
from pyelmo.text.rows import ReadOptions, check_input

RUN_WORKERS = {"processes": process_workers, "ray": ray_workers}
COUNTED_CHARACTERS = 2**20  # how much of the text is read to find its most frequent words
ENCODE_BATCH = 512  # words encoded at once


@dataclass(frozen=True, kw_only=True)
class BulkResult:
    """How many sentences and parts the folder holds, and how many parts this run wrote."""

    sentences: int
    parts: int
    new_parts: int


def embed_corpus(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    model: str | Path,
    column: str | None = None,
    keep: Sequence[str] = (),
    input_format: str = "auto",
    encoding: str | None = None,
    part_sentences: int = PART_SENTENCES,
    workers: int = 1,
    runner: str = "processes",
    progress: bool = False,
    force: bool = False,
    **settings: Any,
) -> BulkResult:
    """Embed files of sentences into a folder of parts, or resume a run that was stopped.

    A run that is killed loses only unfinished parts: the same call writes the parts that are missing, so that every
    sentence is in the folder exactly once. The number of workers does not change a byte.

    Args:
        inputs: Text files with one sentence per line, and csv, tsv, jsonl, Parquet and FASTA files, compressed or not.
        output: The folder to write.
        model: A folder or a file of a model, the name of a bundled model, or a Hub id.
        column: The column of csv, tsv, jsonl and Parquet files, with strings or lists of words (default for Parquet
            files: the first of "tokens", "sentence" and "text" that exists).
        keep: Other columns of the input that are copied into the output; hdf5 takes only "id", which names the arrays.
            The ids of FASTA files are always kept.
        input_format: "text", "csv", "tsv", "jsonl", "parquet" or "fasta" (default: by the name or the start of a file).
        encoding: The encoding of the files (default: UTF-8).
        part_sentences: Sentences per part.
        workers: Processes that write parts. Each loads the model, and by default computes on one thread.
        runner: "processes", or "ray" to run the workers on Ray.
        progress: Show a progress bar on stderr.
        force: Delete the parts of another job in the folder.
        settings: All fields of `EmbedSettings`: options, vocab, align, language, tokenised, documents, layers, pooling,
            keep_boundaries, format ("parquet", "hdf5", "npz" or "jsonl"), float16, precision, device, batch_size,
            threads.

    Returns:
        The numbers of `sentences` and `parts` in the folder, and of `new_parts` that this run wrote.

    Raises:
        InputError: An argument or an input file cannot be used.
        NotFoundError: There is no such model or input file.
        OutputError: The folder holds something else, or cannot be written.

    Example:
        >>> import pathlib, pyelmo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = pathlib.Path(folder, "text.txt")
        ...     _ = text.write_text("A bank account.\\nThe river\\n")
        ...     pyelmo.embed_corpus([text], f"{folder}/vectors", model="en", format="npz", part_sentences=1)
        BulkResult(sentences=2, parts=2, new_parts=2)
    """
    if isinstance(inputs, (str, Path)):
        raise InputError(f"inputs is the single name {str(inputs)!r}; pass a list of files, even for one file")
    names = [str(path) for path in inputs]
    reading = ReadOptions(column=column, keep=tuple(keep), input_format=input_format, encoding=encoding)
    job = BulkJob(
        settings=EmbedSettings(model=str(model), **settings), inputs=names, output=str(output),
        part_sentences=part_sentences, workers=workers, runner=runner, reading=keep_ids(names, reading),
    )  # fmt: skip
    return run_job(job, progress=progress, force=force)


def run_job(job: BulkJob, *, progress: bool = False, force: bool = False) -> BulkResult:
    """Write the parts that are missing. With `force`, delete the parts of another job in the folder first."""
    if job.runner == "ray":
        import_ray()  # an error now, if Ray is not installed
    check_folder(job.folder)
    for path in job.inputs:
        check_input(path)
    # With workers, this process only encodes the frequent words, before the workers start: it may use all threads.
    settings = dataclasses.replace(job.settings, threads=None) if job.has_workers else job.settings
    embedder = settings.load()
    with _folder_of(job), locked(job.folder), removing_leftovers(job.folder):
        job, input_scan = _scanned(job, embedder)
        parts = _parts(job, input_scan)
        begin(job.folder, describe(job, embedder, input_scan), force=force)
        missing = [part for part in parts if not job.path(part).exists()]
        done = input_scan.sentences - sum(part.count for part in missing)
        with explaining_resume(), _progress_bar(input_scan.sentences, done, shown=progress) as advance:
            if not job.has_workers:
                for part in missing:
                    job.write_part(embedder, part, advance)
            elif missing:
                with RUN_WORKERS[job.runner](job, min(job.workers, len(missing))) as run_parts:
                    _save_common_words(job, embedder)
                    del embedder  # each worker loads its own
                    run_parts(missing, advance)
    return BulkResult(sentences=input_scan.sentences, parts=len(parts), new_parts=len(missing))


@contextlib.contextmanager
def _folder_of(job: BulkJob) -> Iterator[None]:
    """Create the folder if it is missing; in that case, remove it after an error if it is still empty."""
    existed = job.folder.is_dir()
    job.folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):  # not empty
                job.folder.rmdir()
        raise


def _scanned(job: BulkJob, embedder: Embedder) -> tuple[BulkJob, InputScan]:
    """Find where each part begins. Inputs in which no part can begin in the middle are written as rows first."""
    job = dataclasses.replace(job, extra=job.settings.extra_columns(job.inputs, job.reading))
    if not job.settings.documents and has_positions(job.inputs, job.reading):
        result = scan(job.inputs, job.part_sentences, job.reading)
    else:
        write_rows(job.settings.sentences(embedder, job.rows()), job.rows_path)
        job = dataclasses.replace(job, rows_file=str(job.rows_path))
        result = scan([str(job.rows_path)], job.part_sentences)
        result = dataclasses.replace(result, sha256=[sha256(Path(path)) for path in job.inputs])
    if not result.sentences:
        raise InputError(f"{', '.join(job.inputs)}: there is nothing to embed, because the input is empty.")
    return job, result


def _parts(job: BulkJob, input_scan: InputScan) -> list[BulkPart]:
    parts = []
    for number, position in enumerate(input_scan.positions):
        first = number * job.part_sentences
        count = min(job.part_sentences, input_scan.sentences - first)
        parts.append(BulkPart(number, first, count, position))
    return parts


@contextlib.contextmanager
def _progress_bar(total: int, done: int, *, shown: bool) -> Iterator[Advance]:
    if not shown:
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=total, initial=done, unit=" sentences") as bar:
        yield bar.update


def _save_common_words(job: BulkJob, embedder: Embedder) -> None:
    """Encode the most frequent words of the text once, and save their vectors for all workers."""
    table = embedder.word_table()
    counts: Counter[str] = Counter()
    characters = 0
    for sentence in job.rows():
        words = job.settings.tokenise(embedder, sentence)
        counts.update(embedder.tokenise(" ".join(words)) if job.settings.pooling == WORDS else words)
        characters += len(sentence.text)
        if characters > COUNTED_CHARACTERS:
            break
    words = [word for word, number in counts.most_common(table.capacity // 2) if number > 1]
    for start in range(0, len(words), ENCODE_BATCH):
        table.add(words[start : start + ENCODE_BATCH])
    table.save(job.common_words_path)
