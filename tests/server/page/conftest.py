"""A real browser and a real server with the bundled models, each started once."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


class PageServer:
    """`elmo serve` in a process of its own, which can be killed and started again on the same port."""

    def __init__(self, task: Path, temporary: Path) -> None:
        self.environment = {**os.environ, "TMPDIR": str(temporary)}  # for what a killed server leaves
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        options = ["--precision", "int8", "--threads", "1", "--task", f"names={task}", "--port", str(self.port)]
        self.command = [sys.executable, "-m", "pyelmo", "serve", "en", "ko", *options]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL, env=self.environment)
        while self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server has not started")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    server = PageServer(folder / "ner", tmp_path_factory.mktemp("uploads"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser: playwright.Browser, server: PageServer) -> Iterator[playwright.Page]:
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    tab = context.new_page()
    tab.goto(server.url)
    yield tab
    context.close()


@pytest.fixture
def page(tab: playwright.Page, server: PageServer) -> Iterator[playwright.Page]:
    """The same tab for every test, on an empty page. A test fails if a script of the page fails."""
    problems: list[str] = []
    tab.set_viewport_size({"width": 1280, "height": 860})
    tab.emulate_media(color_scheme="light")

    def on_error(error: object) -> None:
        problems.append(str(error))

    tab.on("pageerror", on_error)
    yield tab
    tab.remove_listener("pageerror", on_error)
    tab.unroute_all()
    assert not problems


@pytest.fixture
def go(page: playwright.Page, server: PageServer):
    """Return a function that opens a link of the explorer, and waits until nothing is computed."""

    def go(link: str) -> playwright.Page:
        page.goto("about:blank")
        page.goto(f"{server.url}{link}")
        settle(page)
        return page

    return go


def settle(page: playwright.Page) -> None:
    page.wait_for_selector("main h1")
    playwright.expect(page.locator("main")).to_have_attribute("aria-busy", "false", timeout=120_000)
