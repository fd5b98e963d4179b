// The page: language, model, views, and what happens when the server is gone.

import { ask, onReturn, sayIfGone } from "./api.js";
import { byId, el } from "./dom.js";
import * as state from "./state.js";
import { lang, languageOfBrowser, setLanguage, t } from "./text.js";
import * as context from "./views/context.js";
import * as expects from "./views/expects.js";
import * as mix from "./views/mix.js";
import * as neighbours from "./views/neighbours.js";
import * as tasks from "./views/tasks.js";
import * as unknown from "./views/unknown.js";

const PAGES = { context, mix, expects, neighbours, unknown, tasks };
let shown = null; // the view on the page

const app = {
  setup: null,
  // The name of the model: that of the address, else the first one in the language of the page.
  model() {
    const names = app.setup.models.map(({ name }) => name);
    const wanted = state.get("model");
    return names.includes(wanted) ? wanted : app.modelFor(lang()) || names[0];
  },
  facts: () => app.setup.models.find(({ name }) => name === app.model()),
  modelFor: (language) => app.setup.models.find((model) => model.language.startsWith(language))?.name,
  // The language of the model's text: "en", "ko" or "other".
  language() {
    const name = app.facts().language.split("-")[0];
    return ["en", "ko"].includes(name) ? name : "other";
  },
  async loadSetup() {
    app.setup = await ask("/explore/setup", undefined, { fresh: true });
  },
  refresh: () => show(),
};

function frame() {
  setLanguage(state.get("lang") || languageOfBrowser());
  document.title = `${t(`${state.view()}Name`)} · pyelmo`;
  sayIfGone();
  byId("skip").textContent = t("skip");
  byId("tagline").textContent = t("tagline");
  const other = byId("language");
  other.textContent = t("otherLanguage");
  other.lang = lang() === "ko" ? "en" : "ko";
  byId("nav").setAttribute("aria-label", t("navigation"));
  byId("nav").firstElementChild.replaceChildren(
    ...state.VIEWS.map((name) =>
      el(
        "li",
        {},
        el(
          "a",
          {
            href: state.address(name),
            "aria-current": name === state.view() ? "page" : null,
            "data-view": name,
            onpointerdown: refreshLink,
            onfocus: refreshLink,
          },
          t(`${name}Name`),
        ),
      ),
    ),
  );
  byId("nav").querySelector("[aria-current]").scrollIntoView({ block: "nearest", inline: "center" });
  byId("brand").href = state.address("context");
}

// The state has changed since the links were made.
function refreshLink(event) {
  event.currentTarget.href = state.address(event.currentTarget.dataset.view);
}

function showModels() {
  const select = byId("model");
  byId("model-choice").hidden = app.setup.models.length < 2;
  byId("model-label").textContent = t("model");
  select.replaceChildren(
    ...app.setup.models.map(({ name }) => el("option", { value: name, selected: name === app.model() }, name)),
  );
  byId("footer").replaceChildren(
    t("footer", { version: app.setup.version }),
    " · ",
    el("a", { href: "/docs" }, t("api")),
  );
}

async function show({ focus = false } = {}) {
  frame();
  if (!app.setup) {
    try {
      await app.loadSetup();
    } catch (error) {
      byId("main").replaceChildren(el("p", { class: "problem" }, error.message));
      return;
    }
  }
  showModels();
  shown?.leave();
  shown = PAGES[state.view()].mount(app);
  byId("main").replaceChildren(shown.root);
  if (focus) {
    byId("main").querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") {
    // the link that skips the navigation
    history.replaceState(null, "", state.address(state.view()));
    byId("main").focus();
    return;
  }
  state.reload();
  show({ focus: true });
});
byId("language").addEventListener("click", () => {
  state.set({ lang: lang() === "ko" ? "en" : "ko" });
  show();
});
byId("model").addEventListener("change", (event) => {
  state.set({ model: event.currentTarget.value, s: null, c: null, w: null, q: null, layer: null });
  show();
});
onReturn(() => {
  app.setup = null;
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.setup && show());
show();
