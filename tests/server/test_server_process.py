"""A real server: its start, its end by SIGTERM, its workers, and real clients."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import openai
import pytest

import pyelmo
from pyelmo.cli import main
from pyelmo.cli.use.serve import EXAMPLE
from pyelmo.server.run import _listen
from pyelmo.server.settings import ServerSettings

ANSWERED = 'elmo_requests_total{endpoint="/embed",status="200"}'
RUN = "import sys; from pyelmo.cli import main; sys.exit(main())"


@contextlib.contextmanager
def serving(port: int, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run `elmo serve`, and wait until it says that it listens."""
    command = [sys.executable, "-c", RUN, "serve", *arguments, "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        line = process.stderr.readline()
        assert f"at http://127.0.0.1:{port}" in line, line + process.stderr.read()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def ask(port: int, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_small_answers_are_sent_at_once():
    sent_at_once = asyncio.Event()

    async def accept_one() -> None:
        def accepted(_: object, writer: asyncio.StreamWriter) -> None:
            if writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
                sent_at_once.set()
            writer.close()

        listener = _listen(ServerSettings(port=0))
        async with await asyncio.start_server(accepted, sock=listener) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await reader.read()
            writer.close()

    asyncio.run(accept_one())
    assert sent_at_once.is_set()


def test_the_openai_client_works_unchanged_and_the_server_ends_with_status_0(folder, free_port, tmp_path):
    (tmp_path / "key").write_text("secret\n")
    with serving(free_port, str(folder / "tiny"), "--api-key-file", str(tmp_path / "key")) as process:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{free_port}/v1", api_key="secret", max_retries=0)
        texts = ["The bank of the river.", "A bank account"]
        answer = client.embeddings.create(model="tiny", input=texts)
        wanted = pyelmo.load(folder / "tiny", threads=1).encode(texts)
        assert np.array([item.embedding for item in answer.data], np.float32).tobytes() == wanted.tobytes()
        as_floats = client.embeddings.create(model="tiny", input=texts[0], encoding_format="float")
        assert np.array(as_floats.data[0].embedding, np.float32).tobytes() == wanted[0].tobytes()
        assert [model.id for model in client.models.list()] == ["tiny"]
        with pytest.raises(openai.NotFoundError, match="is not served here"):
            client.embeddings.create(model="other", input="a")
        with pytest.raises(openai.BadRequestError, match="integer token ids"):
            client.embeddings.create(model="tiny", input=[1, 2])
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0).models.list()
        client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_sigterm_answers_what_was_accepted_and_refuses_the_rest(folder, free_port):
    body = json.dumps({"sentences": ["The bank of the river. " * 20] * 60, "layers": "top"})
    with serving(free_port, str(folder / "tiny"), "--threads", "1") as process:
        clients = [http.client.HTTPConnection("127.0.0.1", free_port, timeout=60) for _ in range(4)]
        for client in clients:
            client.request("POST", "/embed", body, {"content-type": "application/json"})
        while _metric(free_port, "elmo_words_total") == 0:  # asked after all of them, so they are accepted
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        answers = [client.getresponse() for client in clients]
        assert [answer.status for answer in answers] == [200] * 4
        assert all(len(json.loads(answer.read())["sentences"]) == 60 for answer in answers)
        assert process.wait(60) == 0
        with pytest.raises(OSError):
            ask(free_port, "/health")


def test_a_connection_on_which_no_request_begins_in_time_is_closed(folder, free_port):
    request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"

    def ask_health(connection: socket.socket) -> None:
        connection.sendall(request)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(65536)

    with serving(free_port, str(folder / "tiny"), "--max-time", "2"), contextlib.ExitStack() as stack:
        silent, slow, late, good = (
            stack.enter_context(socket.create_connection(("127.0.0.1", free_port), timeout=60)) for _ in range(4)
        )
        slow.sendall(request[:9])
        for connection in (late, good):
            ask_health(connection)
        late.sendall(request[:9])
        assert [connection.recv(65536) for connection in (silent, slow, late)] == [b""] * 3
        ask_health(good)  # between two requests there is more time


def _metric(port: int, name: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what a server does soon after its answer, such as counting it."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc, to find the workers")
def test_a_killed_worker_is_replaced_and_the_counters_continue(folder, free_port):
    with serving(free_port, str(folder / "tiny"), "--workers", "2") as process:
        for _ in range(3):
            assert ask(free_port, "/embed", {"sentences": ["a"]})[0] == 200
        eventually(lambda: _metric(free_port, ANSWERED) == 3)
        first = children(process.pid)
        assert len(first) == 2
        for victim in first:
            os.kill(victim, signal.SIGKILL)
        status = None
        while status != 200:
            with contextlib.suppress(OSError, http.client.HTTPException):
                status = ask(free_port, "/embed", {"sentences": ["a"]})[0]
        assert not set(first) & set(children(process.pid))
        eventually(lambda: _metric(free_port, ANSWERED) == 4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_worker_ends_with_its_parent(folder, free_port):
    with serving(free_port, str(folder / "tiny"), "--workers", "2") as process:
        workers = children(process.pid)
        process.kill()
        process.wait()
        while any(Path(f"/proc/{worker}").exists() for worker in workers):
            time.sleep(0.05)


def test_the_example_of_help_serves_two_models(free_port):
    pytest.importorskip("kiwipiepy")
    verb, *models, option, _ = shlex.split(EXAMPLE)[1:]
    assert (verb, option) == ("serve", "--port")
    with serving(free_port, *models) as process:
        assert ask(free_port, "/ready")[1]["models"] == ["en", "ko"]
        answer = ask(free_port, "/embed", {"model": "ko", "sentences": ["배를 탔다."], "layers": "top"})[1]
        assert answer["sentences"][0]["tokens"] == ["배", "를", "타", "었", "다", "."]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-model", "--port", "0"], "no-such-model"),
        (["a/en", "b/en"], "en is named twice"),
        (["en", "--index", "=x"], "expected a path, or NAME=PATH"),
        (["en", "--port", "99999"], "port 99999"),
        (["en", "--max-words", "0"], "the limit words is 0"),
        (["en", "--api-key-file", "missing"], "--api-key-file missing: cannot be read"),
        (["en", "--host", "192.0.2.1"], "192.0.2.1:8000: cannot listen there"),
    ],
)
def test_what_cannot_be_served_is_one_clear_error(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *arguments]) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("elmo: ")
    assert message in line


def test_without_fastapi_one_line_says_what_to_install(folder, capsys, monkeypatch, free_port):
    for name in list(sys.modules):
        if name.startswith("pyelmo.server.app"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", str(folder / "tiny"), "--port", str(free_port)]) == 1
    assert "pip install 'pyelmo[serve]'" in capsys.readouterr().err


def test_loading_the_service_needs_no_fastapi_and_no_torch(folder):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['fastapi'] = sys.modules['uvicorn'] = None\n"
        "from pyelmo.server.service import Service; from pyelmo.server.settings import ServerSettings\n"
        f"print(list(Service(ServerSettings(models={{'tiny': {str(folder / 'tiny')!r}}})).models))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "['tiny']", done.stderr
