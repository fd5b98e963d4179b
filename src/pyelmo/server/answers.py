"""What models expect and know: POST /predict, /score, /similarity, /neighbours and /task/{name}."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from pyelmo.embed.scoring import SentenceScore
from pyelmo.errors import InputError, NotFoundError
from pyelmo.server import schemas
from pyelmo.server.encoding import to_json
from pyelmo.server.service import Service, task_thread

if TYPE_CHECKING:
    from pyelmo.tasks.harness.task import Task

router = APIRouter(tags=["answers"])


def _answer(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")


@router.post("/predict", response_model=None, responses={200: {"model": schemas.PredictAnswer}})
async def predict(body: schemas.PredictRequest, request: Request) -> Response:
    """Return the likeliest words for the gap ___ in a sentence."""
    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    (words,) = await service.tokenise(embedder, [body.text])
    function = partial(
        embedder.predict, body.text, count=body.count, direction=body.direction, punctuation=body.punctuation
    )
    guesses = await service.compute(name, function, cost=len(words))
    return _answer({"model": name, "guesses": [vars(guess) for guess in guesses]})


@router.post("/score", response_model=None, responses={200: {"model": schemas.ScoreAnswer}})
async def score(body: schemas.ScoreRequest, request: Request) -> Response:
    """Return the log probability of each word of each sentence, and their sums."""
    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    words = await service.tokenise(embedder, body.sentences)
    function = partial(embedder.score_sentences, direction=body.direction)

    def encode(scores: list[SentenceScore]) -> bytes:
        return to_json({"model": name, "sentences": list(map(_score_facts, scores))})

    key, costs = ("score", body.direction), [2 + len(sentence) for sentence in words]
    content = await service.batch(name, key, function, words, costs, encode)
    return Response(content, media_type="application/json")


def _score_facts(sentence: SentenceScore) -> dict[str, Any]:
    return {
        "words": [vars(word) for word in sentence], "end": sentence.end and vars(sentence.end),
        "forward": sentence.forward, "backward": sentence.backward, "unknown": sentence.unknown,
    }  # fmt: skip


@router.post("/similarity", response_model=None, responses={200: {"model": schemas.SimilarityAnswer}})
async def similarity(body: schemas.SimilarityRequest, request: Request) -> Response:
    """Return the cosine of two words in their sentences (*between asterisks*), or of two sentences."""
    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    words = await service.tokenise(embedder, [body.first, body.second])
    function = partial(embedder.similarity, body.first, body.second, layers=body.layers, by=body.by)
    cosine = await service.compute(name, function, cost=sum(map(len, words)))
    return _answer({"model": name, "cosine": cosine})


@router.post("/neighbours", response_model=None, responses={200: {"model": schemas.NeighboursAnswer}})
async def neighbours(body: schemas.NeighboursRequest, request: Request) -> Response:
    """Return the occurrences in an indexed text that are nearest to a word in a sentence."""
    service: Service = request.app.state.pyelmo
    name = next(iter(service.indexes), "") if body.index is None else body.index
    if name not in service.indexes:
        given = "has no index. Start it with --index NAME=PATH"
        if service.indexes:
            given = f"has no index {name[:80]!r} (indexes: {', '.join(service.indexes)})"
        raise NotFoundError(f"this server {given}")
    served = service.indexes[name]
    await service.tokenise(served.embedder, [body.sentence])  # checks the limits
    words, position = served.index.find(body.sentence, body.word)
    function = partial(served.index.query, served.embedder, body.sentence, word=body.word, count=body.count)
    near = await service.compute(served.thread, function, cost=len(words))
    facts = [{**vars(neighbour), "source": Path(neighbour.source).name} for neighbour in near]
    return _answer({"index": name, "word": words[position], "neighbours": facts})


@router.post("/task/{name}", response_model=None, responses={200: {"model": schemas.TaskAnswer}})
async def task(name: str, body: schemas.TaskRequest, request: Request) -> Response:
    """Return the answers of a task model about each text: names, roles, sentiment, entailment, answers, coreference."""
    service: Service = request.app.state.pyelmo
    if name not in service.tasks:
        raise NotFoundError(f"task {name[:80]!r}: is not served here (tasks: {', '.join(service.tasks) or 'none'})")
    model = service.tasks[name]
    texts = [text for number, given in enumerate(body.texts) for text in _read_task_input(given, number, model.task)]
    service.check_sizes(texts)
    costs = [1 + len(str(given)) // 4 for given in body.texts]  # the words are not known yet
    results = await service.batch(task_thread(name), "predict", model.predict, body.texts, costs)
    facts = [
        {
            "words": answers[0].words if answers else [],
            "offsets": answers[0].offsets if answers else [],
            "answers": [answer.to_json() for answer in answers],
        }
        for answers in results
    ]
    return _answer({"task": name, "kind": model.task.name, "texts": facts})


def _read_task_input(given: Any, number: int, task: Task) -> list[str | list[str]]:
    """Return the texts of one input, each a string or a list of words."""
    count = len(task.input_names)
    parts = [given] if count == 1 else given
    if isinstance(parts, str) or len(parts) != count:
        raise InputError(f"text {number}: the task {task.name} needs {count} texts ({', '.join(task.input_names)})")
    if any(not isinstance(part, str) and any(not isinstance(word, str) for word in part) for part in parts):
        raise InputError(f"text {number}: expected a string or a list of words for the task {task.name}")
    return list(parts)
