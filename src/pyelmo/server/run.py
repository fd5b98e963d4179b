"""Run a server: one process, or several that share the port."""

from __future__ import annotations

from pyelmo.errors import missing_extra
from pyelmo.server.settings import ServerSettings


def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    try:
        import uvicorn

        from pyelmo.server.app import create_app
    except ImportError:
        raise missing_extra("serve", "elmo serve") from None
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, access_log=False)
