"""Download the files of a model into the cache: https, with a progress bar, resumed after an interruption.

An address may end in #sha256=..., the checksum of its file. The files of one folder on the server share a folder in the
cache, so that options.json lies beside the weights as it does there. An unfinished download is NAME.part, and NAME.etag
beside it says which version of the file it is a part of.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyelmo.errors import FormatError, InputError, NotFoundError, OutputError, PyelmoError
from pyelmo.files import sha256
from pyelmo.formats.sources.cache import cache_folder, exclusive
from pyelmo.version import __version__

MAX_BYTES = 16 << 30
MAX_REDIRECTS = 5
TIMEOUT = 30  # seconds without an answer
_BLOCK = 1 << 18
_LOCAL = ("localhost", "127.0.0.1", "::1")
_PLAIN = "/%:@!$&'()*+,;=~"  # what a path may have beside letters and digits
_CHECKSUM = re.compile(r"sha256=([0-9A-Fa-f]{64})")


@dataclass(frozen=True)
class Address:
    """A checked address: the URL without its fragment, and the checksum that the fragment states."""

    url: str
    checksum: str | None

    @classmethod
    def parse(cls, text: str) -> Address:
        try:
            parts = urllib.parse.urlsplit(text)
            host = parts.hostname
        except ValueError as error:
            raise InputError(f"{text}: not an address ({error})") from error
        match = _CHECKSUM.fullmatch(parts.fragment)
        if parts.fragment and not match:
            raise InputError(f"{text}: the part after # must be sha256= and 64 hexadecimal digits, or be left out")
        checksum = match[1].lower() if match else None
        _check_scheme(text, parts.scheme, host, verified=checksum is not None)
        path = urllib.parse.quote(parts.path, safe=_PLAIN)  # as browsers do with letters of other scripts
        return cls(urllib.parse.urlunsplit(parts._replace(path=path, fragment="")), checksum)

    @property
    def name(self) -> str:
        """The name of the file on the server, as a name for a local file."""
        last = urllib.parse.unquote(urllib.parse.urlsplit(self.url).path.rpartition("/")[2])
        return re.sub(r"[^\w.-]", "-", last).strip(".")[-100:] or "download"

    def beside(self, name: str) -> str:
        """Return the address of another file in the same folder of the server."""
        parts = urllib.parse.urlsplit(self.url)
        folder = parts.path.rpartition("/")[0]
        return urllib.parse.urlunsplit(parts._replace(path=f"{folder}/{urllib.parse.quote(name)}"))


def _check_scheme(where: str, scheme: str, host: str | None, *, verified: bool) -> None:
    """Raise an error unless what the address gives can be trusted to come from its host, or is verified otherwise."""
    if scheme == "https" and host:
        return
    if scheme == "http" and host and (host in _LOCAL or verified):
        return
    advice = (
        "Write https://, or add #sha256=CHECKSUM to use http." if scheme == "http" else "Other protocols are not read."
    )
    raise InputError(f"{where[:200]}: models are downloaded by https. {advice}")


def fetch(text: str) -> Path:
    """Return the local file of an address, downloaded unless it is in the cache already.

    Raises:
        InputError: The address is not one of https (http only for this machine, or with a checksum).
        NotFoundError: The server has no such file, or does not answer.
        FormatError: The file has another checksum or is too large.
    """
    address = Address.parse(text)
    parts = urllib.parse.urlsplit(address.url)
    folder = cache_folder("downloads", parts.hostname or "", address.beside(""))
    _make(folder)
    path = folder / address.name
    with exclusive(path):
        if not path.is_file():
            try:
                _download(address, path)
            except _RangeError:  # the server's file is no longer than the part: begin again
                _part(path).unlink()
                _download(address, path)
            except FormatError:  # too large
                _part(path).unlink()
                raise
    if address.checksum and (actual := sha256(path)) != address.checksum:
        path.unlink(missing_ok=True)
        raise FormatError(f"{text}: checksum mismatch: the file has {actual}. It was removed from the cache.")
    return path


def fetch_first(address: Address, names: list[str]) -> Path | None:
    """Download the first of these files beside an address that the server has, or return None."""
    for name in names:
        with contextlib.suppress(_AbsentError, InputError):  # InputError: http without a checksum
            return fetch(address.beside(name))
    return None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: the cache cannot be written ({error.strerror}).") from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirections, and none to a protocol that the address itself could not have."""

    max_redirections = MAX_REDIRECTS
    max_repeats = 2

    def __init__(self, *, verified: bool) -> None:
        self.verified = verified

    def redirect_request(self, request: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        parts = urllib.parse.urlsplit(newurl)
        old = urllib.parse.urlsplit(request.full_url)
        if parts.scheme == "http" and old.scheme == "https" and not self.verified:
            raise InputError(f"{request.full_url}: the server redirects from https to http, which is not followed")
        _check_scheme(newurl, parts.scheme, parts.hostname, verified=self.verified)
        return super().redirect_request(request, fp, code, msg, headers, newurl)


class _RangeError(NotFoundError):
    """The server has nothing after the part of a file that is here."""


class _AbsentError(NotFoundError):
    """The server has no such file."""


_STATUSES = {403: _AbsentError, 404: _AbsentError, 410: _AbsentError, 416: _RangeError}


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _download(address: Address, path: Path) -> None:
    part, tag = _part(path), path.with_name(f"{path.name}.etag")
    start = part.stat().st_size if part.is_file() and tag.is_file() else 0
    headers = {"User-Agent": f"pyelmo/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": tag.read_text("utf-8")}
    opener = urllib.request.build_opener(_Redirects(verified=address.checksum is not None))
    request = urllib.request.Request(address.url, headers=headers)
    with _explained(address.url), opener.open(request, timeout=TIMEOUT) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if answer.status != 200 and not resumed:
            raise NotFoundError(f"{address.url}: the server answered {answer.status} {answer.reason}")
        start = start if resumed else 0
        length = answer.headers.get("Content-Length")
        size = start + int(length) if length else None
        _write_tag(tag, answer.headers.get("ETag"))
        with open(part, "ab" if resumed else "wb") as file:
            _copy(answer, file, address, start, size)
            file.flush()
            os.fsync(file.fileno())
    os.replace(part, path)
    tag.unlink(missing_ok=True)


def _write_tag(tag: Path, etag: str | None) -> None:
    """Remember the version of the file. A weak tag, or none, cannot prove that a rest belongs to a beginning."""
    if etag and not etag.startswith("W/"):
        tag.write_text(etag, "utf-8")
    else:
        tag.unlink(missing_ok=True)


def _copy(answer: IO[bytes], file: IO[bytes], address: Address, done: int, size: int | None) -> None:
    from tqdm import tqdm

    too_large = f"{address.url}: has more than {MAX_BYTES:,} bytes, the most that is downloaded"
    if size is not None and size > MAX_BYTES:
        raise FormatError(too_large)
    name = address.name
    # disable=None: the bar is for people only, not for a log file.
    with tqdm(total=size, initial=done, desc=name, unit="B", unit_scale=True, file=sys.stderr, disable=None) as bar:
        while block := answer.read(_BLOCK):
            done += len(block)
            if done > MAX_BYTES:
                raise FormatError(too_large)
            file.write(block)
            bar.update(len(block))
    if size is not None and done != size:
        raise NotFoundError(
            f"{address.url}: the connection ended after {done:,} of {size:,} bytes. Run the same again to resume."
        )


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Make an error of the network one of pyelmo."""
    try:
        yield
    except PyelmoError:
        raise
    except urllib.error.HTTPError as error:
        with error:
            kind = _STATUSES.get(error.code, NotFoundError)
            raise kind(f"{url}: the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise NotFoundError(f"{url}: the download failed ({error.reason}). Is the network available?") from error
    except (http.client.HTTPException, OSError, ValueError) as error:  # OSError: also a full disk
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NotFoundError(f"{url}: the download failed ({reason}). Run the same again to resume.") from error
