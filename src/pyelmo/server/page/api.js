// Requests to the server, its absence, and its key.

import { byId, el } from "./dom.js";
import { t } from "./text.js";

const RETRY = 1500; // milliseconds between two attempts to reach a server that is gone
const answers = new Map(); // the last answers by request, so that a change of language asks nothing
let retrying = null;
let returned = () => {};

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// What to do when the server is back, or has accepted the key.
export function onReturn(action) {
  returned = action;
}

export async function ask(path, body, { fresh = false } = {}) {
  const request = JSON.stringify([path, body]);
  if (!fresh && answers.has(request)) return answers.get(request);
  const key = sessionStorage.getItem("key");
  const headers = {
    ...(body && { "content-type": "application/json" }),
    ...(key && { authorization: `Bearer ${key}` }),
  };
  busy(1);
  try {
    const answer = await send(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    answers.set(request, answer);
    if (answers.size > 60) answers.delete(answers.keys().next().value);
    return answer;
  } finally {
    setTimeout(busy, 0, -1); // after the view has drawn the answer, or has sent the request that follows from it
  }
}

// A function that asks, for requests of which each replaces the one before: an answer that comes after the next request
// has been made is dropped, because the page shows another state by now.
export function latest() {
  let count = 0;
  return (...request) =>
    new Promise((resolve, reject) => {
      count += 1;
      const own = count;
      ask(...request).then(
        (answer) => own === count && resolve(answer),
        (error) => own === count && reject(error),
      );
    });
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    waitForServer();
    throw new Problem(t("gone"), 0);
  }
  const answer = await response.json().catch(() => null);
  if (response.status === 401) {
    const said = t(options.headers.authorization ? "wrongKey" : "needsKey");
    askForKey(said);
    throw new Problem(said, 401);
  }
  if (!response.ok) {
    throw new Problem(
      response.status === 429 ? t("busy") : answer?.error?.message || `${response.status}`,
      response.status,
    );
  }
  return answer;
}

let waiting = 0;

// Requests under way; the page shows it after a moment (style.css).
function busy(change) {
  waiting += change;
  byId("main").setAttribute("aria-busy", String(waiting > 0));
}

function show(...children) {
  const banner = byId("banner");
  banner.replaceChildren(...children);
  banner.hidden = children.length === 0;
}

// Say in the current language that the server is gone, if it is.
export function sayIfGone() {
  if (retrying) show(t("gone"));
}

function waitForServer() {
  if (retrying) return;
  show(t("gone"));
  retrying = setInterval(async () => {
    const alive = await fetch("/health", { cache: "no-store" }).then(
      (response) => response.ok,
      () => false,
    );
    if (!alive || !retrying) return;
    clearInterval(retrying);
    retrying = null;
    show();
    answers.clear();
    returned();
  }, RETRY);
}

function askForKey(said) {
  const input = el("input", { type: "password", id: "key", autocomplete: "off" });
  const form = el(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        sessionStorage.setItem("key", input.value);
        show();
        returned();
      },
    },
    input,
    el("button", { class: "main-button" }, t("useKey")),
  );
  show(el("label", { for: "key" }, said), form);
}
