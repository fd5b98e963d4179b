"""What the views of the explorer compute, and the answers of their endpoints."""

from __future__ import annotations

import time

import numpy as np
import pytest
from starlette.testclient import TestClient

from pyelmo.embed.embedder import Embedder
from pyelmo.errors import InputError
from pyelmo.server import uploads, views
from pyelmo.server.app import create_app
from pyelmo.server.drawn import draw
from pyelmo.server.marks import parts_around, read_sentence
from pyelmo.server.settings import ServerSettings
from pyelmo.tasks.answers import LabelAnswer, LabelledSpan, SpansAnswer
from pyelmo.vectors.static import unit_vectors

SENTENCES = ["The *bank* of the river .", "A bank account", "No such word"]


@pytest.mark.parametrize(
    ("text", "plain", "words"),
    [
        ("the *bank* of a river", "the bank of a river", ["bank"]),
        ("*two* marked *words*", "two marked words", ["two", "words"]),
        ("2 * 3 * 4", "2 * 3 * 4", []),
        ("an * alone", "an * alone", []),
        ("**", "**", []),
        ("", "", []),
    ],
)
def test_asterisks_mark_words_and_others_are_text(text, plain, words):
    sentence = read_sentence(text, "en")
    assert sentence.text == plain
    assert [sentence.words[position] for position in sentence.positions] == words


def test_of_two_morphemes_in_a_syllable_the_first_is_marked():
    sentence = read_sentence("집에 *갔*다", "ko-morph")
    assert [sentence.words[position] for position in sentence.positions] == ["가"]


def test_a_whole_word_is_not_divided():
    parts = read_sentence("오늘 *날시*가 좋다", "ko-morph")
    whole = read_sentence("오늘 *날시*가 좋다", "ko-morph", whole=True)
    assert "날시" not in parts.words
    assert whole.words[whole.positions[0]] == "날시"
    assert [span.word for span in whole.spans if span.start < 3] == ["오늘"]


def test_a_label_is_cut_between_words():
    assert parts_around("one two three bank four five six", 14, 18, 9) == ["…three ", "bank", " four…"]
    assert parts_around("a bank", 2, 6, 9) == ["a ", "bank", ""]


def test_sentences_without_asterisks_get_the_word_that_is_marked_elsewhere(tiny):
    chosen = views.read_sentences(SENTENCES, tiny)
    assert [[sentence.words[place] for place in sentence.positions] for sentence in chosen] == [["bank"], ["bank"], []]


def test_without_asterisks_the_rarest_shared_word_is_meant(tiny):
    chosen = views.read_sentences(["The river of the bank", "the account of the river"], tiny)
    assert [[sentence.words[place] for place in sentence.positions] for sentence in chosen] == [["river"], ["river"]]


def test_the_substitutes_of_a_word_are_those_of_the_model(tiny):
    answer = views.context(tiny, SENTENCES)["substitutes"]
    assert answer["words"][0] == [guess.word for guess in tiny.substitutes(SENTENCES[0], count=views.SUBSTITUTES)]
    cosine = tiny.similarity(SENTENCES[0], "A *bank* account", by="substitutes")
    assert answer["cosines"][0][1] == pytest.approx(cosine, abs=1e-4)


def test_the_cosines_of_a_word_are_those_of_its_vectors(tiny):
    answer = views.context(tiny, SENTENCES)
    first, second = tiny.embed([["The", "bank", "of", "the", "river", "."], ["A", "bank", "account"]])
    for layer, shown in enumerate(answer["layers"]):
        one, two = unit_vectors(first[layer, 1]), unit_vectors(second[layer, 1])
        assert shown["cosines"][0][1] == pytest.approx(float(one @ two), abs=1e-4)
    assert [place["parts"][1] for place in answer["occurrences"]] == ["bank", "bank"]
    assert answer["layers"][0]["points"] == [[0, 0], [0, 0]]


def test_layers_share_their_axes_and_distances_are_at_most_those_of_the_vectors():
    random = np.random.default_rng(0)
    units = unit_vectors(random.normal(size=(3, 6, 32)).astype(np.float32))
    points, shown = views.aligned_points(units)
    centred = units - units.mean(1, keepdims=True)
    _, sizes, axes = np.linalg.svd(centred.reshape(-1, 32), full_matrices=False)
    np.testing.assert_allclose(np.abs(points), np.abs(centred @ axes[:2].T), atol=1e-5)
    np.testing.assert_allclose((points**2).sum((0, 1)), sizes[:2] ** 2, rtol=1e-5)
    want = (points**2).sum((1, 2)) / (centred**2).sum((1, 2))
    assert shown == pytest.approx(want.tolist(), rel=1e-4)
    mixed = (0.7 * centred[1] + 0.3 * centred[2]) @ axes[:2].T
    np.testing.assert_allclose(np.abs(0.7 * points[1] + 0.3 * points[2]), np.abs(mixed), atol=1e-5)


def test_one_occurrence_is_a_point_in_the_middle(tiny):
    answer = views.context(tiny, ["a *bank*"])
    assert [layer["points"] for layer in answer["layers"]] == [[[0, 0]]] * 3


def test_products_of_layers_give_the_cosine_of_any_mix(tiny):
    answer = views.mix(tiny, ["The *bank* of the river .", "my savings account"], 0)
    shares = np.array([0.2, 0.3, 0.5])
    mixed = tiny.embed([["The", "bank", "of", "the", "river", "."], ["my", "savings", "account"]], layers=list(shares))
    query = unit_vectors(mixed[0][1])
    own = {word["text"][1]: word for word in answer["words"] if not word["bundled"]}
    vector = unit_vectors(mixed[1][1])
    word = own["savings"]
    product = shares @ np.array(word["cross"]) @ shares
    lengths = np.sqrt(shares @ np.array(answer["own"]) @ shares * (shares @ np.array(word["own"]) @ shares))
    assert product / lengths == pytest.approx(float(query @ vector), abs=2e-3)
    assert any(word["bundled"] for word in answer["words"])


def test_expectations_are_those_of_the_model(tiny):
    answer = views.expects(tiny, "The bank of the river .", 1, count=3)
    scores = tiny.score("The bank of the river .")
    assert [score["forward"] for score in answer["scores"]] == [score.forward for score in scores]
    for direction in ("forward", "backward", "both"):
        want = tiny.predict("The ___ of the river .", count=3, direction=direction)
        assert [word for word, _ in answer["guesses"][direction]] == [guess.word for guess in want]
    with pytest.raises(InputError, match="word 9 does not exist"):
        views.expects(tiny, "The bank", 9)
    assert views.expects(tiny, "", None)["scores"] == []


def test_the_token_layer_is_compared_with_all_known_words(tiny):
    words, vectors = views.known_words(tiny)
    assert words == ["The", "bank", "of", "the", "river", "account"]
    np.testing.assert_allclose(
        vectors @ vectors.T,
        unit_vectors(np.concatenate(tiny.embed([[word] for word in words], layers=0)))
        @ unit_vectors(np.concatenate(tiny.embed([[word] for word in words], layers=0))).T,
        atol=1e-5,
    )
    answer = views.unknown(tiny, "The *bnak* of the river", count=3)
    assert answer["is_known"] is False
    assert [len(layer) for layer in answer["layers"]] == [3, 3, 3]
    best, cosine = answer["layers"][0][0]
    similar = views.similar_words(tiny, "bnak", 3)
    assert (best, cosine) == (similar[0][0], round(similar[0][1], 4))


def test_the_first_unknown_word_is_meant_unless_one_is_marked(tiny):
    assert views.unknown(tiny, "The bnak of the river")["sentence"]["positions"] == (1,)
    assert views.unknown(tiny, "The river")["layers"] == []
    assert views.unknown(tiny, "river")["is_known"] is True


def test_answers_of_tasks_are_labels_or_rows_of_spans():
    label = LabelAnswer(texts=(("A",),), labels=("good",), probabilities={"bad": 0.25, "good": 0.75})
    assert draw([label]) == {"labels": [["bad", 0.25], ["good", 0.75]], "rows": []}
    span = LabelledSpan(label="ARG0", text="Ann", start=0, end=3, words=(0, 1), probability=0.9)
    role = SpansAnswer(texts=(("Ann", "ran"),), labels=(), offsets=((0, 3), (4, 7)), spans=(span,), predicate=1)
    [row] = draw([role])["rows"]
    assert row == {"predicate": [4, 7], "spans": [{"start": 0, "end": 3, "label": "ARG0", "probability": 0.9}]}


# --- the endpoints -------------------------------------------------------------------------------------------------


def ask(client: TestClient, path: str, /, **body: object) -> tuple[int, dict]:
    response = client.post(f"/explore/{path}", json=body)
    return response.status_code, response.json()


def test_the_page_learns_what_the_server_has(client):
    setup = client.get("/explore/setup").json()
    assert {model["name"]: model["predicts"] for model in setup["models"]} == {"tiny": True, "plain": False}
    assert (setup["indexes"][0]["name"], setup["indexes"][0]["occurrences"]) == ("banks", 10)
    assert setup["tasks"] == [{"name": "names", "task": "ner", "inputs": ["sentence"], "language": "en"}]


@pytest.mark.parametrize("path", ["", "main.js", "style.css", "views/context.js", "icon.svg"])
def test_the_page_is_served_under_a_strict_policy(client, path):
    response = client.get(f"/{path}")
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in response.text.replace("http://www.w3.org/2000/svg", "").replace("HttpRequest", "")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("context", {"sentences": SENTENCES}),
        ("mix", {"sentences": SENTENCES, "query": 1}),
        ("expects", {"sentence": "The bank", "gap": 1}),
        ("unknown", {"sentence": "The bnak"}),
        ("neighbours", {"index": "banks", "sentence": "a *bank* here"}),
        ("map", {"index": "banks", "word": "bank"}),
        ("task", {"task": "names", "texts": ["Ann Lee lives in Paris ."]}),
    ],
)
def test_every_endpoint_answers(client, path, body):
    status, answer = ask(client, path, **body)
    assert status == 200, answer


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("context", {"sentences": ["a"] * 25}, 400, "at most 24"),
        ("context", {"sentences": ["a" * 1001]}, 400, "at most 1000"),
        ("context", {"sentences": ["a"], "model": "other"}, 404, "is not served here"),
        ("expects", {"sentence": "a b", "gap": 2}, 400, "word 2 does not exist"),
        ("expects", {"sentence": "a b", "model": "plain"}, 400, "has no softmax"),
        ("unknown", {"sentence": "*bnak*", "model": "plain"}, 400, "no list of known words"),
        ("neighbours", {"index": "other", "sentence": "a"}, 404, "is not here"),
        ("map", {"index": "banks", "word": "tree"}, 400, "no occurrence of 'tree'"),
        ("task", {"task": "other", "texts": ["a"]}, 404, "is not served here"),
        ("index", {"text": " \n"}, 400, "the text is empty"),
        ("index", {"text": "a", "path": "/etc/passwd"}, 400, "path"),
    ],
)
def test_what_cannot_be_shown_is_one_clear_error(client, path, body, status, message):
    got, answer = ask(client, path, **body)
    assert (got, message in answer["error"]["message"]) == (status, True), answer


def build(client: TestClient, **body: object) -> dict:
    status, job = ask(client, "index", **body)
    assert status == 200, job
    while job["state"] == "building":
        time.sleep(0.02)
        job = client.get(f"/explore/index/{job['name']}").json()
    return job


def test_a_text_is_indexed_in_the_background_and_searched(client):
    text = "The bank of the river. A bank account.\n\nThe river was deep."
    job = build(client, text=text, title="mine.txt", model="tiny")
    assert (job["state"], job["done"], job["total"]) == ("ready", 3, 3)
    assert {"name": job["name"], "title": "mine.txt"}.items() <= client.get("/explore/setup").json()["indexes"][
        -1
    ].items()
    near = ask(client, "neighbours", index=job["name"], sentence="The *bank* of the river .")[1]["near"]
    assert near[0]["parts"] == ["The ", "bank", " of the river."]
    assert near[0]["cosine"] == pytest.approx(1, abs=1e-3)
    assert len(ask(client, "map", index=job["name"], word="river")[1]["points"]) == 2


def test_only_the_last_texts_are_kept_and_a_long_one_is_refused(client, monkeypatch):
    monkeypatch.setattr(uploads, "KEPT", 1)
    first, second = (build(client, text=f"number {word}", title=word)["name"] for word in ("one", "two"))
    assert ask(client, "neighbours", index=first, sentence="*one*")[0] == 404
    assert ask(client, "neighbours", index=second, sentence="*one*")[0] == 200
    with monkeypatch.context() as patch:
        patch.setattr(uploads, "MOST_WORDS", 5)
        job = build(client, text="one two three four five six")
    assert (job["state"], job["too_long"], "more than 5 words" in job["error"]) == ("failed", True, True)
    job = build(client, text="one " * 300)
    assert (job["too_long"], job["error"].split(".")[0]) == (
        False, "the text has no sentence with words and at most 1,000 characters"
    )  # fmt: skip


def test_the_same_text_is_indexed_once_for_a_model_and_becomes_the_newest(client, monkeypatch):
    monkeypatch.setattr(uploads, "KEPT", 2)
    first = build(client, text="the same", title="a.txt", model="tiny")
    other = build(client, text="the same", title="a.txt", model="plain")
    assert other["name"] != first["name"]
    again = ask(client, "index", text="the same", title="b.txt", model="tiny")[1]
    assert again == first
    third = build(client, text="another", title="c.txt", model="tiny")
    indexes = client.get("/explore/setup").json()["indexes"]
    shown = [(index["name"], index["title"]) for index in indexes[-2:]]
    assert shown == [(first["name"], "b.txt"), (third["name"], "c.txt")]
    assert client.get(f"/explore/index/{other['name']}").status_code == 404


def test_a_text_that_has_failed_can_be_indexed_again(client, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(uploads, "MOST_WORDS", 1)
        assert build(client, text="too long")["state"] == "failed"
    assert build(client, text="too long")["state"] == "ready"


def test_several_processes_share_no_texts(settings, folder):
    alone = create_app(ServerSettings(models={"tiny": str(folder / "tiny")}, threads=1, workers=2))
    with TestClient(alone, base_url="http://127.0.0.1") as client:
        assert client.get("/explore/setup").json()["uploads"] is False
        assert ask(client, "index", text="a text")[0] == 400


def test_an_upload_computes_what_the_model_computes(client, tiny: Embedder):
    job = build(client, text="The bank of the river .", model="tiny")
    served = client.app.state.uploads.get(job["name"]).served
    got = served.index.vectors(np.arange(5))
    words = ["The", "bank", "of", "the", "river", "."]
    want = unit_vectors(tiny.embed([words], layers="top")[0])[:5]
    np.testing.assert_array_equal(got, want)
