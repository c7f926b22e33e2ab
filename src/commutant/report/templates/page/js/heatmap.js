// The heat map: marks the chosen set, dims sets that the chosen variable does not touch, keeps the links up to date.

import { addressWith } from "./address.js";
import { byId } from "./dom.js";
import { Roving } from "./roving.js";
import { setsWithVariable } from "./search.js";

const map = byId("map");
const mapRoving = new Roving(map);

export function showMap(state) {
  const touched = state.variable ? setsWithVariable(state.variable) : null;
  for (const link of map.querySelectorAll("[data-calls]")) {
    const calls = link.dataset.calls;
    const isChosen = calls === state.calls;
    link.href = addressWith({ calls: isChosen ? "" : calls, test: "" });
    if (isChosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
    link.classList.toggle("dim", touched !== null && !touched.has(calls));
    if (link.classList.contains("set")) link.closest("tr").classList.toggle("current", isChosen);
  }
}

export function focusMap() {
  mapRoving.focusCurrent();
}
