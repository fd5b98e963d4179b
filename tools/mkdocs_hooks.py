"""What mkdocs calls while it builds the site (`hooks` in mkdocs.yml): generated pages, notebooks and formulas.

Generated are the command reference (from `--help`), the pages of the API (from docstrings), the model cards, the
changelog and the notebooks of the tutorials, so that no text is kept twice.
"""

from __future__ import annotations

import argparse
import ast
import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks  # noqa: E402

MODULES = ("pyelmo", "pyelmo.encoders", "pyelmo.neighbours", "pyelmo.tasks", "pyelmo.compat.allennlp")
LONGEST = "pyelmo.Embedder"  # has a page of its own
DOWNLOAD = {"en": "Download this page as a notebook", "ko": "이 페이지를 노트북으로 내려받기"}
NOT_TRANSLATED = "*이 글은 아직 영어로만 있다.*"


def on_pre_build(config: MkDocsConfig) -> None:
    """Write the generated pages and notebooks into docs/, where git ignores them."""
    for path, content in generated():
        target = ROOT / "docs" / path
        if not target.exists() or target.read_text("utf-8") != content:  # `make docs-serve` builds after each change
            target.write_text(content, "utf-8")


def generated() -> Iterator[tuple[str, str]]:
    """Yield the path in docs/ and the content of each generated file."""
    yield "changelog.md", from_the_root("CHANGELOG.md")
    yield "contributing.md", from_the_root("CONTRIBUTING.md")
    yield "reference/commands.md", "\n".join(command_reference())
    for module in MODULES:
        names = [f"{module}.{name}" for name in public_names(module)]
        names = [name for name in names if name not in (*MODULES, LONGEST)]
        yield f"reference/{module}.md", api_page(module, names)
    yield f"reference/{LONGEST}.md", api_page(LONGEST, [LONGEST])
    for name in ("en", "ko"):
        yield f"reference/model-{name}.md", model_card(name)
    for page in (ROOT / "docs" / "tutorials").glob("[1-9]*.md"):
        yield f"tutorials/{page.stem}.ipynb", notebooks.as_json(page.read_text("utf-8"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the overview of the API with its pages, and each tutorial with its notebook; mark what is not translated."""
    path = page.file.src_uri
    if page.file.locale != page.file.locale_alternate_of:  # an English page among the Korean ones
        page.meta["search"] = {"exclude": True}  # it is found once
        markdown = re.sub(r"^(# .+\n)", rf"\1\n{NOT_TRANSLATED}\n", markdown, count=1, flags=re.MULTILINE)
    if path in ("index.md", "index.ko.md"):
        page.meta["hide"] = ["navigation"]
    if path == "reference/api.md":
        return link_names(markdown)
    if notebook := re.fullmatch(r"tutorials/([1-9]\S*?)(?:\.(ko))?\.md", path):
        suffix = notebook[2] or "en"
        name = path.removeprefix("tutorials/").removesuffix(".md")
        title, rest = markdown.split("\n", 1)
        return f"{title}\n\n[{DOWNLOAD[suffix]}]({name}.ipynb){{ download }}\n{rest}"
    return markdown


def on_page_content(html_text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn formulas into MathML, which browsers show without a script."""
    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, html_text, flags=re.DOTALL)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Leave 404.html to the English site: the Korean one, which is built later, would replace it."""
    return "" if template_name == "404.html" and config.theme["language"] == "ko" else output_content


def formula(match: re.Match[str]) -> str:
    latex = html.unescape(match[2]).strip()[2:-2]  # without \( \) or \[ \]
    return convert(latex, display="block" if match[1] == "div" else "inline")


def from_the_root(name: str) -> str:
    """Return a document of the repository's root with its links as they are from docs/; others are plain text."""
    text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((\S+)\)", lambda link: link[0] if reachable(link[2]) else link[1], text)


def reachable(link: str) -> bool:
    return link.startswith(("http", "#")) or (ROOT / "docs" / link.partition("#")[0]).exists()


def command_reference() -> Iterator[str]:
    """Yield the Markdown of the help texts of all commands."""
    from pyelmo.cli import build_parser

    os.environ["COLUMNS"] = "84"
    yield "# Commands\n\nWhat `elmo --help` and `elmo COMMAND --help` print."
    yield from help_of(build_parser(), level=2)


def help_of(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} `{parser.prog}`\n\n```text\n{parser.format_help().rstrip()}\n```"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from help_of(command, min(level + 1, 3))


def api_page(title: str, names: list[str]) -> str:
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in sorted(names, key=str.lower))])


def public_names(module: str) -> list[str]:
    """Return `__all__` of a module without importing it, which may need torch."""
    path = ROOT / "src" / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise ValueError(f"{source}: no __all__")


def link_names(markdown: str) -> str:
    """Make each public name in the tables of the overview a link to its description."""
    module, lines = "", []
    for line in markdown.splitlines():
        if heading := re.match(r"## (?:Methods of )?`(\S+)`$", line):
            module = "pyelmo.Embedder" if heading[1] == "Embedder" else heading[1]
        name = re.match(r"\| `(\w+)(\(.*?\))?` \|", line)
        if module and name and f"{module}.{name[1]}" not in MODULES:
            label = name[1] + (name[2] or "")
            line = line.replace(f"`{label}`", f"[`{label}`][{module}.{name[1]}]", 1)
        lines.append(line)
    return "\n".join(lines)


def model_card(name: str) -> str:
    card = (ROOT / "src" / "pyelmo" / "models" / name / "README.md").read_text("utf-8")
    return re.sub(r"\A---\n.*?\n---\n", "", card, flags=re.DOTALL)
