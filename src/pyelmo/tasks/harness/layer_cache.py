"""Vectors of a frozen encoder, computed once: a folder of arrays that any later run over the same sentences maps.

    CACHE/KEY/vectors.npy    (N, L, D) all layers of all words, sentence after sentence
    CACHE/KEY/cache.json     what they are, and the array's checksum

The key stands for the encoder, the distinct sentences, and the precision. L layers, N words, T words of a sentence.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from pyelmo.encoders.base import NamedEncoder, encode
from pyelmo.errors import FormatError, InputError, OutputError
from pyelmo.files import atomic_path, sha256
from pyelmo.tasks.harness.task import Words

# Sentences -> all layers of their words (L, B, T, D), zero after a sentence's end.
LayerSource = Callable[[Sequence[Words]], Tensor]
log = logging.getLogger("pyelmo")
SHARE = 32  # of a GPU's free memory, the part that a table may take


def live(encoder: NamedEncoder, language: str, precision: str) -> LayerSource:
    """The layers of an encoder that runs now, once for each distinct sentence, rounded as a cache keeps them."""

    def layers(sentences: Sequence[Words]) -> Tensor:
        distinct = list(dict.fromkeys(sentences))
        arrays = (_rounded(array, precision) for array in _arrays(encoder, language, distinct))
        found = dict(zip(distinct, arrays, strict=True))
        return pad_arrays([found[words] for words in sentences])

    return layers


def cached(
    encoder: NamedEncoder,
    sentences: Iterable[Words],
    folder: Path,
    *,
    language: str,
    precision: str,
    device: str = "cpu",
    progress: bool = False,
) -> LayerSource:
    """The layers of these sentences from the cache, embedded now if they are not there or are damaged.

    A GPU holds them all in its own memory where they take little of what is free: others may be at work on it.
    """
    distinct = list(dict.fromkeys(sentences))
    about = {"encoder": encoder.facts, "split": language, "precision": precision, "sentences": _checksum(distinct)}
    entry = folder / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    ends = list(accumulate(len(words) for words in distinct))
    try:
        values = _read(entry, ends[-1])
    except FormatError as error:
        log.warning("%s. Its sentences are embedded again.", error)
        values = None
    if values is None:
        _write(entry, about, tqdm(
            _arrays(encoder, language, distinct), total=len(distinct), unit=" sentences",
            desc=f"embedding by {encoder.name}", disable=not progress,
        ), ends[-1], precision)  # fmt: skip
        values = _read(entry, ends[-1])
        if values is None:
            raise OutputError(f"{entry}: went away while it was written. Is another program clearing the cache?")
    table = torch.from_numpy(values)  # (N, L, D)
    if torch.device(device).type == "cuda" and SHARE * table.nbytes < torch.cuda.mem_get_info(device)[0]:
        table = table.to(device)
    starts = {words: end - len(words) for words, end in zip(distinct, ends, strict=True)}

    def layers(wanted: Sequence[Words]) -> Tensor:
        lengths = np.array([len(words) for words in wanted])
        inside = np.arange(lengths.max()) < lengths[:, None]  # (B, T)
        rows = np.repeat([starts[words] for words in wanted], lengths) + inside.nonzero()[1]
        found = _rows(table, torch.from_numpy(rows), device)  # (N, L, D): words alone travel to a GPU
        places = torch.from_numpy(np.flatnonzero(inside)).to(found.device, non_blocking=True)
        filled = found.new_zeros(inside.size, *found.shape[1:]).index_copy_(0, places, found)
        return filled.view(*inside.shape, *found.shape[1:]).permute(2, 0, 1, 3)

    return layers


def _rows(table: Tensor, rows: Tensor, device: str) -> Tensor:
    """Rows of a table, on the table's device or on a GPU."""
    if table.device.type == "cpu" and torch.device(device).type == "cuda":
        # By way of memory that a GPU reads by itself, while we go on.
        found = torch.empty(len(rows), *table.shape[1:], dtype=table.dtype, pin_memory=True)
        return torch.index_select(table, 0, rows, out=found).to(device, non_blocking=True)
    return table.index_select(0, rows.to(table.device, non_blocking=True))


def pad_arrays(arrays: Sequence[npt.NDArray[Any]]) -> Tensor:  # (T, L, D) each -> (L, B, T, D)
    longest = max(len(array) for array in arrays)
    values = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        values[row, : len(array)] = array
    return torch.from_numpy(values).permute(2, 0, 1, 3)


def _rounded(array: npt.NDArray[np.float32], precision: str) -> npt.NDArray[Any]:  # (L, T, D) -> (T, L, D)
    with np.errstate(over="ignore"):
        values: npt.NDArray[Any] = array.astype(precision).swapaxes(0, 1)
    if not np.isfinite(values).all():
        raise InputError(f"the encoder gave a number that {precision} cannot hold. Use --set elmo.precision=float32.")
    return values


def _arrays(encoder: NamedEncoder, language: str, sentences: Sequence[Words]) -> Iterable[npt.NDArray[np.float32]]:
    """(L, T, D) each. Text that was split as the encoder's own is not split further."""
    own = encoder.loaded.language == language
    return encode(encoder.embed_own_tokens if own else encoder, [list(words) for words in sentences])


def _checksum(sentences: Sequence[Words]) -> str:
    digest = hashlib.sha256()
    for words in sentences:
        digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _read(entry: Path, words: int) -> npt.NDArray[Any] | None:
    """The array of an entry, mapped; nothing where there is none."""
    if not entry.is_dir():
        return None
    try:
        about = json.loads((entry / "cache.json").read_text("utf-8"))
        values = np.load(entry / "vectors.npy", mmap_mode="c", allow_pickle=False)
        # Of the file as mapped: its pages are at hand from here, where rows here and there would fetch them one by one.
        if len(values) != words or hashlib.sha256(values.base).hexdigest() != about["sha256"]:
            raise ValueError("its checksum is another")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{entry}: this cache of vectors is damaged ({error})") from error
    array: npt.NDArray[Any] = values
    return array


def _write(
    entry: Path, about: dict[str, Any], arrays: Iterable[npt.NDArray[np.float32]], words: int, precision: str
) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{entry.parent}: cannot be made: {error.strerror}. Name another with --cache.") from error
    with atomic_path(entry) as part:
        part.mkdir()
        values: Any = None
        place = 0
        for array in arrays:
            if values is None:
                shape = (words, len(array), array.shape[2])
                values = np.lib.format.open_memmap(part / "vectors.npy", mode="w+", dtype=precision, shape=shape)
            values[place : place + array.shape[1]] = _rounded(array, precision)
            place += array.shape[1]
        values.flush()
        del values
        about = {**about, "sha256": sha256(part / "vectors.npy")}
        (part / "cache.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
