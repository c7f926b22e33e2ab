// The list of selected tests, in pages: a real table, quick however many tests there are.

import { addressWith, go, readState, replace } from "./address.js";
import { byId, element } from "./dom.js";
import { Roving } from "./roving.js";
import { causesOf, outcomes, testCount, testIndex, testSummary } from "./run.js";
import { variableSentence } from "./ranking.js";
import { selectTests } from "./search.js";

const PAGE_SIZE = 25;
const CAUSES_SHOWN = 3;
// What narrows the list beside the set of calls that a cell of the map stands for.
const NARROWS = ["variable", "outcome", "change", "find"];

const body = byId("tests").tBodies[0];
const find = byId("find");
const verdict = byId("outcome");
const change = byId("change");
const listRoving = new Roving(body, (step) => turnPage(step, true));
let selected = [];
let page = 0;
let shownFor = null;

for (const [value, words] of outcomes) verdict.append(element("option", { value }, words));
byId("controls").addEventListener("submit", (event) => event.preventDefault());
verdict.addEventListener("change", () => go({ outcome: verdict.value, test: "" }));
change?.addEventListener("change", () => go({ change: change.value, test: "" }));
byId("previous").addEventListener("click", () => turnPage(-1, false));
byId("next").addEventListener("click", () => turnPage(1, false));

// `onChange` is called after the words to find have changed.
export function watchFind(onChange) {
  find.addEventListener("input", () => {
    replace({ find: find.value, test: "" });
    onChange();
  });
}

export function showList(state) {
  const key = JSON.stringify([state.calls, state.variable, state.outcome, state.change, state.find]);
  if (key !== shownFor) {
    selected = selectTests(state);
    page = 0;
    shownFor = key;
  }
  const chosen = selected.indexOf(testIndex(state.test));
  if (chosen >= 0) page = Math.floor(chosen / PAGE_SIZE);
  if (find.value !== state.find) find.value = state.find;
  verdict.value = state.outcome;
  if (change) change.value = state.change;
  showFilters(state);
  showPage();
}

export function focusList() {
  listRoving.focusCurrent();
}

export function focusFind() {
  find.focus();
  find.select();
}

function showFilters(state) {
  const chips = ["calls", "variable"].filter((key) => state[key]).map((key) => {
    const shown = key === "calls" ? state.calls.replaceAll(",", ", ") : state[key];
    const chip = element("button", { type: "button", "aria-label": `Remove the filter ${shown}` }, `${shown}  ×`);
    chip.addEventListener("click", () => go({ [key]: "", test: "" }));
    return chip;
  });
  byId("filters").replaceChildren(...chips, variableSentence(state.variable));
  const tests = testCount === 1 ? "1 test" : `${testCount.toLocaleString("en")} tests`;
  byId("count").textContent = `${selected.length.toLocaleString("en")} of ${tests}`;
  showHidden(state);
  showCauses(state);
}

// A cell promises all its tests: says so where another filter hides some.
function showHidden(state) {
  const filters = NARROWS.filter((key) => state[key]);
  const all = state.calls && filters.length ? selectTests({ ...state, variable: "", outcome: "", change: "", find: "" }).length : 0;
  const hidden = all - selected.length;
  const place = byId("hidden");
  place.hidden = !state.calls || hidden <= 0;
  if (place.hidden) return;
  const clear = element("button", { type: "button" }, `Show all ${all.toLocaleString("en")}`);
  clear.addEventListener("click", () => go({ variable: "", outcome: "", change: "", find: "", test: "" }));
  place.replaceChildren(
    `${hidden.toLocaleString("en")} more of ${state.calls.replaceAll(",", ", ")} hidden by: ${filters.map((key) => state[key]).join(", ")}. `, clear,
  );
}

// What to fix first for the tests of a chosen set of calls.
function showCauses(state) {
  const { causes, lines } = state.calls ? causesOf(selected) : { causes: [], lines: 0 };
  const place = byId("causes");
  place.replaceChildren();
  if (!causes.length) return;
  place.append(
    element("h3", null, "Fix first"),
    element(
      "ol",
      { class: "first" },
      causes.slice(0, CAUSES_SHOWN).map(({ title, technique, count }) => element(
        "li",
        null,
        element("b", null, title),
        `: ${Math.round((100 * count) / lines)} % of ${lines.toLocaleString("en")} shared lines. `,
        element("span", { class: "quiet" }, element("b", null, `${technique.heading}. `), technique.advice),
      )),
    ),
  );
}

function showPage() {
  const chosen = readState().test;
  const start = page * PAGE_SIZE;
  body.replaceChildren(...selected.slice(start, start + PAGE_SIZE).map((test, row) => listRow(test, row, chosen)));
  const pages = Math.max(1, Math.ceil(selected.length / PAGE_SIZE));
  byId("page").textContent = `page ${page + 1} of ${pages}`;
  byId("previous").disabled = page === 0;
  byId("next").disabled = page >= pages - 1;
  listRoving.refresh();
}

function listRow(test, row, chosen) {
  const { id, outcome, outcomeWords, before, wordsBefore, words, headline, placement, lines } = testSummary(test);
  const isChosen = id === chosen;
  const link = element(
    "a",
    {
      href: addressWith({ test: id }), "data-row": row, "data-column": 0, "data-test": id, tabindex: -1,
      "aria-current": isChosen ? "true" : null,
    },
    element("span", { class: "shown-calls" }, headline),
    element("span", { class: "words", title: words }, words),
  );
  return element(
    "tr",
    { class: isChosen ? "current" : null },
    element(
      "td",
      null,
      element("span", { class: `outcome outcome-${outcome}` }, outcomeWords),
      before ? element("span", { class: "was" }, `was ${wordsBefore}`) : null,
    ),
    element("td", null, link),
    element("td", { class: "quiet" }, placement),
    element("td", { class: "number" }, lines ? String(lines) : ""),
  );
}

function turnPage(step, movesFocus) {
  const next = page + step;
  if (next < 0 || next * PAGE_SIZE >= selected.length) return false;
  page = next;
  showPage();
  if (movesFocus && step > 0) listRoving.focusFirst();
  else if (movesFocus) listRoving.focusLast();
  return true;
}
