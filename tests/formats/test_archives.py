"""Archives of models: read as they lie, and refused as a whole if they are hostile."""

from __future__ import annotations

import io
import os
import shutil
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import GOLDEN

import pyelmo
from pyelmo.cli import main
from pyelmo.encoders import open_encoder
from pyelmo.errors import FormatError, NotFoundError, UnsafeFileError
from pyelmo.formats.sources import archive

MANY = GOLDEN / "many-langs" / "model"
SENTENCES = [["A", "bank", "account"], ["Yes"]]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """A cache of its own for each test, and a guard: nothing else may appear beside the archive."""
    monkeypatch.setenv("PYELMO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "cache"


def zipped(source: Path, path: str = "model.zip", folder: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member in sorted(source.rglob("*")):
            file.write(member, f"{folder}{member.relative_to(source)}")
    return Path(path)


def tarred(source: Path, path: str = "model.tar.gz") -> Path:
    with tarfile.open(path, "w:gz") as file:
        file.add(source, ".")
    return Path(path)


def same_vectors(first: pyelmo.Embedder, second: pyelmo.Embedder) -> bool:
    return all(map(np.array_equal, first.embed(SENTENCES), second.embed(SENTENCES)))


def written() -> list[str]:
    """Everything below the folder of the test."""
    return sorted(str(path.relative_to("..")) for path in Path("..").rglob("*") if path.is_file())


@pytest.mark.parametrize("folder", ["", "en/", "a/b/c/"])
def test_a_zip_gives_the_vectors_of_its_folder(clip_model, folder):
    path = zipped(clip_model, folder=folder)
    model = pyelmo.load(path)
    assert same_vectors(model, pyelmo.load(clip_model))
    assert model.pretrained.source == "model.zip"


def test_a_tar_gives_the_vectors_of_its_folder(clip_model):
    assert same_vectors(pyelmo.load(tarred(clip_model)), pyelmo.load(clip_model))
    assert same_vectors(pyelmo.load(tarred(clip_model, "model.tgz")), pyelmo.load(clip_model))


def test_a_zip_may_hold_a_model_of_elmoformanylangs_or_of_pyelmo(tiny):
    assert same_vectors(pyelmo.load(zipped(MANY)), pyelmo.load(MANY))
    tiny.save("native")
    assert same_vectors(pyelmo.load(zipped(Path("native"), "native.zip")), pyelmo.load("native"))


def test_a_readme_or_a_hidden_file_beside_the_only_folder_does_not_count(clip_model):
    path = zipped(clip_model, "model.zip", "en/")
    with zipfile.ZipFile(path, "a") as file:
        for name in ("README.md", "LICENSE", ".DS_Store"):
            file.writestr(name, "x")
    assert same_vectors(pyelmo.load(path), pyelmo.load(clip_model))


def test_an_archive_of_two_models_says_what_it_has(clip_model):
    path = zipped(clip_model, "models.zip", "en/")
    with zipfile.ZipFile(path, "a") as file:
        file.write(clip_model / "options.json", "ko/options.json")
    with pytest.raises(FormatError, match=r"models.zip.*holds no ELMo model \(it has en, ko\)"):
        pyelmo.load(path)


def test_a_web_page_with_the_name_of_an_archive_says_how_it_begins():
    Path("model.zip").write_text("<html>404</html>", "utf-8")
    with pytest.raises(FormatError, match=r"model.zip: the archive is damaged: it begins with b'<h'"):
        pyelmo.load("model.zip")


def test_an_archive_is_unpacked_once_and_only_into_the_cache(clip_model, empty_cache):
    path = zipped(clip_model)
    pyelmo.load(path)
    weights = next(empty_cache.rglob("*.hdf5"))
    before = weights.stat().st_mtime_ns
    pyelmo.load(path)
    assert weights.stat().st_mtime_ns == before
    assert [path.name for path in Path().iterdir()] == ["model.zip"]
    os.utime(path, ns=(1, 1))  # another file of the same name
    pyelmo.load(path)
    assert len(list(empty_cache.rglob("*.hdf5"))) == 2


def test_commands_and_encoders_read_archives(clip_model, capsys):
    zipped(clip_model)
    tarred(clip_model)
    Path("text.txt").write_text("A bank account .\n")
    assert main(["inspect", "model.zip"]) == 0
    assert "model.zip" in capsys.readouterr().out
    assert main(["embed", "text.txt", "-o", "out.npz", "--model", "model.tar.gz", "-q"]) == 0
    assert main(["convert", "model.zip", "converted"]) == 0
    assert open_encoder("model.tar.gz").layers == ("token", "LSTM 1", "LSTM 2")


def raw_zip(entries: dict[str, bytes], mode: int = 0o644 | stat.S_IFREG, **changes: int) -> Path:
    with zipfile.ZipFile("bad.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, data)
    return Path("bad.zip")


def raw_tar(*members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open("bad.tar.gz", "w:gz") as file:
        for info, data in members:
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return Path("bad.tar.gz")


def tar_link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("weights.hdf5")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


HOSTILE = {
    "a path that climbs": lambda: raw_zip({"../../climbed.txt": b"x"}),
    "an absolute path": lambda: raw_zip({"/tmp/pyelmo-absolute.txt": b"x"}),
    "a path of Windows": lambda: raw_zip({"..\\climbed.txt": b"x"}),
    "a path that climbs where names end in spaces": lambda: raw_zip({"a/.. /.. /climbed.txt": b"x"}),
    "a drive": lambda: raw_zip({"C:/climbed.txt": b"x"}),
    "a climbing path in the middle": lambda: raw_zip({"a/../../climbed.txt": b"x"}),
    "a symbolic link": lambda: raw_zip({"weights.hdf5": b"/etc/passwd"}, mode=0o777 | stat.S_IFLNK),
    "a device": lambda: raw_zip({"weights.hdf5": b""}, mode=0o666 | stat.S_IFCHR),
    "a bomb": lambda: raw_zip({"weights.hdf5": bytes(80 << 20)}),
    "a bomb of many files": lambda: raw_zip({f"{number}.json": bytes(9 << 20) for number in range(8)}),
    "too many files": lambda: raw_zip({f"{number}.txt": b"x" for number in range(archive.MAX_FILES + 1)}),
    "a name in two cases": lambda: raw_zip({"a.txt": b"1", "A.txt": b"2"}),
    "a link in a tar": lambda: raw_tar((tar_link(tarfile.SYMTYPE), b"")),
    "a hard link in a tar": lambda: raw_tar((tar_link(tarfile.LNKTYPE), b"")),
    "a pipe in a tar": lambda: raw_tar((tar_link(tarfile.FIFOTYPE), b"")),
    "a path that climbs in a tar": lambda: raw_tar((tarfile.TarInfo("../climbed.txt"), b"x")),
    "an absolute path in a tar": lambda: raw_tar((tarfile.TarInfo("/tmp/pyelmo-absolute.txt"), b"x")),
    "a bomb in a tar": lambda: raw_tar((tarfile.TarInfo("weights.hdf5"), bytes(80 << 20))),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing(kind, capsys):
    path = HOSTILE[kind]()
    before = written()
    with pytest.raises(UnsafeFileError, match=path.name):
        pyelmo.load(path)
    assert [name for name in written() if ".lock" not in name] == before
    assert not Path("/tmp/pyelmo-absolute.txt").exists()
    assert main(["inspect", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_name_that_occurs_twice_is_refused():
    raw_zip({"options.json": b"{}", "optionz.json": b"[]"})
    Path("bad.zip").write_bytes(Path("bad.zip").read_bytes().replace(b"optionz", b"options"))
    with pytest.raises(UnsafeFileError, match="twice"):
        pyelmo.load("bad.zip")


def test_a_size_that_the_headers_hide_is_not_unpacked(clip_model):
    """The entry claims 10 bytes and holds 80 MB."""
    raw_zip({"weights.hdf5": bytes(80 << 20)})
    data = Path("bad.zip").read_bytes().replace(struct.pack("<I", 80 << 20), struct.pack("<I", 10))
    Path("bad.zip").write_bytes(data)
    with pytest.raises(FormatError, match="bad.zip"):
        pyelmo.load("bad.zip")
    assert all(Path("..", name).stat().st_size < 1 << 20 for name in written())


def test_an_encrypted_archive_says_so(clip_model):
    data = bytearray(zipped(clip_model).read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    Path("model.zip").write_bytes(data)
    with pytest.raises(FormatError, match="encrypted"):
        pyelmo.load("model.zip")


def test_an_archive_in_an_archive_says_so(clip_model):
    zipped(clip_model, "inner.zip")
    with zipfile.ZipFile("outer.zip", "w") as file:
        file.write("inner.zip")
    with pytest.raises(FormatError, match="holds another archive, inner.zip"):
        pyelmo.load("outer.zip")


def test_an_archive_without_a_model_says_what_was_looked_for():
    with pytest.raises(FormatError, match="holds no ELMo model"):
        pyelmo.load(raw_zip({"README.md": b"x", "notes.txt": b"y"}))


@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_damaged_archive_is_one_clear_error(clip_model, make, empty_cache):
    path = make(clip_model)
    whole = path.read_bytes()
    for end in (5, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError, match="damaged|holds no ELMo model"):
            pyelmo.load(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 :])
    with pytest.raises(FormatError, match="damaged"):
        pyelmo.load(path)
    shutil.rmtree(empty_cache)
    path.write_bytes(whole)
    assert pyelmo.load(path).config.layers == 3


def test_a_plain_gzip_file_is_not_a_model():
    import gzip

    Path("vocab.txt.gz").write_bytes(gzip.compress(b"the\nof\n" * 100))
    with pytest.raises(FormatError, match="damaged"):
        pyelmo.load("vocab.txt.gz")


@pytest.mark.parametrize(
    "name",
    [
        "models/model.hdf5",
        "a/options.json",
        "a/b.zip",
        "x/model.safetensors",
        "a/e.tar.gz",
        "a/model.ckpt-180",
        "a/en.onnx",
        "a/model.ckpt-180.data-00000-of-00001",
        "a/144.TAR",
    ],
)
def test_a_missing_file_is_never_taken_for_a_model_on_the_hub(name, monkeypatch):
    monkeypatch.setattr("pyelmo.formats.hub.download", lambda hub_id: pytest.fail("asked the Hub"))
    with pytest.raises(NotFoundError, match="no such file or folder"):
        pyelmo.load(name)


def test_a_name_with_a_dot_may_be_one_of_the_hub(monkeypatch, clip_model):
    asked = []
    monkeypatch.setattr("pyelmo.formats.hub.download", lambda hub_id: asked.append(hub_id) or clip_model)
    pyelmo.load("someone/elmo-v1.0")
    assert asked == ["someone/elmo-v1.0"]
