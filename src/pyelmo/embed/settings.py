"""The settings of embedding as one object: which model, which vectors, and how they are stored.

The command line, `embed_corpus` and the index of neighbours each build one `EmbedSettings` and pass it on whole. A new
option of embedding is a field here and an argument of the command line, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyelmo.embed.embedder import Embedder, Precision
from pyelmo.embed.files.inputs import DOCUMENT, documents_to_sentences, kept_types
from pyelmo.embed.files.store import FORMATS, check_format
from pyelmo.embed.layers import SENTENCE, WORDS, check_pooling, layer_picker, mix_weights
from pyelmo.embed.sentence import model_form
from pyelmo.errors import InputError
from pyelmo.files import absolute
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import Pretrained
from pyelmo.text.rows import ReadOptions, TextRow
from pyelmo.text.tokens import written_words


@dataclass(frozen=True, kw_only=True)
class EmbedSettings:
    """Which model to load, which vectors to compute, and how to store them. Names of files become absolute paths."""

    model: str
    options: str | None = None
    vocab: str | None = None
    align: str | None = None
    language: str | None = None  # None: the language whose rules split the model's training text
    tokenised: bool = False
    documents: bool = False  # each row of the input is a document, which is split into sentences
    layers: str | int | Sequence[float] = "all"
    pooling: str | None = None
    keep_boundaries: bool = False
    format: str = "parquet"
    float16: bool = False
    precision: Precision = "float32"
    # The settings below change the speed only.
    device: str = "cpu"
    batch_size: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("model", "options", "vocab", "align"):
            object.__setattr__(self, name, absolute(getattr(self, name)))
        if not isinstance(self.layers, (str, int)):
            object.__setattr__(self, "layers", mix_weights(self.layers))
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r} is none of {', '.join(FORMATS)}.")
        check_pooling(self.pooling, keep_boundaries=self.keep_boundaries)
        if self.documents and self.tokenised:
            raise InputError("documents are split into sentences, but a tokenised line is one sentence: set only one")
        for name in ("batch_size", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; it must be at least 1")

    def load(self) -> Embedder:
        """Load the model, after checking that this machine can write the format."""
        check_format(self.format, float16=self.float16)
        return self.build_embedder(self.read_model())

    def read_model(self) -> Pretrained:
        return resolve.read(self.model, options=self.options, vocab=self.vocab, align=self.align)

    def build_embedder(self, pretrained: Pretrained) -> Embedder:
        """Return an embedder of a model that was read, after checking that the model has the chosen layers."""
        layer_picker(self.layers, pretrained.config)
        if self.pooling == SENTENCE:
            model_form(pretrained, self.layers)
        embedder = Embedder(
            pretrained, device=self.device, language=self.language, precision=self.precision, threads=self.threads
        )
        embedder.word_table()  # packs the weights now, not at the first sentence
        return embedder

    def sentences(self, embedder: Embedder, rows: Iterable[TextRow]) -> Iterable[TextRow]:
        """Return the sentences of the input: its rows, or the sentences of its rows if these are documents."""
        return documents_to_sentences(rows, embedder.language) if self.documents else rows

    def extra_columns(self, inputs: Sequence[str], reading: ReadOptions) -> list[tuple[str, str]]:
        """Return the names and types of the columns of the output that come from the input."""
        document = [(DOCUMENT, "int64")] if self.documents else []
        return document + list(zip(reading.keep, kept_types(inputs, reading), strict=True))

    def tokenise(self, embedder: Embedder, sentence: TextRow) -> list[str]:
        """Return the words that get vectors."""
        if sentence.words is not None:
            return sentence.words
        if self.pooling == WORDS:
            return written_words(sentence.text, embedder.language)
        return sentence.text.split() if self.tokenised else embedder.tokenise(sentence.text)

    def stream(self, embedder: Embedder, sentences: Iterable[list[str]]) -> Iterator[Any]:
        """Return the vectors of each sentence, in input order (see `Embedder.stream`)."""
        return embedder.stream(
            sentences, layers=self.layers, pooling=self.pooling, batch_size=self.batch_size,
            keep_boundaries=self.keep_boundaries, dtype="float16" if self.float16 else "float32",
        )  # fmt: skip
