// Numbered points that move between layers, with labels that never cover each other.

import { svg } from "./dom.js";
import { clip, textWidth } from "./parts.js";

const RADIUS = 11;
const HEIGHT = 19; // of a label
const FAR = 5 * HEIGHT; // a label that finds no place nearer to its point is left out

export class Scatter {
  // occurrences: [{parts: [before, word, after]}]; layers: [[x, y] of each occurrence] of each layer
  constructor(occurrences, layers, senses, staticLabel) {
    this.occurrences = occurrences;
    this.layers = layers;
    this.senses = senses;
    this.staticLabel = staticLabel;
    this.node = svg("svg", { viewBox: "0 0 640 440", role: "img" });
    this.at = null;
    this.offsets = occurrences.map(() => null); // of labels, which glide to their places
    this.resize(640);
  }

  resize(width) {
    this.width = Math.max(280, Math.round(width));
    this.height = Math.round(Math.min(460, Math.max(300, this.width * 0.66)));
    this.node.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.labelled = this.width >= 520;
    const all = this.layers.flat();
    const [xs, ys] = [0, 1].map((axis) => [
      Math.min(0, ...all.map((p) => p[axis])),
      Math.max(0, ...all.map((p) => p[axis])),
    ]);
    const room = this.labelled ? Math.min(210, this.width * 0.3) : RADIUS + 6;
    const frame = [RADIUS + 14, RADIUS + 14, this.width - room - RADIUS, this.height - RADIUS - 22];
    const scale = Math.min(
      (frame[2] - frame[0]) / (xs[1] - xs[0] || 1),
      (frame[3] - frame[1]) / (ys[1] - ys[0] || 1),
      900,
    );
    const middle = [(frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2];
    this.place = ([x, y]) => [
      middle[0] + (x - (xs[0] + xs[1]) / 2) * scale,
      middle[1] - (y - (ys[0] + ys[1]) / 2) * scale,
    ];
    if (this.at !== null) this.draw(this.at);
  }

  // The points at a place between two layers: 1.5 is half-way from layer 1 to layer 2.
  points(at) {
    const low = Math.min(Math.floor(at), this.layers.length - 1),
      high = Math.min(low + 1, this.layers.length - 1);
    const share = at - low;
    return this.layers[low].map(([x, y], n) => {
      const [u, v] = this.layers[high][n];
      return this.place([x + (u - x) * share, y + (v - y) * share]);
    });
  }

  draw(at, glide = 1) {
    this.at = at;
    const points = this.points(at),
      origin = this.place([0, 0]);
    const trails = this.occurrences.map((_, n) => {
      const path = this.layers
        .slice(0, Math.floor(at) + 1)
        .map((layer) => this.place(layer[n]))
        .concat([points[n]]);
      return svg("polyline", {
        class: `trail t${this.senses[n]}`,
        points: path.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" "),
      });
    });
    const together = points.length > 1 && points.every(([x, y]) => Math.hypot(x - points[0][0], y - points[0][1]) < 5);
    const circles = points.map(([x, y], n) =>
      svg(
        "g",
        { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
        svg("circle", { r: RADIUS, class: `f${this.senses[n]}` }),
        svg("text", { class: "number", y: 4 }, String(n + 1)),
      ),
    );
    if (together)
      circles.push(
        svg(
          "g",
          { transform: `translate(${points[0].map((v) => v.toFixed(1)).join(" ")})` },
          svg("circle", { r: RADIUS + 4, class: "all" }),
          svg("text", { class: "all-text", y: 4.5 }, `×${points.length}`),
        ),
      );
    this.node.replaceChildren(
      svg("line", { class: "axis", x1: 0, x2: this.width, y1: origin[1], y2: origin[1] }),
      svg("line", { class: "axis", x1: origin[0], x2: origin[0], y1: 0, y2: this.height }),
      this.diamond(origin),
      ...trails,
      ...(this.labelled ? this.labels(points, glide) : []),
      ...circles,
    );
  }

  diamond([x, y]) {
    return svg(
      "g",
      {},
      svg("path", { class: "static", d: `M${x} ${y - 9}l9 9l-9 9l-9 -9z` }),
      svg("text", { class: "soft", x: 4, y: this.height - 8 }, `◇ ${this.staticLabel}`),
    );
  }

  labels(points, glide) {
    const [x0, y0] = this.place([0, 0]);
    const taken = [...points.map(([x, y]) => [x - RADIUS, x + RADIUS, y]), [x0 - RADIUS, x0 + RADIUS, y0]]; // and the diamond
    const boxes = [];
    const order = points.map((_, n) => n).sort((a, b) => points[a][1] - points[b][1] || a - b);
    for (const n of order) {
      const parts = clip(this.occurrences[n].parts, 30);
      const width = textWidth(parts.join("")) + 8;
      const [x, y] = points[n];
      const right = x + RADIUS + 8 + width <= this.width;
      const left = right ? x + RADIUS + 8 : Math.max(2, x - RADIUS - 8 - width);
      const free = (line) =>
        line > 12 &&
        line < this.height - 24 &&
        boxes.every((box) => left >= box.end || left + width <= box.left || Math.abs(line - box.y) >= HEIGHT) &&
        taken.every(
          ([a, b, other], m) => m === n || left >= b || left + width <= a || Math.abs(line - other) >= HEIGHT,
        );
      let line = null;
      for (let step = 0; step < FAR && line === null; step += 2) {
        line = [y + step, y - step].find(free) ?? null;
      }
      if (line === null) {
        this.offsets[n] = null;
        continue;
      }
      boxes[boxes.length] = { n, left, end: left + width, y: line, right, parts };
    }
    return boxes.flatMap(({ n, left, end, y, right, parts }) => {
      const [px, py] = points[n];
      const goal = [left - px, y - py];
      const now = this.offsets[n] ? this.offsets[n].map((value, axis) => value + (goal[axis] - value) * glide) : goal;
      this.offsets[n] = now;
      const [x, line] = [px + now[0], py + now[1]];
      return [
        svg("line", { class: "leader", x1: px, y1: py, x2: right ? x - 2 : x + (end - left), y2: line }),
        // Each part of a text would cover the end of the part before it with its halo, so all halos lie below.
        ["halo", "label"].map((name) =>
          svg(
            "text",
            {
              class: name,
              x: right ? x + 2 : x + (end - left) - 2,
              y: line + 4.5,
              "text-anchor": right ? "start" : "end",
            },
            parts.map((part, place) => svg("tspan", place === 1 ? { class: "strong" } : {}, part)),
          ),
        ),
      ].flat();
    });
  }
}
