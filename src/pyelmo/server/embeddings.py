"""POST /embed: the vectors of words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request, Response

from pyelmo.server.schemas import EmbedAnswer, EmbedRequest
from pyelmo.server.service import Service

router = APIRouter()


@router.post("/embed", response_model=None, responses={200: {"model": EmbedAnswer}})
async def embed(body: EmbedRequest, request: Request) -> Response:
    """Return the vectors of the words of each sentence."""
    import orjson

    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    words = await service.tokenise(embedder, body.sentences)

    def stream(sentences: list[list[str]]) -> Iterator[Any]:
        return embedder.stream(sentences, layers=body.layers, pooling=body.pooling)

    def finish(vectors: list[Any]) -> bytes:
        facts = [{"tokens": tokens, "vectors": array} for tokens, array in zip(words, vectors, strict=True)]
        return orjson.dumps({"model": name, "sentences": facts}, option=orjson.OPT_SERIALIZE_NUMPY)

    key = ("embed", str(body.layers), body.pooling)
    content = await service.batch(name, key, stream, words, [max(1, len(each)) for each in words], finish)
    return Response(content, media_type="application/json")
