// The mix: weights of the layers, the formula with its numbers, and the neighbours of the mixed vector.
// The server sends products of layers; with shares s, the product of two mixed vectors is s' G s.

import { latest } from "../api.js";
import { debounce, el } from "../dom.js";
import { CONTEXT } from "../examples.js";
import { tools } from "../export.js";
import {
  barList,
  barPicture,
  context,
  exampleRow,
  folded,
  head,
  keepFocus,
  marked,
  sentenceBox,
  tooMuch,
  wordPicker,
} from "../parts.js";
import * as state from "../state.js";
import { layerName, t } from "../text.js";
import { defaults } from "./context.js";

const SHOWN = 10;
const LIMIT = 6; // of a weight

export function mount(app) {
  const ask = latest();
  if (!state.all("s").length) state.set({ s: defaults(app).s });
  let data = null;
  const sentences = el("ul", { class: "sentences" });
  const problem = el("p", { class: "problem", role: "status" });
  const knobs = el("div", { class: "knobs", role: "group", "aria-label": t("weights") });
  const presets = el("div", { class: "row" });
  const chosen = el("p", {});
  const formula = el("p", { class: "formula" });
  const bar = el("div", { class: "share", role: "img" });
  const list = el("div", {});
  const mixing = el(
    "section",
    { class: "panel weights-area", hidden: true },
    el("h2", {}, t("weights")),
    chosen,
    knobs,
    presets,
    bar,
    formula,
    el("p", { class: "note" }, t("mixNote")),
  );
  const results = el(
    "section",
    { class: "panel near-area", hidden: true },
    el(
      "div",
      { class: "row between" },
      el("h2", {}, t("nearest")),
      tools(
        "mix",
        () => picture(),
        () => table(),
      ),
    ),
    list,
    el(
      "p",
      { class: "note" },
      el("i", { class: "where own" }),
      ` ${t("fromSentences")} `,
      el("i", { class: "where" }),
      ` ${t("fromBundled")}`,
    ),
  );
  const box = sentenceBox(
    state.all("s").join("\n"),
    t("sentences"),
    3,
    debounce((text) => {
      state.set({ s: text.split("\n").filter((line) => line.trim()), q: null });
      load();
    }),
  );
  const root = el(
    "div",
    {},
    head("mix"),
    el(
      "div",
      { class: "stack" },
      exampleRow(CONTEXT, app, (word, model) => {
        state.set({ s: CONTEXT[/[가-힣]/.test(word) ? "ko" : "en"][word].sentences, q: null, model });
        app.refresh();
      }),
      el(
        "div",
        { class: "mixing" },
        mixing,
        results,
        el(
          "section",
          { class: "panel" },
          el("p", { class: "note" }, t("mixChoose")),
          sentences,
          problem,
          folded(box, false),
        ),
      ),
    ),
  );

  async function load() {
    problem.textContent = tooMuch(state.all("s"), app.setup);
    if (problem.textContent) return;
    const query = Math.min(Math.max(Number(state.get("q", "0")) || 0, 0), Math.max(state.all("s").length - 1, 0));
    try {
      data = await ask("/explore/mix", { model: app.model(), sentences: state.all("s"), query });
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    problem.textContent = data.own ? "" : t("noWord");
    results.hidden = mixing.hidden = !data.own;
    keepFocus(sentences, () =>
      sentences.replaceChildren(
        ...data.sentences.map((sentence, number) =>
          el(
            "li",
            {},
            wordPicker(sentence, {
              label: t("pickIn", { n: number + 1 }),
              pressed: number === query ? sentence.positions.slice(0, 1) : [],
              number,
              pick: (_, start, end) => pick(number, start, end),
            }),
          ),
        ),
      ),
    );
    if (data.own) {
      makeKnobs();
      show();
    }
  }

  function pick(number, start, end) {
    const lines = state.all("s");
    lines[number] = marked(data.sentences[number].text, start, end);
    state.set({ s: lines, q: String(number) });
    box.querySelector("textarea").value = lines.join("\n");
    load();
  }

  const count = () => data.own.length;
  const weights = () => {
    const given = state.get("w").split(",").map(Number);
    return data.own.map((_, layer) =>
      Number.isFinite(given[layer]) ? Math.min(Math.max(given[layer], -LIMIT), LIMIT) : 0,
    );
  };
  const gamma = () => Math.min(Math.max(Number(state.get("g", "1")) || 1, 0.1), 5);

  function knob(label, value, min, max, step, change) {
    const output = el("output", {}, value.toFixed(1));
    const input = el("input", {
      type: "range",
      min,
      max,
      step,
      "aria-label": label,
      oninput: () => {
        output.textContent = Number(input.value).toFixed(1);
        change(input.value);
        show();
      },
    });
    input.value = String(value);
    return el("label", { class: "knob" }, el("span", {}, label), input, output);
  }

  function makeKnobs() {
    const now = weights();
    knobs.replaceChildren(
      ...now.map((value, layer) =>
        knob(layerName(layer, count()), value, -LIMIT, LIMIT, 0.1, (text) => {
          const next = weights();
          next[layer] = Number(text);
          state.set({ w: next.join(",") });
        }),
      ),
      knob(t("gamma"), gamma(), 0.1, 5, 0.1, (text) => state.set({ g: text })),
    );
    const preset = (name, values) =>
      el(
        "button",
        {
          type: "button",
          class: "chip",
          onclick: () => {
            state.set({ w: values.join(",") });
            makeKnobs();
            show();
          },
        },
        name,
      );
    presets.replaceChildren(
      el("span", { class: "label" }, t("presets")),
      ...now.map((_, layer) =>
        preset(
          layerName(layer, count()),
          now.map((__, other) => (other === layer ? LIMIT : -LIMIT)),
        ),
      ),
      preset(
        t("average"),
        now.map(() => 0),
      ),
    );
  }

  const product = (shares, gram) =>
    gram.reduce((sum, row, i) => sum + shares[i] * row.reduce((part, value, j) => part + shares[j] * value, 0), 0);

  function softmax(values) {
    const powers = values.map((value) => Math.exp(value - Math.max(...values)));
    const total = powers.reduce((sum, value) => sum + value, 0);
    return powers.map((value) => value / total);
  }

  function nearest() {
    const shares = softmax(weights());
    const own = product(shares, data.own);
    const seen = new Set(); // words; of each only the nearest occurrence is shown
    return data.words
      .map((word) => ({
        ...word,
        cosine: product(shares, word.cross) / Math.sqrt(Math.max(1e-12, own * product(shares, word.own))),
      }))
      .sort((a, b) => b.cosine - a.cosine)
      .filter(({ text: [, word] }) => !seen.has(word.toLowerCase()) && seen.add(word.toLowerCase()))
      .slice(0, SHOWN);
  }

  function show() {
    chosen.replaceChildren(...context(data.word));
    const shares = softmax(weights());
    const length = gamma() * Math.sqrt(product(shares, data.own));
    formula.replaceChildren(
      "ELMo = γ Σ sⱼ hⱼ = ",
      `${gamma().toFixed(1)} × (`,
      ...shares.flatMap((share, layer) => [
        layer ? " + " : "",
        el("b", { class: `m${layer % 6}` }, `${share.toFixed(2)} h`, el("sub", {}, String(layer))),
      ]),
      ")",
      el("br"),
      el("span", { class: "note" }, `${t("length")}: ${length.toFixed(2)}`),
    );
    bar.setAttribute("aria-label", `${t("shares")}: ${shares.map((share) => share.toFixed(2)).join(", ")}`);
    bar.replaceChildren(
      ...shares.map((share, layer) => {
        const part = el("span", { class: `m${layer % 6}` });
        part.style.width = `${100 * share}%`;
        return part;
      }),
    );
    list.replaceChildren(
      barList(
        nearest().map(({ cosine, text, bundled }) => ({
          value: cosine.toFixed(2),
          share: cosine,
          text: context(text),
          own: !bundled,
        })),
      ),
    );
  }

  function picture() {
    const rows = nearest().map(({ cosine, text }) => ({ value: cosine.toFixed(2), share: cosine, label: text }));
    const shares = softmax(weights())
      .map((share, layer) => `${share.toFixed(2)} h${layer}`)
      .join(" + ");
    return barPicture(data.word.join(""), [{ title: `${gamma().toFixed(1)} × (${shares})`, rows }]);
  }

  const table = () => [
    ["word", "context", "cosine"],
    ...nearest().map(({ cosine, text }) => [text[1], text.join(""), cosine]),
  ];

  load();
  return { root, leave: () => {} };
}
