"""The layers of a frozen encoder, computed once and stored in a folder that later runs over the same sentences map.

    CACHE/KEY/vectors.npy    (N, L, D) all layers of all words, sentence after sentence
    CACHE/KEY/cache.json     the encoder and the sentences, and the checksum of the array

The key is a hash of the encoder, the distinct sentences and the precision. Sentences are sorted, so that the folds of a
cross-validation, which divide the same sentences, share an entry.
N words of all sentences, L layers, D encoder vector, B batch, T time steps.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from pyelmo.encoders.base import NamedEncoder
from pyelmo.errors import FormatError, OutputError
from pyelmo.files import allocate, atomic_path, check_regular
from pyelmo.parsing import read_json
from pyelmo.tasks.harness.task import Words
from pyelmo.tasks.inputs.layer_sources import LayerSource, encode_words, round_array

log = logging.getLogger("pyelmo")
GPU_SHARE = 32  # an array moves to the GPU if it needs less than one part in 32 of the free memory


def cached_layers(
    encoder: NamedEncoder,
    sentences: Iterable[Words],
    folder: Path,
    *,
    language: str,
    precision: str,
    device: str = "cpu",
    progress: bool = False,
) -> LayerSource:
    """Return a source that reads layers from the cache. Sentences that the cache lacks, or holds damaged, are embedded.

    With a GPU the whole array moves to its memory if it needs little of what is free, as other processes may share it.
    """
    distinct = sorted(set(sentences))
    ends = list(accumulate(len(words) for words in distinct))
    key = {"encoder": encoder.facts, "split": language, "precision": precision, "sentences": _checksum(distinct)}
    entry = folder / hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    try:
        values = _read(entry, ends[-1])
    except FormatError as error:
        log.warning("%s. Its sentences are embedded again.", error)
        values = None
    if values is None:
        _write(entry, key, tqdm(
            encode_words(encoder, language, distinct), total=len(distinct), unit=" sentences",
            desc=f"embedding by {encoder.name}", disable=not progress,
        ), ends[-1], precision)  # fmt: skip
        values = _read(entry, ends[-1], verify=False)
        if values is None:
            raise OutputError(f"{entry}: was removed while it was written. Does another program clear the cache?")
    table = torch.from_numpy(values)  # (N, L, D)
    if torch.device(device).type == "cuda" and GPU_SHARE * table.nbytes < torch.cuda.mem_get_info(device)[0]:
        table = table.to(device)
    starts = {words: end - len(words) for words, end in zip(distinct, ends, strict=True)}

    def layers(batch: Sequence[Words]) -> Tensor:
        lengths = np.array([len(words) for words in batch])
        mask = np.arange(lengths.max()) < lengths[:, None]  # (B, T)
        rows = np.repeat([starts[words] for words in batch], lengths) + mask.nonzero()[1]
        # Only the vectors of words are copied to a GPU, and padded there.
        vectors = _select(table, torch.from_numpy(rows), device)  # (words of the batch, L, D)
        positions = torch.from_numpy(np.flatnonzero(mask)).to(vectors.device, non_blocking=True)
        padded = vectors.new_zeros(mask.size, *vectors.shape[1:]).index_copy_(0, positions, vectors)
        return padded.view(*mask.shape, *vectors.shape[1:]).permute(2, 0, 1, 3)

    return layers


def _select(table: Tensor, rows: Tensor, device: str) -> Tensor:
    """Return rows of a table on the table's device, or on a GPU."""
    if table.device.type == "cpu" and torch.device(device).type == "cuda":
        # A GPU copies from pinned memory on its own, while the host continues.
        pinned = torch.empty(len(rows), *table.shape[1:], dtype=table.dtype, pin_memory=True)
        return torch.index_select(table, 0, rows, out=pinned).to(device, non_blocking=True)
    return table.index_select(0, rows.to(table.device, non_blocking=True))


def _checksum(sentences: Sequence[Words]) -> str:
    digest = hashlib.sha256()
    for words in sentences:
        digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _read(entry: Path, words: int, *, verify: bool = True) -> npt.NDArray[Any] | None:
    """Return the memory-mapped array of an entry, or None if there is no such entry.

    An entry that this process has just written need not be verified.
    """
    if not entry.is_dir():
        return None
    try:
        facts = read_json(entry / "cache.json")
        check_regular(entry / "vectors.npy")
        values = np.load(entry / "vectors.npy", mmap_mode="c", allow_pickle=False)
        # The checksum reads the mapping, not the file: then its pages are in memory, and batches do not fault them in.
        if not isinstance(values, np.memmap) or values.ndim != 3 or values.dtype not in (np.float16, np.float32):
            raise ValueError("the array is no table of layers")
        mapping: Any = values.base
        if len(values) != words or (verify and hashlib.sha256(mapping).hexdigest() != facts["sha256"]):
            raise ValueError("checksum mismatch")
    except Exception as error:  # numpy raises errors of many types for a damaged header
        raise FormatError(f"{entry}: this cache of vectors is damaged ({error})") from error
    array: npt.NDArray[Any] = values
    return array


def _write(
    entry: Path, key: dict[str, Any], arrays: Iterable[npt.NDArray[np.float32]], words: int, precision: str
) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{entry.parent}: cannot create the cache folder: {error.strerror}. Choose another folder with --cache."
        ) from error
    with atomic_path(entry) as part:
        part.mkdir()
        digest = hashlib.sha256()
        # Written by calls, not through a memory map: on a full disk, a map ends the process with a signal.
        with open(part / "vectors.npy", "wb") as file:
            for number, array in enumerate(arrays):
                values = round_array(array, precision)  # (T, L, D)
                if number == 0:
                    header = _header(values.dtype, (words, *values.shape[1:]))
                    allocate(file, len(header) + words * values[0].nbytes)
                    file.write(header)
                    digest.update(header)
                file.write(values.data)
                digest.update(values.data)
        facts = {**key, "sha256": digest.hexdigest()}
        (part / "cache.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the first bytes of a file of numpy with an array of this shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return header.getvalue()
