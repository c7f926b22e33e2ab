// The ranking of shared variables: choosing one filters the tests, choosing it again takes the filter away.

import { addressWith } from "./address.js";
import { byId, element } from "./dom.js";
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

// What the variable costs, in words: "struct dentry.d_lockref breaks 2,113 tests of 41 sets of calls; ...".
export function variableSentence(variable) {
  const link = [...(ranking?.querySelectorAll("[data-variable]") ?? [])].find((one) => one.dataset.variable === variable);
  return link ? element("span", { class: "quiet" }, `${variable} ${link.dataset.sentence}.`) : "";
}

export function showRanking(state) {
  for (const link of ranking?.querySelectorAll("[data-variable]") ?? []) {
    const isChosen = link.dataset.variable === state.variable;
    link.href = addressWith({ variable: isChosen ? "" : link.dataset.variable, test: "" });
    link.closest("tr").classList.toggle("current", isChosen);
    if (isChosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
