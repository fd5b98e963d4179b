// Elements from data. Text is always a text node, so no input can become markup.

import { t } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

export function announce(text) {
  byId("announce").textContent = text;
}

export function debounce(action, wait = 350) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}

export function percent(share) {
  if (share < 0.001) return `< ${t("percent", { n: "0.1" })}`;
  return t("percent", { n: (100 * share).toFixed(share >= 0.1 ? 0 : 1) });
}

// The colour under a mix of two colours of the palette, and the colour of text that can be read on it.
export function heat(share) {
  const style = getComputedStyle(document.documentElement);
  const [low, high] = ["--panel", "--g0"].map((name) => parse(style.getPropertyValue(name)));
  const mixed = low.map((value, at) => Math.round(value + (high[at] - value) * share));
  const inks = [
    [0, 0, 0],
    [255, 255, 255],
  ]; // one of the two has a contrast of at least 4.58 with any colour
  const best = contrast(mixed, inks[0]) >= contrast(mixed, inks[1]) ? inks[0] : inks[1];
  return { ground: `rgb(${mixed.join(",")})`, ink: `rgb(${best.join(",")})` };
}

const parse = (colour) => [1, 3, 5].map((at) => parseInt(colour.trim().slice(at, at + 2), 16));

function luminance(colour) {
  const [r, g, b] = colour.map((value) =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, two) {
  const [low, high] = [luminance(one), luminance(two)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
