"""Sentences -> one file of vectors: the whole output of `elmo embed`, or one part of a bulk job."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pyelmo.embed.embedder import Embedder
from pyelmo.embed.files.store import open_writer
from pyelmo.embed.layers import SENTENCE, WORDS
from pyelmo.embed.settings import EmbedSettings
from pyelmo.errors import InputError
from pyelmo.text.rows import TextRow


def write_embeddings(
    settings: EmbedSettings,
    embedder: Embedder,
    sentences: Iterable[TextRow],
    path: str | Path,
    *,
    extra: Sequence[tuple[str, str]] = (),
    first: int = 0,
    count: int | None = None,
    force: bool = False,
    advance: Callable[[int], object] = lambda sentences: None,
) -> int:
    """Embed sentences into one file and return how many of them have no vectors, because they are blank.

    `extra` are the names and types of the columns that the sentences carry (`kept`), which go into the file. The
    sentences are numbered from `first` on. If `count` is given, another number of sentences is an error. `advance`
    is called with 1 after each sentence.
    """
    stacked = settings.layers == "all" and settings.pooling != SENTENCE
    layer_names = [f"layer_{number}" for number in range(embedder.config.layers)] if stacked else None
    blank = 0
    pending: deque[tuple[TextRow, list[str]]] = deque()  # sentences whose vectors have not arrived yet

    def tokenised() -> Iterator[list[str]]:
        for sentence in sentences:
            words = settings.tokenise(embedder, sentence)
            pending.append((sentence, words))
            yield words

    with open_writer(
        path, format=settings.format, dim=embedder.config.dim, layers=layer_names,
        pooled=settings.pooling not in (None, WORDS), force=force, float16=settings.float16, first=first, extra=extra,
    ) as writer:  # fmt: skip
        for vectors in settings.stream(embedder, tokenised()):
            sentence, words = pending.popleft()
            if settings.keep_boundaries:
                words = [embedder.lexicon.begin, *words, embedder.lexicon.end]
            blank += not words
            writer.write(sentence.text, words, vectors, sentence.kept)
            advance(1)
        if count is None and not writer.count:
            raise InputError("the input is empty: there is nothing to embed")
        if count is not None and writer.count != count:
            raise InputError(
                f"{path}: the input has {writer.count} of the {count} sentences expected. Was it changed during the "
                "run? Run the command again."
            )
    return blank
