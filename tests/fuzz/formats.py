"""Every format that pyelmo reads, as the harness sees it: small samples, a library call and commands that read them.

A sample is a folder with one subfolder for each variant of the format. A trial copies one variant, changes one of its
files and reads the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Command = list[str]


@dataclass(frozen=True)
class Format:
    """How samples of a format are made and read."""

    name: str
    make: Callable[[Path, Path], None]  # the folder of the samples, and the folder of shared files (see `make_shared`)
    read: Callable[[Path], object]  # the folder of a variant
    commands: Callable[[Path, Path], Sequence[Command]]  # the folder of a variant, shared files; one of them is run
    files: str = "**/*"  # the files that are changed
    forge: Callable[[Path], None] | None = None  # write the checksums again
    needs: tuple[str, ...] = ()  # formats whose samples this one uses
    writes: bool = False  # reading changes the folder, so that it is copied twice


SENTENCES = ("The bank of the river .", "A bank account", "Ann Lee lives in New York .", "It rained today .")


def make_shared(folder: Path) -> None:
    """Write what several formats need: a text, a small ELMo with a softmax, and static vectors."""
    from dataclasses import replace

    import numpy as np
    import torch
    from support import TINY

    from pyelmo.embed.embedder import Embedder
    from pyelmo.formats.pretrained import Pretrained
    from pyelmo.model.bilm import BiLM
    from pyelmo.text.characters import Bytes
    from pyelmo.text.lexicon import Lexicon
    from pyelmo.text.vocabulary import Vocabulary

    folder.mkdir(parents=True)
    (folder / "text.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    vocabulary = Vocabulary(("<S>", "</S>", "<UNK>", *words))
    torch.manual_seed(0)
    bilm = BiLM(replace(TINY, softmax=len(vocabulary))).eval()
    lexicon = Lexicon(Bytes(16), vocabulary)
    Embedder(Pretrained(bilm, lexicon, "test", "test", "en")).save(folder / "LM")
    (folder / "ner.conll").write_text("Ann\tB-PER\nLee\tI-PER\nruns\tO\n\nParis\tB-LOC\n\n", "utf-8")
    rows = np.random.default_rng(0).normal(size=(len(words), 4))
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in row)}\n" for word, row in zip(words, rows, strict=True)]
    (folder / "vectors.txt").write_text("".join(lines), "utf-8")


def formats() -> dict[str, Format]:
    """Return all formats by name."""
    from fuzz import samples_data, samples_models, samples_old_weights, samples_vectors, samples_work

    modules = (samples_models, samples_old_weights, samples_vectors, samples_data, samples_work)
    groups: Iterator[Format] = (entry for module in modules for entry in module.FORMATS)
    return {entry.name: entry for entry in groups}
