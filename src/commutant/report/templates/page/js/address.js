// The page's state lives in its address (#calls=...&variable=...&outcome=...&change=...&find=...&test=...), so that a link shows
// to others what one sees, and the browser's back button works.

const KEYS = ["calls", "variable", "outcome", "change", "find", "test"];

export function readState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, parameters.get(key) ?? ""]));
}

// The address of the present state with some parts changed; an empty part is left out.
export function addressWith(changes) {
  const state = { ...readState(), ...changes };
  const parameters = new URLSearchParams(KEYS.filter((key) => state[key]).map((key) => [key, state[key]]));
  return `#${parameters}`;
}

export function go(changes) {
  location.hash = addressWith(changes);
}

// Changes the address without a step in the browser's history, for what changes with every key.
export function replace(changes) {
  history.replaceState(null, "", addressWith(changes));
}
