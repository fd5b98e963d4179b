"""A small server that speaks the protocol of the Hugging Face Hub: repositories, commits, large files, downloads.

It can be told to end a download halfway, or to send other bytes than it lists.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

TOKEN = "hf_test"


class Repository:
    """The files of each commit, and the commit of each branch."""

    def __init__(self, private: bool) -> None:
        self.private = private
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        self.commit("main", {})

    def commit(self, branch: str, files: dict[str, bytes]) -> str:
        name = hashlib.sha1(repr((len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[name], self.branches[branch] = files, name
        return name


class HubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}  # by SHA-256
        self.downloads: list[str] = []  # names of files, for each request
        self.cut: dict[str, int] = {}  # for a file, how many downloads end halfway
        self.wrong: set[str] = set()  # files that are sent with a wrong byte
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def replace_hub(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        """Make huggingface_hub use this server and another cache. Its settings were read when it was imported."""
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, self.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", self.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        # And for processes that a test starts:
        environment = {
            "HF_ENDPOINT": self.url,
            "HF_HUB_CACHE": str(cache),
            "HF_HUB_DISABLE_XET": "1",
            "HF_TOKEN": TOKEN,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    def add(self, name: str, folder: Path) -> None:
        """Add a repository with the files of a folder, with a branch and a tag beside main."""
        repository = self.repositories[name] = Repository(private=False)
        commit = repository.commit("main", {path.name: path.read_bytes() for path in folder.iterdir()})
        repository.branches |= {"trial": commit, "v1.0": commit}

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".hdf5"))


def git_checksum(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def answer(self, body: Any = None, status: int = 200, **headers: str) -> None:
        data = json.dumps(body if body is not None else {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def fail(self, status: int, code: str) -> None:
        self.answer({"error": code}, status, X_Error_Code=code, X_Error_Message=code)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def find(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Return a commit and its files, or answer that there is no such repository or revision."""
        repository = self.server.repositories.get(name)
        if repository is None:
            self.fail(404, "RepoNotFound")
            return None
        commit = repository.branches.get(unquote(revision), revision)
        if commit not in repository.commits:
            self.fail(404, "RevisionNotFound")
            return None
        return commit, repository.commits[commit]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            if found := self.find(match[1], match[2] or "main"):
                files = [self.describe(name, data) for name, data in found[1].items()]
                self.answer({"id": match[1], "sha": found[0], "siblings": files, "tags": [], "private": False})
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if found := self.find(match[1], match[2]):
                self.send_file(found[0], match[3], found[1])
        else:
            self.fail(404, "RepoNotFound")

    do_HEAD = do_GET  # noqa: N815 (http.server calls it by this name)

    def describe(self, name: str, data: bytes) -> dict[str, Any]:
        facts: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": git_checksum(data)}
        if is_large(name):
            facts["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        return facts

    def send_file(self, commit: str, name: str, files: dict[str, bytes]) -> None:
        if name not in files:
            self.fail(404, "EntryNotFound")
            return
        data = files[name]
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0")) or 0)
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", commit)
        checksum = hashlib.sha256(data).hexdigest() if is_large(name) else git_checksum(data)
        self.send_header("ETag", f'"{checksum}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.server.downloads.append(name)
        if name in self.server.wrong:
            data = data[:-1] + bytes([data[-1] ^ 1])
        if self.server.cut.get(name, 0):
            self.server.cut[name] -= 1
            data, self.close_connection = data[: start + (len(data) - start) // 2], True
        self.wfile.write(data[start:])

    def do_PUT(self) -> None:
        data = self.body()
        if hashlib.sha256(data).hexdigest() != self.path.rpartition("/")[2]:
            self.fail(400, "BadChecksum")
            return
        self.server.large[hashlib.sha256(data).hexdigest()] = data
        self.answer()

    def do_POST(self) -> None:
        path, body = urlsplit(self.path).path, self.body()
        if path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.fail(401, "Unauthorized")
        elif path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted['organization']}/{wanted['name']}"
            exists = name in self.server.repositories
            if not exists:
                private = wanted.get("private") or wanted.get("visibility") == "private"
                self.server.repositories[name] = Repository(bool(private))
            self.answer({"url": f"{self.server.url}/{name}"}, 409 if exists else 200)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/branch/(.+)", path):
            branches = self.server.repositories[match[1]].branches
            exists = unquote(match[2]) in branches
            branches.setdefault(unquote(match[2]), branches["main"])
            self.answer(status=409 if exists else 201)
        elif re.fullmatch(r"/api/models/[^/]+/[^/]+/preupload/.+", path):
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = {name: "lfs" if is_large(name) else "regular" for name in names}
            files = [{"path": name, "uploadMode": mode, "shouldIgnore": False} for name, mode in modes.items()]
            self.answer({"files": files})
        elif path.endswith(".git/info/lfs/objects/batch"):
            self.answer({"transfer": "basic", "objects": list(map(self.upload_action, json.loads(body)["objects"]))})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/(.+)", path):
            self.commit(match[1], unquote(match[2]), list(map(json.loads, body.splitlines())))
        else:
            self.fail(404, "RepoNotFound")

    def upload_action(self, wanted: dict[str, Any]) -> dict[str, Any]:
        upload = {"href": f"{self.server.url}/lfs/{wanted['oid']}"}
        return {**wanted, **({} if wanted["oid"] in self.server.large else {"actions": {"upload": upload}})}

    def commit(self, name: str, branch: str, lines: list[dict[str, Any]]) -> None:
        repository = self.server.repositories[name]
        files = dict(repository.commits[repository.branches[branch]])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        commit = repository.commit(branch, files)
        self.answer({"commitUrl": f"{self.server.url}/{name}/commit/{commit}", "commitOid": commit})
