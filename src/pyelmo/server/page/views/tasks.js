// Tasks: names, roles, sentiment, entailment, answers and coreference, drawn on the text.

import { latest } from "../api.js";
import { el, percent, svg } from "../dom.js";
import { TASKS, TASKS_KO } from "../examples.js";
import { tools } from "../export.js";
import { barList, barPicture, head, sentenceBox, textWidth } from "../parts.js";
import * as state from "../state.js";
import { t } from "../text.js";

export function mount(app) {
  const ask = latest();
  const tasks = () => app.setup.tasks;
  const chosen = () => tasks().find(({ name }) => name === state.get("task")) || tasks()[0];
  let data = null;
  const main = el("div", { class: "stack" });
  const root = el("div", {}, head("tasks"), main);
  const problem = el("p", { class: "problem", role: "status" });
  const results = el("section", { class: "panel", hidden: true });

  function showInputs() {
    if (!tasks().length) {
      main.replaceChildren(
        el(
          "section",
          { class: "panel" },
          el("p", {}, t("noTasks")),
          el("p", {}, el("code", {}, "elmo task train ner --data train.conll dev.conll --encoder en -o run")),
          el("p", {}, el("code", {}, "elmo serve en --task ner=run")),
        ),
      );
      return;
    }
    const { name, task, inputs, language } = chosen();
    const examples = (language.startsWith("ko") && TASKS_KO[task]) || TASKS[task] || [];
    if (!state.all("s").length) state.set({ s: examples });
    const select = el(
      "select",
      {
        onchange: () => {
          state.set({ task: select.value, s: null });
          results.hidden = true;
          showInputs();
          load();
        },
      },
      tasks().map((other) =>
        el("option", { value: other.name, selected: other.name === name }, `${other.name} · ${t(other.task)}`),
      ),
    );
    const boxes = inputs.map((input, number) =>
      sentenceBox(state.all("s")[number] || "", t(`input_${input}`), 3, (text) => {
        const texts = inputs.map((_, at) => state.all("s")[at] || "");
        texts[number] = text;
        state.set({ s: texts });
      }),
    );
    main.replaceChildren(
      el(
        "section",
        { class: "panel" },
        el("label", { class: "row" }, el("span", { class: "label" }, t("task")), select),
        boxes,
        el(
          "div",
          { class: "row" },
          el("button", { type: "button", class: "main-button", id: "run", onclick: load }, t("run")),
        ),
        problem,
      ),
      results,
    );
  }

  async function load() {
    if (!tasks().length) return;
    const { name, inputs } = chosen();
    const texts = inputs.map((_, number) => state.all("s")[number] || "");
    try {
      data = { texts, ...(await ask("/explore/task", { task: name, texts })) };
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    problem.textContent = "";
    results.hidden = false;
    const found = data.labels.length || data.rows.some(({ spans }) => spans.length);
    results.replaceChildren(
      el("div", { class: "row between" }, el("h2", {}, t(chosen().task)), tools(name, picture, table)),
      ...drawing(found),
      el("p", { class: "note" }, found && !data.labels.length ? t("taskNote") : ""),
    );
  }

  function drawing(found) {
    if (!found) return [el("p", { class: "note" }, t("nothingFound"))];
    if (!data.labels.length) return data.rows.map(drawRow);
    return [
      barList(data.labels.map(([label, share]) => ({ value: percent(share), share, text: el("b", {}, label) }))),
    ];
  }

  const labels = () => [...new Set(data.rows.flatMap(({ spans }) => spans.map(({ label }) => label)))].sort();
  const colour = (label) => labels().indexOf(label) % 6;

  // Spans may lie within each other (a mention within a mention), so they are drawn as nested marks.
  function nest(text, spans, start, end, predicate) {
    const children = [];
    let at = start;
    const plain = (to) => {
      if (to <= at) return;
      if (predicate && predicate[0] >= at && predicate[1] <= to) {
        children.push(
          text.slice(at, predicate[0]),
          el("span", { class: "predicate" }, text.slice(...predicate)),
          text.slice(predicate[1], to),
        );
      } else children.push(text.slice(at, to));
      at = to;
    };
    spans.forEach((span, number) => {
      if (span.start < at || span.end > end) return; // inside a span that is drawn already, or across its end
      plain(span.start);
      const inner = spans.slice(number + 1).filter((other) => other.start >= span.start && other.end <= span.end);
      children.push(
        el(
          "mark",
          { class: `mark k${colour(span.label)}`, title: percent(span.probability) },
          nest(text, inner, span.start, span.end, predicate),
          span.label ? el("small", {}, span.label) : null,
        ),
      );
      at = span.end;
    });
    plain(end);
    return children;
  }

  function drawRow({ spans, predicate }) {
    const text = data.texts[0];
    return el("p", { class: "drawn" }, nest(text, spans, 0, text.length, predicate));
  }

  // One line for each row: the words, with a coloured band and the label under each span.
  function picture() {
    if (data.labels.length) {
      return barPicture(data.texts.join(" / "), [
        {
          title: t(chosen().task),
          rows: data.labels.map(([label, share]) => ({ value: percent(share), share, label: ["", label, ""] })),
        },
      ]);
    }
    const text = data.texts[0].replaceAll("\n", " ");
    const x = (place) => 16 + textWidth(text.slice(0, place));
    const width = Math.ceil(x(text.length) + 60);
    return svg(
      "svg",
      { viewBox: `0 0 ${width} ${data.rows.length * 60 + 20}`, role: "img" },
      data.rows.map(({ spans, predicate }, row) => {
        const y = 34 + 60 * row;
        const letters = [...text].map((letter, at) =>
          svg(
            "text",
            { x: x(at), y, class: predicate && at >= predicate[0] && at < predicate[1] ? "strong" : "" },
            letter,
          ),
        );
        return svg(
          "g",
          {},
          letters,
          spans.map(({ start, end, label }) =>
            svg(
              "g",
              {},
              svg("rect", {
                x: x(start),
                y: y + 6,
                width: Math.max(3, x(end) - x(start) - 1),
                height: 4,
                rx: 2,
                class: `f${colour(label)}`,
              }),
              svg("text", { x: x(start), y: y + 24, class: "soft" }, label),
            ),
          ),
        );
      }),
    );
  }

  function table() {
    if (data.labels.length) return [["label", "probability"], ...data.labels];
    const rows = [["row", "predicate", "label", "text", "start", "end", "probability"]];
    data.rows.forEach(({ spans, predicate }, row) =>
      spans.forEach(({ start, end, label, probability }) =>
        rows.push([
          row + 1,
          predicate ? data.texts[0].slice(...predicate) : "",
          label,
          data.texts[0].slice(start, end),
          start,
          end,
          probability,
        ]),
      ),
    );
    return rows;
  }

  showInputs();
  load();
  return { root, leave: () => {} };
}
