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
from pyelmo.embed.files.inputs import read, scan
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError
from pyelmo.files import locked

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
        inputs: Text files with one sentence per line, and Parquet files.
        output: The folder to write.
        model: A folder or a file of a model, the name of a bundled model, or a Hub id.
        column: The column of Parquet files, with strings or lists of words (default: the first of "tokens", "sentence"
            and "text" that exists).
        part_sentences: Sentences per part.
        workers: Processes that write parts. Each loads the model, and by default computes on one thread.
        runner: "processes", or "ray" to run the workers on Ray.
        progress: Show a progress bar on stderr.
        force: Delete the parts of another job in the folder.
        settings: All fields of `EmbedSettings`: options, vocab, language, tokenised, layers, pooling, keep_boundaries,
            format ("parquet", "hdf5", "npz" or "jsonl"), float16, precision, device, batch_size, threads.

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
    job = BulkJob(
        settings=EmbedSettings(model=str(model), **settings), inputs=[str(path) for path in inputs],
        output=str(output), column=column, part_sentences=part_sentences, workers=workers, runner=runner,
    )  # fmt: skip
    return run_job(job, progress=progress, force=force)


def run_job(job: BulkJob, *, progress: bool = False, force: bool = False) -> BulkResult:
    """Write the parts that are missing. With `force`, delete the parts of another job in the folder first."""
    if job.runner == "ray":
        import_ray()  # an error now, if Ray is not installed
    check_folder(job.folder)
    # With workers, this process only encodes the frequent words, before the workers start: it may use all threads.
    settings = dataclasses.replace(job.settings, threads=None) if job.has_workers else job.settings
    embedder = settings.load()
    input_scan = scan(job.inputs, job.part_sentences)
    parts = []
    for number, position in enumerate(input_scan.positions):
        first = number * job.part_sentences
        count = min(job.part_sentences, input_scan.sentences - first)
        parts.append(BulkPart(number, first, count, position))
    description = describe(job, embedder, input_scan)
    job.folder.mkdir(exist_ok=True)
    with locked(job.folder):
        begin(job.folder, description, force=force)
        missing = [part for part in parts if not job.path(part).exists()]
        done = input_scan.sentences - sum(part.count for part in missing)
        with (
            explaining_resume(),
            removing_leftovers(job.folder),
            _progress_bar(input_scan.sentences, done, shown=progress) as advance,
        ):
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
    for sentence in read(job.inputs, job.column):
        counts.update(job.settings.tokenise(embedder, sentence))
        characters += len(sentence.text)
        if characters > COUNTED_CHARACTERS:
            break
    words = [word for word, number in counts.most_common(table.capacity // 2) if number > 1]
    for start in range(0, len(words), ENCODE_BATCH):
        table.add(words[start : start + ENCODE_BATCH])
    table.save(job.common_words_path)
