"""Fixtures of the server: a folder with tiny models, an index and a task run, and the application that serves them."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from fastapi import FastAPI
from server_support import LOCAL
from starlette.testclient import TestClient
from support import TINY
from task_support import run_settings

from pyelmo import neighbours
from pyelmo.config import ModelConfig
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.sentence import make_form
from pyelmo.formats.pretrained import Pretrained
from pyelmo.model.bilm import BiLM
from pyelmo.server.app import create_app
from pyelmo.server.settings import ServerSettings
from pyelmo.tasks.harness.run import train_run
from pyelmo.text.characters import Bytes
from pyelmo.text.lexicon import Lexicon
from pyelmo.text.vocabulary import Vocabulary

WORDS = Vocabulary(("<S>", "</S>", "<UNK>", "The", "bank", "of", "the", "river", ".", "account"))
TEXT = "The bank of the river .\nA bank account .\nThe river .\n"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, ner_data: Path) -> Path:
    """`tiny`, a model with a softmax and a sentence form; `plain`, one without; `index` and `ner`."""
    folder = tmp_path_factory.mktemp("server")
    torch.manual_seed(0)
    bilm = BiLM(ModelConfig(chars=TINY.chars, lstm=TINY.lstm, softmax=len(WORDS))).eval()
    pretrained = Pretrained(bilm, Lexicon(Bytes(TINY.chars.max_length), WORDS), "test", "test", language="en")
    table = Embedder(pretrained).word_table()
    form = make_form(table, Counter({"the": 600, ",": 200, "bank": 99, "river": 1}), smoothing=0.01, directions=2)
    Embedder(replace(pretrained, sentence=form)).save(folder / "tiny")
    Embedder(Pretrained(BiLM(TINY).eval(), Lexicon(Bytes(16)), "test", "test")).save(folder / "plain")
    (folder / "text.txt").write_text(TEXT)
    neighbours.build([folder / "text.txt"], folder / "index", model=folder / "tiny", tokenised=True)
    train_run(run_settings(ner_data, "training.epochs=1", encoder=str(ner_data / "LM")), folder / "ner")
    return folder


@pytest.fixture(scope="session")
def settings(folder: Path) -> ServerSettings:
    return ServerSettings(
        models={name: str(folder / name) for name in ("tiny", "plain")},
        indexes={"banks": str(folder / "index")},
        tasks={"names": str(folder / "ner")},
        threads=1,
    )


@pytest.fixture(scope="session")
def app(settings: ServerSettings) -> FastAPI:
    return create_app(settings)


@pytest.fixture(scope="session")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=LOCAL, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def tiny(app: FastAPI) -> Embedder:
    return app.state.pyelmo.models["tiny"]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
