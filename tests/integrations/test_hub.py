"""Models go to the Hub and come back from it with the same bits, or with one clear error."""

from __future__ import annotations

import subprocess
import sys

import huggingface_hub
import numpy as np
import pytest
from hub_server import HubServer
from huggingface_hub import ModelCard, constants
from support import make_embedder

import pyelmo
from pyelmo.cli import main
from pyelmo.cli.files import push
from pyelmo.errors import FormatError, InputError, MissingExtraError, NotFoundError, OutputError

SENTENCES = [["A", "bank", "account"], ["The", "river"]]


@pytest.fixture(scope="module")
def server():
    server = HubServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def hub(server, tmp_path, monkeypatch):
    """The server as the Hub, with an empty cache."""
    for store in (server.repositories, server.downloads, server.cut, server.wrong):
        store.clear()
    server.replace_hub(monkeypatch, tmp_path / "cache")
    return server


@pytest.fixture
def model(tmp_path):
    """The folder of a small model."""
    make_embedder().save(tmp_path / "my-model")
    return tmp_path / "my-model"


def files(hub, name="user/my-model", branch="main"):
    repository = hub.repositories[name]
    return repository.commits[repository.branches[branch]]


def same(one, other):
    return all(map(np.array_equal, one.embed(SENTENCES), other.embed(SENTENCES)))


def test_a_pushed_model_is_loaded_with_the_same_bits(hub, model):
    embedder = pyelmo.load(model)
    url = embedder.push_to_hub("user/my-model")
    assert url.startswith(f"{hub.url}/user/my-model/commit/")
    assert same(pyelmo.load("user/my-model"), embedder)


def test_the_example_of_elmo_push_uploads_the_files_as_they_are(hub, model, monkeypatch, capsys):
    monkeypatch.chdir(model.parent)
    assert main(push.EXAMPLE.split()[1:]) == 0
    assert capsys.readouterr().out.startswith(f"{hub.url}/user/my-model/commit/")
    assert hub.repositories["user/my-model"].private
    uploaded = files(hub)
    assert {name: data for name, data in uploaded.items() if name != "README.md"} == {
        path.name: path.read_bytes() for path in model.iterdir()
    }


def test_load_downloads_only_the_files_of_the_model(hub, model):
    pyelmo.load(model).push_to_hub("user/my-model")
    files(hub).update({"picture.png": b"1", "weights.hdf5": b"2", "options.json": b"{}", "onnx/model.onnx": b"3"})
    pyelmo.load("user/my-model")
    assert sorted(hub.downloads) == ["config.json", "model.safetensors"]
    pyelmo.load("user/my-model")
    assert len(hub.downloads) == 2  # the second time from the cache


def test_a_revision_is_a_branch_or_a_commit(hub, model):
    first = pyelmo.load(model)
    first.push_to_hub("user/my-model")
    commit = hub.repositories["user/my-model"].branches["main"]
    second = make_embedder(seed=1)
    second.push_to_hub("user/my-model", revision="v2")
    third = make_embedder(seed=2)
    third.push_to_hub("user/my-model")
    assert same(pyelmo.load("user/my-model"), third)
    assert same(pyelmo.load("user/my-model", revision="v2"), second)
    assert same(pyelmo.load("user/my-model@v2"), second)
    assert same(pyelmo.load("user/my-model", revision=commit), first)
    with pytest.raises(NotFoundError, match="user/my-model@v3: .*download from the Hub failed"):
        pyelmo.load("user/my-model", revision="v3")


@pytest.mark.parametrize("source", ["en", "user/name@v1", "/tmp"])
def test_a_revision_needs_a_hub_id(source):
    with pytest.raises(InputError, match="a revision .* belongs to a Hub id"):
        pyelmo.load(source, revision="v1")


def test_a_push_deletes_files_of_the_model_before(hub, model):
    pyelmo.load(model).push_to_hub("user/my-model")
    files(hub).update({"sentence.json": b"{}", "notes.txt": b"kept"})
    pyelmo.load(model).push_to_hub("user/my-model")
    assert sorted(files(hub)) == ["README.md", "config.json", "model.safetensors", "notes.txt"]


def test_an_interrupted_download_is_resumed(hub, model):
    embedder = pyelmo.load(model)
    embedder.push_to_hub("user/my-model")
    hub.cut["model.safetensors"] = 1
    assert same(pyelmo.load("user/my-model"), embedder)
    assert hub.downloads.count("model.safetensors") == 2


