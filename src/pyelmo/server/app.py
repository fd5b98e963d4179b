"""The application: the endpoints of a service behind limits, checks and counters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from pyelmo.server import answers, embeddings, explore, status
from pyelmo.server.bodies import LimitBody
from pyelmo.server.metrics import MeasureRequests
from pyelmo.server.problems import RESPONSES, add_handlers
from pyelmo.server.security import Guard
from pyelmo.server.service import Service
from pyelmo.server.settings import ServerSettings
from pyelmo.version import __version__

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}  # of newer versions of FastAPI
PAGE = Path(__file__).parent / "page"


def create_app(settings: ServerSettings, service: Service | None = None) -> FastAPI:
    """Return the application of a server.

    Args:
        settings: What to serve.
        service: The models of these settings, if they are loaded already (default: load them now).

    Returns:
        An ASGI application; `app.state.pyelmo` is its `Service`.

    Raises:
        PyelmoError: A model, an index or a task model cannot be loaded.
    """
    service = service or Service(settings)
    app = FastAPI(
        title="pyelmo", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False,
        responses=RESPONSES, telemetry=NO_TELEMETRY,
        description="Contextual word vectors, predictions and scores of bidirectional language models.",
    )  # fmt: skip
    app.state.pyelmo = service
    add_handlers(app)
    for module in (embeddings, answers, status, explore):
        app.include_router(module.router)
    app.router.default = _page(StaticFiles(directory=PAGE, html=True))
    app.add_middleware(LimitBody, limits=settings.limits)
    app.add_middleware(Guard, settings=settings)
    if settings.cors:  # outside, so that a page of an allowed origin can also read why it was refused
        from starlette.middleware.cors import CORSMiddleware

        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.cors), allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"], expose_headers=["retry-after"],
        )  # fmt: skip
    app.add_middleware(MeasureRequests, metrics=service.metrics)
    return app


def _page(files: ASGIApp) -> ASGIApp:
    """Return what answers a path that is none of the API: a file of the page, or 404."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        await files(scope, receive, send)

    return answer
