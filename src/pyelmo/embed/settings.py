"""Sentences -> one file of vectors: what `elmo embed` does once, and a bulk job for each of its parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyelmo.embed.embedder import Embedder, Precision, load
from pyelmo.embed.files.inputs import InputSentence
from pyelmo.embed.files.store import check_format, open_writer
from pyelmo.errors import InputError


@dataclass(frozen=True, kw_only=True)
class EmbedSettings:
    """Which model, what of its layers, and how that is stored."""

    model: str
    options: str | None = None
    vocab: str | None = None
    language: str | None = None  # the model's own
    tokenised: bool = False
    layers: str | int | Sequence[float] = "all"
    pooling: str | None = None
    keep_boundaries: bool = False
    format: str = "parquet"
    float16: bool = False
    precision: Precision = "float32"
    # These change the speed alone:
    device: str = "cpu"
    batch_size: int | None = None
    threads: int | None = None

    def load(self) -> Embedder:
        """The model. Every setting is checked here, before any work."""
        check_format(self.format, float16=self.float16)
        embedder = load(
            self.model, options=self.options, vocab=self.vocab, device=self.device, language=self.language,
            precision=self.precision, threads=self.threads,
        )  # fmt: skip
        list(self._stream(embedder, []))
        return embedder

    def words(self, embedder: Embedder, sentence: InputSentence) -> list[str]:
        if sentence.words is not None:
            return sentence.words
        return sentence.text.split() if self.tokenised else embedder.tokenise(sentence.text)

    def write(
        self,
        embedder: Embedder,
        sentences: Iterable[InputSentence],
        path: str | Path,
        *,
        first: int = 0,
        count: int | None = None,
        force: bool = False,
        advance: Callable[[int], object] = lambda sentences: None,
    ) -> int:
        """Write one file and give the number of blank sentences in it.

        Sentences are numbered from `first` on; of `count`, fewer are an error. `advance` hears of each.
        """
        names = [f"layer_{index}" for index in range(embedder.config.layers)] if self.layers == "all" else None
        blank = 0
        waiting: deque[tuple[str, list[str]]] = deque()

        def tokenised() -> Iterator[list[str]]:
            for sentence in sentences:
                waiting.append((sentence.text, self.words(embedder, sentence)))
                yield waiting[-1][1]

        with open_writer(
            path, format=self.format, dim=embedder.config.dim, layers=names, pooled=self.pooling is not None,
            force=force, float16=self.float16, first=first,
        ) as writer:  # fmt: skip
            for vectors in self._stream(embedder, tokenised()):
                text, words = waiting.popleft()
                blank += not words
                kept = [embedder.lexicon.begin, *words, embedder.lexicon.end] if self.keep_boundaries else words
                writer.write(text, kept, vectors)
                advance(1)
            if count is not None and writer.count != count:
                raise InputError(
                    f"{path}: the input has only {writer.count} of its {count} sentences. Was it changed meanwhile?"
                )
        return blank

    def _stream(self, embedder: Embedder, sentences: Iterable[list[str]]) -> Iterator[Any]:
        return embedder.stream(
            sentences, layers=self.layers, pooling=self.pooling, batch_size=self.batch_size,
            keep_boundaries=self.keep_boundaries, dtype="float16" if self.float16 else "float32",
        )  # fmt: skip
