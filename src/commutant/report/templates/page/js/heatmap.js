// The heat maps, one per run: mark the chosen set, dim sets that the chosen variable does not touch, keep the links up to date.

import { addressWith } from "./address.js";
import { Roving } from "./roving.js";
import { setsWithVariable } from "./search.js";

const maps = [...document.querySelectorAll(".map, .sets")];
const mapRovings = maps.map((map) => new Roving(map));

export function showMap(state) {
  const touched = state.variable ? setsWithVariable(state.variable) : null;
  for (const link of maps.flatMap((map) => [...map.querySelectorAll("[data-calls]")])) {
    const calls = link.dataset.calls;
    const isChosen = calls === state.calls;
    // A cell counts all its tests, whatever words are searched for: to choose it clears the search.
    link.href = addressWith({ calls: isChosen ? "" : calls, find: isChosen ? state.find : "", test: "" });
    if (isChosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    link.classList.toggle("dim", touched !== null && !touched.has(calls));
    if (link.classList.contains("set")) link.closest("tr").classList.toggle("current", isChosen);
  }
}

// The newer run's map is the last one.
export function focusMap() {
  mapRovings.at(-1).focusCurrent();
}
