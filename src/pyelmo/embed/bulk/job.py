"""Files of sentences -> a folder of parts with their vectors, in constant memory, on many processes or machines.

    OUT/_job.json            what the folder holds: input and model by their hashes, and every setting
    OUT/part-00000.parquet   the first sentences; then part-00001.parquet, ... (or .hdf5, .npz, .jsonl)

A part takes its name when it is whole, so the parts that are there are done: the same job run again makes the others,
and every sentence is there exactly once. `read_embeddings(OUT)` reads all of it in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.embed.bulk.workers import KEPT, Advance, BulkPart, Work, import_ray, on_ray, processes
from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.embed.files.inputs import Scan, read, scan
from pyelmo.embed.files.store import JOB, format_of, part_name
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError, OutputError
from pyelmo.files import absolute, check_output, entries, locked, write_text
from pyelmo.formats.pretrained import checksum

PART_SENTENCES = 5000
ENGINES = {"processes": processes, "ray": on_ray}
VERSION = 1
WARM_CHARACTERS = 2**20  # of the text, in which the commonest words are counted
WARM_BATCH = 512  # words encoded at once
# Settings that have no part in what a vector is.
_FREE = ("model", "options", "vocab", "device", "batch_size", "threads")


@dataclass(frozen=True, kw_only=True)
class BulkResult:
    """What the folder holds now, and how many of its parts are new."""

    sentences: int
    parts: int
    new_parts: int


def embed_corpus(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    model: str | Path,
    options: str | Path | None = None,
    vocab: str | Path | None = None,
    language: str | None = None,
    tokenised: bool = False,
    column: str | None = None,
    layers: str | int | Sequence[float] = "all",
    pooling: str | None = None,
    keep_boundaries: bool = False,
    format: str = "parquet",
    float16: bool = False,
    precision: Precision = "float32",
    part_sentences: int = PART_SENTENCES,
    workers: int = 1,
    engine: str = "processes",
    device: str = "cpu",
    batch_size: int | None = None,
    threads: int | None = None,
    progress: bool = False,
    force: bool = False,
) -> BulkResult:
    """Embed text (a sentence a line) and Parquet files into the folder `output`, or go on where a run was ended.

    `column` is the column of Parquet files, of texts or of lists of words: by default "tokens", "sentence" or "text".
    `part_sentences` go into a part. Each of the `workers` holds one model and computes with `threads` (1 where there
    are several workers); `engine` "ray" runs them on Ray. `force` drops what another job left in the folder.
    """
    if isinstance(inputs, (str, Path)):
        raise InputError("inputs is a list of files, even for one file")
    for name, value in (("workers", workers), ("part_sentences", part_sentences)):
        if value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    if engine not in ENGINES:
        raise InputError(f"engine {engine!r} is none of {', '.join(ENGINES)}")
    if engine == "ray":
        import_ray()
    task = EmbedSettings(
        model=absolute(model), options=absolute(options), vocab=absolute(vocab), language=language,
        tokenised=tokenised, layers=layers if isinstance(layers, (str, int)) else [float(w) for w in layers],
        pooling=pooling, keep_boundaries=keep_boundaries, format=format_of(output, format), float16=float16,
        precision=precision, device=device, batch_size=batch_size,
        threads=1 if threads is None and workers > 1 else threads,
    )  # fmt: skip
    work = Work(task=task, inputs=[_input(path) for path in inputs], column=column, folder=str(Path(output).resolve()))
    return _run(work, part_sentences, workers, engine, progress=progress, force=force)


def _run(work: Work, part_sentences: int, workers: int, engine: str, *, progress: bool, force: bool) -> BulkResult:
    folder = Path(work.folder)
    _check_folder(folder)
    several = workers > 1 or engine == "ray"
    # Of several, this process only makes the common words ready, before the others are at work: it may use all threads.
    embedder = (dataclasses.replace(work.task, threads=None) if several else work.task).load()
    found = scan(work.inputs, part_sentences)
    parts = [
        BulkPart(number, number * part_sentences, min(part_sentences, found.sentences - number * part_sentences), place)
        for number, place in enumerate(found.places)
    ]
    job = _describe(work, embedder, found, part_sentences)
    folder.mkdir(exist_ok=True)
    with locked(folder):
        _begin(folder, job, force=force)
        missing = [part for part in parts if not (folder / part_name(part.number, work.task.format)).exists()]
        done = found.sentences - sum(part.count for part in missing)
        with _kept(), _cleaned(folder), _bar(found.sentences, done, shown=progress) as advance:
            if not several:
                for part in missing:
                    work.run(embedder, part, advance)
            elif missing:
                with ENGINES[engine](work, min(workers, len(missing))) as run:
                    _save_words(embedder, work)
                    del embedder  # the workers have their own
                    run(missing, advance)
    return BulkResult(sentences=found.sentences, parts=len(parts), new_parts=len(missing))


def _input(path: str | Path) -> str:
    if str(path) == "-" or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()):
        raise InputError(f"{path}: is a stream, and a folder of parts needs files. Save it to a file first.")
    return str(Path(path).resolve()) if Path(path).is_file() else str(path)  # what is missing is told by its own name


# --- the folder ----------------------------------------------------------------------------------------------------


def _check_folder(folder: Path) -> None:
    """Refuse early what is no place for a job."""
    check_output(folder, force=True)
    if folder.is_file():
        raise OutputError(f"{folder}: is a file, and a bulk job writes a folder. Choose another name.")
    if folder.is_dir() and not (folder / JOB).is_file() and any(not _is_leftover(path) for path in entries(folder)):
        raise OutputError(f"{folder}: holds files that no bulk job wrote (no {JOB}). Choose another name.")


def _is_leftover(path: Path) -> bool:
    """What a write that was killed leaves behind."""
    return path.name.startswith(".") and path.name.endswith(".part")


@contextlib.contextmanager
def _cleaned(folder: Path) -> Iterator[None]:
    """Remove what killed workers left, those of a run before and those of this one."""

    def clean() -> None:
        for path in filter(_is_leftover, list(folder.iterdir())):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    clean()
    try:
        yield
    finally:
        clean()


def _describe(work: Work, embedder: Embedder, found: Scan, part_sentences: int) -> dict[str, Any]:
    settings = {key: value for key, value in dataclasses.asdict(work.task).items() if key not in _FREE}
    return {
        "version": VERSION,
        "inputs": [{"name": name, "sha256": sha} for name, sha in zip(work.inputs, found.sha256, strict=True)],
        "model": {"name": work.task.model, "sha256": _fingerprint(embedder)},
        "column": work.column,
        **settings,
        "language": embedder.language,  # whether it was given or is the model's own
        "part_sentences": part_sentences,
        "parts": len(found.places),
        "sentences": found.sentences,
    }


def _fingerprint(embedder: Embedder) -> str:
    """The model by its content: a copy, or the same weights in another format, goes on with the job."""
    return hashlib.sha256((repr(embedder.config) + checksum(embedder.pretrained)).encode()).hexdigest()


def _begin(folder: Path, job: dict[str, Any], *, force: bool) -> None:
    """Go on with the same job, or begin one where no other has left parts."""
    parts = sorted(folder.glob("part-*"))
    differences = _differences(folder / JOB, job) if parts else []
    if differences and not force:
        raise OutputError(
            f"{folder}: {len(parts)} parts of another job are here ({'; '.join(differences)}). "
            "Pass --force (force=True) to drop them, or choose another folder."
        )
    if force:
        for part in parts:  # before the new description, so that no old part is ever taken for a new one
            part.unlink()
    write_text(folder / JOB, json.dumps(job, ensure_ascii=False, indent=1) + "\n")


def _differences(path: Path, job: dict[str, Any]) -> list[str]:
    """What sets the job in a folder apart from this one."""
    try:
        old = dict(json.loads(path.read_text(encoding="utf-8")))
        hashes = [file["sha256"] for file in old["inputs"]]
        model = old["model"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{path.name} cannot be read"]
    differences = []
    if hashes != [file["sha256"] for file in job["inputs"]]:
        changed = [file["name"] for file in job["inputs"] if file["sha256"] not in hashes]
        differences.append(f"other input: {', '.join(changed) or 'fewer files, or in another order'}")
    if model != job["model"]["sha256"]:
        differences.append(f"another model: {old['model'].get('name')} then, {job['model']['name']} now")
    for key, value in job.items():
        if key not in ("inputs", "model", "parts", "sentences") and old.get(key) != value:
            differences.append(f"{key}: {old.get(key)} then, {value} now")
    return differences


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """Say of an end before the end that the finished parts stay."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{str(error).removesuffix(' Nothing was changed.')} {KEPT}") from error
    except KeyboardInterrupt as stop:
        stop.args = (KEPT,)
        raise


@contextlib.contextmanager
def _bar(total: int, done: int, *, shown: bool) -> Iterator[Advance]:
    if not shown:
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=total, initial=done, unit=" sentences") as bar:
        yield bar.update


# --- common words --------------------------------------------------------------------------------------------------


def _save_words(embedder: Embedder, work: Work) -> None:
    """The vectors of the text's commonest words, for every worker."""
    table = embedder.words
    counts: Counter[str] = Counter()
    characters = 0
    for sentence in read(work.inputs, work.column):
        counts.update(work.task.words(embedder, sentence))
        characters += len(sentence.text)
        if characters > WARM_CHARACTERS:
            break
    words = [word for word, number in counts.most_common(table.capacity // 2) if number > 1]
    for start in range(0, len(words), WARM_BATCH):
        table.add(words[start : start + WARM_BATCH])
    table.save(work.words)
