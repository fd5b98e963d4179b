"""Counts that show how easily the repository reads.

    python benchmarks/counts.py [--json FILE]

Prints the number of files in each folder, type names that several modules define, imports between folders that must
not be, lines of prose over 120 characters, words that the project does not use, and lines of source.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES_AT_MOST = 14  # about a dozen, `__init__.py` aside
LINE_AT_MOST = 120
# Folders that other programs or people write.
GENERATED = ("tests/golden", "benchmarks/results", "docs/pictures", "docs/reports", "src/pyelmo/models")
# A type name may be defined twice where the reason stands here.
TWINS = {
    "CharFeatures": "fast and plain: kernels/cpu/compiled.py and its reference plain.py",
    "Lstm": "fast and plain: kernels/cpu/compiled.py and its reference plain.py",
    "Matrix": "fast and plain: kernels/cpu/compiled.py and its reference plain.py",
    "Elmo": "compat/allennlp.py has AllenNLP's own name for AllenNLP's own arguments",
}
# What the project writes otherwise: the right column of the style guide's word list, as patterns.
WORDS = {
    "in the box": "bundled",
    r"\bgoes on\b|\bgo on with\b|\bgone on with\b": "resumes, continues",
    r"\bin (any|other|no) company\b|\btheir company\b": "batch",
    "small letters": "lower case",
    r"\bby lot\b": "at random, shuffled",
    r"errors? fewer|fewer errors by": "error reduction",
    "checksum is another": "checksum mismatch",
    "at work here": "locked by another process",
    r"(ended|stopped|died) without a word": "exited unexpectedly",
    r"\bsentence marks\b|\bend mark\b|\bthe two marks\b|\bdrop_marks\b": "boundary tokens",
    r"\bfound(:[^=]+)? = ": "a name that says what it holds",
    r"`tell` hears|\bhears of\b": "callback, on finish",
    r"\btable of words\b": "dictionary lookup, embedding table",
    r"words (it|they|that it) do(es)? not know": "out-of-vocabulary (OOV)",
    r"\b(development|test|training|held-out) parts?\b": "dev set, test set, training set",
    r"of the mix's weights": "L2 penalty on the layer weights",
}


def tracked(*patterns: str) -> list[str]:
    done = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def files_per_folder() -> dict[str, int]:
    folders = Counter(str(Path(path).parent) for path in tracked())
    return {folder: count for folder, count in sorted(folders.items()) if not folder.startswith(GENERATED)}


def defined_types(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes and of type aliases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if re.fullmatch(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name):
                yield name


def repeated_types() -> dict[str, list[str]]:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in tracked("src/*.py"):
        for name in defined_types(ast.parse((ROOT / path).read_text("utf-8"))):
            modules[name].append(path.removeprefix("src/pyelmo/"))
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}


def imports(folder: str, other: str) -> list[str]:
    """Return the files of one folder of the package that import from another."""
    lines = []
    for path in tracked(f"src/pyelmo/{folder}/*.py"):
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), 1):
            if re.match(rf"\s*(from|import) pyelmo\.{other}\b", line) or re.match(
                rf"\s*from pyelmo import .*\b{other}\b", line
            ):
                lines.append(f"{path}:{number}")
    return lines


def long_lines() -> list[str]:
    """Return lines of prose over 120 characters. Tables, code, links and pictures cannot be wrapped."""
    lines = []
    for path in tracked("README.md", "docs/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "src/pyelmo/models/*/README.md"):
        in_code = False
        for number, line in enumerate((ROOT / path).read_text("utf-8").splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            elif len(line) > LINE_AT_MOST and not in_code and not line.lstrip().startswith(("|", "![", "    ")):
                lines.append(f"{path}:{number}")
    return lines


def help_texts() -> str:
    """Return the help of every verb as one text."""
    import argparse as parsers

    from pyelmo.cli import build_parser

    def every(parser: parsers.ArgumentParser) -> Iterator[str]:
        yield parser.format_help()
        for action in parser._actions:
            if isinstance(action, parsers._SubParsersAction):
                for child in action.choices.values():
                    yield from every(child)

    return "\n".join(every(build_parser()))


def unwanted_words() -> dict[str, list[str]]:
    """Return where the word list's right column is used: README, docs (the log of experiments aside), src and help."""
    paths = [path for path in tracked("README.md", "docs/*.md", "src/*.py", "src/*.c") if path != "docs/log.md"]
    texts = {path: (ROOT / path).read_text("utf-8") for path in paths}
    texts["elmo --help"] = help_texts()
    places: dict[str, list[str]] = {}
    for pattern in WORDS:
        for path, text in texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(pattern, line, re.IGNORECASE):
                    places.setdefault(pattern, []).append(f"{path}:{number}")
    return places


def source_lines() -> dict[str, int]:
    """Return lines of Python under src, by folder of the package."""
    lines: Counter[str] = Counter()
    for path in tracked("src/*.py"):
        parts = Path(path).parts
        lines[parts[2] if len(parts) > 3 else "(package)"] += (ROOT / path).read_text("utf-8").count("\n")
    return dict(sorted(lines.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the counts to this file")
    args = parser.parse_args()
    folders, twins, lines = files_per_folder(), repeated_types(), source_lines()
    words = unwanted_words()
    counts: dict[str, Any] = {
        "files_per_folder": folders,
        "folders_over_limit": {folder: count for folder, count in folders.items() if count > FILES_AT_MOST},
        "types_defined_twice": {name: [*paths, TWINS.get(name, "NO REASON GIVEN")] for name, paths in twins.items()},
        "imports_from_tasks_to_probes": imports("tasks", "probes"),
        "imports_from_tasks_to_experiments": imports("tasks", "experiments"),
        "prose_lines_over_120": long_lines(),
        "unwanted_words": words,
        "python_lines_of_src": {**lines, "all": sum(lines.values())},
    }
    text = json.dumps(counts, indent=1, ensure_ascii=False)
    if args.json:
        args.json.write_text(text + "\n", "utf-8")
    print(text)
    sys.exit(
        bool(
            counts["imports_from_tasks_to_probes"]
            or counts["imports_from_tasks_to_experiments"]
            or counts["prose_lines_over_120"]
            or words
            or set(twins) - set(TWINS)
        )
    )


if __name__ == "__main__":
    main()
