// Neighbours: the occurrences of a text nearest to a word in its sentence, and a map of all its occurrences.

import { ask, latest } from "../api.js";
import { debounce, el, svg } from "../dom.js";
import { NEIGHBOURS } from "../examples.js";
import { tools } from "../export.js";
import {
  barList,
  barPicture,
  context,
  exampleRow,
  head,
  keepFocus,
  marked,
  sentenceBox,
  tooMuch,
  unmarked,
  wordPicker,
} from "../parts.js";
import * as state from "../state.js";
import { t } from "../text.js";

const POLL = 400; // milliseconds between two looks at the progress
let job = null; // the text that is being indexed; who comes back to the view sees its progress

export function mount(app) {
  let data = null,
    map = null,
    left = false;
  const askLatest = latest();
  const indexes = () => app.setup.indexes;
  const chosen = () =>
    indexes().find(({ name }) => name === state.get("index")) ||
    indexes().findLast(({ language }) => language === app.facts().language);
  if (!state.get("s")) {
    const language = (chosen()?.language || app.language()).startsWith("ko") ? "ko" : "en";
    state.set({ s: NEIGHBOURS[language][0] });
  }
  const problem = el("p", { class: "problem", role: "status" });
  const said = el("p", { class: "note", role: "status" });
  const sources = el("section", { class: "panel" });
  const picker = el("div", {});
  const lists = el("div", { class: "split even", hidden: true });
  const mapPanel = el("section", { class: "panel", hidden: true });
  const box = sentenceBox(
    state.get("s"),
    t("queryHelp"),
    2,
    debounce((text) => {
      state.set({ s: text.replaceAll("\n", " ") });
      load();
    }),
  );
  const query = el("section", { class: "panel", hidden: true }, box, picker, problem);
  const examples = el("div", {});
  const root = el(
    "div",
    {},
    head("neighbours"),
    el(
      "div",
      { class: "stack" },
      sources,
      examples,
      query,
      lists,
      mapPanel,
    ),
  );

  function showSources() {
    const file = el("input", { type: "file", accept: ".txt,text/plain" });
    const select = el(
      "select",
      {
        onchange: () => {
          state.set({ index: select.value });
          load();
        },
      },
      chosen() ? null : el("option", { value: "" }, "–"),
      indexes().map(({ name, title, occurrences }) =>
        el("option", { value: name, selected: chosen()?.name === name }, `${title} (${occurrences.toLocaleString()})`),
      ),
    );
    sources.replaceChildren(
      ...[
        chosen() || !app.setup.uploads ? null : el("p", {}, t("noIndex")),
        indexes().length ? el("label", { class: "row" }, el("span", { class: "label" }, t("index")), select) : null,
        app.setup.uploads
          ? el(
              "div",
              { class: "row" },
              el(
                "label",
                { class: "field" },
                el("span", {}, t("ownText", { words: app.setup.limits.words.toLocaleString() })),
                file,
              ),
              el("button", { type: "button", class: "tool", onclick: () => read(file) }, t("build")),
              app.language() === "other"
                ? null
                : el(
                    "button",
                    {
                      type: "button",
                      class: chosen() ? "tool" : "main-button",
                      id: "example-text",
                      onclick: () => build(null, t("exampleTitle")),
                    },
                    t("exampleText"),
                  ),
            )
          : el("p", { class: "note" }, t("uploadsOff")),
        said,
      ].filter(Boolean),
    );
  }

  const tooLong = (title) => t("tooLongText", { title, words: app.setup.limits.words.toLocaleString() });

  async function read({ files: [file] }) {
    if (!file) said.textContent = t("chooseFile");
    else if (!file.size) said.textContent = t("emptyFile", { title: file.name });
    else if (file.size > app.setup.limits.bytes) said.textContent = tooLong(file.name);
    else {
      try {
        const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
        build(text, file.name);
      } catch {
        said.textContent = t("notUtf8", { title: file.name });
      }
    }
  }

  async function build(text, title) {
    try {
      job = { title, ...(await ask("/explore/index", { model: app.model(), text, title }, { fresh: true })) };
    } catch (error) {
      said.textContent = error.status === 413 ? tooLong(title) : error.message;
      return;
    }
    follow({ choose: true });
  }

  // Show the progress of the text that is being indexed, and offer the text when it is ready.
  async function follow({ choose = false } = {}) {
    let now = job;
    const { title } = now;
    const bar = el("progress", { "aria-label": title });
    try {
      while (now.state === "building") {
        said.replaceChildren(t("building", { title, done: now.done, total: now.total || "…" }), bar);
        bar.max = now.total || 1;
        bar.value = now.done;
        await new Promise((resolve) => {
          setTimeout(resolve, POLL);
        });
        if (left) return;
        now = { title, ...(await ask(`/explore/index/${now.name}`, undefined, { fresh: true })) };
      }
      if (now.state === "ready") await app.loadSetup();
    } catch (error) {
      now = { state: "failed", error: error.message };
    }
    if (left) return;
    job = null;
    said.textContent = now.too_long ? tooLong(title) : now.error || t("ready", { title });
    if (now.state === "failed") return;
    if (choose) state.set({ index: now.name });
    showSources();
    load();
  }

  // The examples in the languages of the texts that can be searched.
  function showExamples() {
    const languages = Object.entries(NEIGHBOURS).filter(([code]) =>
      indexes().some(({ language }) => language.startsWith(code)),
    );
    const pick = (sentence, model) => {
      state.set({ s: sentence, model, index: null });
      app.refresh();
    };
    examples.replaceChildren(exampleRow(Object.fromEntries(languages), app, pick, unmarked));
  }

  async function load() {
    query.hidden = examples.hidden = !chosen();
    showExamples();
    if (!chosen()) return;
    const index = chosen().name;
    problem.textContent = tooMuch([state.get("s")], app.setup);
    if (problem.textContent) return;
    try {
      data = await askLatest("/explore/neighbours", { index, sentence: state.get("s") });
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    problem.textContent = data.near.length ? "" : t("noWord");
    keepFocus(picker, () =>
      picker.replaceChildren(
        wordPicker(data.sentence, {
          label: t("pick"),
          pressed: data.sentence.positions,
          number: 0,
          pick: (_, start, end) => {
            state.set({ s: marked(data.sentence.text, start, end) });
            box.querySelector("textarea").value = state.get("s");
            load();
          },
        }),
      ),
    );
    lists.hidden = !data.near.length;
    mapPanel.hidden = true;
    if (!data.near.length) return;
    lists.replaceChildren(
      el(
        "section",
        { class: "panel" },
        el("div", { class: "row between" }, el("h2", {}, t("inContext")), tools("neighbours", picture, table)),
        barList(
          data.near.map(({ cosine, parts }) => ({ value: cosine.toFixed(2), share: cosine, text: context(parts) })),
        ),
      ),
      el(
        "section",
        { class: "panel" },
        el("h2", {}, t("withoutContext")),
        barList(
          data.static.map(([word, cosine]) => ({
            value: cosine.toFixed(2),
            share: cosine,
            text: el("span", {}, word),
          })),
        ),
      ),
    );
    loadMap(index);
  }

  const word = () => data.sentence.tokens[data.sentence.positions[0]][2];

  async function loadMap(index) {
    try {
      map = await askLatest("/explore/map", { index, word: word() });
    } catch (error) {
      if (error.status === 400) {
        mapPanel.hidden = false;
        mapPanel.replaceChildren(el("p", { class: "note" }, t("notInText", { word: word() })));
      } else problem.textContent = error.message;
      return;
    }
    mapPanel.hidden = false;
    const reading = el("p", { class: "note", "aria-live": "polite" }, t("mapMove"));
    const drawing = el("div", { class: "drawing" });
    mapPanel.replaceChildren(
      el(
        "div",
        { class: "row between" },
        el("h2", {}, t("mapTitle", { word: word() })),
        tools("map", () => drawing.firstChild, mapTable),
      ),
      drawing,
      reading,
      legend(),
      el(
        "p",
        { class: "note" },
        t("mapNote", { shown: t("percent", { n: Math.round(100 * map.shown) }) }),
        map.total > map.points.length ? ` ${t("thinned", { shown: map.points.length, total: map.total })}` : "",
      ),
    );
    drawing.append(points(drawing.clientWidth || 640, reading));
  }

  const legend = () =>
    el(
      "ul",
      { class: "legend" },
      map.typical.map((words, group) =>
        el(
          "li",
          {},
          el("i", { class: `c${group % 6}` }),
          `${map.groups.filter((other) => other === group).length} · ${words.join(", ") || t("others")}`,
        ),
      ),
    );

  function points(width, reading) {
    const height = Math.min(420, Math.max(280, width * 0.55));
    const [xs, ys] = [0, 1].map((axis) => map.points.map((point) => point[axis]));
    const scale = Math.min(
      (width - 40) / (Math.max(...xs) - Math.min(...xs) || 1),
      (height - 40) / (Math.max(...ys) - Math.min(...ys) || 1),
    );
    const middle = [xs, ys].map((values) => (Math.max(...values) + Math.min(...values)) / 2);
    const dots = map.points.map(([x, y], n) =>
      svg("circle", {
        class: `dot f${map.groups[n] % 6}`,
        r: 6,
        cx: (width / 2 + (x - middle[0]) * scale).toFixed(1),
        cy: (height / 2 - (y - middle[1]) * scale).toFixed(1),
        onmouseenter: () => choose(n),
        onclick: () => choose(n),
      }),
    );
    let at = -1;
    const choose = (n) => {
      dots[at]?.classList.remove("on");
      at = (n + dots.length) % dots.length;
      dots[at].classList.add("on");
      const { parts, line } = map.occurrences[at];
      reading.replaceChildren(...context(parts), ` (${t("line", { n: line })})`);
    };
    return svg(
      "svg",
      {
        viewBox: `0 0 ${Math.round(width)} ${Math.round(height)}`,
        role: "application",
        tabindex: "0",
        "aria-label": `${t("mapTitle", { word: word() })}. ${t("mapMove")}`,
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (!step) return;
          event.preventDefault();
          choose(at + step);
        },
      },
      dots,
    );
  }

  const picture = () =>
    barPicture(data.sentence.text, [
      {
        title: t("inContext"),
        rows: data.near.map(({ cosine, parts }) => ({ value: cosine.toFixed(2), share: cosine, label: parts })),
      },
      {
        title: t("withoutContext"),
        rows: data.static.map(([other, cosine]) => ({
          value: cosine.toFixed(2),
          share: cosine,
          label: ["", other, ""],
        })),
      },
    ]);

  const table = () => [
    ["kind", "word", "context", "line", "cosine"],
    ...data.near.map(({ cosine, parts, line }) => ["in context", parts[1], parts.join(""), line, cosine]),
    ...data.static.map(([other, cosine]) => ["token layer", other, "", "", cosine]),
  ];

  const mapTable = () => [
    ["word", "context", "line", "x", "y", "group"],
    ...map.occurrences.map(({ parts, line }, n) => [
      parts[1],
      parts.join(""),
      line,
      ...map.points[n],
      map.groups[n] + 1,
    ]),
  ];

  showSources();
  load();
  if (job) follow();
  return {
    root,
    leave: () => {
      left = true;
    },
  };
}
