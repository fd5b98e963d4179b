"""Errors as answers: one JSON object in the form of OpenAI's API, whatever failed."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pyelmo.errors import MissingExtraError, NotFoundError, PyelmoError
from pyelmo.server.batching import QueueFullError
from pyelmo.server.schemas import Error

LOG = logging.getLogger("pyelmo.server")
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
    if isinstance(error, QueueFullError):
        headers = {"retry-after": str(round(error.seconds))}
        return problem(429, str(error), code="queue_full", headers=headers)
    if isinstance(error, NotFoundError):
        return problem(404, str(error), code="model_not_found", param="model")
    if isinstance(error, (ValueError, MissingExtraError)):
        return problem(400, str(error))
    return await _other_error(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    message = f"{place}: {first['msg']}" if place else str(first["msg"])
    return problem(400, message, param=place or None)


async def _too_late(request: Request, error: Exception) -> Response:
    return problem(503, "the answer took longer than the server allows. Send less, or try again later", code="timeout")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, f"{request.url.path[:200]}: {error.detail}", headers=error.headers)


async def _other_error(request: Request, error: Exception) -> Response:
    LOG.error("internal error in %s", request.url.path, exc_info=error)
    return problem(500, f"internal error: {type(error).__name__}", code="internal_error")


def add_handlers(app: FastAPI) -> None:
    """Make an app answer errors as JSON."""
    app.add_exception_handler(PyelmoError, _pyelmo_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(TimeoutError, _too_late)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _other_error)
