// Unknown and misspelt words: the nearest known words by layer.

import { latest } from "../api.js";
import { debounce, el } from "../dom.js";
import { UNKNOWN } from "../examples.js";
import { tools } from "../export.js";
import {
  barList,
  barPicture,
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
import { layerName, t } from "../text.js";

export function mount(app) {
  const ask = latest();
  if (!state.get("s")) state.set({ s: UNKNOWN[app.language() === "ko" ? "ko" : "en"][0] });
  let data = null;
  const problem = el("p", { class: "problem", role: "status" });
  const picker = el("div", {});
  const columns = el("div", { class: "thirds" });
  const said = el("h2", {});
  const results = el(
    "section",
    { class: "panel", hidden: true },
    el(
      "div",
      { class: "row between" },
      said,
      tools(
        "unknown",
        () => picture(),
        () => table(),
      ),
    ),
    columns,
  );
  const note = el("p", { class: "note" });
  const box = sentenceBox(
    state.get("s"),
    t("unknownPick"),
    2,
    debounce((text) => {
      state.set({ s: text.replaceAll("\n", " ") });
      load();
    }),
  );
  const root = el(
    "div",
    {},
    head("unknown"),
    el(
      "div",
      { class: "stack" },
      exampleRow(
        UNKNOWN,
        app,
        (sentence, model) => {
          state.set({ s: sentence, model });
          app.refresh();
        },
        unmarked,
      ),
      el("section", { class: "panel" }, box, picker, problem),
      results,
      note,
    ),
  );

  async function load() {
    if (!app.facts().knows) {
      problem.textContent = t("noVocabulary");
      return;
    }
    problem.textContent = tooMuch([state.get("s")], app.setup);
    if (problem.textContent) return;
    try {
      data = await ask("/explore/unknown", { model: app.model(), sentence: state.get("s") });
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    problem.textContent = data.layers.length ? "" : t("noWord");
    results.hidden = !data.layers.length;
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
    if (!data.layers.length) return;
    said.textContent = t(data.is_known ? "isKnown" : "isUnknown", {
      word: word(),
      count: data.vocabulary.toLocaleString(),
    });
    note.textContent = t("unknownNote", { count: data.candidates });
    columns.replaceChildren(
      ...data.layers.map((rows, layer) =>
        el(
          "div",
          {},
          el("p", { class: "note" }, layerName(layer, data.layers.length)),
          barList(
            rows.map(([other, cosine]) => ({ value: cosine.toFixed(2), share: cosine, text: el("span", {}, other) })),
          ),
        ),
      ),
    );
  }

  const word = () => {
    const [start, end] = data.sentence.tokens[data.sentence.positions[0]];
    return data.sentence.text.slice(start, end);
  };

  const picture = () =>
    barPicture(
      data.sentence.text,
      data.layers.map((rows, layer) => ({
        title: layerName(layer, data.layers.length),
        rows: rows.map(([other, cosine]) => ({ value: cosine.toFixed(2), share: cosine, label: ["", other, ""] })),
      })),
    );

  const table = () => [
    ["word", "layer", "rank", "known word", "cosine"],
    ...data.layers.flatMap((rows, layer) =>
      rows.map(([other, cosine], rank) => [word(), layer, rank + 1, other, cosine]),
    ),
  ];

  load();
  return { root, leave: () => {} };
}
