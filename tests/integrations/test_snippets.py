"""The snippets of docs/guides/snippets.md give the vectors of `Embedder`, with a small model in place of `en`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import pyelmo
from pyelmo.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "snippets.md"
TEXTS = ["A bank account .", "The river"]


def run_section(title: str, model: pyelmo.Embedder) -> dict[str, object]:
    """Run the Python blocks of one section, and return its names."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert section is not None
    values: dict[str, object] = {"model": model, "pyelmo": pyelmo}
    for block in re.findall(r"^```python\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE):
        exec(compile(block, title, "exec"), values)
    return values


def test_langchain_gets_the_vectors_of_encode(tiny):
    values = run_section("LangChain", tiny)
    embeddings = values["ElmoEmbeddings"](tiny)
    assert np.array_equal(embeddings.embed_documents(TEXTS), tiny.encode(TEXTS))
    assert np.array_equal(embeddings.embed_query(TEXTS[0]), tiny.encode(TEXTS[0]))
    assert values["nearest"] in values["texts"]


def test_datasets_hold_the_vectors_of_encode(tiny):
    reviews = run_section("Hugging Face datasets", tiny)["reviews"]
    assert np.array_equal(np.float32(reviews["vector"][:]), tiny.encode(reviews["text"][:]))


def test_duckdb_computes_the_cosines_of_encode(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.save("model")
    lines = ["A bank account .", "A bank", "The river bank", "Yes ."]
    Path("sentences.txt").write_text("\n".join(lines) + "\n")
    command = ["embed", "sentences.txt", "-o", "vectors/", "--model", "model", "-q"]
    assert main([*command, "--layers", "average", "--pooling", "mean"]) == 0  # a small model has no sentence form
    rows = run_section("DuckDB", tiny)["nearest_rows"]
    unit = tiny.encode(lines, normalize_embeddings=True)
    cosines = dict(zip(lines[1:], unit[1:] @ unit[0], strict=True))
    assert [sentence for sentence, _ in rows] == sorted(cosines, key=cosines.__getitem__, reverse=True)[:2]
    assert all(abs(cosine - cosines[sentence]) < 1e-6 for sentence, cosine in rows)


def test_lightning_trains_the_mix_and_not_the_bilm(tiny):
    before = {name: value.clone() for name, value in tiny.bilm.state_dict().items()}
    classifier = run_section("PyTorch Lightning", tiny)["classifier"]
    assert all((before[name] == value).all() for name, value in tiny.bilm.state_dict().items())
    (logits,) = (value for name, value in classifier.named_parameters() if name.endswith("logits"))
    assert logits.any()  # they begin as zeros
