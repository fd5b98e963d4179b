"""Indexes of neighbours that a reader of the explorer builds from a text, while the page shows the progress.

    text --> sentences --> vectors, in small parts on the thread of the model --> an index in a temporary folder

The parts go through the queue of the model like requests, so other clients are served in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError, NotFoundError
from pyelmo.server.batching import QueueFullError
from pyelmo.server.service import ServedIndex, Service
from pyelmo.text.rows import TextRow
from pyelmo.text.tokens import split_sentences

if TYPE_CHECKING:
    from pyelmo.neighbours import Index
    from pyelmo.neighbours.build import IndexedSentence

MOST_WORDS = 50_000  # of a text; their vectors take 200 MB
KEPT = 3  # indexes; the oldest is removed
PART_WORDS = 512  # words that are computed without a break
LONGEST = 1000  # characters of a sentence; a longer one is left out


class TextTooLongError(InputError):
    """A text has more words than a reader of the explorer may index."""


@dataclass
class Upload:
    """An index that is being built, or is ready, or has failed."""

    name: str
    title: str
    source: tuple[str, str]  # the name of the model, and the SHA-256 of the text
    done: int = 0  # sentences
    total: int = 0
    error: str | None = None
    too_long: bool = False
    served: ServedIndex | None = None

    def to_json(self) -> dict[str, Any]:
        state = "failed" if self.error else "ready" if self.served else "building"
        return {"name": self.name, "state": state, "done": self.done, "total": self.total, "error": self.error,
                "too_long": self.too_long}  # fmt: skip


class Uploads:
    """The uploaded texts of one server, in a temporary folder that ends with it. One is built at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._all: dict[str, Upload] = {}
        self._count = 0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._task: asyncio.Task[None] | None = None

    def _folder(self, name: str) -> Path:
        assert self._temporary is not None
        return Path(self._temporary.name) / name

    def ready(self) -> list[Upload]:
        return [upload for upload in self._all.values() if upload.served]

    def get(self, name: str) -> Upload:
        if name not in self._all:
            raise NotFoundError(f"text {name[:80]!r}: is not here any more. Upload it again")
        return self._all[name]

    def start(self, model_name: str, text: str, title: str) -> Upload:
        """Begin to build an index of a text, or return the one that there is already."""
        from pyelmo.neighbours.vector_index import import_faiss

        import_faiss()
        source = model_name, hashlib.sha256(text.encode()).hexdigest()
        for upload in self._all.values():
            if upload.source == source and not upload.error:
                upload.title = title[:80]
                self._make_newest(upload)
                return upload
        if self._task is not None and not self._task.done():
            raise InputError("another text is being indexed. Wait until it is ready")
        if not text.strip():
            raise InputError("the text is empty. Choose a file with text in UTF-8")
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pyelmo-explorer-", ignore_cleanup_errors=True)
        self._count += 1
        upload = Upload(f"text-{self._count}", title[:80], source)
        self._all[upload.name] = upload
        self._task = asyncio.create_task(self._build(upload, model_name, text))
        return upload

    def _make_newest(self, upload: Upload) -> None:
        self._all[upload.name] = self._all.pop(upload.name)

    async def _build(self, upload: Upload, model_name: str, text: str) -> None:
        _, model = self._service.model(model_name)
        try:
            sentences = await asyncio.to_thread(_read_sentences, text, model)
            upload.total = len(sentences)
            loop = asyncio.get_running_loop()
            index = await asyncio.to_thread(self._write, upload, sentences, model_name, model, loop)
            # Without a break from here on, so that no client sees the new index before the oldest is gone.
            upload.served = ServedIndex(index, model, model_name)
            self._make_newest(upload)
            for old in self.ready()[:-KEPT]:
                del self._all[old.name]
                shutil.rmtree(self._folder(old.name), ignore_errors=True)
        except Exception as error:  # on a thread of its own: the reader who waits is told, whatever it is
            upload.error = str(error) or type(error).__name__
            upload.too_long = isinstance(error, TextTooLongError)

    def _write(
        self,
        upload: Upload,
        sentences: list[IndexedSentence],
        model_name: str,
        model: Embedder,
        loop: asyncio.AbstractEventLoop,
    ) -> Index:
        from pyelmo.neighbours.build import write

        facts = {
            "words": "all", "inputs": [upload.title], "layer": "top",
            "model": {"name": model_name, "options": None, "vocab": None, "sha256": ""},
            "precision": model.precision, "language": model.language, "tokenised": False,
        }  # fmt: skip
        embedded = self._embed(upload, sentences, model_name, model, loop)
        return write(embedded, self._folder(upload.name), dim=model.config.dim, facts=facts)

    def _embed(
        self,
        upload: Upload,
        sentences: list[IndexedSentence],
        model_name: str,
        model: Embedder,
        loop: asyncio.AbstractEventLoop,
    ) -> Iterator[tuple[IndexedSentence, Float32Array]]:
        """Yield each sentence with its vectors (T, D), computed on the thread of the model."""
        for part in _parts(sentences):
            words = [[span.word for span in sentence.spans] for sentence in part]
            while True:
                work = self._service.compute(model_name, _top, model, words, cost=sum(map(len, words)))
                try:
                    vectors = asyncio.run_coroutine_threadsafe(work, loop).result()
                    break
                except (QueueFullError, TimeoutError):  # others come first
                    time.sleep(0.5)
            yield from zip(part, vectors, strict=True)
            upload.done += len(part)


def _top(model: Embedder, words: list[list[str]]) -> list[Float32Array]:
    return model.embed(words, layers="top")


def _parts(sentences: list[IndexedSentence]) -> Iterator[list[IndexedSentence]]:
    """Divide sentences into parts of about PART_WORDS words."""
    ends = itertools.accumulate(len(sentence.spans) for sentence in sentences)
    numbered = zip(ends, sentences, strict=True)
    for _, group in itertools.groupby(numbered, key=lambda pair: pair[0] // PART_WORDS):
        yield [sentence for _, sentence in group]


def _read_sentences(text: str, model: Embedder) -> list[IndexedSentence]:
    """Return the sentences of a text with a word; a line is a paragraph."""
    from pyelmo.neighbours.build import IndexedSentence
    from pyelmo.neighbours.search import word_spans

    sentences, count = [], 0
    for line, paragraph in enumerate(text.splitlines(), 1):
        for sentence in split_sentences(paragraph, model.language):
            if len(sentence) > LONGEST:
                continue
            spans = word_spans(TextRow(sentence), model.language)
            positions = [place for place, span in enumerate(spans) if any(map(str.isalnum, span.word))]
            count += len(positions)
            if count > MOST_WORDS:
                raise TextTooLongError(
                    f"the text has more than {MOST_WORDS:,} words. Use `elmo neighbours build` for it"
                )
            if positions:
                sentences.append(IndexedSentence(sentence, spans, positions, 0, line))
    if not sentences:
        raise InputError(
            f"the text has no sentence with words and at most {LONGEST:,} characters. Put each sentence on a line"
        )
    return sentences
