"""Install each extra of pyproject.toml alone in a clean environment, and use what it is for (make extras).

    python tests/install/extras.py [EXTRA ...]

The wheel is built once. In an environment without extras, the code of an extra must end with the one line that names
the command which installs it. In an environment with that extra and nothing else, it must run. Versions are those of
constraints.txt where that file has them. Each line of the output has the size of the environment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Each extra with code that needs it. The code runs in an empty folder that has text.txt and text.txt.zst.
USES = {
    "torch": "assert elmo.elmo()(['A bank account.']).representations[0].shape == (1, 4, 1024)",
    "hub": (
        "try: pyelmo.load('nobody/nothing')\n"
        "except pyelmo.errors.NotFoundError: pass  # the library is there, the model is not"
    ),
    "parquet": "run('embed', 'text.txt', '-o', 'out.parquet')",
    "ray": (  # the same bytes as without it, and an error of a worker (not of this process) by its own name
        "from pathlib import Path\n"
        "from pyelmo.embed.bulk import run as bulk\n"
        "settings = dict(model='en', format='npz', part_sentences=4)\n"
        "run('embed', 'text.txt', '-o', 'ray', '--format', 'npz', '--part-sentences', '4', '--workers', '2', "
        "'--runner', 'ray')\n"
        "pyelmo.embed_corpus(['text.txt'], 'here', **settings)\n"
        "parts = [path.name for path in Path('here').glob('part-*')]\n"
        "assert len(parts) == 3\n"
        "assert all(Path('ray', part).read_bytes() == Path('here', part).read_bytes() for part in parts)\n"
        "bulk.COUNTED_CHARACTERS = 1\n"
        "Path('bad.txt').write_bytes(b'good\\n' * 8 + b'caf\\xe9\\n')\n"
        "try: pyelmo.embed_corpus(['bad.txt'], 'bad', workers=2, runner='ray', **settings)\n"
        "except pyelmo.errors.FormatError as error: assert 'bad.txt, line 9: not UTF-8' in str(error)\n"
        "else: raise AssertionError('no error')"
    ),
    "ko": "assert pyelmo.load('ko').embed(['배가 아프다.'])[0].shape == (3, 5, 1024)",
    "tensorboard": (
        "run('prepare', 'text.txt', '-o', 'corpus', '--vocab-size', '10', '--valid', 'text.txt')\n"
        "run('pretrain', 'corpus', '-o', 'run', '--recipe', 'tiny-cpu', '--set', 'training.words=500', "
        "'--set', 'training.batch=2', '--tensorboard')"
    ),
    "zst": "run('embed', 'text.txt.zst', '-o', 'out.npz')",
    "transformers": (
        "from pyelmo.integrations.transformers import ElmoModel, ElmoTokenizer\n"
        "inputs = ElmoTokenizer.from_pretrained('en')(['A bank account.'], return_tensors='pt')\n"
        "assert ElmoModel.from_pretrained('en')(**inputs).last_hidden_state.shape == (1, 4, 1024)"
    ),
    "sentence-transformers": (
        "from pyelmo.integrations.sentence_transformers import ElmoSentences\n"
        "from sentence_transformers import SentenceTransformer\n"
        "assert SentenceTransformer(modules=[ElmoSentences('en')]).encode(['A bank account.']).shape == (1, 1024)"
    ),
    "sklearn": (
        "from pyelmo.integrations.sklearn import ElmoVectorizer\n"
        "assert ElmoVectorizer('en').fit_transform(['A bank account.']).shape == (1, 1024)"
    ),
    "spacy": (
        "import pyelmo.integrations.spacy, spacy\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('elmo')\n"
        "assert nlp('A bank account.').tensor.shape == (4, 1024)"
    ),
    "onnx": "run('convert', 'en', 'en.onnx')",
    "serve": (
        "import http.client, os, signal, threading\n"
        "from pyelmo.server.run import run as serve\n"
        "from pyelmo.server.settings import ServerSettings\n"
        "answers = []\n"
        "def ask(address):\n"
        "    connection = http.client.HTTPConnection(address.removeprefix('http://'), timeout=60)\n"
        "    try:\n"
        "        connection.request('POST', '/embed', '{\"sentences\": [\"A bank account.\"]}', "
        "{'Content-Type': 'application/json'})\n"
        "        answers.append(connection.getresponse().status)\n"
        "    finally: os.kill(os.getpid(), signal.SIGTERM)\n"
        "serve(ServerSettings(port=0), lambda address: threading.Thread(target=ask, args=[address]).start())\n"
        "assert answers == [200]"
    ),
    "neighbours": "run('neighbours', 'build', 'text.txt', '-o', 'index', '--words', 'bank', '--model', 'en')",
    "vectors": "run('vectors', 'train', 'text.txt', '-o', 'vectors.bin', '--min-count', '1')",
}
NOT_USED = {"dev": "`make test` installs it", "docs": "`make test` builds the pages with it"}
PRELUDE = """
import sys
import pyelmo, pyelmo.errors
from pyelmo.cli import main

