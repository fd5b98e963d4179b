"""Errors as answers: one JSON object in the form of OpenAI's API, whatever failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pyelmo.errors import InputError, MissingExtraError, NotFoundError, PyelmoError
from pyelmo.server.batching import QueueFullError
from pyelmo.server.schemas import Error
from pyelmo.server.service import Service

# What every endpoint may answer instead of its result, for the OpenAPI document.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Error, "description": "The request cannot be answered; the message says why."},
    "503": {"model": Error, "description": "The answer took longer than the limit."},
}


def problem(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error as an answer."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    facts = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Response(json.dumps(facts), status, headers, "application/json")  # ASCII: any text can be quoted


async def _pyelmo_error(request: Request, error: Exception) -> Response:
    message = _without_paths(request, str(error))
    if isinstance(error, QueueFullError):
        headers = {"retry-after": str(round(error.seconds))}
        return problem(429, message, code="queue_full", headers=headers)
    if isinstance(error, NotFoundError):
        code = "model_not_found" if request.url.path.startswith("/v1/") else "not_found"  # as OpenAI
        return problem(404, message, code=code)
    if isinstance(error, (InputError, MissingExtraError)):
        return problem(400, message)
    raise error


def _without_paths(request: Request, message: str) -> str:
    """Replace the places of files on the server by the names under which they are served."""
    service: Service = request.app.state.pyelmo
    for name, embedder in service.models.items():
        message = message.replace(embedder.pretrained.source, name)
    for name, served in service.indexes.items():
        message = message.replace(str(served.index.path), name).replace(served.embedder.pretrained.source, name)
    return message


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    error.__traceback__ = None  # its frames hold the body, which may be large, until the next garbage collection
    errors = error.errors()
    names = [part for part in errors[0]["loc"][1:] if isinstance(part, int) or str(part).isidentifier()]
    place = ".".join(map(str, names[:2]))
    if errors[0]["type"] == "json_invalid":
        return problem(400, f"the body is not valid JSON: {errors[0].get('ctx', {}).get('error', '')}")
    if errors[0]["loc"] == ("body",):  # no field is wrong, but the whole: nothing, a list, a string, null
        return problem(400, "the body must be a JSON object with the fields of this request, which /docs describes")
    # A value that may have one of several types has an error for each of them.
    field = errors[0]["loc"][1:2]
    texts = (each["msg"].removeprefix("Value error, ") for each in errors if each["loc"][1:2] == field)
    messages = " or ".join(dict.fromkeys(texts))
    return problem(400, f"{place}: {messages}" if place else messages, param=place or None)


async def _too_late(request: Request, error: Exception) -> Response:
    return problem(503, "the answer took longer than the server allows. Send less, or try again later", code="timeout")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # how FastAPI calls a body that is no text, or nested too deeply
        return problem(400, "the body is not valid JSON in UTF-8")
    return problem(error.status_code, f"{request.url.path[:200]}: {error.detail}", headers=error.headers)


async def _other_error(request: Request, error: Exception) -> Response:
    # Starlette raises the error again after this answer, and uvicorn logs it.
    return problem(500, f"internal error: {type(error).__name__}", code="internal_error")


def add_handlers(app: FastAPI) -> None:
    """Make an app answer errors as JSON."""
    app.add_exception_handler(PyelmoError, _pyelmo_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(TimeoutError, _too_late)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _other_error)
