"""Unpack a zip or tar.gz archive of a model into the cache, without trusting it.

An archive is refused as a whole, before or while it is unpacked, if a name leads out of its folder or occurs twice, if
an entry is a link or a device or is encrypted, or if it would grow far beyond its own size. Nothing else is written.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from pyelmo.errors import FormatError, UnsafeFileError
from pyelmo.files import atomic_path, open_regular
from pyelmo.formats.sources import is_archive
from pyelmo.formats.sources.cache import cache_folder, exclusive

MAX_FILES = 1000
MAX_BYTES = 32 << 30  # of all files; the largest published model has 5 GB
MAX_RATIO = 100  # unpacked bytes for each byte of the archive; weights are hardly compressible
SMALL = 64 << 20  # bytes that may be unpacked whatever the ratio
MAX_HEADER = 1 << 20  # bytes of one header of a tar archive
_BLOCK = 1 << 20
_TEXTS = ("", ".md", ".txt", ".pdf")  # README, LICENSE

Entry = tuple[str, IO[bytes]]


def unpack(path: Path) -> Path:
    """Return the folder of the model in an archive, which is unpacked into the cache unless it is there already.

    Raises:
        FormatError: The archive is damaged or encrypted, or holds another archive and no model.
        UnsafeFileError: The archive would write elsewhere, or more than a model needs.
    """
    status = path.stat()
    folder = cache_folder("archives", path.name, path.resolve(), status.st_size, status.st_mtime_ns)
    with exclusive(folder):
        if not folder.is_dir():
            with atomic_path(folder) as part:
                part.mkdir()
                _unpack_into(path, part)
    return _model_folder(path, folder)


def _unpack_into(path: Path, folder: Path) -> None:
    with open_regular(path) as file:
        beginning = file.read(2)
        if beginning not in _ENTRIES:
            raise FormatError(
                f"{path}: the archive is damaged: it begins with {beginning!r}, unlike a zip or a tar.gz. Download or "
                "copy it again."
            )
        entries = _ENTRIES[beginning]
        file.seek(0)
        names: set[str] = set()
        try:
            for name, content in entries(file, path):
                target = folder / _safe_name(name, path)
                if str(target).casefold() in names or len(names) >= MAX_FILES:
                    raise UnsafeFileError(f"{path}: has more than {MAX_FILES} files, or {name[:80]!r} twice. {REFUSED}")
                names.add(str(target).casefold())
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb") as output:
                    shutil.copyfileobj(content, output, _BLOCK)
        except (UnsafeFileError, FormatError):
            raise
        except DAMAGE as error:
            raise FormatError(
                f"{path}: the archive is damaged or incomplete ({error}). Download or copy it again."
            ) from error


REFUSED = "A model's archive never has that, so it is not unpacked."
DAMAGE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, ValueError,
    FileExistsError, NotADirectoryError, IsADirectoryError, IndexError, KeyError,
)  # fmt: skip


def _safe_name(name: str, path: Path) -> Path:
    """Return the relative path of an entry, or raise an error if it is not one below the folder of the archive."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    # Windows ignores dots and spaces at the end, so they could lead out of the folder, too.
    leaves = name.startswith(("/", "\\")) or any(re.search(r"[:\0]|[. ]$", part) for part in parts)
    if leaves or not parts or any(len(part.encode("utf-8", "replace")) > 255 for part in parts) or len(parts) > 20:
        raise UnsafeFileError(f"{path}: an entry would be written outside its folder: {name[:80]!r}. {REFUSED}")
    return Path(*parts)


def _check_size(path: Path, size: int, packed: int) -> None:
    """Raise an error if `size` bytes are too many for an archive of `packed` bytes."""
    if size > MAX_BYTES or size > max(SMALL, MAX_RATIO * packed):
        raise UnsafeFileError(f"{path}: {packed:,} bytes would unpack to {size:,} bytes or more. {REFUSED}")


def _zip_entries(file: IO[bytes], path: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        for info in infos:
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UnsafeFileError(f"{path}: {info.filename[:80]!r} is a link or a device. {REFUSED}")
            if info.flag_bits & 1:
                raise FormatError(f"{path}: the archive is encrypted. Unpack it, and name the folder.")
        # The sizes in the headers hold: zipfile reads no more than these from an entry.
        _check_size(path, sum(info.file_size for info in infos), path.stat().st_size)
        for info in infos:
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, content


class _Limited(io.RawIOBase):
    """A decompressed stream that stops at a size, and reads no header of unreasonable length into memory."""

    def __init__(self, file: gzip.GzipFile, check: Callable[[int], None]) -> None:
        self._file, self._check = file, check

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        while whence == 0 and self._file.tell() < offset and self.read(min(_BLOCK, offset - self._file.tell())):
            pass
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        data = self._file.read(size)
        self._check(self._file.tell())
        return data


def _tar_entries(file: IO[bytes], path: Path) -> Iterator[Entry]:
    packed = path.stat().st_size
    with gzip.GzipFile(fileobj=file) as stream:
        limited = _Limited(stream, lambda size: _check_size(path, size, packed))
        with tarfile.open(fileobj=limited, mode="r:") as archive:
            for member in archive:
                if not member.isfile() and not member.isdir():
                    raise UnsafeFileError(f"{path}: {member.name[:80]!r} is a link or a device. {REFUSED}")
                if member.issparse():
                    raise UnsafeFileError(f"{path}: {member.name[:80]!r} is stored with gaps. {REFUSED}")
                _check_size(path, member.offset_data + member.size, packed)
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content
            while limited.read(_BLOCK):  # to the end, where the checksum of the whole is
                pass


_ENTRIES = {b"PK": _zip_entries, b"\x1f\x8b": _tar_entries}


def _model_folder(path: Path, folder: Path) -> Path:
    """Return the folder with the model: the top, or the only folder in it, however deep, with a README beside it."""
    while True:
        inside = [entry for entry in sorted(folder.iterdir()) if entry.name[0] != "." and entry.name != "__MACOSX"]
        files = [entry for entry in inside if entry.is_file()]
        folders = [entry for entry in inside if entry.is_dir()]
        if len(folders) == 1 and all(file.suffix.lower() in _TEXTS for file in files):
            folder = folders[0]
            continue
        if files and all(is_archive(file) for file in files):
            raise FormatError(
                f"{path}: holds another archive, {files[0].name}. Unpack it once, and name the inner one."
            )
        return folder
