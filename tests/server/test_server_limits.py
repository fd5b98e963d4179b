"""Limits and safety: bodies, texts, words, time, keys, host names, origins."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest
from server_support import LOCAL, Blocker, until
from starlette.testclient import TestClient

from pyelmo.errors import InputError
from pyelmo.server.app import create_app
from pyelmo.server.service import Service
from pyelmo.server.settings import Limits, ServerSettings


@pytest.fixture(scope="module")
def small(folder) -> ServerSettings:
    limits = Limits(body=2000, texts=3, words=10, queue=25, time=30, requests=4)
    return ServerSettings(models={"tiny": str(folder / "tiny")}, threads=1, limits=limits)


@pytest.fixture(scope="module")
def service(small) -> Service:
    return Service(small)


@pytest.fixture(scope="module")
def limited(small, service) -> TestClient:
    return TestClient(create_app(small, service), base_url=LOCAL)


def error_of(answer) -> str:
    return answer.json()["error"]["message"]


def test_too_many_texts_words_or_characters_are_named(limited):
    assert error_of(limited.post("/embed", json={"sentences": ["a"] * 4})) == "4 texts; a request may have at most 3"
    assert "11 words; a request may have at most 10" in error_of(
        limited.post("/embed", json={"sentences": ["a " * 11]})
    )
    assert "at most 320" in error_of(limited.post("/embed", json={"sentences": ["a" * 400]}))
    assert "at most 10" in error_of(limited.post("/embed", json={"sentences": [[""] * 300]}))
    assert limited.post("/embed", json={"sentences": ["a " * 10]}).status_code == 200
    # The sentence form costs less, so its limit is higher.
    assert limited.post("/v1/embeddings", json={"input": ["a " * 150]}).status_code == 200
    assert "at most 160" in error_of(limited.post("/v1/embeddings", json={"input": ["a " * 161]}))


def test_a_long_body_is_refused_before_it_is_read(limited):
    answer = limited.post("/embed", json={"sentences": ["a" * 3000]})
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")
    assert "longer than 2000 bytes" in error_of(answer)

    def parts():
        yield b'{"sentences": ["'
        for _ in range(100):
            yield b"a" * 100

    answer = limited.post("/embed", content=parts(), headers={"content-type": "application/json"})
    assert answer.status_code == 413  # without a Content-Length, too


def test_a_body_that_comes_too_slowly_is_refused(small, service):
    app = create_app(replace(small, limits=replace(small.limits, time=0.05)), service)

    async def slow() -> int:
        async def body():
            yield b"{"
            await asyncio.sleep(30)

        headers = {"content-type": "application/json"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL) as client:
            return (await client.post("/embed", content=body(), headers=headers)).status_code

    assert asyncio.run(slow()) == 408


def test_an_answer_that_takes_too_long_is_503_and_leaves_the_queue(small, service):
    app = create_app(small, service)
    thread = service._threads["tiny"]

    async def wait() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL) as client:
            blocker = Blocker()
            blocked = asyncio.create_task(service.compute("tiny", blocker))
            await until(blocker.taken.is_set)
            service.settings = replace(small, limits=replace(small.limits, time=0.05))
            answer = await client.post("/embed", json={"sentences": ["a"]})
            assert thread.words == 0
            blocker.release.set()
            await blocked
            return answer

    try:
        answer = asyncio.run(wait())
    finally:
        service.settings = small
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "timeout")


def test_a_full_queue_is_429_at_once_with_retry_after(small, service):
    async def crowd() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(small, service))
        async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
            blocker = Blocker()
            blocked = asyncio.create_task(service.compute("tiny", blocker))
            await until(blocker.taken.is_set)
            body = {"sentences": ["a " * 9]}
            waiting = [asyncio.create_task(client.post("/embed", json=body)) for _ in range(2)]
            await until(lambda: service._threads["tiny"].words == 22)
            refused = await client.post("/embed", json=body)
            blocker.release.set()
            await blocked
            return [*(await asyncio.gather(*waiting)), refused]

    *accepted, refused = asyncio.run(crowd())
    assert [answer.status_code for answer in accepted] == [200, 200]
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["code"] == "queue_full"


def test_too_many_requests_at_once_are_429_before_they_are_read(small, service):
    async def crowd() -> list[int]:
        transport = httpx.ASGITransport(create_app(small, service))
        async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
            blocker = Blocker()
            blocked = asyncio.create_task(service.compute("tiny", blocker))
            await until(blocker.taken.is_set)
            waiting = [asyncio.create_task(client.post("/embed", json={"sentences": ["a"]})) for _ in range(4)]
            await until(lambda: service._threads["tiny"].words == 12)
            refused = await client.post("/embed", json={"sentences": ["a"]})
            blocker.release.set()
            await blocked
            return [answer.status_code for answer in await asyncio.gather(*waiting)] + [refused.status_code]

    assert asyncio.run(crowd()) == [200] * 4 + [429]


# --- who may ask ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locked(small, service) -> TestClient:
    return TestClient(create_app(replace(small, api_key="secret"), service), base_url="http://elmo.example")


def test_a_key_protects_computation_but_not_the_checks_of_a_load_balancer(locked):
    for path in ("/health", "/ready", "/docs", "/openapi.json", "/"):
        assert locked.get(path).status_code == 200, path
    for path in ("/metrics", "/v1/models"):
        assert locked.get(path).status_code == 401, path
    for key in (None, "Bearer wrong", "Bearer secret2", "secret", "Basic secret"):
        answer = locked.post("/embed", json={"sentences": ["a"]}, headers={"authorization": key} if key else {})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), key
    good = {"authorization": "Bearer secret"}
    assert locked.post("/embed", json={"sentences": ["a"]}, headers=good).status_code == 200
    assert locked.get("/metrics", headers=good).status_code == 200


def test_every_endpoint_but_the_open_ones_needs_the_key(locked):
    open_paths = {"/health", "/ready"}
    for path, operations in locked.get("/openapi.json").json()["paths"].items():
        for method in operations:
            status = locked.request(method, path, json={} if method == "post" else None).status_code
            assert (status == 401) != (path in open_paths), path


def test_the_settings_do_not_show_the_key(small):
    assert "secret" not in repr(replace(small, api_key="secret"))
    with pytest.raises(InputError, match="printable ASCII"):
        replace(small, api_key="비밀")


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:8000", 200), ("evil.example", 403)]
)
def test_a_local_server_answers_only_to_local_host_names(limited, host, status):
    assert limited.get("/health", headers={"host": host}).status_code == status


def test_a_body_that_is_not_declared_as_json_is_refused(limited):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = limited.post("/embed", content=b'{"sentences": ["a"]}', headers={"content-type": kind})
        assert answer.status_code == 415, kind
    kind = "application/json; charset=utf-8"
    assert limited.post("/embed", content=b'{"sentences": ["a"]}', headers={"content-type": kind}).status_code == 200


def test_no_origin_may_read_answers_unless_asked_for(small, service, limited):
    asks = {
        "origin": "https://a.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    assert "access-control-allow-origin" not in limited.options("/embed", headers=asks).headers
    open_to_a = TestClient(
        create_app(replace(small, cors=("https://a.example",), api_key="k"), service), base_url=LOCAL
    )
    allowed = open_to_a.options("/embed", headers=asks)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "https://a.example")
    refused = open_to_a.options("/embed", headers={**asks, "origin": "https://b.example"})
    assert "access-control-allow-origin" not in refused.headers


def test_a_page_of_an_allowed_origin_can_read_why_it_was_refused(small, service):
    allowed = TestClient(create_app(replace(small, cors=("https://a.example",), api_key="k"), service), base_url=LOCAL)
    good, json = {"authorization": "Bearer k"}, {"content-type": "application/json"}
    for status, headers in ((401, json), (415, good), (413, {**good, **json})):
        answer = allowed.post("/embed", content="a" * 3000, headers={"origin": "https://a.example", **headers})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, "https://a.example")


def test_every_answer_has_the_security_headers(limited):
    for answer in (limited.get("/"), limited.get("/docs"), limited.get("/missing"), limited.post("/embed", json={})):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_serves_no_file_from_elsewhere(limited):
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd"):
        assert limited.get(path).status_code == 404, path


@pytest.mark.parametrize(
    "changes", [{"models": {}}, {"port": 70000}, {"workers": 0}, {"limits": Limits(words=0)}, {"api_key": ""}]
)
def test_impossible_settings_are_refused(changes):
    with pytest.raises(InputError):
        ServerSettings(**changes)
