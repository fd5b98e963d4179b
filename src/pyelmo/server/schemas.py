"""The requests and answers of the API. Answers are described here, but not validated again when they are sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


def _check_unicode(text: str) -> str:
    """Refuse half of a surrogate pair, which JSON can hold, but which cannot be encoded in an answer."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"half of a surrogate pair at character {error.start}") from None
    return text


def _refuse_ids(value: Any) -> Any:
    first = value[0] if isinstance(value, list) and value else value
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, int):
        raise ValueError(
            "integer token ids belong to the tokenizer of another model. Send strings, or lists of words "
            "(LangChain: check_embedding_ctx_length=False)"
        )
    return value


T = TypeVar("T")
Many = Annotated[
    list[T], Field(fail_fast=True)
]  # a list whose first error is enough: a million of them would take seconds
Text = Annotated[str, AfterValidator(_check_unicode)]
Sentence = Annotated[Text | Many[Text], Field(description="A string, which is split into words, or a list of words.")]
Direction = Literal["forward", "backward", "both"]
MixedLayers = Annotated[
    Literal["top", "average"] | int | Many[float] | None,
    Field(description='"top", "average", the number of a layer from 0, or the weights of a mix.'),
]
ModelName = Annotated[Text | None, Field(description="A name that `GET /v1/models` lists (default: the first).")]
Count = Annotated[int, Field(ge=1, le=1000, description="How many to return.")]


class Request(BaseModel):
    """What all requests share: an unknown field is an error, and so is a number that is written as a string."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class EmbeddingsRequest(BaseModel):
    """A request to OpenAI's embeddings; fields that OpenAI does not have are ignored, as OpenAI's clients expect."""

    model_config = ConfigDict(strict=True)
    model: ModelName = None
    input: Annotated[
        Text | Many[Sentence],
        BeforeValidator(_refuse_ids),
        Field(description="A text, a list of texts, or a list of lists of words."),
    ]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="Only the size of the model's vectors is possible.")
    user: Text | None = Field(None, description="Not used.")


class EmbedRequest(Request):
    model: ModelName = None
    sentences: Many[Sentence]
    layers: Annotated[
        Literal["all", "top", "average"] | int | Many[float],
        Field(description='"all", "top", "average", the number of a layer from 0, or the weights of a mix.'),
    ] = "all"
    pooling: Annotated[
        Literal["mean", "max", "first", "last", "words", "sentence"] | None,
        Field(description="One vector per sentence, or for words between spaces (default: one per token)."),
    ] = None
    dtype: Literal["float32", "float16"] = "float32"
    keep_boundaries: bool = Field(False, description="Also return the vectors of the boundary tokens.")
    format: Literal["json", "npz", "arrow"] = "json"


class PredictRequest(Request):
    model: ModelName = None
    text: Annotated[Sentence, Field(description="A sentence with one gap, written ___.")]
    count: Count = 10
    direction: Annotated[Direction | None, Field(description="What is read (default: both).")] = None
    punctuation: bool = Field(False, description="Also return punctuation.")


class ScoreRequest(Request):
    model: ModelName = None
    sentences: Many[Sentence]
    direction: Direction = "both"


class SimilarityRequest(Request):
    model: ModelName = None
    first: Annotated[Sentence, Field(description="A sentence; asterisks around one word compare that word.")]
    second: Sentence
    layers: MixedLayers = None
    by: Annotated[
        Literal["vectors", "substitutes"],
        Field(description="What is compared: vectors, or what could stand in the place of the marked words."),
    ] = "vectors"


class NeighboursRequest(Request):
    index: Annotated[Text | None, Field(description="The name of an index of this server (default: the first).")] = None
    sentence: Annotated[Text, Field(description="A sentence with asterisks around the word, or with `word`.")]
    word: Text | None = None
    count: Count = 10


class TaskRequest(Request):
    texts: Annotated[
        Many[Text | Many[Text | Many[Text]]],
        Field(description="Sentences as strings or lists of words; for tasks about two texts, pairs of them."),
    ]


class Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str = Field(description="Numbers, or the base64 of little-endian float32 numbers.")


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class EmbeddedSentence(BaseModel):
    tokens: list[str]
    vectors: list[Any] = Field(description="(layers, tokens, dim), or (tokens, dim) for one layer or a mix.")


class EmbedAnswer(BaseModel):
    model: str
    sentences: list[EmbeddedSentence]


class Guess(BaseModel):
    word: str
    probability: float
    forward: float | None
    backward: float | None


class PredictAnswer(BaseModel):
    model: str
    guesses: list[Guess]


class WordScore(BaseModel):
    word: str
    forward: float | None
    backward: float | None
    known: bool


class SentenceScore(BaseModel):
    words: list[WordScore]
    end: WordScore | None
    forward: float | None = Field(description="The log probability of the sentence.")
    backward: float | None
    unknown: int = Field(description="Words that the vocabulary lacks.")


class ScoreAnswer(BaseModel):
    model: str
    sentences: list[SentenceScore]


class SimilarityAnswer(BaseModel):
    model: str
    cosine: float


class Neighbour(BaseModel):
    cosine: float
    word: str
    sentence: str
    start: int = Field(description="The first character of the word in the sentence.")
    end: int
    source: str = Field(description="The name of the indexed file.")
    line: int


class NeighboursAnswer(BaseModel):
    index: str
    word: str
    neighbours: list[Neighbour]


class TextAnswers(BaseModel):
    words: list[str]
    offsets: list[tuple[int, int]]
    answers: list[dict[str, Any]] = Field(description="As `elmo task predict --json` prints them.")


class TaskAnswer(BaseModel):
    task: str
    kind: str = Field(description="ner, srl, sentiment, nli, qa or coref.")
    texts: list[TextAnswers]


class Model(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    layers: int
    dim: int
    language: str
    precision: str
    predicts: bool = Field(description="Whether /predict and /score work.")
    sentence_form: bool = Field(description="Whether the model has sentence vectors of its own.")


class Models(BaseModel):
    object: Literal["list"]
    data: list[Model]


class Ready(BaseModel):
    status: str
    models: list[str]
    indexes: list[str]
    tasks: list[str]


class ErrorFacts(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    """An error, in the form of OpenAI's API."""

    error: ErrorFacts