def test_a_download_that_always_ends_early_is_one_error_and_the_next_one_succeeds(hub, model, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between the attempts
    embedder = pyelmo.load(model)
    embedder.push_to_hub("user/my-model")
    hub.cut["model.safetensors"] = 1000
    with pytest.raises(NotFoundError, match="user/my-model: .*download from the Hub failed") as error:
        pyelmo.load("user/my-model")
    assert "\n" not in str(error.value)
    hub.cut.clear()
    assert same(pyelmo.load("user/my-model"), embedder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_wrong_checksum_is_one_error_and_the_file_is_not_used_later(hub, model, name):
    embedder = pyelmo.load(model)
    embedder.push_to_hub("user/my-model")
    hub.wrong.add(name)
    with pytest.raises(FormatError, match=f"user/my-model: {name}: checksum mismatch"):
        pyelmo.load("user/my-model")
    hub.wrong.clear()
    assert same(pyelmo.load("user/my-model"), embedder)


def test_without_the_hub_an_earlier_download_is_used(hub, model, monkeypatch, caplog):
    embedder = pyelmo.load(model)
    embedder.push_to_hub("user/my-model")
    pyelmo.load("user/my-model")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    assert same(pyelmo.load("user/my-model"), embedder)
    assert "using the earlier download" in caplog.text
    with pytest.raises(NotFoundError, match="download from the Hub failed"):
        pyelmo.load("user/other")


def test_a_model_of_another_library_is_refused_before_its_weights_are_downloaded(hub, model):
    pyelmo.load(model).push_to_hub("user/my-model")
    files(hub)["config.json"] = b'{"architectures": ["BertModel"]}'
    with pytest.raises(FormatError, match="not a pyelmo model"):
        pyelmo.load("user/my-model")
    assert hub.downloads == ["config.json"]


def test_a_repository_without_a_model_says_what_it_has(hub, model):
    pyelmo.load(model).push_to_hub("user/my-model")
    files(hub).pop("config.json")
    files(hub).pop("model.safetensors")
    with pytest.raises(FormatError, match="holds no ELMo model .files: README.md"):
        pyelmo.load("user/my-model")


def test_allennlp_files_are_found_and_one_of_several_must_be_named(hub, clip_model):
    make_embedder().push_to_hub("user/old")
    files(hub, "user/old").clear()
    files(hub, "user/old").update({path.name: path.read_bytes() for path in clip_model.iterdir()})
    assert same(pyelmo.load("user/old"), pyelmo.load(clip_model))
    files(hub, "user/old")["second.hdf5"] = b"x"
    with pytest.raises(FormatError, match="holds 2 HDF5 files"):
        pyelmo.load("user/old")


def test_a_push_without_a_card_of_its_own_warns_of_nothing(hub, model, caplog):
    pyelmo.load(model).push_to_hub("user/my-model")
    assert not caplog.records


def test_a_card_has_metadata_and_figures(hub, model, tmp_path):
    embedder = pyelmo.load(model)
    (tmp_path / "log.jsonl").write_text('{"kind": "train", "loss": 4.1}\n{"kind": "valid", "average": 61.8}\n', "utf-8")
    embedder.push_to_hub("user/my-model")
    card = ModelCard(files(hub)["README.md"].decode())
    assert (card.data.library_name, card.data.pipeline_tag) == ("pyelmo", "feature-extraction")
    assert card.data.eval_results[0].metric_value == 61.8
    assert "| layers of a token | 3 of 16 numbers |" in card.text
    assert "| held-out perplexity | 61.80 |" in card.text


def test_the_card_beside_a_model_is_kept_with_its_licence(hub, model):
    (model / "README.md").write_text("---\nlicense: cc-by-4.0\nlanguage: fi\n---\n# Mine\n", "utf-8")
    pyelmo.load(model).push_to_hub("user/my-model")
    card = ModelCard(files(hub)["README.md"].decode())
    assert (card.data.license, card.data.language, card.data.library_name) == ("cc-by-4.0", "fi", "pyelmo")
    assert card.text.strip() == "# Mine"


def test_a_damaged_card_is_one_error_and_a_foreign_log_is_not_read(hub, model, tmp_path):
    (tmp_path / "log.jsonl").write_text("[1]\n", "utf-8")
    pyelmo.load(model).push_to_hub("user/my-model")
    assert "perplexity" not in files(hub)["README.md"].decode()
    (model / "README.md").write_text("---\nlicense: [\n---\n", "utf-8")
    with pytest.raises(FormatError, match="README.md: not a model card"):
        pyelmo.load(model).push_to_hub("user/my-model")


def test_a_push_without_the_right_to_is_one_error(hub, model, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(OutputError, match=r"user/my-model: the upload to the Hub failed \(.*401"):
        pyelmo.load(model).push_to_hub("user/my-model")
    assert main(["push", str(model), "user/my-model"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not hub.repositories


def test_a_name_that_is_no_hub_id_is_refused(model):
    with pytest.raises(InputError, match="Expected user/name"):
        pyelmo.load(model).push_to_hub("my-model")


def test_without_the_library_push_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pyelmo\[hub\]'"):
        pyelmo.load(model).push_to_hub("user/my-model")


def test_the_command_reads_from_the_endpoint_of_the_environment(hub, model, tmp_path):
    pyelmo.load(model).push_to_hub("user/my-model", revision="v1")
    env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "pyelmo", "inspect", "user/my-model@v1", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.returncode, '"dim": 16' in done.stdout) == (0, True), done.stderr
