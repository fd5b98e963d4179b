"""Vectors: POST /v1/embeddings, one for each text as OpenAI's API gives it, and POST /embed, those of every word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response

from pyelmo.embed.embedder import Embedder
from pyelmo.embed.layers import SENTENCE, WORDS
from pyelmo.embed.sentence import stream_sentences
from pyelmo.embed.stream import VectorOptions
from pyelmo.errors import InputError
from pyelmo.server.encoding import ENCODERS, MEDIA_TYPES, embeddings_to_json
from pyelmo.server.schemas import EmbedAnswer, EmbeddingsAnswer, EmbeddingsRequest, EmbedRequest
from pyelmo.server.service import Service

router = APIRouter(tags=["vectors"])
# A sentence vector needs no LSTM: a word of it costs less than a sixteenth of another word.
CHEAP = 16


@router.post("/v1/embeddings", response_model=None, responses={200: {"model": EmbeddingsAnswer}})
async def create_embeddings(body: EmbeddingsRequest, request: Request) -> Response:
    """Return one vector for each text, as OpenAI's API: use it with any client for OpenAI's embeddings."""
    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    if body.dimensions not in (None, embedder.config.dim):
        raise InputError(
            f"dimensions is {body.dimensions}, but the vectors of {name} have {embedder.config.dim} numbers"
        )
    texts = [body.input] if isinstance(body.input, str) else body.input
    cheap = CHEAP if embedder.pretrained.sentence else 1
    words = await service.tokenise(embedder, texts, cheap=cheap)
    if cheap == 1 and (empty := [number for number, sentence in enumerate(words) if not sentence]):
        raise InputError(f"input {empty[0]} has no words, and {name} has no sentence form that gives it a vector")
    encode = partial(embeddings_to_json, name, words=sum(map(len, words)), as_base64=body.encoding_format == "base64")
    function = partial(_sentence_vectors, embedder)
    content = await service.batch(name, "encode", function, words, _costs(words, cheap), encode)
    return Response(content, media_type="application/json")


@router.post(
    "/embed",
    response_model=None,
    responses={
        200: {
            "model": EmbedAnswer,
            "content": {MEDIA_TYPES["npz"]: {"schema": {}}, MEDIA_TYPES["arrow"]: {"schema": {}}},
        }
    },
)
async def embed(body: EmbedRequest, request: Request) -> Response:
    """Return the vectors of the words of each sentence: all layers, one layer or a mix.

    The format `npz` has an array for each sentence ("0", "1", ...) and `tokens`, the bytes of a JSON list; `arrow` is a
    stream with the columns tokens, shape and vectors. The vectors of both are those of `Embedder.embed`, bit by bit.
    """
    service: Service = request.app.state.pyelmo
    name, embedder = service.model(body.model)
    cheap = CHEAP if body.pooling == SENTENCE else 1
    words = await service.tokenise(embedder, body.sentences, written=body.pooling == WORDS, cheap=cheap)
    layers = tuple(body.layers) if isinstance(body.layers, list) else body.layers
    options = (layers, body.pooling, body.dtype, body.keep_boundaries)
    tokens = [_with_boundaries(embedder, sentence) for sentence in words] if body.keep_boundaries else words

    def stream(sentences: Sequence[list[str]]) -> Any:
        return embedder.stream(
            sentences, layers=layers, pooling=body.pooling, dtype=body.dtype, keep_boundaries=body.keep_boundaries
        )

    encode = partial(ENCODERS[body.format], name, tokens)
    content = await service.batch(name, options, stream, words, _costs(words, cheap), encode)
    return Response(content, media_type=MEDIA_TYPES[body.format])


def _sentence_vectors(embedder: Embedder, sentences: Sequence[list[str]]) -> Iterable[np.ndarray]:
    """Return the vectors of `Embedder.encode` for sentences that are tokenised already."""
    form = embedder.pretrained.sentence
    if form is None:
        matrix: np.ndarray = embedder.encode(sentences)
        return matrix
    options = VectorOptions(pick=lambda values: values, pooling=SENTENCE, keep_boundaries=False, dtype="float32")
    return stream_sentences(form, embedder.word_table(), sentences, embedder.config.directions, options)


def _costs(words: Sequence[list[str]], cheap: int) -> list[int]:
    """Return what sentences cost, in words; the LSTMs also read two boundary tokens."""
    return [2 + len(sentence) if cheap == 1 else 1 + len(sentence) // cheap for sentence in words]


def _with_boundaries(embedder: Embedder, sentence: list[str]) -> list[str]:
    return [embedder.lexicon.begin, *sentence, embedder.lexicon.end]
