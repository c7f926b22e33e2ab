// The ranking of shared variables: choosing one filters the tests, choosing it again takes the filter away.

import { addressWith } from "./address.js";
import { byId } from "./dom.js";
import { Roving } from "./roving.js";

const ranking = byId("ranking");
const rankingRoving = ranking && new Roving(ranking);
const more = byId("ranking-more");

more?.addEventListener("click", () => {
  const isAll = ranking.classList.toggle("all");
  more.setAttribute("aria-expanded", String(isAll));
  more.hidden = isAll;
  rankingRoving.refresh();
});

export function showRanking(state) {
  for (const link of ranking?.querySelectorAll("[data-variable]") ?? []) {
    const isChosen = link.dataset.variable === state.variable;
    link.href = addressWith({ variable: isChosen ? "" : link.dataset.variable, test: "" });
    link.closest("tr").classList.toggle("current", isChosen);
    if (isChosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
