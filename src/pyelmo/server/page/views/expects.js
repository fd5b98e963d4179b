// What the model expects: each word coloured by its probability in both directions, and the likeliest words for a gap.

import { latest } from "../api.js";
import { debounce, el, percent, svg } from "../dom.js";
import { EXPECTS } from "../examples.js";
import { tools } from "../export.js";
import { barList, exampleRow, head, keepFocus, moveFocus, sentenceBox, textWidth, tooMuch, unmarked } from "../parts.js";
import * as state from "../state.js";
import { t } from "../text.js";

const ARROWS = { forward: "→", backward: "←" };
const STEPS = [0.2, 0.03, 0.003, 0.0003]; // probabilities between the five colours

export function mount(app) {
  const ask = latest();
  if (!state.get("s")) {
    const language = app.language() === "ko" ? "ko" : "en";
    state.set({ s: EXPECTS[language][0], w: language === "ko" ? "2" : "5" }); // the coffee
  }
  let data = null;
  const problem = el("p", { class: "problem", role: "status" });
  const readings = el("div", {});
  const unknownNote = el("span", { hidden: true }, `* ${t("outOf")}`);
  const guesses = el("section", { class: "panel", hidden: true, "aria-live": "polite" });
  const results = el(
    "section",
    { class: "panel", hidden: true },
    el("div", { class: "row between" }, el("h2", {}, t("expectsPick")), tools("expects", picture, table)),
    readings,
    el(
      "p",
      { class: "key" },
      [0, 1, 2, 3, 4].map((step) => el("i", { class: `p${step}` })),
      el("span", {}, t("surpriseKey")),
      el("span", {}, `→ ${t("forward")}`),
      el("span", {}, `← ${t("backward")}`),
      unknownNote,
    ),
  );
  const box = sentenceBox(
    state.get("s"),
    t("sentence"),
    2,
    debounce((text) => {
      state.set({ s: text.replaceAll("\n", " "), w: null });
      load();
    }),
  );
  const root = el(
    "div",
    {},
    head("expects"),
    el(
      "div",
      { class: "stack" },
      exampleRow(EXPECTS, app, (sentence, model) => {
        state.set({ s: sentence, w: null, model });
        app.refresh();
      }),
      el("section", { class: "panel" }, box, problem),
      results,
      guesses,
      el("p", { class: "note" }, t("expectsNote")),
    ),
  );

  async function load() {
    if (!app.facts().predicts) {
      problem.textContent = t("noSoftmax");
      return;
    }
    const gap = state.get("w") === "" ? null : Number(state.get("w"));
    const sentence = unmarked(state.get("s"));
    problem.textContent = tooMuch([sentence], app.setup);
    if (problem.textContent) return;
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
    keepFocus(readings, () => readings.replaceChildren(reading()));
    unknownNote.hidden = data.scores.every(({ known }) => known);
    showGuesses(gap);
  }

  const directions = () => ["forward", "backward"].filter((name) => data.scores.some((score) => score[name] !== null));
  const word = (position) => {
    const [start, end, token] = data.sentence.tokens[position];
    const before = data.sentence.tokens[position - 1];
    return before && before[1] > start ? token : data.sentence.text.slice(start, end);
  };
  const step = (share) => STEPS.filter((limit) => share < limit).length;

  const said = (score, share) => (score.known ? percent(share) : `${percent(share)} *`);

  // One button for each word: the word, and a coloured band for each direction.
  function reading() {
    const buttons = data.scores.map((score, position) =>
      el(
        "button",
        {
          type: "button",
          class: "surprise",
          tabindex: position === Number(state.get("w") || 0) ? "0" : "-1",
          "data-at": position,
          "aria-pressed": String(state.get("w") === String(position)),
          title: directions()
            .map((name) => `${ARROWS[name]} ln p = ${score[name].toFixed(2)}`)
            .join("  "),
          onclick: () => {
            state.set({ w: String(position) });
            load();
          },
        },
        el("b", {}, word(position)),
        directions().map((name) => {
          const share = Math.exp(score[name]);
          return el("small", { class: `p${step(share)}` }, `${ARROWS[name]} ${said(score, share)}`);
        }),
      ),
    );
    return el(
      "div",
      {
        class: "reading",
        role: "group",
        "aria-label": t("expectsPick"),
        "data-sentence": 0,
        onkeydown: (event) => moveFocus(event, buttons),
      },
      buttons,
    );
  }

  function showGuesses(gap) {
    const names = Object.keys(data.guesses);
    guesses.hidden = !names.length;
    if (!names.length) return;
    guesses.replaceChildren(
      el("h2", {}, t("gapTitle", { word: word(gap) })),
      el(
        "div",
        { class: "thirds" },
        names.map((name) => {
          const rows = data.guesses[name];
          const most = rows[0]?.[1] || 1;
          return el(
            "div",
            {},
            el("p", { class: "note" }, t(name)),
            barList(
              rows.map(([guess, share]) => ({
                value: percent(share),
                share: share / most,
                text: el("span", {}, guess),
                own: guess === data.sentence.tokens[gap][2],
              })),
            ),
          );
        }),
      ),
    );
  }

  // The words with their bands, as wide as they need.
  function picture() {
    const widths = data.scores.map((_, position) => Math.max(textWidth(word(position)) + 20, 74));
    const total = widths.reduce((sum, width) => sum + width + 6, 0) + 26;
    const names = directions();
    const palette = getComputedStyle(document.documentElement);
    let x = 16;
    const boxes = data.scores.map((score, position) => {
      const left = x,
        width = widths[position];
      x += width + 6;
      return svg(
        "g",
        {},
        svg("text", { x: left + width / 2, y: 32, "text-anchor": "middle", class: "strong" }, word(position)),
        names.map((name, line) => {
          const share = Math.exp(score[name]),
            y = 42 + 26 * line;
          const band = svg("rect", { x: left, y, width, height: 24, rx: 5 });
          band.style.fill = palette.getPropertyValue(step(share) ? `--s${step(share)}` : "--faint").trim();
          const text = svg(
            "text",
            { x: left + width / 2, y: y + 16, "text-anchor": "middle" },
            `${ARROWS[name]} ${said(score, share)}`,
          );
          text.style.fill = palette.getPropertyValue(step(share) ? "--on-surprise" : "--ink").trim();
          return svg("g", {}, band, text);
        }),
      );
    });
    const legend = names.map((name) => `${ARROWS[name]} ${t(name)}`).join(" · ");
    const y = 62 + 26 * names.length;
    return svg(
      "svg",
      { viewBox: `0 0 ${Math.max(total, textWidth(legend) + 40)} ${y + 14}`, role: "img" },
      boxes,
      svg("text", { x: 16, y, class: "soft" }, legend),
    );
  }

  function table() {
    const rows = [["position", "word", "known", "ln p forward", "ln p backward"]];
    data.scores.forEach(({ forward, backward, known }, position) =>
      rows.push([position, word(position), known, forward ?? "", backward ?? ""]),
    );
    for (const [name, guesses_] of Object.entries(data.guesses)) {
      guesses_.forEach(([guess, share], rank) =>
        rows.push([`gap ${state.get("w")}, ${name}, ${rank + 1}`, guess, "", share, ""]),
      );
    }
    return rows;
  }

  load();
  return { root, leave: () => {} };
}