def run(*command):
    if main(list(command)):
        sys.exit(1)

elmo = pyelmo.load("en")
assert elmo.embed(["A bank account."])[0].shape == (3, 4, 1024)
"""
TEXT = "The bank of the river .\nA bank account .\n" * 5
# The text as a .zst file of one uncompressed block: magic number, descriptor, size, header of the block, data.
ZST = b"\x28\xb5\x2f\xfd\x20" + bytes([len(TEXT)]) + (len(TEXT) << 3 | 1).to_bytes(3, "little") + TEXT.encode()


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that sees no other installation of Python packages and no network beyond the package index."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, env={**env, "HF_HUB_OFFLINE": "1"}, cwd=cwd or "/", capture_output=True, text=True)


def succeed(*command: object) -> None:
    done = run(*command)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def install(folder: Path, package: str) -> Path:
    """Return the Python of a new environment that has the package."""
    succeed(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--no-compile", "--prefer-binary", "--disable-pip-version-check")
    succeed(*pip, "-c", ROOT / "constraints.txt", package)
    return python


def use(python: Path, extra: str) -> subprocess.CompletedProcess[str]:
    """Run the code of an extra in a new folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text(TEXT, "utf-8")
        (folder / "text.txt.zst").write_bytes(ZST)
        return run(python, "-c", PRELUDE + USES[extra], cwd=folder)


def check_missing(bare: Path, extra: str) -> None:
    """End, unless the code of an extra says in one line which command installs it."""
    done = use(bare, extra)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    commands = [f"pip install 'pyelmo[{name}]'" for name in (extra, "torch")]  # an extra may have torch, too
    if done.returncode == 0 or not last.endswith(tuple(commands)):
        sys.exit(f"{extra}: without it, a line that ends in {commands[0]!r} was expected, found:\n{done.stderr}")


def check_installed(wheel: Path, extra: str) -> str:
    """Return a line about an extra that works; end if it does not."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        python = install(Path(folder), f"{wheel}[{extra}]")
        seconds, size = time.monotonic() - start, megabytes(Path(folder))
        done = use(python, extra)
    if done.returncode:
        sys.exit(f"{extra}: installed, but it does not work:\n{done.stdout}{done.stderr}")
    return f"{extra}: works; {size:,.0f} MB, installed in {seconds:.0f} s"


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def main() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    if set(extras) != {*USES, *NOT_USED}:
        sys.exit(f"{__file__}: USES and pyproject.toml differ in {sorted(set(extras) ^ {*USES, *NOT_USED})}")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"of {', '.join(USES)} (default: all)")
    chosen = parser.parse_args().extras or list(USES)
    if unknown := sorted(set(chosen) - set(USES)):
        parser.error(f"no extra is called {', '.join(unknown)}; there are {', '.join(USES)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        succeed(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        bare = install(folder / "bare", str(wheel))
        print(f"without extras: {megabytes(folder / 'bare'):,.0f} MB", flush=True)
        for extra in chosen:
            check_missing(bare, extra)
            print(check_installed(wheel, extra), flush=True)


if __name__ == "__main__":
    main()
