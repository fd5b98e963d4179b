// Neighbours: the occurrences of a text nearest to a word in its sentence, and a map of all its occurrences.

import { ask } from "../api.js";
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
  unmarked,
  wordPicker,
} from "../parts.js";
import * as state from "../state.js";
import { t } from "../text.js";

const POLL = 400; // milliseconds between two looks at the progress

export function mount(app) {
  let data = null,
    map = null,
    left = false;
  const indexes = () => app.setup.indexes;
  const chosen = () =>
    indexes().find(({ name }) => name === state.get("index")) ||
    indexes().findLast(({ language }) => language === app.facts().language);
  if (!state.get("s")) {
    const language = (chosen()?.language || app.language()).startsWith("ko") ? "ko" : "en";
    state.set({ s: NEIGHBOURS[language][0] });
  }
  const problem = el("p", { class: "problem", role: "status" });
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
  const root = el(
    "div",
    {},
    head("neighbours"),
    el(
      "div",
      { class: "stack" },
      sources,
      exampleRow(
        NEIGHBOURS,
        app,
        (sentence, model) => {
          state.set({ s: sentence, model, index: null });
          app.refresh();
        },
        unmarked,
      ),
      query,
      lists,
      mapPanel,
    ),
  );

  function showSources(message = "") {
    const file = el("input", { type: "file", accept: ".txt,text/plain" });
    const said = el("p", { class: "note", role: "status" }, message);
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
        chosen() ? null : el("p", {}, t("noIndex")),
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
              el("button", { type: "button", class: "tool", onclick: () => read(file, said) }, t("build")),
              app.language() === "other"
                ? null
                : el(
                    "button",
                    {
                      type: "button",
                      class: "main-button",
                      id: "example-text",
                      onclick: () => build(null, t("exampleTitle"), said),
                    },
                    t("exampleText"),
                  ),
            )
          : el("p", { class: "note" }, t("uploadsOff")),
        said,
      ].filter(Boolean),
    );
  }

  async function read(file, said) {
    const [text] = file.files;
    if (!text) said.textContent = t("chooseFile");
    else build(await text.text(), text.name, said);
  }

  async function build(text, title, said) {
    const bar = el("progress", { max: 1, value: 0, "aria-label": title });
    try {
      let job = await ask("/explore/index", { model: app.model(), text, title }, { fresh: true });
      while (job.state === "building" && !left) {
        said.replaceChildren(t("building", { title, done: job.done, total: job.total || "…" }), bar);
        bar.max = job.total || 1;
        bar.value = job.done;
        await new Promise((resolve) => {
          setTimeout(resolve, POLL);
        });
        job = await ask(`/explore/index/${job.name}`, undefined, { fresh: true });
      }
      if (left) return;
      if (job.state === "failed") {
        said.textContent = job.error;
        return;
      }
      await app.loadSetup();
      state.set({ index: job.name });
      showSources(t("ready", { title }));
      load();
    } catch (error) {
      said.textContent = error.message;
    }
  }

  async function load() {
    query.hidden = !chosen();
    if (!chosen()) return;
    const index = chosen().name;
    try {
      data = await ask("/explore/neighbours", { index, sentence: state.get("s") });
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
      map = await ask("/explore/map", { index, word: word() });
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
        t("mapNote", { shown: `${Math.round(100 * map.shown)} %` }),
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
  return {
    root,
    leave: () => {
      left = true;
    },
  };
}
