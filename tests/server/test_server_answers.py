"""What the endpoints answer: the same as the library, in every format; errors say what is wrong."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pyarrow as pa
import pytest

from pyelmo import neighbours

SENTENCES = ["The bank of the river.", ["A", "bank", "account"], ""]


def vectors_of(answer) -> tuple[list[np.ndarray], list[list[str]]]:
    """Return the arrays and the tokens of an npz answer."""
    assert answer.status_code == 200, answer.text
    file = np.load(io.BytesIO(answer.content))
    return [file[str(number)] for number in range(len(file) - 1)], json.loads(bytes(file["tokens"]))


# --- /embed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {}, {"layers": "top"}, {"layers": 1, "dtype": "float16"}, {"layers": [0.2, 0.3, 0.5]},
        {"layers": "average", "pooling": "mean"}, {"keep_boundaries": True}, {"pooling": "words"},
        {"pooling": "sentence"},
    ],
)  # fmt: skip
def test_npz_vectors_are_those_of_embed_bit_by_bit(client, tiny, options):
    arrays, tokens = vectors_of(client.post("/embed", json={"sentences": SENTENCES, "format": "npz", **options}))
    wanted = tiny.embed(SENTENCES, **options)
    for array, other in zip(arrays, wanted, strict=True):
        assert (array.shape, array.dtype) == (other.shape, other.dtype)
        assert array.tobytes() == other.tobytes()
    if options.get("pooling") is None:
        assert [len(words) for words in tokens] == [array.shape[-2] for array in arrays]


def test_json_vectors_restore_the_same_float32_numbers(client, tiny):
    answer = client.post("/embed", json={"model": "tiny", "sentences": SENTENCES}).json()
    assert answer["model"] == "tiny"
    for sentence, words, wanted in zip(answer["sentences"], SENTENCES, tiny.embed(SENTENCES), strict=True):
        assert sentence["tokens"] == tiny.tokenise(words)
        assert np.array(sentence["vectors"], np.float32).tobytes() == wanted.tobytes()


def test_half_precision_in_json_and_the_vector_of_nothing(client, tiny):
    body = {"sentences": ["The bank", ""], "dtype": "float16", "layers": "top", "pooling": "mean"}
    first, nothing = client.post("/embed", json=body).json()["sentences"]
    assert np.array_equal(
        np.array(first["vectors"], np.float16),
        tiny.embed(["The bank"], layers="top", pooling="mean", dtype="float16")[0],
    )
    assert nothing["vectors"] == [None] * tiny.config.dim


def test_arrow_is_a_stream_of_tokens_shapes_and_values(client, tiny):
    answer = client.post("/embed", json={"sentences": SENTENCES, "format": "arrow", "layers": "top"})
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(answer.content).read_all()
    for row, wanted in zip(table.to_pylist(), tiny.embed(SENTENCES, layers="top"), strict=True):
        assert np.array(row["vectors"], np.float32).reshape(row["shape"]).tobytes() == wanted.tobytes()


def test_no_sentences_give_no_vectors(client):
    assert client.post("/embed", json={"sentences": []}).json() == {"model": "tiny", "sentences": []}
    for form in ("npz", "arrow"):
        assert client.post("/embed", json={"sentences": [], "format": form}).status_code == 200


# --- OpenAI's protocol ---------------------------------------------------------------------------------------------


def test_embeddings_are_those_of_encode(client, tiny):
    texts = ["The bank of the river.", "A bank account"]
    answer = client.post("/v1/embeddings", json={"model": "tiny", "input": texts}).json()
    assert [item["index"] for item in answer["data"]] == [0, 1]
    assert (answer["object"], answer["model"]) == ("list", "tiny")
    assert answer["usage"] == {"prompt_tokens": 9, "total_tokens": 9}
    wanted = tiny.encode(texts)
    assert np.array([item["embedding"] for item in answer["data"]], np.float32).tobytes() == wanted.tobytes()
    coded = client.post("/v1/embeddings", json={"input": texts, "encoding_format": "base64"}).json()
    numbers = [np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in coded["data"]]
    assert np.stack(numbers).tobytes() == wanted.tobytes()


def test_one_string_and_lists_of_words_are_inputs_too(client, tiny):
    one = client.post("/v1/embeddings", json={"input": "A bank account"}).json()["data"]
    words = client.post("/v1/embeddings", json={"input": [["A", "bank", "account"]]}).json()["data"]
    assert one == words
    assert client.post("/v1/embeddings", json={"input": ""}).json()["data"][0]["embedding"] == [0.0] * tiny.config.dim


def test_a_model_without_a_sentence_form_averages_its_layers(client, app):
    plain = app.state.pyelmo.models["plain"]
    answer = client.post("/v1/embeddings", json={"model": "plain", "input": ["A bank"]}).json()
    assert np.array(answer["data"][0]["embedding"], np.float32).tobytes() == plain.encode(["A bank"])[0].tobytes()
    refused = client.post("/v1/embeddings", json={"model": "plain", "input": ["A bank", ""]})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("input 1 has no words")


@pytest.mark.parametrize("ids", [[1, 2], [[1, 2]]])
def test_integer_token_ids_are_refused_with_what_to_do(client, ids):
    answer = client.post("/v1/embeddings", json={"input": ids})
    assert answer.status_code == 400
    assert "check_embedding_ctx_length=False" in answer.json()["error"]["message"]


def test_only_the_own_dimensions_are_possible(client, tiny):
    assert client.post("/v1/embeddings", json={"input": "a", "dimensions": tiny.config.dim}).status_code == 200
    answer = client.post("/v1/embeddings", json={"input": "a", "dimensions": 8})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_models_are_listed_with_what_they_can(client):
    first, second = client.get("/v1/models").json()["data"]
    assert (first["id"], first["predicts"], first["sentence_form"], first["language"]) == ("tiny", True, True, "en")
    assert (second["id"], second["predicts"], second["sentence_form"]) == ("plain", False, False)
    assert client.get("/v1/models/plain").json() == second
    assert client.get("/v1/models/other").json()["error"]["code"] == "model_not_found"


# --- the other endpoints -------------------------------------------------------------------------------------------


def test_predict_returns_the_guesses(client, tiny):
    answer = client.post("/predict", json={"text": "The bank of the ___.", "count": 2, "punctuation": True}).json()
    wanted = tiny.predict("The bank of the ___.", count=2, punctuation=True)
    assert answer == {"model": "tiny", "guesses": [vars(guess) for guess in wanted]}


def test_score_returns_every_word_and_the_sums(client, tiny):
    sentences = ["The bank.", "", "The blue river."]
    answer = client.post("/score", json={"sentences": sentences, "direction": "forward"}).json()["sentences"]
    for facts, wanted in zip(answer, tiny.score_sentences(sentences, direction="forward"), strict=True):
        assert [word["forward"] for word in facts["words"]] == [word.forward for word in wanted]
        assert (facts["forward"], facts["backward"], facts["unknown"]) == (wanted.forward, None, wanted.unknown)


def test_similarity_compares_marked_words_or_sentences(client, tiny):
    pair = ("the *bank* of the river", "a *bank* account")
    answer = client.post("/similarity", json={"first": pair[0], "second": pair[1], "layers": "top"}).json()
    assert answer == {"model": "tiny", "cosine": tiny.similarity(*pair, layers="top")}
    answer = client.post("/similarity", json={"first": pair[0], "second": pair[1], "by": "substitutes"}).json()
    assert answer == {"model": "tiny", "cosine": tiny.similarity(*pair, by="substitutes")}
    unmarked = client.post("/similarity", json={"first": pair[0], "second": "a bank"})
    assert unmarked.status_code == 400
    assert "Mark one word in each" in unmarked.json()["error"]["message"]


def test_neighbours_come_from_the_index_without_the_paths_of_the_server(client, folder, tiny):
    answer = client.post("/neighbours", json={"sentence": "My *bank* account .", "count": 2}).json()
    wanted = neighbours.load(folder / "index").query(tiny, "My *bank* account .", count=2)
    assert (answer["index"], answer["word"]) == ("banks", "bank")
    assert [near["sentence"] for near in answer["neighbours"]] == [near.sentence for near in wanted]
    assert [near["cosine"] for near in answer["neighbours"]] == [near.cosine for near in wanted]
    assert {near["source"] for near in answer["neighbours"]} == {"text.txt"}
    unknown = client.post("/neighbours", json={"index": "other", "sentence": "a *bank*"})
    assert (unknown.status_code, "indexes: banks" in unknown.text) == (404, True)


def test_an_index_shares_the_model_that_built_it(app):
    assert app.state.pyelmo.indexes["banks"].embedder is app.state.pyelmo.models["tiny"]


def test_a_task_answers_as_the_command_does(client, app):
    texts = ["Ann Lee lives in New York .", ["Bob", "met", "Sue", "."], ""]
    answer = client.post("/task/names", json={"texts": texts}).json()
    wanted = app.state.pyelmo.tasks["names"].predict(texts)
    assert (answer["task"], answer["kind"]) == ("names", "ner")
    assert [facts["answers"] for facts in answer["texts"]] == json.loads(
        json.dumps([[each.to_json() for each in answers] for answers in wanted])
    )
    assert answer["texts"][0]["words"] == ["Ann", "Lee", "lives", "in", "New", "York", "."]
    assert client.post("/task/names", json={"texts": [[["a"]]]}).status_code == 400
    assert client.post("/task/other", json={"texts": []}).status_code == 404


def test_health_ready_metrics_and_docs(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {
        "status": "ready", "models": ["tiny", "plain"], "indexes": ["banks"], "tasks": ["names"]
    }  # fmt: skip
    client.post("/embed", json={"sentences": ["a"]})
    lines = client.get("/metrics").text.splitlines()
    assert any(line.startswith('elmo_requests_total{endpoint="/embed",status="200"}') for line in lines)
    assert any(line.startswith('elmo_words_total{model="tiny"}') for line in lines)
    page = client.get("/docs").text
    for path in ("/v1/embeddings", "/embed", "/task/{name}"):
        assert f"POST {path}" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://127.0.0.1:8000", "")  # nothing comes from the network


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/embed", {"sentences": ["a"], "model": "../secret"}, 404, "models: tiny, plain"),
        ("/embed", {"sentences": ["a"], "model": "/etc/passwd"}, 404, "is not served here"),
        ("/embed", {"sentences": ["a"], "layers": 7}, 400, "layer 7 does not exist"),
        ("/embed", {"sentences": ["a"], "layers": [1.0]}, 400, "has 1 weights"),
        ("/embed", {"sentences": ["a"], "pooling": "sum"}, 400, "pooling: Input should be 'mean'"),
        ("/embed", {"sentences": "a"}, 400, "sentences: Input should be a valid list"),
        (
            "/embed",
            {"sentences": [1]},
            400,
            "sentences.0: Input should be a valid string or Input should be a valid list",
        ),
        ("/embed", {"sentences": ["a"], "layer": 1}, 400, "layer: Extra inputs are not permitted"),
        ("/embed", {"sentences": ["a"], "keep_boundaries": True, "pooling": "words"}, 400, "no boundary tokens"),
        ("/embed", {}, 400, "sentences: Field required"),
        ("/predict", {"text": "no gap"}, 400, "0 gaps"),
        ("/predict", {"text": "a ___", "model": "plain"}, 400, "plain: has no softmax"),
        ("/predict", {"text": "a ___", "count": 0}, 400, "count: Input should be greater than or equal to 1"),
        ("/score", {"sentences": ["a"], "direction": "up"}, 400, "direction: Input should be 'forward'"),
        ("/similarity", {"first": "a *b", "second": "c"}, 400, "an asterisk has no partner"),
        ("/nothing", {}, 404, "/nothing: Not Found"),
        ("/embed/", {"sentences": ["a"]}, 404, "/embed/: Not Found"),
        ("/health", {}, 405, "Method Not Allowed"),
        ("/v1/embeddings", {"input": [1, 2]}, 400, "input: integer token ids belong to"),
    ],
)
def test_an_error_says_what_is_wrong_and_names_no_file(client, folder, path, body, status, message):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert str(folder) not in answer.text


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embed", "/task/names"])
def test_another_method_than_that_of_an_endpoint_is_405_with_the_right_one(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_load_balancers_may_check_with_head(client):
    for path in ("/health", "/ready"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


def test_the_metrics_know_every_endpoint(client, app):
    assert set(client.get("/openapi.json").json()["paths"]) <= set(app.state.pyelmo.metrics.endpoints)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "must be a JSON object"),
        (b"{", "is not valid JSON"),
        (b'{"sentences": ["\\ud800"]}', "sentences.0: half of a surrogate pair at character 0"),
        (b'{"sentences": ["\xff"]}', "is not valid JSON in UTF-8"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'"text"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"NaN", "must be a JSON object"),
    ],
)
def test_malformed_json_is_one_clear_error(client, body, message):
    answer = client.post("/embed", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["message"]


def test_text_that_looks_like_a_path_or_markup_is_only_text(client):
    texts = ["<script>alert(1)</script>", "../../etc/passwd", "\x00\x01", "a" * 1000, "배 \U0001f600"]
    answer = client.post("/embed", json={"sentences": texts, "layers": "top"}).json()
    assert len(answer["sentences"]) == len(texts)
