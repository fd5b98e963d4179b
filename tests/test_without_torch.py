"""What works where torch cannot be imported, and what says that it needs it: each line of the table in the docs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import GOLDEN, make_embedder

import pyelmo

ROOT = Path(__file__).parents[1]
MISSING = "needs torch. Install it with: pip install 'pyelmo[torch]'"
ROW = re.compile(r"^\| `elmo (.+?)`.*\| (works|needs torch) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "installation.md").read_text("utf-8"))
# None in sys.modules makes an import fail. The guard is for the processes that a command starts.
BLOCKED = """
import sys
sys.modules["torch"] = None
if __name__ == "__main__":
    from pyelmo.cli import main
    sys.exit(main(sys.argv[1:]))
"""
TREEBANK = "1\tTea\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the commands of the table name."""
    (tmp_path / "blocked.py").write_text(BLOCKED)
    (tmp_path / "text.txt").write_text("The bank of the river .\nHe drank tea .\n")
    (tmp_path / "treebanks").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "treebanks" / f"en_ewt-ud-{part}.conllu").write_text(TREEBANK)
    shutil.copytree(GOLDEN / "many-langs" / "model", tmp_path / "many-langs")
    make_embedder().save(tmp_path / "small")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )


def serve(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Start a server, and stop it when it listens or fails."""
    process = subprocess.Popen([sys.executable, *command], cwd=folder, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    if "http://" in line:
        process.terminate()
    return subprocess.CompletedProcess(command, process.wait(), stderr=line + process.communicate()[1])


@pytest.mark.parametrize(("command", "outcome"), ROWS, ids=[command for command, _ in ROWS])
def test_a_command_works_or_says_that_it_needs_torch(command, outcome, folder):
    if "neighbours" in command:
        pytest.importorskip("faiss")
    words = shlex.split(command)
    if words[0] in ("neighbours", "probe", "bench"):  # a small model is enough
        words = ["small" if word == "en" else word for word in words]
    done = (serve if words[0] == "serve" else run)(folder, "blocked.py", *words)
    if outcome == "works":
        assert done.returncode == 0, done.stderr
    else:
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1, done.stderr
        assert last.startswith("elmo: ")
        assert last.endswith(MISSING)


def test_the_table_has_a_line_for_each_verb():
    from pyelmo.cli import GROUPS

    assert {command.split()[0] for command, _ in ROWS} | {"push", "vectors"} == {
        name for _, names in GROUPS.values() for name in names
    }


SCRIPT = """
import sys
if "blocked" in sys.argv: sys.modules["torch"] = None
import numpy as np, pyelmo
for precision in ("float32", "int8"):
    model = pyelmo.load("en", precision=precision, threads=1)
    sentences = ["A bank account.", "The bank of the river in Zyzzyvaville."]
    for layers in ("all", "average", [0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.2, 0.2]):
        for pooling in (None, "mean", "max"):
            for array in model.embed(sentences, layers=layers, pooling=pooling):
                print(array.tobytes().hex()[-4000:])
    print(model.encode(sentences).tobytes().hex()[-4000:], model.score(sentences[1]), model.perplexity([sentences]))
print("torch" in sys.modules and sys.modules["torch"] is not None, file=sys.stderr)
"""


def test_vectors_and_scores_are_the_same_with_and_without_torch(folder):
    (folder / "vectors.py").write_text(SCRIPT)
    without, beside = run(folder, "vectors.py", "blocked"), run(folder, "-c", "import torch\n" + SCRIPT)
    assert (without.returncode, without.stderr.strip()) == (0, "False")
    assert (beside.returncode, beside.stderr.strip()) == (0, "True")
    assert without.stdout == beside.stdout


@pytest.mark.parametrize(
    "code",
    [
        "pyelmo.Elmo", "pyelmo.BiLM", "pyelmo.ScalarMix", "pyelmo.tasks.load('run')", "pyelmo.load('small').bilm",
        "pyelmo.load('small').elmo()", "pyelmo.load('small').batch([['a']])",
        "pyelmo.load('small').embed([['a']], output='torch')", "pyelmo.load('small', device='cuda')",
        "importlib.import_module('pyelmo.compat.allennlp')", "importlib.import_module('pyelmo.training.loop')",
        "pyelmo.encoders.open_encoder('cove:a+b')", "pyelmo.encoders.open_encoder('transformers:a')",
    ],
)  # fmt: skip
def test_a_name_that_needs_torch_says_so(code, folder):
    lines = f"try:\n    {code}\nexcept pyelmo.PyelmoError as error:\n    print(error)"
    done = run(folder, "-c", f"import sys; sys.modules['torch'] = None\nimport importlib, pyelmo\n{lines}")
    assert done.stdout.strip().endswith(MISSING), done.stderr


def test_embedding_imports_no_torch(folder):
    code = (
        "import sys, pyelmo; pyelmo.load('small').embed(['a b']); print('torch' in sys.modules, 'h5py' in sys.modules)"
    )
    assert run(folder, "-c", code).stdout.strip() == "False False"


def test_without_compiled_functions_numpy_computes_and_the_command_says_so_once(folder):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pyelmo.kernels.cpu import compiled\n"
        "compiled.library = lambda: None\n"
        "import numpy, pyelmo\n"
        "numpy.save('plain.npy', pyelmo.load('small').embed(['a bank'])[0])\n"
        "from pyelmo.cli import main\n"
        "main(['embed', 'text.txt', '-o', 'plain.npz', '--model', 'small'])"
    )
    done = run(folder, "-c", code)
    assert done.stderr.count("installed without a C compiler") == 1, done.stderr
    np.testing.assert_allclose(
        np.load(folder / "plain.npy"), pyelmo.load(folder / "small").embed(["a bank"])[0], atol=1e-5
    )
