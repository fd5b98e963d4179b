"""What the server is and how it is: GET /v1/models, /health, /ready, /metrics and /docs."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from pyelmo.embed.embedder import Embedder
from pyelmo.server import schemas
from pyelmo.server.docs_page import STYLE, render
from pyelmo.server.service import Service

router = APIRouter(tags=["status"])
STARTED = int(time.time())


def _facts(name: str, embedder: Embedder) -> dict[str, Any]:
    model = embedder.pretrained
    return {
        "id": name, "object": "model", "created": STARTED, "owned_by": "pyelmo",
        "layers": embedder.config.layers, "dim": embedder.config.dim, "language": embedder.language,
        "precision": embedder.precision, "predicts": bool(model.config.softmax and model.lexicon.vocab),
        "sentence_form": model.sentence is not None,
    }  # fmt: skip


@router.get("/v1/models", response_model=None, responses={200: {"model": schemas.Models}})
async def models(request: Request) -> dict[str, Any]:
    """Return the models of this server; the first is the default."""
    service: Service = request.app.state.pyelmo
    return {"object": "list", "data": [_facts(*item) for item in service.models.items()]}


@router.get("/v1/models/{name}", response_model=None, responses={200: {"model": schemas.Model}})
async def model(name: str, request: Request) -> dict[str, Any]:
    """Return the facts of one model."""
    service: Service = request.app.state.pyelmo
    return _facts(*service.model(name))


@router.head("/health", include_in_schema=False)
@router.get("/health", response_model=None)
async def health() -> dict[str, Any]:
    """Return whether the process runs."""
    return {"status": "ok"}


@router.head("/ready", include_in_schema=False)
@router.get("/ready", response_model=None, responses={200: {"model": schemas.Ready}})
async def ready(request: Request) -> dict[str, Any]:
    """Return what can be asked now: the server listens only when everything is loaded."""
    service: Service = request.app.state.pyelmo
    names = {"models": list(service.models), "indexes": list(service.indexes), "tasks": list(service.tasks)}
    return {"status": "ready", **names}


@router.get("/metrics", response_model=None, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Return counters of all workers for Prometheus."""
    service: Service = request.app.state.pyelmo
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    return Response(render(request.app.openapi()), media_type="text/html")


@router.get("/docs.css", include_in_schema=False)
async def docs_style() -> Response:
    return Response(STYLE, media_type="text/css")
