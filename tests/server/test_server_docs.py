"""The guide of the server: its commands can be parsed, and its curl lines and Python code run against a server."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

import pyelmo
from pyelmo.cli import build_parser
from pyelmo.server.app import create_app
from pyelmo.server.settings import Limits, ServerSettings

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "server.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
CURLS = [
    line for kind, text in BLOCKS if kind == "bash" for line in text.replace("\\\n", " ").splitlines() if line
]  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the bundled `en`, as the guide starts it."""
    settings = ServerSettings(models={"en": "en"}, threads=1)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_the_guide_has_the_lines_that_are_tested():
    assert len(CURLS) == 8
    assert [kind for kind, _ in BLOCKS].count("python") == 2


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", CURLS)
def test_a_curl_line_is_answered(line, address):
    command = shlex.split(line.replace("http://127.0.0.1:8000", address))
    done = subprocess.run([*command, "--fail-with-body", "--silent", "--show-error"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if "/metrics" not in line:
        answer = json.loads(done.stdout)
        if "/predict" in line:
            assert answer["guesses"][0]["word"] == "water"
        if "/score" in line:
            tea, sea = answer["sentences"]
            assert tea["forward"] > sea["forward"]


def test_the_python_code_prints_what_it_says(address, capsys):
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text.replace("http://127.0.0.1:8000", address), "server.md", "exec"), {})
            *_, promised = re.findall(r"print\(.*\)  # (.*)", text)
            assert capsys.readouterr().out.startswith(promised.removesuffix(" ..."))


def test_every_command_of_the_guide_can_be_parsed():
    lines = [line for kind, text in BLOCKS if not kind for line in text.splitlines() if line.startswith("elmo ")]
    lines += re.findall(r"`(elmo serve [^`]*)`", GUIDE)
    assert len(lines) == 5
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])


def test_the_limits_in_the_guide_are_the_defaults():
    defaults = build_parser().parse_args(["serve"])
    limits = Limits()
    for name in ("body", "texts", "words", "queue", "time"):
        (written,) = re.findall(rf"^\| `--max-{name}` \| (\d+) ", GUIDE, re.MULTILINE)
        assert int(written) == getattr(limits, name) == getattr(defaults, f"max_{name}")
    assert f"Beyond {limits.requests} requests" in GUIDE


def test_the_vectors_over_http_are_those_of_encode(address):
    pytest.importorskip("openai")
    from openai import OpenAI

    client = OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    texts = ["A bank account.", "The bank of a river."]
    answer = client.embeddings.create(model="en", input=texts)
    assert [item.embedding for item in answer.data] == pyelmo.load("en", threads=1).encode(texts).tolist()
    client.close()
