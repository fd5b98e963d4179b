"""The endpoints of the explorer page; `views.py` computes what they answer. They are not part of the public API."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends
from fastapi import Request as HttpRequest
from pydantic import Field

from pyelmo.errors import InputError, NotFoundError
from pyelmo.server import views
from pyelmo.server.drawn import draw
from pyelmo.server.marks import MOST_CHARACTERS, parts_around, read_sentence
from pyelmo.server.schemas import ModelName, Request, Text
from pyelmo.server.service import ServedIndex, Service, task_thread
from pyelmo.server.uploads import MOST_WORDS, Uploads
from pyelmo.version import __version__

if TYPE_CHECKING:
    from pyelmo.neighbours import Neighbour

# Windows may know no type of .js, and browsers run no script of another type.
mimetypes.add_type("text/javascript", ".js")

router = APIRouter(prefix="/explore", include_in_schema=False)

NEIGHBOURS = 12
AROUND = 60  # characters of a sentence on each side of a neighbour


def _service(request: HttpRequest) -> Service:
    service: Service = request.app.state.pyelmo
    return service


def _uploads(request: HttpRequest) -> Uploads:
    if not hasattr(request.app.state, "uploads"):
        request.app.state.uploads = Uploads(request.app.state.pyelmo)
    uploads: Uploads = request.app.state.uploads
    return uploads


TheService = Annotated[Service, Depends(_service)]
TheUploads = Annotated[Uploads, Depends(_uploads)]


class SentencesRequest(Request):
    model: ModelName = None
    sentences: Annotated[list[Text], Field(max_length=views.MOST_SENTENCES)]


class MixRequest(SentencesRequest):
    query: int = 0  # the sentence whose word is mixed


class SentenceRequest(Request):
    model: ModelName = None
    sentence: Text


class ExpectsRequest(SentenceRequest):
    gap: int | None = None  # the word whose place is a gap


class NeighboursRequest(Request):
    index: Text
    sentence: Text


class MapRequest(Request):
    index: Text
    word: Annotated[Text, Field(max_length=MOST_CHARACTERS)]


class UploadRequest(Request):
    model: ModelName = None
    title: Text = ""
    text: Text | None = None  # None: the bundled sentences


class TaskRequest(Request):
    task: Text
    texts: Annotated[list[Text], Field(min_length=1, max_length=2)]


@router.get("/setup")
async def setup(service: TheService, uploads: TheUploads) -> dict[str, Any]:
    """Return what the page can show: models, indexes, tasks and limits."""
    models = [
        {"name": name, "language": model.language, "layers": model.config.layers,
         "predicts": model.config.softmax is not None and model.lexicon.vocab is not None,
         "knows": model.lexicon.vocab is not None}
        for name, model in service.models.items()
    ]  # fmt: skip
    indexes = [_index_facts(name, name, served) for name, served in service.indexes.items()]
    indexes += [_index_facts(upload.name, upload.title, upload.served) for upload in uploads.ready() if upload.served]
    tasks = [
        {
            "name": name,
            "task": model.task.name,
            "inputs": list(model.task.input_names),
            "language": model.recipe.data.language,
        }
        for name, model in service.tasks.items()
    ]
    limits = {"sentences": views.MOST_SENTENCES, "characters": MOST_CHARACTERS, "words": MOST_WORDS,
              "bytes": service.settings.limits.body}  # fmt: skip
    return {"version": __version__, "models": models, "indexes": indexes, "tasks": tasks, "limits": limits,
            "uploads": service.settings.workers == 1}  # fmt: skip


def _index_facts(name: str, title: str, served: ServedIndex) -> dict[str, Any]:
    return {"name": name, "title": title, "occurrences": len(served.index), "model": served.thread,
            "language": served.embedder.language}  # fmt: skip


@router.post("/context")
async def context(request: SentencesRequest, service: TheService) -> dict[str, Any]:
    name, model = service.model(request.model)
    return await _compute(service, name, views.context, model, request.sentences, cost=_cost(request.sentences))


@router.post("/mix")
async def mix(request: MixRequest, service: TheService) -> dict[str, Any]:
    name, model = service.model(request.model)
    cost = _cost(request.sentences)
    return await _compute(service, name, views.mix, model, request.sentences, request.query, cost=cost)


@router.post("/expects")
async def expects(request: ExpectsRequest, service: TheService) -> dict[str, Any]:
    name, model = service.model(request.model)
    cost = _cost([request.sentence])
    return await _compute(service, name, views.expects, model, request.sentence, request.gap, cost=cost)


@router.post("/unknown")
async def unknown(request: SentenceRequest, service: TheService) -> dict[str, Any]:
    name, model = service.model(request.model)
    cost = min(2 * views.CANDIDATES * views.WINDOW, service.settings.limits.words)
    return await _compute(service, name, views.unknown, model, request.sentence, cost=cost)


@router.post("/neighbours")
async def neighbours(request: NeighboursRequest, service: TheService, uploads: TheUploads) -> dict[str, Any]:
    """Return the occurrences nearest to a word in its sentence, and the known words nearest without the sentence."""
    served = _find_index(request.index, service, uploads)
    return await _compute(service, served.thread, _nearest, served, request.sentence, cost=_cost([request.sentence]))


@router.post("/map")
async def word_map(request: MapRequest, service: TheService, uploads: TheUploads) -> dict[str, Any]:
    served = _find_index(request.index, service, uploads)
    return await _compute(service, served.thread, _map, served, request.word, cost=100)


@router.post("/index")
async def build_index(request: UploadRequest, service: TheService, uploads: TheUploads) -> dict[str, Any]:
    """Begin to build an index of a text; `GET /explore/index/NAME` tells how far it is."""
    if service.settings.workers > 1:
        raise InputError("this server has several processes, which share no texts. Start it with --workers 1")
    name, model = service.model(request.model)
    text = request.text
    if text is None:
        text = "\n".join(views.bundled_texts(model.language)).replace("*", "")
    return uploads.start(name, text, request.title).to_json()


@router.get("/index/{name}")
async def index_progress(name: str, uploads: TheUploads) -> dict[str, Any]:
    return uploads.get(name).to_json()


@router.post("/task")
async def task(request: TaskRequest, service: TheService) -> dict[str, Any]:
    if request.task not in service.tasks:
        raise NotFoundError(f"task {request.task[:80]!r}: is not served here")
    model = service.tasks[request.task]
    inputs: Any = request.texts if len(model.task.input_names) > 1 else request.texts[0]

    def predict() -> dict[str, Any]:
        return draw(model.predict([inputs])[0])

    return await _compute(service, task_thread(request.task), predict, cost=_cost(request.texts))


async def _compute(service: Service, thread: str, function: Any, *arguments: Any, cost: int) -> dict[str, Any]:
    limit = service.settings.limits.words
    if cost > limit:
        raise InputError(f"the text is too long: about {cost} words, at most {limit} are allowed")
    answer: dict[str, Any] = await service.compute(thread, function, *arguments, cost=cost)
    return answer


def _cost(texts: list[str]) -> int:
    """Return about the number of words of texts."""
    return 1 + sum(map(len, texts)) // 4


def _find_index(name: str, service: Service, uploads: Uploads) -> ServedIndex:
    if name in service.indexes:
        return service.indexes[name]
    served = uploads.get(name).served
    if served is None:
        raise NotFoundError(f"index {name[:80]!r}: is not ready yet")
    return served


def _nearest(served: ServedIndex, text: str) -> dict[str, Any]:
    index, model, facts = served.index, served.embedder, served.index.manifest
    sentence = read_sentence(text, None if facts.get("tokenised") else model.language)
    answer: dict[str, Any] = {"sentence": sentence.to_json(), "near": [], "static": []}
    if sentence.positions:
        position = sentence.positions[0]
        vector = model.embed([sentence.words], layers=facts["layer"])[0][position]
        near = index.nearest(vector, count=NEIGHBOURS)
        answer["near"] = [_occurrence(neighbour) for neighbour in near]
        if model.lexicon.vocab is not None:
            answer["static"] = views.similar_words(model, sentence.words[position], NEIGHBOURS)
    return answer


def _occurrence(neighbour: Neighbour) -> dict[str, Any]:
    parts = parts_around(neighbour.sentence, neighbour.start, neighbour.end, AROUND)
    return {"parts": parts, "cosine": round(neighbour.cosine, 4), "line": neighbour.line}


def _map(served: ServedIndex, word: str) -> dict[str, Any]:
    from pyelmo.neighbours.plane import map_word

    found = map_word(served.index, word, frequent=views.frequent_words(served.embedder))
    return {
        "occurrences": [_occurrence(occurrence) for occurrence in found.occurrences],
        "points": found.points.round(4).tolist(), "shown": round(found.shown, 4), "groups": found.groups,
        "typical": found.typical, "total": found.total,
    }  # fmt: skip
