// A word in context: one point in the token layer, one for each sentence above it.

import { latest } from "../api.js";
import { announce, debounce, el, heat } from "../dom.js";
import { CONTEXT } from "../examples.js";
import { tools } from "../export.js";
import { exampleRow, folded, head, keepFocus, marked, sentenceBox, tooMuch, unmarked, wordPicker } from "../parts.js";
import { Scatter } from "../scatter.js";
import * as state from "../state.js";
import { layerName, t } from "../text.js";

const SENSES = 5;

export function defaults(app) {
  const example = app.language() === "ko" ? CONTEXT.ko.배 : CONTEXT.en.bank;
  return { s: example.sentences, c: example.senses };
}

export function mount(app) {
  const ask = latest();
  if (!state.all("s").length) state.set(defaults(app));
  let data = null,
    scatter = null,
    playing = null;
  const sentences = el("ul", { class: "sentences" });
  const drawing = el("div", { class: "drawing" });
  const side = el("div", { class: "panel scroll cosines-area", tabindex: "0", role: "region", hidden: true });
  const places = el("section", { class: "panel scroll places-area", tabindex: "0", "aria-label": t("inItsPlace"), hidden: true });
  const verdict = el("p", { class: "verdict" });
  const note = el("p", { class: "note" });
  const buttons = el("div", { class: "layers" });
  const slider = el("input", {
    type: "range",
    min: "0",
    step: "0.01",
    "aria-label": t("layer"),
    oninput: () => {
      stop();
      go(Number(slider.value));
    },
    onkeydown: arrows,
  });
  const play = el("button", { type: "button", class: "tool", onclick: () => (playing ? stop() : start()) }, t("play"));
  const problem = el("p", { class: "problem", role: "status" });
  const figure = el(
    "figure",
    { class: "panel map-area", hidden: true },
    el(
      "div",
      { class: "row between" },
      el("h2", {}, t("contextMap")),
      el(
        "div",
        { class: "row" },
        play,
        tools("context", () => scatter.node, table),
      ),
    ),
    drawing,
    slider,
    buttons,
    el("figcaption", {}, verdict, note),
  );
  const box = sentenceBox(
    state.all("s").join("\n"),
    t("sentences"),
    Math.min(10, Math.max(3, state.all("s").length)),
    debounce((text) => {
      state.set({ s: text.split("\n").filter((line) => line.trim()) });
      load();
    }),
  );
  const root = el(
    "div",
    {},
    head("context"),
    el(
      "div",
      { class: "stack" },
      exampleRow(CONTEXT, app, (word, model) => {
        const example = CONTEXT[/[가-힣]/.test(word) ? "ko" : "en"][word];
        state.set({ s: example.sentences, c: example.senses, layer: null, model });
        app.refresh();
      }),
      el(
        "div",
        { class: "explain" },
        el(
          "section",
          { class: "panel words-area" },
          el("p", { class: "note" }, t("pickWord"), ". ", t("senseHelp")),
          sentences,
          problem,
          folded(box, !state.all("s").length),
        ),
        figure,
        side,
        places,
      ),
    ),
  );

  async function load() {
    problem.textContent = tooMuch(state.all("s"), app.setup);
    if (problem.textContent) return;
    try {
      data = await ask("/explore/context", { model: app.model(), sentences: state.all("s") });
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    problem.textContent = "";
    showSentences();
    showFigure();
  }

  const sense = (number) => Math.min(SENSES - 1, Number(state.get("c")[number] || 0) || 0);

  function showSentences() {
    const shown = new Map();
    data.occurrences.forEach(({ sentence }, n) => shown.set(sentence, [...(shown.get(sentence) || []), n + 1]));
    keepFocus(sentences, () =>
      sentences.replaceChildren(
        ...data.sentences.map((sentence, number) => {
          const numbers = shown.get(number);
          const name = numbers ? numbers.join(",") : "–";
          const badge = el(
            "button",
            {
              type: "button",
              class: `sense c${sense(number)}`,
              "data-at": "sense",
              disabled: !numbers,
              "aria-label": t("sense", { n: name, sense: sense(number) + 1 }),
              onclick: () => setSense(number, (sense(number) + 1) % SENSES),
            },
            name,
          );
          return el(
            "li",
            { "data-sentence": number },
            badge,
            wordPicker(sentence, {
              label: t("pickIn", { n: number + 1 }),
              pressed: sentence.positions,
              number,
              pick: (_, start, end) => pick(number, start, end),
            }),
          );
        }),
      ),
    );
  }

  function setSense(number, value) {
    const senses = [...state.get("c").padEnd(data.sentences.length, "0")];
    senses[number] = String(value);
    state.set({ c: senses.join("") });
    showSentences();
    showFigure();
  }

  function pick(number, start, end) {
    const lines = state.all("s");
    const word = data.sentences[number].text.slice(start, end).toLowerCase();
    const same = data.sentences.map((sentence) =>
      sentence.tokens.find(([a, b]) => sentence.text.slice(a, b).toLowerCase() === word),
    );
    state.set({
      s: lines.map((line, at) => {
        const { text } = data.sentences[at];
        if (at === number) return marked(text, start, end);
        return same[at] ? marked(text, same[at][0], same[at][1]) : unmarked(line);
      }),
    });
    box.querySelector("textarea").value = state.all("s").join("\n");
    load();
  }

  function showFigure() {
    figure.hidden = side.hidden = data.occurrences.length < 2;
    places.hidden = figure.hidden || !data.substitutes;
    if (figure.hidden) {
      stop();
      problem.textContent = data.occurrences.length ? t("tooFew") : t("noWord");
      return;
    }
    const senses = data.occurrences.map(({ sentence }) => sense(sentence));
    scatter = new Scatter(
      data.occurrences,
      data.layers.map(({ points }) => points),
      senses,
      t("staticVector"),
    );
    drawing.replaceChildren(scatter.node);
    if (data.substitutes) showSubstitutes(data.substitutes, senses);
    const top = data.layers.length - 1;
    slider.max = String(top);
    buttons.replaceChildren(
      ...data.layers.map((_, layer) =>
        el(
          "button",
          { type: "button", class: "chip", "data-layer": layer, onclick: () => glide(layer) },
          layerName(layer, data.layers.length),
        ),
      ),
    );
    const wanted = Number(state.get("layer", String(top)));
    scatter.resize(drawing.clientWidth || 640);
    go(Number.isFinite(wanted) ? Math.min(Math.max(wanted, 0), top) : top);
  }

  // Show the points at a place between two layers, and the cosines of the nearest layer.
  function go(at, remember = true) {
    const count = data.layers.length,
      layer = Math.round(at),
      name = layerName(layer, count);
    slider.value = String(at);
    const exact = Math.abs(at - layer) < 0.005;
    slider.setAttribute("aria-valuetext", exact ? name : t("between", { a: Math.floor(at), b: Math.ceil(at) }));
    scatter.draw(at, playing === null ? 1 : 0.25);
    scatter.node.setAttribute(
      "aria-label",
      t("occurrences", { count: data.occurrences.length, word: data.occurrences[0].parts[1], layer: name }),
    );
    buttons
      .querySelectorAll("button")
      .forEach((button, number) => button.setAttribute("aria-pressed", String(exact && number === layer)));
    if (side.dataset.layer !== `${layer} ${state.get("c")} ${state.all("s").join()}`) showMatrix(layer, name);
    if (remember) state.set({ layer: exact ? String(layer) : at.toFixed(2) });
  }

  function showMatrix(layer, name) {
    side.dataset.layer = `${layer} ${state.get("c")} ${state.all("s").join()}`;
    const { cosines, shown } = data.layers[layer];
    const senses = data.occurrences.map(({ sentence }) => sense(sentence));
    side.setAttribute("aria-label", t("matrix", { layer: name }));
    side.replaceChildren(matrix(t("matrix", { layer: name }), cosines, senses));
    note.textContent = t("contextNote", { shown: t("percent", { n: Math.round(100 * shown) }) });
    verdict.replaceChildren(...means(cosines, senses));
    if (!playing) announce(verdict.textContent);
  }

  // The words that could stand in the place of each occurrence, and how alike these places are.
  function showSubstitutes({ words, cosines }, senses) {
    places.replaceChildren(
      el("h2", {}, t("inItsPlace")),
      el("p", { class: "note" }, t("inItsPlaceNote")),
      el(
        "div",
        { class: "beside" },
        el(
          "ul",
          { class: "sentences" },
          words.map((each, n) =>
            el("li", {}, el("span", { class: `sense c${senses[n]}` }, String(n + 1)), el("span", {}, each.join(", "))),
          ),
        ),
        el(
          "div",
          {},
          matrix(t("substituteMatrix"), cosines, senses),
          el("p", { class: "verdict" }, ...means(cosines, senses)),
        ),
      ),
    );
  }

  function matrix(caption, cosines, senses) {
    const header = (n, scope) => el("th", { scope, class: `c${senses[n]}` }, String(n + 1));
    return el(
      "table",
      { class: "matrix" },
      el("caption", {}, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("td", { class: "corner" }),
          senses.map((_, n) => header(n, "col")),
        ),
      ),
      el(
        "tbody",
        {},
        cosines.map((row, n) => el("tr", {}, header(n, "row"), row.map(cell))),
      ),
    );
  }

  function cell(value, _, row) {
    const text = row.length > 6 ? value.toFixed(2).replace(/^0|(?<=1)\.00$/, "") : value.toFixed(2);
    const node = el("td", {}, text);
    const { ground, ink } = heat(Math.min(1, Math.max(0, value)) ** 2);
    node.style.background = ground;
    node.style.color = ink;
    return node;
  }

  function means(cosines, senses) {
    const pairs = { true: [], false: [] };
    cosines.forEach((row, a) => row.forEach((value, b) => a < b && pairs[senses[a] === senses[b]].push(value)));
    const mean = (values) => (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(2);
    const parts = [
      pairs.true.length && [t("sameSense"), pairs.true],
      pairs.false.length && [t("otherSense"), pairs.false],
    ].filter(Boolean);
    return [
      `${t("meanCosine")} `,
      ...parts.flatMap(([name, values], at) => [at ? " · " : "", `${name} `, el("b", {}, mean(values))]),
    ];
  }

  function arrows(event) {
    const step = { ArrowRight: 0.25, ArrowUp: 0.25, ArrowLeft: -0.25, ArrowDown: -0.25 }[event.key];
    if (!step) return;
    event.preventDefault();
    stop();
    go(Math.min(Math.max(Math.round(4 * (Number(slider.value) + step)) / 4, 0), data.layers.length - 1));
  }

  function glide(goal, seconds = 0.9, from = Number(slider.value)) {
    stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      go(goal);
      return;
    }
    const begin = performance.now();
    play.textContent = t("stop");
    const frame = (now) => {
      const share = Math.min(1, Math.max(0, (now - begin) / (1000 * seconds)));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
      if (share < 1) {
        playing = requestAnimationFrame(frame);
        go(from + (goal - from) * eased, false);
        return;
      }
      stop();
      go(goal);
    };
    playing = requestAnimationFrame(frame);
  }

  const start = () => glide(data.layers.length - 1, 1.6 * (data.layers.length - 1), 0);

  function stop() {
    if (playing !== null) cancelAnimationFrame(playing);
    playing = null;
    play.textContent = t("play");
  }

  function table() {
    const rows = [
      ["layer", "occurrence", "sentence", "word", "x", "y", ...data.occurrences.map((_, n) => `cosine with ${n + 1}`)],
    ];
    const { words = [], cosines: alike = [] } = data.substitutes || {};
    data.layers.forEach(({ points, cosines }, layer) =>
      data.occurrences.forEach(({ sentence, parts }, n) => {
        rows.push([layer, n + 1, data.sentences[sentence].text, parts[1], ...points[n], ...cosines[n]]);
      }),
    );
    words.forEach((each, n) => {
      const { sentence } = data.occurrences[n];
      rows.push([t("inItsPlace"), n + 1, data.sentences[sentence].text, each.join(" "), "", "", ...alike[n]]);
    });
    return rows;
  }

  const observer = new ResizeObserver(() => {
    if (scatter && drawing.clientWidth && Math.abs(scatter.width - drawing.clientWidth) > 8)
      scatter.resize(drawing.clientWidth);
  });
  observer.observe(drawing);
  load();
  return {
    root,
    leave: () => {
      stop();
      observer.disconnect();
    },
  };
}
