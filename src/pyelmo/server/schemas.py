"""The requests and answers of the API. Vectors of answers are written by `encoding.py` and never validated again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _check_unicode(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can hold, but which cannot be encoded in an answer."""
    if not text.isascii():
        text.encode()  # UnicodeEncodeError is a ValueError
    return text


Text = Annotated[str, AfterValidator(_check_unicode)]
Sentence = Annotated[Text | list[Text], Field(description="A string, which is split into words, or a list of words.")]
Direction = Literal["forward", "backward", "both"]
Layers = Annotated[
    Literal["all", "top", "average"] | int | list[float],
    Field(description='"all", "top", "average", the number of a layer from 0, or the weights of a mix.'),
]
ModelName = Annotated[str | None, Field(description="A name that `GET /v1/models` lists (default: the first).")]


class Request(BaseModel):
    """What all requests share: unknown fields are errors, and numbers are not accepted as strings."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EmbedRequest(Request):
    model: ModelName = None
    sentences: list[Sentence]
    layers: Layers = "all"
    pooling: Literal["mean", "max", "first", "last", "words", "sentence"] | None = None
    dtype: Literal["float32", "float16"] = "float32"
    keep_boundaries: bool = False
    format: Literal["json", "npz", "arrow"] = "json"


class EmbeddedSentence(BaseModel):
    tokens: list[str]
    vectors: list[Any] = Field(description="(layers, tokens, dim), or (tokens, dim) for one layer or a mix.")


class EmbedAnswer(BaseModel):
    model: str
    sentences: list[EmbeddedSentence]


class ErrorFacts(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    """An error, in the form of OpenAI's API."""

    error: ErrorFacts
