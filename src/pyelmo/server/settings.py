"""The settings of a server as one object: what it serves, to whom, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyelmo.embed.embedder import Precision
from pyelmo.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, or all waiting requests together, may ask for."""

    body: int = 4 * 2**20  # bytes of a request
    texts: int = 2048  # texts of a request
    words: int = 8192  # words of a request
    queue: int = 32768  # words of all requests that wait for a model
    time: float = 120.0  # seconds to read a request, to compute its answer, and to send it
    requests: int = 256  # requests that are read, computed or answered at the same time
    unsent: int = 2**30  # bytes of answers that slow clients have not read yet


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What is served, where, and within which limits. Requests name models, indexes and tasks by the keys given here.

    The first model is the default of requests that name none.
    """

    models: Mapping[str, str] = field(default_factory=lambda: {"en": "en"})  # name -> bundled name, path or Hub id
    indexes: Mapping[str, str] = field(default_factory=dict)  # name -> folder of `elmo neighbours build`
    tasks: Mapping[str, str] = field(default_factory=dict)  # name -> folder of `elmo task train`
    precision: Precision = "float32"
    threads: int | None = None
    workers: int = 1
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = field(default=None, repr=False)
    cors: tuple[str, ...] = ()  # origins of web pages that may read answers
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.models:
            raise InputError("the server has no model. Name at least one, such as en")
        if not 0 <= self.port <= 65535:
            raise InputError(f"port {self.port}: must be between 0 and 65535")
        if self.workers < 1:
            raise InputError(f"workers is {self.workers}; it must be at least 1")
        for name, value in vars(self.limits).items():
            if value <= 0:
                raise InputError(f"the limit {name} is {value}; it must be more than 0")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable() and self.api_key):
            raise InputError("the API key must have at least one character, and only printable ASCII characters")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK
