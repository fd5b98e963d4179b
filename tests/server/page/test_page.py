"""The explorer in a real browser: every view, in both languages, by keyboard, on a phone, from its link."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Page, expect

from pyelmo.server.drawn import draw
from pyelmo.tasks.answers import (
    CoreferenceAnswer,
    CoreferenceMention,
    LabelAnswer,
    LabelledSpan,
    PassageAnswer,
    SpansAnswer,
)

# For each view: its title in both languages, and what stands there when it has computed something.
VIEWS = {
    "context": (
        "One word, several sentences, several vectors",
        "단어는 하나, 문장이 다르면 벡터도 다르다",
        ".cosines-area td",
    ),
    "mix": ("A task mixes the layers", "과제는 층을 섞어서 쓴다", ".formula b"),
    "expects": ("What the model expects", "모델은 어떤 단어를 기대할까", ".surprise small"),
    "neighbours": ("Nearest in context", "문맥에서 가장 가까운 이웃", ".bars b"),
    "unknown": ("No word is unknown", "모르는 단어는 없다", ".bars .what"),
    "tasks": ("What task networks read from the vectors", "과제 신경망이 벡터에서 읽어 내는 것", "mark.mark"),
}
EVIL = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> *bank*"


def settle(page: Page) -> None:
    expect(page.locator("main")).to_have_attribute("aria-busy", "false", timeout=120_000)


def open_view(go, view: str, query: str = "") -> Page:
    """Open a view, with an index of the example text for the neighbours."""
    page = go(f"#{view}?{query}")
    if view == "neighbours" and not page.locator(".words").count():
        page.locator("#example-text").click()
        expect(page.locator(".words")).to_be_visible(timeout=60_000)
    if view == "tasks":
        page.locator("main textarea").fill("Ann Lee lives in New York .")
        page.locator("#run").click()
    expect(page.locator(VIEWS[view][2]).first).to_be_visible(timeout=60_000)
    settle(page)
    return page


def address(page: Page) -> str:
    """Return the address as the page has it; `page.url` learns of a change a moment later."""
    return page.evaluate("location.href")


def content(page: Page) -> str:
    return page.locator("main").inner_text()


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_speaks_both_languages_fits_a_phone_and_comes_back_from_its_link(go, view, language):
    page = open_view(go, view, f"lang={language}")
    assert page.locator("html").get_attribute("lang") == language
    expect(page.locator("h1")).to_have_text(VIEWS[view][["en", "ko"].index(language)])
    expect(page.locator("nav [aria-current]")).to_have_attribute("data-view", view)
    chips = page.locator("main .example")
    if chips.count():
        chips.nth(1).click()
        settle(page)
        expect(page.locator(VIEWS[view][2]).first).to_be_visible()
    if view in ("context", "mix", "unknown", "neighbours"):
        page.locator(".words .word").nth(1).click()
        settle(page)
    if view == "expects":
        page.locator(".surprise").nth(2).click()
        settle(page)
    before, link = content(page), address(page)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("main h1")
    settle(page)
    expect(page.locator("main")).to_have_js_property("innerText", before, timeout=20_000)
    page.set_viewport_size({"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    # WCAG 2.5.8: targets of at least 24 pixels, except words within a text.
    small = "n => { const box = n.getBoundingClientRect(); return box.width && (box.width < 24 || box.height < 24) }"
    assert not page.locator("main button:visible:not(.word), header button, nav a").evaluate_all(
        f"nodes => nodes.filter({small}).map(n => n.outerHTML)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_issue(go, view, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_view(go, view, f"lang={'en' if scheme == 'light' else 'ko'}")
    page.emulate_media(color_scheme=scheme)
    settle(page)
    found = axe.run(page).response["violations"]
    assert [
        (issue["id"], issue["nodes"][0]["html"][:120]) for issue in found if issue["impact"] in ("serious", "critical")
    ] == []


def test_the_language_is_that_of_the_browser_until_it_is_switched(browser, server):
    with browser.new_context(locale="ko-KR") as context:
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator("h1")).to_have_text(VIEWS["context"][1])
        assert page.locator("#model").input_value() == "ko"
        page.get_by_role("button", name="English").click()
        expect(page.locator("h1")).to_have_text(VIEWS["context"][0])
        assert "lang=en" in address(page)


def test_both_languages_have_the_same_texts_with_the_same_gaps(go):
    texts = go("#context").evaluate("import('/text.js').then(module => module.TEXTS)")
    gaps = {
        language: {key: sorted(re.findall(r"{\w+}", text)) for key, text in words.items()}
        for language, words in texts.items()
    }
    assert gaps["en"] == gaps["ko"]
    assert {key for key in texts["en"] if texts["en"][key] == texts["ko"][key]} == set()


def test_points_are_one_in_the_token_layer_and_apart_above(go):
    page = open_view(go, "context")
    page.get_by_role("button", name="token layer").click()
    expect(page.locator("svg .all-text")).to_have_text("×6")
    places = "nodes => nodes.map(n => n.parentNode.getAttribute('transform'))"
    assert len(set(page.locator("svg .number").evaluate_all(places))) == 1
    assert {cell.inner_text() for cell in page.locator(".cosines-area td:not(.corner)").all()} == {"1.00"}
    page.get_by_role("button", name="layer 2 (top)").click()
    expect(page.locator("svg .all-text")).to_have_count(0)
    assert len(set(page.locator("svg .number").evaluate_all(places))) == 6
    same, other = page.locator("figcaption .verdict b").all_inner_texts()
    assert float(same) > float(other) + 0.2


def test_what_could_stand_in_its_place_tells_the_senses_of_phrases_apart(go):
    phrases = ["the grassy *bank*", "a *bank* loan", "they robbed the *bank*"]
    page = open_view(go, "context", "&".join(f"s={phrase.replace(' ', '+')}" for phrase in phrases) + "&c=011")
    words = page.locator(".places-area li").all_inner_texts()
    assert "hedge" in words[0]
    assert "mortgage" in words[1]
    same, other = page.locator(".places-area .verdict b").all_inner_texts()
    assert float(same) > float(other)


def test_between_two_layers_a_point_is_between_its_places(go):
    page = open_view(go, "context")
    first = "n => n.parentNode.getAttribute('transform').match(/[-.0-9]+/g).map(Number)"
    places = []
    for at in ("0", "0.5", "1"):
        page.locator("main input[type=range]").fill(at)
        places.append(page.locator("svg .number").first.evaluate(first))
    assert places[1] == pytest.approx([(a + b) / 2 for a, b in zip(places[0], places[2], strict=True)], abs=0.11)


def test_the_mix_changes_with_its_sliders_and_gamma_changes_only_the_length(go):
    page = open_view(go, "mix")
    page.get_by_role("button", name="token layer", exact=True).click()
    assert page.locator(".formula b").all_inner_texts() == ["1.00 h0", "0.00 h1", "0.00 h2"]
    looks_alike = page.locator(".bars").inner_text()
    page.get_by_role("button", name="layer 2 (top)").click()
    used_alike = page.locator(".bars").inner_text()
    assert looks_alike != used_alike
    length = page.locator(".formula .note").inner_text()
    page.get_by_label("scale γ").fill("2")
    assert page.locator(".bars").inner_text() == used_alike
    one, two = (float(re.search(r"[\d.]+$", text)[0]) for text in (length, page.locator(".formula .note").inner_text()))
    assert two == pytest.approx(2 * one, abs=0.02)


def test_a_clicked_word_becomes_a_gap_with_guesses_of_each_direction(go):
    page = open_view(go, "expects", "s=He+drank+a+cup+of+coffee+with+milk.")
    page.locator(".surprise", has_text="coffee").click()
    columns = page.locator(".thirds > div")
    expect(columns).to_have_count(3)
    assert "tea" in columns.nth(0).inner_text()
    assert "tea" in columns.nth(2).inner_text()


def test_a_misspelt_word_is_nearest_to_the_one_that_was_meant(go):
    page = open_view(go, "unknown", "s=The+*goverment*+raised+taxes.")
    assert {lists.locator(".what").first.inner_text() for lists in page.locator(".bars").all()} == {"government"}


def test_examples_are_in_the_languages_of_the_texts(page, go):
    def answer_setup(route):
        setup = route.fetch().json()
        index = {"name": "mine", "title": "mine", "language": "ko-morph", "occurrences": 1, "words": 1}
        route.fulfill(json={**setup, "indexes": [index]})

    page.route("**/explore/setup", answer_setup)
    page = go("#neighbours?lang=en&model=ko")
    expect(page.locator("main .example").first).to_be_visible()
    assert {chip.get_attribute("lang") for chip in page.locator("main .example").all()} == {"ko"}


def test_the_page_is_busy_until_everything_is_drawn(go):
    page = open_view(go, "neighbours")
    page.evaluate("""() => {
        window.seen = [];
        const main = document.getElementById("main");
        new MutationObserver(() => main.ariaBusy === "false" && window.seen.push(main.innerText))
            .observe(main, { attributeFilter: ["aria-busy"] });
    }""")
    page.locator(".words .word").nth(1).click()
    settle(page)
    assert page.evaluate("window.seen") == [content(page)]  # not also between the neighbours and the map


def test_an_answer_that_comes_too_late_is_not_drawn(go):
    page = open_view(go, "expects", "s=He+drank+a+cup+of+coffee+with+milk.")
    held = []
    page.route("**/explore/expects", lambda route: route.continue_() if held else held.append(route))
    page.locator(".surprise", has_text="cup").click()
    page.locator(".surprise", has_text="coffee").click()
    expect(page.locator(".surprise[aria-pressed=true]")).to_have_text(re.compile("coffee"))
    expect(page.locator(".thirds > div")).to_have_count(3)
    before = content(page)
    held[0].continue_()
    settle(page)
    assert content(page) == before


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element that fits has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def test_everything_works_with_the_keyboard_alone(go):
    page = open_view(go, "context")
    page.evaluate("document.activeElement.blur()")
    tab_to(page, ".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to(page, ".word[aria-pressed=true]")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.locator(".sentences li").first.locator(".word[aria-pressed=true]")).to_have_text("the")
    assert page.evaluate("document.activeElement.textContent") == "the"  # the focus stays
    tab_to(page, "input[type=range]")
    page.keyboard.press("Home")
    assert "layer=0" in address(page)
    page.keyboard.press("ArrowRight")
    assert "layer=0.25" in address(page)
    for view, selector, key, result in (
        ("mix", "input[type=range]", "ArrowRight", r"w=0\.1"),
        ("expects", ".surprise", "Enter", r"w=\d"),
        ("unknown", ".example", "Enter", r"s=The\+\*goverment"),
    ):
        tab_to(page, "#language")
        tab_to(page, f"nav a[data-view={view}]")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(VIEWS[view][0])
        assert page.evaluate("document.activeElement.tagName") == "H1"
        expect(page.locator(VIEWS[view][2]).first).to_be_visible()
        tab_to(page, selector)
        page.keyboard.press(key)
        settle(page)
        assert re.search(result, address(page))


def test_the_map_of_a_word_and_the_tasks_work_with_the_keyboard(go):
    page = open_view(go, "neighbours")
    expect(page.locator("svg .dot").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "svg[tabindex]")
    page.keyboard.press("ArrowRight")
    expect(page.locator("svg .dot.on")).to_have_count(1)
    page = open_view(go, "tasks")
    tab_to(page, "#run")
    page.keyboard.press("Enter")
    settle(page)
    expect(page.locator("mark").first).to_be_visible()


@pytest.mark.parametrize("view", VIEWS)
def test_markup_in_any_field_is_text(go, view, tmp_path):
    page = open_view(go, view)
    for fold in page.locator("main details summary").all():
        fold.click()
    for box in page.locator("main textarea, main input[type=text]").all():
        box.fill(f"{EVIL}\n{EVIL} again" if view in ("context", "mix") else EVIL)
    if view == "tasks":
        page.locator("#run").click()
    if view == "neighbours":
        (tmp_path / "<script>.txt").write_text(f"{EVIL}\n" * 3)
        page.locator("input[type=file]").set_input_files(tmp_path / "<script>.txt")
        page.get_by_role("button", name="Index this file").click()
        expect(page.locator("main select")).to_contain_text("<script>.txt", timeout=30_000)
    shown = ".drawn" if view == "tasks" else ".reading" if view == "expects" else ".words"
    expect(page.locator(f"main {shown}").first).to_contain_text("script", timeout=30_000)
    settle(page)
    link = address(page)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("main h1")
    settle(page)
    assert page.locator("main script, main img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_pictures_and_tables_are_saved(go, tmp_path):
    saved: dict[tuple[str, str], Path] = {}
    for view in VIEWS:
        page = open_view(go, view)
        for kind in ("SVG", "PNG", "CSV"):
            with page.expect_download() as download:
                page.get_by_role("button", name=kind, exact=True).first.click()
            saved[view, kind] = tmp_path / f"{view}.{kind}"
            download.value.save_as(saved[view, kind])
            assert download.value.suggested_filename.endswith(f".{kind.lower()}")
        root = ElementTree.parse(saved[view, "SVG"]).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "".join(root.itertext()).strip()
        assert not [node for node in root.iter() if "class" in node.attrib or "style" in node.attrib]
        assert saved[view, "PNG"].read_bytes().startswith(b"\x89PNG")
        assert len(list(csv.reader(io.StringIO(saved[view, "CSV"].read_text("utf-8-sig"))))) > 2
    rows = list(csv.DictReader(io.StringIO(saved["context", "CSV"].read_text("utf-8-sig"))))
    assert len(rows) == 3 * 6 + 6  # the layers, and what could stand in its place
    assert {row["cosine with 2"] for row in rows[:6]} == {"1"}  # the token layer


def test_a_text_that_is_indexed_while_another_view_is_shown_is_there_afterwards(go, tmp_path):
    page = open_view(go, "neighbours")
    (tmp_path / "later.txt").write_text("We walked along the bank of the river.\n" * 500)
    page.locator("input[type=file]").set_input_files(tmp_path / "later.txt")
    page.get_by_role("button", name="Index this file").click()
    expect(page.locator("main progress")).to_be_visible()
    page.locator("nav a[data-view=unknown]").click()
    expect(page.locator("h1")).to_have_text(VIEWS["unknown"][0])
    page.locator("nav a[data-view=neighbours]").click()
    expect(page.locator("main select")).to_contain_text("later.txt", timeout=30_000)
    expect(page.locator("main [role=status]").first).to_have_text("later.txt is ready.")


FILES = {
    "cp949.txt": ("배를 타고 섬에 갔다.\n".encode("cp949"), "cp949.txt의 인코딩이 UTF-8이 아닙니다"),
    "empty.txt": (b"", "empty.txt에 텍스트가 없습니다"),
    "words.txt": (b"a bank .\n" * 25_001, "words.txt의 텍스트가 너무 깁니다. 여기에서는 50,000단어까지"),
    "bytes.txt": (b"bank " * 2**20, "bytes.txt의 텍스트가 너무 깁니다"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_indexed_is_explained_in_the_language_of_the_page(go, name, tmp_path):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    page = go("#neighbours?lang=ko")
    page.locator("input[type=file]").set_input_files(tmp_path / name)
    page.get_by_role("button", name="이 파일 색인하기").click()
    expect(page.locator("main .panel .note[role=status]")).to_contain_text(message, timeout=30_000)


def test_too_many_or_too_long_sentences_are_explained_in_the_language_of_the_page(go):
    page = go("#context?lang=ko&" + "&".join(["s=*배*"] * 25))
    expect(page.locator(".problem")).to_have_text("문장이 25개입니다. 24개까지 볼 수 있습니다.")
    for view in ("context", "mix", "expects", "unknown"):
        page = go(f"#{view}?lang=ko&s={'배' * 1001}")
        expect(page.locator(".problem")).to_have_text("1001자인 문장이 있습니다. 한 문장은 1000자까지 쓸 수 있습니다.")


def test_labels_stay_near_their_points_or_are_left_out(go):
    page = go("#context?lang=en&" + "&".join(f"s=We saw {n} *banks* on our way to the market" for n in range(24)))
    expect(page.locator("svg .number")).to_have_count(24)
    heights = page.locator("svg .leader").evaluate_all(
        "nodes => nodes.map(n => Math.abs(n.y2.baseVal.value - n.y1.baseVal.value))"
    )
    assert 0 < len(heights) < 24
    assert max(heights) < 100


def test_the_example_of_a_task_is_in_the_language_of_its_model(page, go):
    def answer_setup(route):
        setup = route.fetch().json()
        facts = {"task": "sentiment", "inputs": ["text"]}
        tasks = [{"name": name, "language": language, **facts} for name, language in (("a", "en"), ("b", "ko-morph"))]
        route.fulfill(json={**setup, "tasks": tasks})

    page.route("**/explore/setup", answer_setup)
    page.route("**/explore/task", lambda route: route.fulfill(json=draw([ANSWERS["sentiment"]])))
    for name, text in (("a", "A lovely film"), ("b", "배우들의 연기는")):
        page = go(f"#tasks?lang=ko&task={name}")
        assert page.locator("main textarea").input_value().startswith(text)


def test_a_server_that_indexes_no_texts_says_how_to_start_it(page, go):
    def answer_setup(route):
        route.fulfill(json={**route.fetch().json(), "indexes": [], "uploads": False})

    page.route("**/explore/setup", answer_setup)
    page = go("#neighbours")
    assert page.locator("main .panel:visible p:visible").all_inner_texts()[0].endswith("or with --workers 1.")
    expect(page.locator(".example:visible")).to_have_count(0)


SPAN = LabelledSpan(label="ARG0", text="Ann", start=0, end=3, words=(0, 1), probability=0.9)
ANSWERS = {
    "srl": SpansAnswer(texts=(("Ann", "ran"),), labels=("B-ARG0", "O"), offsets=((0, 3), (4, 7)), spans=(SPAN,), predicate=1),
    "sentiment": LabelAnswer(texts=(("fine",),), labels=("good",), probabilities={"bad": 0.25, "good": 0.75}),
    "qa": PassageAnswer(texts=(("Ann", "ran"), ("Who",)), labels=("Ann", 0), end=3, probability=0.5),
    "coref": CoreferenceAnswer(
        texts=(("Ann", "ran"),), labels=(), clusters=(tuple(
            CoreferenceMention(text="", start=start, end=end, words=(0, 1), antecedent=None, probability=1.0)
            for start, end in ((0, 7), (0, 3))
        ),),
    ),
}  # fmt: skip
DRAWN = {"srl": ["AnnARG0 ran"], "sentiment": [], "qa": ["Ann ran"], "coref": ["Ann1 ran1"]}


@pytest.mark.parametrize("task", ANSWERS)
def test_an_answer_of_each_task_is_drawn_on_the_text(page, go, task):
    inputs = ["passage", "question"] if task == "qa" else ["sentence"]

    def answer_setup(route):
        setup = route.fetch().json()
        route.fulfill(json={**setup, "tasks": [{"name": "mine", "task": task, "inputs": inputs, "language": "en"}]})

    page.route("**/explore/setup", answer_setup)
    page.route("**/explore/task", lambda route: route.fulfill(json=draw([ANSWERS[task]])))
    go("#tasks?s=Ann+ran&s=Who")
    assert [drawn.inner_text() for drawn in page.locator(".drawn").all()] == DRAWN[task]
    if task == "srl":
        expect(page.locator(".predicate")).to_have_text("ran")
    if task == "sentiment":
        assert page.locator(".bars .what").all_inner_texts() == ["bad", "good"]
    if task == "qa":
        expect(page.locator("mark")).to_have_text("Ann")
    if task == "coref":  # a mention within a mention
        expect(page.locator("mark mark")).to_have_text("Ann1")


def test_a_server_with_a_key_is_asked_with_the_key(page, server):
    def guard(route):
        if route.request.headers.get("authorization") == "Bearer secret":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": {"message": "the API key is missing or wrong"}})

    page.route("**/explore/**", guard)
    page.goto("about:blank")
    page.goto(f"{server.url}#context")
    expect(page.locator("#banner")).to_contain_text("needs an API key")
    page.locator("#key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#banner")).to_contain_text("This key is wrong")
    page.locator("#key").fill("secret")
    page.keyboard.press("Enter")
    expect(page.locator(".cosines-area table")).to_be_visible()
    page.evaluate("sessionStorage.clear()")


def test_a_server_that_was_killed_is_said_to_be_gone_until_it_is_back(go, server):
    page = open_view(go, "context")
    server.kill()
    page.get_by_role("button", name="crane").click()
    banner = page.locator("#banner")
    expect(banner).to_contain_text("The server does not answer")
    page.get_by_role("button", name="한국어").click()
    expect(banner).to_contain_text("서버가 응답하지 않습니다")
    server.start()
    expect(banner).to_be_hidden(timeout=20_000)
    expect(page.locator("svg .strong").first).to_have_text("crane", timeout=20_000)
