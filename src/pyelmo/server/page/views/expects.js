// What the model expects: each word coloured by its probability in both directions, and the likeliest words for a gap.

import { ask } from "../api.js";
import { debounce, el, percent, svg } from "../dom.js";
import { EXPECTS } from "../examples.js";
import { tools } from "../export.js";
import { barList, exampleRow, head, keepFocus, moveFocus, sentenceBox, textWidth, unmarked } from "../parts.js";
import * as state from "../state.js";
import { t } from "../text.js";

const STEPS = [0.2, 0.03, 0.003, 0.0003]; // probabilities between the five colours

export function mount(app) {
  if (!state.get("s")) {
    const language = app.language() === "ko" ? "ko" : "en";
    state.set({ s: EXPECTS[language][0], w: language === "ko" ? "2" : "5" }); // the coffee
  }
  let data = null;
  const problem = el("p", { class: "problem", role: "status" });
  const readings = el("div", { class: "stack" });
  const guesses = el("section", { class: "panel", hidden: true, "aria-live": "polite" });
  const results = el("section", { class: "panel", hidden: true }, el("div", { class: "row between" },
    el("h2", {}, t("expectsPick")), tools("expects", picture, table)), readings,
  el("p", { class: "key" }, [0, 1, 2, 3, 4].map((step) => el("i", { class: `p${step}` })), el("span", {}, t("surpriseKey"))));
  const box = sentenceBox(state.get("s"), t("sentence"), 2, debounce((text) => {
    state.set({ s: text.replaceAll("\n", " "), w: null });
    load();
  }));
  const root = el("div", {}, head("expects"), el("div", { class: "stack" },
    exampleRow(EXPECTS, app, (sentence, model) => {
      state.set({ s: sentence, w: null, model });
      app.refresh();
    }), el("section", { class: "panel" }, box, problem), results, guesses, el("p", { class: "note" }, t("expectsNote"))));

  async function load() {
    if (!app.facts().predicts) {
      problem.textContent = t("noSoftmax");
      return;
    }
    const gap = state.get("w") === "" ? null : Number(state.get("w"));
    const sentence = unmarked(state.get("s"));
    try {
      data = await ask("/explore/expects", { model: app.model(), sentence, gap: Number.isInteger(gap) ? gap : null });
    } catch (error) {
      if (error.status === 400 && gap !== null) {
        state.set({ w: null });
        load();
        return;
      }
      problem.textContent = error.message;
      return;
    }
    problem.textContent = "";
    results.hidden = !data.scores.length;
    keepFocus(readings, () => readings.replaceChildren(...directions().map(reading)));
    showGuesses(gap);
  }

  const directions = () => ["forward", "backward"].filter((name) => data.scores.some((score) => score[name] !== null));
  const word = (position) => {
    const [start, end, token] = data.sentence.tokens[position];
    const before = data.sentence.tokens[position - 1];
    return before && before[1] > start ? token : data.sentence.text.slice(start, end);
  };
  const step = (share) => STEPS.filter((limit) => share < limit).length;

  function reading(direction) {
    const buttons = data.scores.map((score, position) => {
      const share = Math.exp(score[direction]);
      const name = word(position);
      const text = score.known ? percent(share) : t("outOf");
      return el("button", {
        type: "button", class: `surprise p${step(share)}`, tabindex: position ? "-1" : "0", "data-at": position,
        "aria-pressed": String(state.get("w") === String(position)), title: `ln p = ${score[direction].toFixed(2)}`,
        onclick: () => { state.set({ w: String(position) }); load(); },
      }, name, el("small", {}, text));
    });
    return el("div", { class: "direction" }, el("p", { class: "note" }, direction === "forward" ? "→ " : "← ", t(direction)),
      el("div", { class: "reading", role: "group", "aria-label": t(direction), "data-sentence": direction, onkeydown: (event) => moveFocus(event, buttons) }, buttons));
  }

  function showGuesses(gap) {
    const names = Object.keys(data.guesses);
    guesses.hidden = !names.length;
    if (!names.length) return;
    guesses.replaceChildren(el("h2", {}, t("gapTitle", { word: word(gap) })), el("div", { class: "thirds" }, names.map((name) => {
      const rows = data.guesses[name];
      const most = rows[0]?.[1] || 1;
      return el("div", {}, el("p", { class: "note" }, t(name)), barList(rows.map(([guess, share]) => ({
        value: percent(share), share: share / most, text: el("span", {}, guess), own: guess === data.sentence.tokens[gap][2],
      }))));
    })));
  }

  // Two lines of coloured words, as wide as they need.
  function picture() {
    const widths = data.scores.map((_, position) => Math.max(textWidth(word(position)) + 20, 62));
    const total = widths.reduce((sum, width) => sum + width + 6, 0) + 26;
    const names = directions();
    return svg("svg", { viewBox: `0 0 ${total} ${30 + 88 * names.length}`, role: "img" }, names.map((direction, line) => {
      let x = 16;
      const y = 16 + 88 * line;
      return svg("g", {}, svg("text", { x, y: y + 12, class: "soft" }, `${direction === "forward" ? "→" : "←"} ${t(direction)}`),
        data.scores.map((score, position) => {
          const share = Math.exp(score[direction]), width = widths[position], left = x;
          x += width + 6;
          const palette = getComputedStyle(document.documentElement);
          const ground = palette.getPropertyValue(step(share) ? `--s${step(share)}` : "--faint").trim();
          const ink = palette.getPropertyValue(step(share) ? "--on-surprise" : "--ink").trim();
          const box = svg("rect", { x: left, y: y + 22, width, height: 46, rx: 7 });
          box.style.fill = ground;
          const texts = [svg("text", { x: left + width / 2, y: y + 42, "text-anchor": "middle", class: "strong" }, word(position)),
            svg("text", { x: left + width / 2, y: y + 60, "text-anchor": "middle" }, score.known ? percent(share) : "–")];
          texts.forEach((text) => { text.style.fill = ink; });
          return svg("g", {}, box, texts);
        }));
    }));
  }

  function table() {
    const rows = [["position", "word", "known", "ln p forward", "ln p backward"]];
    data.scores.forEach(({ forward, backward, known }, position) => rows.push([position, word(position), known, forward ?? "", backward ?? ""]));
    for (const [name, guesses_] of Object.entries(data.guesses)) {
      guesses_.forEach(([guess, share], rank) => rows.push([`gap ${state.get("w")}, ${name}, ${rank + 1}`, guess, "", share, ""]));
    }
    return rows;
  }

  load();
  return { root, leave: () => {} };
}
