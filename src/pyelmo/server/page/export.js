// Pictures and tables to keep: SVG, PNG and CSV.

import { el, svg } from "./dom.js";
import { t } from "./text.js";

const COPIED = [
  "fill",
  "stroke",
  "stroke-width",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

// The buttons under a figure. `picture` returns an SVG element, `table` a list of rows.
export function tools(name, picture, table) {
  const button = (label, action) => el("button", { type: "button", class: "tool", onclick: action }, label);
  return el(
    "div",
    { class: "row tools", role: "group", "aria-label": t("keep") },
    button("SVG", () => save(`${name}.svg`, new Blob([standalone(picture())], { type: "image/svg+xml" }))),
    button("PNG", () => savePng(`${name}.png`, picture())),
    button("CSV", () => save(`${name}.csv`, new Blob([csv(table())], { type: "text/csv" }))),
    button(t("copyLink"), (event) => copyLink(event.currentTarget)),
  );
}

async function copyLink(button) {
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = t("copied");
  } catch {
    button.textContent = t("copyFailed");
  }
}

function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The text of an SVG that needs no style sheet: computed styles become attributes.
export function standalone(picture) {
  const hidden = !picture.isConnected;
  if (hidden) {
    picture.classList.add("unseen");
    document.body.append(picture);
  }
  const copy = picture.cloneNode(true);
  const originals = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of COPIED) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
    node.removeAttribute("style");
  });
  if (hidden) picture.remove();
  const [, , width, height] = picture.getAttribute("viewBox").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
  copy.prepend(svg("rect", { width, height, fill: ground }));
  return new XMLSerializer().serializeToString(copy);
}

function savePng(name, picture) {
  const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const image = new Image();
  const source = URL.createObjectURL(new Blob([standalone(picture)], { type: "image/svg+xml" }));
  image.onload = () => {
    const canvas = el("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    URL.revokeObjectURL(source);
    canvas.toBlob((blob) => save(name, blob), "image/png");
  };
  image.src = source;
}

// A text that begins like a formula gets an apostrophe, so that no spreadsheet computes it.
function cell(value) {
  const text = typeof value === "number" ? String(value) : String(value ?? "").replace(/^[=+\-@\t]/, "'$&");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows) => `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
