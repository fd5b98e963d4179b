"""The documents: the site builds without a warning, links lead somewhere, named files exist, pages stay short."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from docs_support import ROOT, SITE_PAGES
from playwright.sync_api import sync_playwright

import pyelmo

ROOT_PAGES = sorted(ROOT.glob("*.md"))  # mkdocs checks the links of the others
PAGES = ROOT_PAGES + SITE_PAGES
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TEN_MINUTES = 2000  # words
RECORDS = ("CHANGELOG.md", "log.md")  # to look things up by date, not to read through


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ROOT_PAGES, ids=title)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


class Addresses(HTMLParser):
    """What a page of the site links to, what it loads, and the anchors it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.linked: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.loaded += [values["src"]] if "src" in values else []
        if "href" in values:
            is_loaded = tag == "link" and values.get("rel") not in ("next", "prev", "alternate", "canonical")
            (self.loaded if is_loaded else self.linked).append(values["href"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def site(folder):
    """The pages of the built site by path."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    build = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert build.returncode == 0, build.stderr
    return {page: Addresses(page) for page in folder.rglob("*.html") if page.name != "404.html"}


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_without_a_broken_link(site):
    assert len(site) > 60
    for page, addresses in site.items():
        for address in addresses.linked + addresses.loaded:
            link = urlsplit(address)
            if link.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            assert target.exists(), f"{page}: {address}"
            if link.fragment and target in site and not link.fragment.startswith("__"):
                assert unquote(link.fragment) in site[target].anchors, f"{page}: {address}"


@pytest.mark.slow
def test_no_gap_of_the_site_is_read_as_emphasis(site):
    """Outside of code, Markdown takes the `___` of a gap for the marks of bold italics."""
    assert not [page for page in site if re.search(r"<strong><em>|<em><strong>", page.read_text("utf-8"))]


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    loaded = {address for addresses in site.values() for address in addresses.loaded}
    assert not [address for address in loaded if urlsplit(address).netloc]


@pytest.fixture(scope="module")
def address(site, folder):
    """The address of a server of the site."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)")
def test_search_in_a_browser_finds_words_of_both_languages(address):
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        for start, word in (("index.html", "perplexity"), ("ko/index.html", "동음이의어")):
            page.goto(f"{address}/{start}")
            page.fill("input.md-search__input", word)
            page.wait_for_selector(".md-search-result__article mark", timeout=30_000)
            assert word in page.inner_text(".md-search-result__list").lower()
        browser.close()
    assert all(url.startswith((address, "blob:", "data:")) for url in requested)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_can_be_read_in_ten_minutes(page):
    assert len(page.read_text("utf-8").split()) < TEN_MINUTES or page.name in RECORDS


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_file_of_the_repository_that_is_named_exists(page):
    named = re.findall(r"\b((?:src/pyelmo|benchmarks|tests|docs|examples)/[\w./-]*\w)", page.read_text("utf-8"))
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing or page.name == "log.md", missing  # the log names files as they were then


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_the_readme_stays_short(name):
    assert len((ROOT / name).read_text("utf-8").splitlines()) < 150


def test_the_citation_names_the_version():
    assert f"\nversion: {pyelmo.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_ci_tests_every_python_that_the_package_names():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    versions = [version for name in classifiers for version in re.findall(r"Python :: (3\.\d+)$", name)]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == versions


def test_workflows_and_documents_name_targets_of_the_makefile():
    targets = set(re.findall(r"^([\w./-]+):(?: |$)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for file in [*(ROOT / ".github").rglob("*.*"), *ROOT_PAGES]:
        named = set(re.findall(r"(?:run: |`)make ([\w./-]+)", file.read_text("utf-8")))
        assert named <= targets, file


def test_the_architecture_names_only_files_that_exist():
    """In the layout, a line is `folder/` or names of files in the folder above it, then two spaces and a remark."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    layout = re.search(r"```text\nsrc/pyelmo/\n(.*?)```", text, re.DOTALL)
    folders: list[tuple[int, Path]] = [(0, ROOT / "src" / "pyelmo")]
    for line in layout[1].splitlines():
        indent = len(line) - len(line.lstrip())
        names = re.split(r"  +", line.strip())[0].split()
        while folders[-1][0] >= indent and len(folders) > 1:
            folders.pop()
        for name in names:
            assert (folders[-1][1] / name).exists(), f"{folders[-1][1]}/{name}"
        if names[-1].endswith("/"):
            folders.append((indent, folders[-1][1] / names[-1]))


def test_the_walks_of_the_architecture_pass_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    missing = [
        path for path in re.findall(r"`([a-z_]+/[a-z_/0-9]+\.py)", text) if not (ROOT / "src/pyelmo" / path).exists()
    ]
    assert not missing
