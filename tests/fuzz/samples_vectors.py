"""Static vectors: word2vec, fastText, GloVe, gensim and CoVe; questions and rated pairs for their evaluation."""

from __future__ import annotations

from pathlib import Path

from fuzz.formats import SENTENCES, Command, Format


def _plain(kind: str, name: str):
    def make(folder: Path, shared: Path) -> None:
        from pyelmo.vectors.static import StaticVectors

        (folder / "plain").mkdir(parents=True)
        StaticVectors.load(shared / "vectors.txt").save(folder / "plain" / name, format=kind)

    return make


def _make_gensim(folder: Path, shared: Path) -> None:
    from gensim.models import FastText, KeyedVectors, Word2Vec

    texts = [sentence.split() for sentence in SENTENCES] * 5
    keyed = KeyedVectors.load_word2vec_format(str(shared / "vectors.txt"), no_header=True)
    for name, model in {
        "keyed": keyed,
        "model": Word2Vec(texts, vector_size=4, min_count=1, epochs=1),
        "fasttext": FastText(texts, vector_size=4, min_count=1, epochs=1, bucket=50),
    }.items():
        (folder / name).mkdir(parents=True)
        model.save(str(folder / name / "vectors.kv"))
    (folder / "separate").mkdir()
    keyed.save(str(folder / "separate" / "vectors.kv"), sep_limit=0)


def _make_fasttext(folder: Path, shared: Path) -> None:
    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    texts = [sentence.split() for sentence in SENTENCES] * 5
    model = FastText(texts, vector_size=4, min_count=1, epochs=1, bucket=50)
    (folder / "plain").mkdir(parents=True)
    save_facebook_model(model, str(folder / "plain" / "vectors.bin"))


def _make_cove(folder: Path, shared: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from torch import nn

    lstm = nn.LSTM(4, 4, num_layers=2, bidirectional=True)
    weights = {name: parameter.detach().contiguous() for name, parameter in lstm.named_parameters()}
    for name in ("torch", "safetensors"):
        (folder / name).mkdir(parents=True)
        (folder / name / "glove.txt").write_bytes((shared / "vectors.txt").read_bytes())
    torch.save(weights, folder / "torch" / "cove.pth")
    save_file(weights, folder / "safetensors" / "cove.safetensors")


def _file(folder: Path) -> Path:
    """Return the file of the vectors; gensim may put arrays beside it."""
    names = ["vectors.kv", "vectors.bin", "vectors.txt", "vectors.vec"]
    return next(
        (folder / name for name in names if (folder / name).is_symlink() or (folder / name).exists()),
        folder / "vectors.txt",
    )


def _read(folder: Path) -> None:
    from pyelmo.vectors.static import StaticVectors

    vectors = StaticVectors.load(_file(folder))
    vectors.vector("banks")
    vectors.similar(vectors.words[0], 3) if len(vectors) > 1 else None
    list(vectors([["bank", "river"]]))


def _commands(folder: Path, shared: Path) -> list[Command]:
    path = str(_file(folder))
    pairs = shared.parent / "samples" / "vector-tests" / "all"
    return [
        ["vectors", "similar", path, "bank"], ["vectors", "analogy", path, "bank", "river", "account"],
        ["vectors", "evaluate", path, "--pairs", str(pairs / "pairs.csv"), "--json"],
    ]  # fmt: skip


def _encoder(folder: Path) -> str:
    weights = next((path.name for path in sorted(folder.iterdir()) if path.name.startswith("cove")), "cove.pth")
    return f"cove:{folder / weights}+{folder / 'glove.txt'}"


def _read_cove(folder: Path) -> None:
    from pyelmo.encoders import open_encoder

    list(open_encoder(_encoder(folder))([["the", "bank"], ["river"]]))


def _cove_commands(folder: Path, shared: Path) -> list[Command]:
    data = str(shared / "ner.conll")
    return [
        [
            "task",
            "train",
            "ner",
            "--data",
            data,
            data,
            "--encoder",
            _encoder(folder),
            "-o",
            f"{folder}-run",
            "--seeds",
            "0",
            "-q",
        ]
    ]


def _make_tests(folder: Path, shared: Path) -> None:
    (folder / "all").mkdir(parents=True)
    (folder / "all" / "pairs.csv").write_text(
        "# rated\nWord 1,Word 2,Human\nbank,river,7.35\naccount,bank,5\nAnn,Lee,1.5\n"
    )
    (folder / "all" / "questions.txt").write_text(
        ": capital\nbank river account Ann\nAnn Lee New York\n: gram1\nin of the A\n"
    )


def _read_tests(folder: Path) -> None:
    from pyelmo.vectors import evaluate
    from pyelmo.vectors.static import StaticVectors

    vectors = StaticVectors.load(folder.parents[1] / "shared" / "vectors.txt")
    evaluate.similarity(vectors, evaluate.read_pairs(folder / "pairs.csv"))
    evaluate.analogies(vectors, evaluate.read_analogies(folder / "questions.txt"))


def _tests_commands(folder: Path, shared: Path) -> list[Command]:
    vectors = str(shared / "vectors.txt")
    options = ["--pairs", str(folder / "pairs.csv"), "--analogies", str(folder / "questions.txt")]
    return [["vectors", "evaluate", vectors, *options], ["vectors", "evaluate", vectors, *options, "--json"]]


FORMATS = (
    Format("vector-tests", _make_tests, _read_tests, _tests_commands),
    Format("word2vec-text", _plain("word2vec", "vectors.vec"), _read, _commands, needs=("vector-tests",)),
    Format("word2vec-binary", _plain("word2vec-binary", "vectors.bin"), _read, _commands, needs=("vector-tests",)),
    Format("glove", _plain("glove", "vectors.txt"), _read, _commands, needs=("vector-tests",)),
    Format("fasttext", _make_fasttext, _read, _commands, needs=("vector-tests",)),
    Format("gensim", _make_gensim, _read, _commands, needs=("vector-tests",)),
    Format("cove", _make_cove, _read_cove, _cove_commands),
)
