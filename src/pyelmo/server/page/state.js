// The state of the page is its address: #VIEW?name=value&... A reload, or a link, restores it.

export const VIEWS = ["context", "mix", "expects", "neighbours", "unknown", "tasks"];

const remembered = {}; // the last parameters of each view, so that going back to it changes nothing
let current = read();

function read() {
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const view = VIEWS.includes(name) ? name : "context";
  return { view, params: new URLSearchParams(query || "") };
}

export function reload() {
  current = read();
  return current;
}

export const view = () => current.view;
export const get = (name, otherwise = "") => current.params.get(name) ?? otherwise;
export const all = (name) => current.params.getAll(name);

// Change some parameters of this view; null removes one, a list repeats it.
export function set(changes) {
  for (const [name, value] of Object.entries(changes)) {
    current.params.delete(name);
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null && item !== undefined) current.params.append(name, item);
    }
  }
  remembered[current.view] = current.params.toString();
  history.replaceState(null, "", address(current.view));
}

// The address of a view with its last parameters. Language and model are those of the page, and sentences are shared by
// the two views that compare a word in several.
export function address(name) {
  const own = new URLSearchParams(name === current.view ? current.params.toString() : remembered[name] || "");
  for (const shared of ["lang", "model"]) {
    own.delete(shared);
    if (current.params.has(shared)) own.set(shared, current.params.get(shared));
  }
  const comparing = ["context", "mix"];
  if (name !== current.view && comparing.includes(name) && comparing.includes(current.view)) {
    own.delete("s");
    current.params.getAll("s").forEach((sentence) => own.append("s", sentence));
  }
  const query = own.toString();
  return `#${name}${query ? `?${query}` : ""}`;
}
