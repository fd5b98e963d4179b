"""What a server serves: models, indexes and task models, each with a compute thread. Nothing here knows of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError, NotFoundError
from pyelmo.formats import resolve
from pyelmo.formats.pretrained import checksum
from pyelmo.server.batching import Batch, ComputeThread, Job, QueueFullError
from pyelmo.server.metrics import Metrics
from pyelmo.server.settings import ServerSettings
from pyelmo.text.tokens import written_words

if TYPE_CHECKING:
    from pyelmo.neighbours import Index
    from pyelmo.tasks.harness.model import TaskModel

# Every path of the API, for the metrics.
ENDPOINTS = (
    "/v1/embeddings", "/v1/models", "/v1/models/{name}", "/embed", "/predict", "/score", "/similarity",
    "/neighbours", "/task/{name}", "/explore", "/health", "/ready", "/metrics", "/docs", "/openapi.json",
)  # fmt: skip
# Characters that are split into words on the event loop, in a millisecond; more of them, and all morphemes, which take
# much longer, are split on another thread.
INLINE = 32768
WORD_CHARACTERS = 32  # a request may have this many characters for each word that it may have


@dataclass(frozen=True)
class ServedIndex:
    """An index of neighbours with the model that built it; `thread` is the name to compute under."""

    index: Index
    embedder: Embedder
    thread: str


class Service:
    """Models, indexes and task models by name, and the threads that compute for them.

    Attributes:
        settings: What the service was made from.
        models: The embedders by name; the first is the default.
        indexes: The indexes of neighbours by name.
        tasks: The task models by name; each computes under `task_thread(name)`.
        metrics: The counters of this server.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.models: dict[str, Embedder] = {}
        self.indexes: dict[str, ServedIndex] = {}
        self.tasks: dict[str, TaskModel] = {}
        checksums: dict[str, str] = {}  # of the models that an index may share
        for name, source in settings.models.items():
            pretrained = resolve.read(source)
            if settings.indexes:
                checksums[checksum(pretrained)] = name
            self.models[name] = Embedder(pretrained, precision=settings.precision, threads=settings.threads)
            self.models[name].word_table()  # packs the weights now, not at the first request
        for name, path in settings.indexes.items():
            self.indexes[name] = self._open_index(name, path, checksums)
        for name, path in settings.tasks.items():
            from pyelmo import tasks  # needs torch

            self.tasks[name] = tasks.load(path)
        names = [*self.models, *(served.thread for served in self.indexes.values()), *map(task_thread, self.tasks)]
        self.metrics = Metrics(ENDPOINTS, list(dict.fromkeys(names)), settings.workers)
        self._threads = {name: self._make_thread(name) for name in self.metrics.models}

    def _open_index(self, name: str, path: str, checksums: dict[str, str]) -> ServedIndex:
        from pyelmo.neighbours import Index

        index = Index(path)
        facts = index.manifest
        shared = self.models.get(checksums.get(facts.get("model", {}).get("sha256"), ""))
        if shared is not None and (shared.language, shared.precision) == (facts.get("language"), facts["precision"]):
            return ServedIndex(index, shared, checksums[facts["model"]["sha256"]])
        embedder = index.load_model(threads=self.settings.threads)
        embedder.word_table()
        return ServedIndex(index, embedder, f"index {name}")

    def _make_thread(self, name: str) -> ComputeThread:
        def observe(words: int, jobs: int) -> None:
            self.metrics.observe_batch(name, words, jobs)
            self.metrics.set(thread.words, "queue", name)

        limits = self.settings.limits
        thread = ComputeThread(name, limits.queue, limits.time / 8, observe)
        return thread

    @property
    def default_model(self) -> str:
        return next(iter(self.models))

    def model(self, name: str | None) -> tuple[str, Embedder]:
        """Return a model and its name; the first one for None."""
        name = self.default_model if name is None else name
        if name not in self.models:
            raise NotFoundError(f"model {name[:80]!r}: is not served here (models: {', '.join(self.models)})")
        return name, self.models[name]

    async def compute(self, model: str, function: Callable[..., Any], *arguments: Any, cost: int = 1) -> Any:
        """Run a blocking function on the thread of a model, when its turn comes.

        Args:
            model: The name of a model, or `ServedIndex.thread`, or `task_thread(name)`.
            function: What to call there with `arguments`.
            cost: About how many words it computes; the queue is limited by their sum.

        Returns:
            What the function returns.

        Raises:
            QueueFullError: Too many words wait already.
            TimeoutError: The answer took longer than the limit.
        """
        return await self.batch(
            model, None, lambda items: [function(*arguments)], [None], [cost], lambda results: results[0]
        )

    async def batch(
        self,
        model: str,
        key: Hashable,
        function: Batch,
        items: Sequence[Any],
        costs: Sequence[int],
        finish: Callable[[list[Any]], Any] = lambda results: results,
    ) -> Any:
        """Compute items together with those of other requests that have the same key; return what `finish` makes."""
        if not items:
            return finish([])
        future = asyncio.get_running_loop().create_future()
        job = Job(key, function, items, costs, finish, future)
        thread = self._threads[model]
        try:
            thread.submit(job)
        except QueueFullError:
            self.metrics.add(1, "refused", model)
            raise
        self.metrics.set(thread.words, "queue", model)
        async with asyncio.timeout(self.settings.limits.time):
            return await thread.wait(job)

    def check_sizes(self, texts: Sequence[str | Sequence[str]], cheap: int = 1) -> int:
        """Return the number of characters of texts, after comparing them with the limits."""
        limits = self.settings.limits
        if len(texts) > limits.texts:
            raise InputError(f"{len(texts)} texts; a request may have at most {limits.texts}")
        self._check_words(sum(len(text) for text in texts if not isinstance(text, str)), cheap)
        characters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
        if characters > (most := cheap * WORD_CHARACTERS * limits.words):
            raise InputError(f"{characters} characters; a request may have at most {most}")
        return characters

    async def tokenise(
        self, embedder: Embedder, sentences: Sequence[str | Sequence[str]], *, written: bool = False, cheap: int = 1
    ) -> list[list[str]]:
        """Return the words of each sentence, after comparing them with the limits.

        Args:
            embedder: The model whose rules split strings.
            sentences: Strings or lists of words.
            written: Return words between white space, for the pooling "words".
            cheap: How many words cost as much as one usually does; the limit is that much higher.
        """
        characters = self.check_sizes(sentences, cheap)

        def split() -> list[list[str]]:
            if written:
                return [
                    written_words(text, embedder.language) if isinstance(text, str) else embedder.tokenise(text, number)
                    for number, text in enumerate(sentences)
                ]
            return [embedder.tokenise(sentence, number) for number, sentence in enumerate(sentences)]

        quick = characters <= INLINE and embedder.language != "ko-morph"
        words = split() if quick else await asyncio.to_thread(split)
        self._check_words(sum(map(len, words)), cheap)
        return words

    def _check_words(self, count: int, cheap: int) -> None:
        if count > (most := cheap * self.settings.limits.words):
            raise InputError(f"{count} words; a request may have at most {most}. Send several requests")


def task_thread(name: str) -> str:
    """Return the name of the thread that computes for a task model."""
    return f"task {name}"
