"""Models on the Hugging Face Hub: download the files of one, or upload a model with its card as one commit.

    user/name            the newest version            user/name@revision     a branch, a tag or a commit

huggingface_hub keeps files in its cache and resumes downloads. It compares sizes only, so checksums are compared here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyelmo.errors import FormatError, InputError, NotFoundError, OutputError, missing_extra
from pyelmo.files import sha256
from pyelmo.formats import native
from pyelmo.formats.describe import describe
from pyelmo.formats.pretrained import MODEL_FILES, Pretrained
from pyelmo.formats.sentence import SENTENCE

CARD = "README.md"
NATIVE_FILES = (native.CONFIG, native.WEIGHTS, native.VOCABULARY, native.CHARACTERS, SENTENCE)
# Of other formats: options and settings, weights, dictionaries, and the files of a TensorFlow checkpoint.
OTHER_FILES = re.compile(r".*\.(json|hdf5|h5|pkl|dic|index)|.*\.data-\d+-of-\d+|vocab\.txt|checkpoint")
_NAME = r"\w[\w.-]*/\w[\w.-]*"
_HUB_ID = re.compile(rf"({_NAME})(?:@([\w./-]+))?")
log = logging.getLogger("pyelmo")


def split_id(source: str) -> tuple[str, str | None] | None:
    """Return the id of a model on the Hub and its revision, or None if `source` cannot be one."""
    match = _HUB_ID.fullmatch(source)
    return (match[1], match[2]) if match else None


def with_revision(source: str | Path, revision: str) -> str:
    """Return `user/name@revision`, or raise an error if the source is not a Hub id or already has a revision."""
    hub_id = split_id(str(source))
    if hub_id is None or hub_id[1] is not None:
        raise InputError(f"{source}: a revision ({revision!r}) belongs to a Hub id such as user/name")
    return f"{source}@{revision}"


# --- download -------------------------------------------------------------------------------------------------------


def download(source: str) -> Path:
    """Return the folder with the files of a model, after downloading those that are not in the cache.

    If the Hub cannot be reached, an earlier download is used.
    """
    hub = _library(f"{source}: no such local folder; reading it from the Hub")
    name, revision = split_id(source) or (source, None)
    try:
        files = _list_files(hub, name, revision)
    except Exception as error:  # its own errors, and those of its network library
        status = getattr(getattr(error, "response", None), "status_code", 500)
        cached = _cached_folder(hub, name, revision) if status >= 500 else None
        if cached is None:
            raise _failed(source, error) from error
        log.warning("%s: the Hub cannot be reached; using the earlier download in %s", source, cached)
        return cached
    folder = None
    for file in needed_files(source, files.values()):
        try:
            path = Path(hub.hf_hub_download(name, file.rfilename, revision=revision))
        except Exception as error:
            raise _failed(source, error) from error
        _check(source, path, file)
        folder = path.parent
        if file.rfilename == native.CONFIG and native.WEIGHTS in files:
            native.read_header(folder)  # a model of another library is refused before its weights are downloaded
    if folder is None:
        raise FormatError(f"{source}: holds no ELMo model (files: {', '.join(sorted(files)) or 'none'})")
    return folder


def needed_files(source: str, files: Iterable[Any]) -> list[Any]:
    """Return those files of a repository that a model consists of, the largest last.

    So if the weights are in the cache, a download that was interrupted has all other files, too.
    """
    top = {file.rfilename: file for file in files if "/" not in file.rfilename}
    if {native.CONFIG, native.WEIGHTS} <= top.keys():
        needed = [file for name, file in top.items() if name in NATIVE_FILES]
    else:
        needed = [file for name, file in top.items() if OTHER_FILES.fullmatch(name)]
        weights = [file.rfilename for file in needed if file.rfilename.endswith((".hdf5", ".h5"))]
        if len(weights) > 1:
            raise FormatError(
                f"{source}: holds {len(weights)} HDF5 files ({', '.join(weights)}). Download one of them with its "
                "options, and give its path."
            )
    return sorted(needed, key=lambda file: file.size or 0)


def _list_files(hub: Any, name: str, revision: str | None) -> dict[str, Any]:
    info = hub.HfApi().model_info(name, revision=revision, files_metadata=True)
    return {file.rfilename: file for file in info.siblings or ()}


def _check(source: str, path: Path, file: Any) -> None:
    """Remove a file whose checksum is not the one that the Hub lists, and raise an error."""
    if file.lfs is not None:
        got, want = sha256(path), file.lfs["sha256"]
    else:
        data = path.read_bytes()
        got, want = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(), file.blob_id
    if got != want:
        path.resolve().unlink()  # the content, to which the name in the folder of a revision may be a link
        path.unlink(missing_ok=True)
        raise FormatError(
            f"{source}: {file.rfilename}: checksum mismatch (expected {want}, got {got}). The file was removed from "
            "the cache; run the command again."
        )


def _cached_folder(hub: Any, name: str, revision: str | None) -> Path | None:
    """Return the folder of a revision that was downloaded before and is complete."""
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except hub.errors.LocalEntryNotFoundError:
        return None
    weights = any(re.search(r"\.(safetensors|hdf5|h5|pkl|data-.*)$", path.name) for path in folder.iterdir())
    return folder if weights else None


# --- upload ---------------------------------------------------------------------------------------------------------


def push(
    model: Pretrained,
    hub_id: str,
    write: Callable[[Path], None] | None = None,
    *,
    private: bool = False,
    revision: str | None = None,
) -> str:
    """Upload a model as one commit, and return its address.

    Args:
        model: The model.
        hub_id: The repository, `user/name`. It is created if it does not exist.
        write: Writes the folder of the model (default: the files from which the model was read if they are in pyelmo's
            format, else float32 weights).
        private: Whether a new repository is private.
        revision: The branch (default: main). It is created if it does not exist.

    Files of an earlier model that this one does not have are deleted by the same commit.
    """
    hub = _library(f"uploading to {hub_id}")
    if not re.fullmatch(_NAME, hub_id):
        raise InputError(f"{hub_id}: not the id of a repository on the Hub. Expected user/name")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(model.source)
        if write is not None or model.format != "pyelmo" or not (folder / native.WEIGHTS).is_file():
            folder = Path(temporary, "model")
            (write or (lambda path: native.write(model, path)))(folder)
        own = [name for name in NATIVE_FILES if (folder / name).is_file()]
        card = model_card(model, hub_id, sum((folder / name).stat().st_size for name in own))
        additions = [hub.CommitOperationAdd(name, str(folder / name)) for name in own]
        additions.append(hub.CommitOperationAdd(CARD, card.encode()))
        api = hub.HfApi()
        try:
            api.create_repo(hub_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(hub_id, branch=revision, exist_ok=True)
            old = _list_files(hub, hub_id, revision)
            deletions = [hub.CommitOperationDelete(name) for name in old if name in MODEL_FILES and name not in own]
            commit = api.create_commit(
                hub_id, [*additions, *deletions], commit_message=f"Upload {Path(model.source).name} with pyelmo",
                revision=revision,
            )  # fmt: skip
        except Exception as error:  # its own errors, and those of its network library
            raise OutputError(f"{hub_id}: the upload to the Hub failed ({_one_line(error)})") from error
    return str(commit.commit_url)


def model_card(model: Pretrained, hub_id: str, size: int) -> str:
    """Return the card of a model: the README.md beside it, or one with its figures, with the metadata of the Hub."""
    hub = _library("a model card")
    own = Path(model.source) / CARD
    try:
        card = hub.ModelCard(own.read_text("utf-8") if own.is_file() else _card_text(model, hub_id, size))
    except Exception as error:  # of YAML, of its checks, and of other encodings than UTF-8
        raise FormatError(f"{own}: not a model card ({_one_line(error)})") from error
    data = card.data
    data.library_name = "pyelmo"
    data.pipeline_tag = "feature-extraction"
    data.tags = sorted({*(data.tags or ()), "elmo", "word-embeddings"})
    if data.language is None and model.language in ("en", "ko", "ko-morph"):
        data.language = model.language[:2]
    perplexity = _held_out_perplexity(model)
    if perplexity is not None and not data.eval_results:
        data.model_name = hub_id.partition("/")[2]
        data.eval_results = [
            hub.EvalResult(
                task_type="text-generation", dataset_type="held-out", dataset_name="the held-out set of the training",
                metric_type="perplexity", metric_value=round(perplexity, 2),
            )
        ]  # fmt: skip
    return str(card.content)


def _card_text(model: Pretrained, hub_id: str, size: int) -> str:
    facts = describe(model)
    words = facts["vocabulary"]
    reads = " and ".join(
        [*([f"characters ({facts['chars']['alphabet']})"] if facts["chars"] else []),
         *([f"{words['reads_words']:,} words"] if words["reads_words"] else [])]
    )  # fmt: skip
    figures = {
        "weights": f"{facts['parameters']['total']:,}",
        "files": f"{size / 2**20:.1f} MiB",
        "layers of a token": f"{facts['layers']} of {facts['dim']} numbers",
        "reads": reads,
        "predicts": f"{words['predicts_words']:,} words" if words["predicts_words"] else "no words",
    }
    perplexity = _held_out_perplexity(model)
    if perplexity is not None:
        figures["held-out perplexity"] = f"{perplexity:.2f}"
    table = "\n".join(f"| {name} | {value} |" for name, value in figures.items())
    return (
        f"---\nlibrary_name: pyelmo\n---\n\n# {hub_id.partition('/')[2]}\n\n"
        "An ELMo model (deep contextualized word representations, Peters et al. 2018) for pyelmo."
        f"\n\n```python\nimport pyelmo\n\nmodel = pyelmo.load({hub_id!r})\n"
        f'layers = model.embed(["A sentence."])\n```\n\n| | |\n|---|---|\n{table}\n'
    )


def _held_out_perplexity(model: Pretrained) -> float | None:
    """Return the last perplexity in the log of the run that trained the model, if it lies beside the model."""
    path = Path(model.source).parent / "log.jsonl"
    if not path.is_file():
        return None
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        values = [float(line["average"]) for line in lines if line["kind"] == "valid"]
    except (ValueError, TypeError, KeyError):  # not a log of pyelmo
        return None
    return values[-1] if values else None


def _library(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise missing_extra("hub", what) from None
    return huggingface_hub


def _failed(source: str, error: Exception) -> NotFoundError:
    return NotFoundError(f"{source}: no such local folder, and the download from the Hub failed ({_one_line(error)})")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
