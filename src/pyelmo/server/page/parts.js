// Parts that several views share: examples, words to click, lists with bars, and pictures of lists.

import { el, svg } from "./dom.js";
import { t } from "./text.js";

const MARK = /\*(?=\S)([^*]*[^*\s])\*/g;

export const unmarked = (text) => text.replace(MARK, "$1");
export const marked = (text, start, end) => `${text.slice(0, start)}*${text.slice(start, end)}*${text.slice(end)}`;

export function head(name) {
  return [el("h1", { tabindex: "-1" }, t(`${name}Title`)), el("p", { class: "lead" }, t(`${name}Lead`))];
}

// A row of examples for the languages that the server has models for.
export function exampleRow(examples, app, pick, label = (item) => item) {
  const groups = Object.entries(examples).map(([language, items]) => [app.modelFor(language), items]);
  const chips = groups
    .filter(([model]) => model)
    .flatMap(([model, items]) =>
      (Array.isArray(items) ? items : Object.keys(items)).map((item) =>
        el(
          "button",
          {
            type: "button",
            class: "chip example",
            lang: /[가-힣]/.test(item) ? "ko" : "en",
            onclick: () => pick(item, model),
          },
          label(item),
        ),
      ),
    );
  return el(
    "div",
    { class: "row", role: "group", "aria-label": t("examples") },
    el("span", { class: "label", "aria-hidden": "true" }, t("examples")),
    chips,
  );
}

// A text whose words can be clicked. Words that share characters (갔 is 가 and 었) are one button. The arrow keys move
// between the words; the Tab key leaves the sentence.
export function wordPicker(sentence, { label, pressed, pick, number = null }) {
  const groups = [];
  sentence.tokens.forEach(([start, end], position) => {
    const last = groups[groups.length - 1];
    if (last && start < last.end) {
      last.end = Math.max(last.end, end);
      last.positions.push(position);
    } else groups.push({ start, end, positions: [position] });
  });
  const children = [];
  let done = 0;
  let chunk = null; // words without white space between them, such as a Korean eojeol: a line does not break there
  const append = (node, begins) => {
    if (begins || !chunk) {
      chunk = el("span", { class: "chunk" });
      children.push(chunk);
    }
    chunk.append(node);
  };
  const buttons = groups.map((group) => {
    const gap = sentence.text.slice(done, group.start);
    if (/\s/.test(gap)) children.push(el("span", { class: "gap" }, gap));
    else if (gap) append(gap, false);
    done = group.end;
    const on = group.positions.some((position) => pressed.includes(position));
    const button = el(
      "button",
      {
        type: "button",
        class: "word",
        "aria-pressed": String(on),
        tabindex: "-1",
        "data-at": group.start,
        onclick: () => pick(group.positions[0], group.start, group.end),
      },
      sentence.text.slice(group.start, group.end),
    );
    append(button, /\s/.test(gap));
    return button;
  });
  if (done < sentence.text.length) children.push(sentence.text.slice(done));
  (buttons.find((button) => button.getAttribute("aria-pressed") === "true") || buttons[0])?.setAttribute(
    "tabindex",
    "0",
  );
  return el(
    "div",
    {
      class: "words",
      role: "group",
      "aria-label": label,
      "data-sentence": number,
      onkeydown: (event) => moveFocus(event, buttons),
    },
    children,
  );
}

export function moveFocus(event, buttons) {
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
  if (!step || !buttons.length) return;
  event.preventDefault();
  const at = Math.max(buttons.indexOf(document.activeElement), 0);
  const next = Math.min(Math.max(at + step, 0), buttons.length - 1);
  buttons.forEach((button, position) => button.setAttribute("tabindex", position === next ? "0" : "-1"));
  buttons[next].focus();
}

// Keep the focus on the same word when a picker is drawn again.
export function keepFocus(root, draw) {
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && [
    focused.closest("[data-sentence]")?.dataset.sentence,
    focused.dataset.at,
    focused.className,
  ];
  draw();
  if (!place) return;
  const [sentence, at, kind] = place;
  const same = [...root.querySelectorAll(kind ? `.${kind.split(" ")[0]}` : "*")].find(
    (node) => node.dataset.at === at && node.closest("[data-sentence]")?.dataset.sentence === sentence,
  );
  same?.focus();
}

// A text field that is folded away until it is needed, because the words below it show the same sentences.
export function folded(box, open) {
  return el("details", { open }, el("summary", {}, t("edit")), box);
}

// What is wrong with sentences that the server would refuse, or nothing.
export function tooMuch(sentences, { limits }) {
  if (sentences.length > limits.sentences) {
    return t("tooMany", { count: sentences.length, most: limits.sentences });
  }
  const longest = Math.max(0, ...sentences.map((sentence) => [...sentence].length));
  return longest > limits.characters ? t("tooLong", { count: longest, most: limits.characters }) : "";
}

export function sentenceBox(value, label, rows, change) {
  const box = el("textarea", { rows, spellcheck: "false", autocapitalize: "off", oninput: () => change(box.value) });
  box.value = value;
  return el("label", { class: "field" }, el("span", {}, label), box);
}

export const context = ([before, word, after]) => [before, el("b", {}, word), after];

// A list of texts with a value and a bar each.
export function barList(rows) {
  return el(
    "ol",
    { class: "bars" },
    rows.map(({ value, share, text, own }) => {
      const fill = el("span", { class: "fill" });
      fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
      return el(
        "li",
        { class: own ? "own" : null },
        el("span", { class: "value" }, value),
        el("span", { class: "what" }, fill, text),
      );
    }),
  );
}

// The same lists as a picture, one column for each: [{title, rows: [{value, share, label: [before, word, after]}]}].
export function barPicture(title, columns) {
  const width = 340,
    row = 26,
    top = 64;
  const height = top + row * Math.max(1, ...columns.map(({ rows }) => rows.length)) + 12;
  return svg(
    "svg",
    { viewBox: `0 0 ${width * columns.length + 20} ${height}`, role: "img" },
    svg("text", { x: 16, y: 26, class: "head" }, title),
    columns.map(({ title: name, rows }, column) =>
      svg(
        "g",
        {},
        svg("text", { x: 16 + column * width, y: 52, class: "soft" }, name),
        rows.map(({ value, share, label }, at) => {
          const x = 16 + column * width,
            y = top + at * row;
          return svg(
            "g",
            {},
            svg("rect", {
              x: x + 46,
              y,
              width: Math.max(1, (width - 66) * Math.min(1, Math.max(0, share))),
              height: row - 5,
              rx: 4,
              class: "f0",
              opacity: 0.25,
            }),
            svg("text", { x: x + 38, y: y + 15, "text-anchor": "end", class: "soft" }, value),
            svg(
              "text",
              { x: x + 54, y: y + 15 },
              clip(label, 40).map((part, place) => svg("tspan", place === 1 ? { class: "strong" } : {}, part)),
            ),
          );
        }),
      ),
    ),
  );
}

// Cut the text around a word to about `size` characters.
export function clip([before, word, after], size) {
  const room = Math.max(2, size - word.length);
  const left = Math.min(before.length, Math.max(Math.floor(room / 2), room - after.length));
  const right = room - left;
  return [
    before.length > left ? `…${before.slice(-left).replace(/^\S*(?=\s)/, "")}` : before,
    word,
    after.length > right ? `${after.slice(0, right).replace(/(\s)\S*$/, "$1")}…` : after,
  ];
}

export const textWidth = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u1100" ? 12.6 : 6.7), 0);
