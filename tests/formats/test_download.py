"""Models with an address: downloaded from a server on this machine, resumed, verified, and cached."""

from __future__ import annotations

import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pyelmo
from pyelmo.cli import main
from pyelmo.compat.allennlp import ElmoEmbedder
from pyelmo.errors import FormatError, InputError, NotFoundError
from pyelmo.formats.bundled import BUNDLED
from pyelmo.formats.sources import download, is_url


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a folder with ranges and ETags; `server.stop_after` ends the next answer early."""

    def do_GET(self) -> None:
        server = self.server
        server.requests.append((self.path, self.headers.get("Range")))
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", server.target or f"/{self.path[len('/moved/') :]}")
            self.end_headers()
            return
        path = server.folder / self.path.lstrip("/").partition("?")[0]
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        etag, start = f'"{hashlib.md5(data).hexdigest()}"', 0
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range") == etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(data):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(server.claims or len(data) - start))
        if server.etags:
            self.send_header("ETag", etag)
        self.end_headers()
        body = data[start:]
        if server.stop_after is not None and len(body) > server.stop_after:
            body, server.stop_after = body[: server.stop_after], None
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.requests, self.etags = folder, [], True
        self.stop_after: int | None = None
        self.claims: int | None = None
        self.target: str | None = None
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server(tmp_path, clip_model, monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("PYELMO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "served").mkdir()
    for file in clip_model.iterdir():
        shutil.copy(file, tmp_path / "served")
    shutil.make_archive(str(tmp_path / "served" / "model"), "zip", clip_model)
    with Server(tmp_path / "served") as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "name", ["weights.hdf5", "options.json", "model.zip", "moved/model.zip", "model.zip?format=zip"]
)
def test_an_address_gives_the_model(server, clip_model, name):
    model = pyelmo.load(f"{server.url}/{name}")
    wanted = pyelmo.load(clip_model).embed([["A", "bank"]])[0]
    assert np.array_equal(model.embed([["A", "bank"]])[0], wanted)
    assert model.pretrained.source == f"{server.url}/{name}"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_model_of_pyelmos_own_format_is_downloaded_with_all_its_files_once(server, tmp_path, name):
    shutil.copytree(BUNDLED / "en", tmp_path / "served" / "own")
    wanted = pyelmo.load("en")
    for _ in range(2):
        model = pyelmo.load(f"{server.url}/own/{name}")
        assert np.array_equal(model.encode("A bank account."), wanted.encode("A bank account."))
        assert model.predict("A ___ account.")[0] == wanted.predict("A ___ account.")[0]
    assert sorted(Path(path).name for path, _ in server.requests) == [
        "characters.json", "config.json", "model.safetensors", "sentence.json", "vocab.txt",
    ]  # fmt: skip


def test_an_address_may_have_letters_of_other_scripts_and_spaces(server, tmp_path):
    shutil.copy(tmp_path / "served" / "model.zip", tmp_path / "served" / "%EB%AA%A8%EB%8D%B8%202.zip")
    assert pyelmo.load(f"{server.url}/모델 2.zip").config.layers == 3
    assert pyelmo.load(f"{server.url}/%EB%AA%A8%EB%8D%B8%202.zip").config.layers == 3
    assert len(server.requests) == 1


def test_a_damaged_archive_is_downloaded_again(server, tmp_path):
    path = tmp_path / "served" / "model.zip"
    whole = path.read_bytes()
    path.write_text("<html>Log in first</html>", "utf-8")
    with pytest.raises(FormatError, match="damaged.*Download or copy it again"):
        pyelmo.load(f"{server.url}/model.zip")
    path.write_bytes(whole)
    assert pyelmo.load(f"{server.url}/model.zip").config.layers == 3


def test_a_file_is_downloaded_once(server):
    pyelmo.load(f"{server.url}/model.zip")
    pyelmo.load(f"{server.url}/model.zip")
    assert [path for path, _ in server.requests] == ["/model.zip"]


def test_options_and_vocabulary_may_have_addresses_of_their_own(server, tmp_path):
    (tmp_path / "served" / "options.json").rename(tmp_path / "served" / "options262.json")
    with pytest.raises(NotFoundError, match="no options.json beside it"):
        pyelmo.load(f"{server.url}/weights.hdf5")
    assert pyelmo.load(f"{server.url}/weights.hdf5", options=f"{server.url}/options262.json").config.layers == 3


def test_weights_of_a_name_find_options_of_that_name(server, tmp_path):
    for name in ("weights.hdf5", "options.json"):
        (tmp_path / "served" / name).rename(tmp_path / "served" / f"elmo_small_{name}")
    assert pyelmo.load(f"{server.url}/elmo_small_options.json").config.layers == 3
    assert [path for path, _ in server.requests] == ["/elmo_small_options.json", "/elmo_small_weights.hdf5"]


def test_code_for_allennlp_runs_with_its_addresses(server):
    embedder = ElmoEmbedder(f"{server.url}/options.json", f"{server.url}/weights.hdf5")
    assert embedder.embed_sentence(["A", "bank"]).shape[:2] == (3, 2)


def test_an_interrupted_download_is_resumed(server, tmp_path):
    server.stop_after = 1000
    with pytest.raises(NotFoundError, match="ended after 1,000 of .* bytes. Run the same again"):
        pyelmo.load(f"{server.url}/model.zip")
    assert not list((tmp_path / "cache").rglob("model.zip"))
    pyelmo.load(f"{server.url}/model.zip#sha256={checksum(tmp_path / 'served' / 'model.zip')}")
    assert [wanted for _, wanted in server.requests] == [None, "bytes=1000-"]
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_a_file_that_changed_meanwhile_is_downloaded_from_its_start(server, tmp_path):
    server.stop_after = 1000
    with pytest.raises(NotFoundError):
        pyelmo.load(f"{server.url}/weights.hdf5")
    other = tmp_path / "served" / "weights.hdf5"
    other.write_bytes(other.read_bytes() + b" ")
    assert download.fetch(f"{server.url}/weights.hdf5").read_bytes() == other.read_bytes()


def test_without_a_version_from_the_server_a_download_begins_again(server):
    server.etags, server.stop_after = False, 1000
    with pytest.raises(NotFoundError):
        pyelmo.load(f"{server.url}/model.zip")
    pyelmo.load(f"{server.url}/model.zip")
    assert [wanted for _, wanted in server.requests] == [None, None]


def test_a_complete_part_without_its_name_is_downloaded_again(server, tmp_path):
    """The process was killed between the last byte and the renaming."""
    path = download.fetch(f"{server.url}/model.zip")
    data = path.read_bytes()
    path.rename(path.with_name("model.zip.part"))
    path.with_name("model.zip.etag").write_text(f'"{hashlib.md5(data).hexdigest()}"')
    assert download.fetch(f"{server.url}/model.zip").read_bytes() == data


def test_a_wrong_checksum_is_an_error_and_nothing_is_kept(server, tmp_path):
    for _ in range(2):
        with pytest.raises(FormatError, match="checksum mismatch"):
            pyelmo.load(f"{server.url}/model.zip#sha256={'0' * 64}")
    assert not list((tmp_path / "cache").rglob("model.zip"))
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        pyelmo.load(f"{server.url}/model.zip#sha256=abc")


def test_a_damaged_file_in_the_cache_is_noticed_if_a_checksum_is_given(server, tmp_path):
    url = f"{server.url}/model.zip#sha256={checksum(tmp_path / 'served' / 'model.zip')}"
    download.fetch(url).write_bytes(b"damaged")
    with pytest.raises(FormatError, match="checksum mismatch"):
        pyelmo.load(url)
    pyelmo.load(url)


def test_what_is_too_large_is_not_downloaded(server, monkeypatch, tmp_path):
    monkeypatch.setattr(download, "MAX_BYTES", 500)
    with pytest.raises(FormatError, match="more than 500 bytes"):
        pyelmo.load(f"{server.url}/model.zip")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.stat().st_size > 500 and path.is_file()]


@pytest.mark.parametrize(
    "url", ["http://example.org/model.zip", "ftp://example.org/model.zip", "file:///etc/passwd", "https:///model.zip"]
)
def test_only_https_is_trusted(url):
    with pytest.raises(InputError, match="https"):
        pyelmo.load(url)


def test_http_needs_a_checksum_and_redirections_are_checked(server):
    address = download.Address.parse(f"http://example.org/model.zip#sha256={'a' * 64}")
    assert (address.name, address.checksum) == ("model.zip", "a" * 64)
    for target in ("http://example.org/model.zip", "file:///etc/passwd", "ftp://localhost/model.zip"):
        server.target = target
        with pytest.raises((InputError, NotFoundError)):
            pyelmo.load(f"{server.url}/moved/model.zip")
    server.target = "/moved/model.zip"
    with pytest.raises(NotFoundError, match="redirect"):
        pyelmo.load(f"{server.url}/moved/model.zip")


def test_commands_say_what_failed_in_one_line(server, capsys):
    for name in ("nothing.zip", "nothing.hdf5"):
        assert main(["inspect", f"{server.url}/{name}"]) == 1
        assert capsys.readouterr().err == f"elmo: {server.url}/{name}: the server answered 404 Not Found\n"
    port = server.server_port
    server.server_close()
    assert main(["inspect", f"http://127.0.0.1:{port}/model.zip"]) == 1
    assert "the download failed" in capsys.readouterr().err


def test_a_path_is_no_address():
    assert not is_url("C:\\models\\en")
    assert not is_url("user/name")
    assert is_url("https://example.org/x.zip")
