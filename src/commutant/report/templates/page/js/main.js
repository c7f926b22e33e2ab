// Draws the page anew from its address whenever that changes, and gives the keys that work everywhere their meaning.

import { go, readState } from "./address.js";
import { byId } from "./dom.js";
import { focusMap, showMap } from "./heatmap.js";
import { focusFind, focusList, showList, watchFind } from "./list.js";
import { showRanking } from "./ranking.js";
import { focusTest, showTest } from "./test.js";

let shown = readState();

function show() {
  const state = readState();
  showMap(state);
  showRanking(state);
  showList(state);
  showTest(state);
  const before = shown;
  shown = state;
  return before;
}

// After a step in the address, the focus follows to what it opened or closed.
function follow() {
  const before = show();
  if (shown.test && shown.test !== before.test) focusTest();
  else if (!shown.test && before.test) focusList();
  else if (shown.calls && shown.calls !== before.calls) focusList();
  else if (!shown.calls && before.calls) focusMap();
}

function goBack() {
  const state = readState();
  const open = ["test", "find", "outcome", "change", "variable", "calls"].find((key) => state[key]);
  if (open) go({ [open]: "" });
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select");
  if (event.key === "Escape") {
    event.preventDefault();
    goBack();
  } else if (event.key === "/" && !isTyping && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    focusFind();
  }
});

byId("explorer").hidden = false;
addEventListener("hashchange", follow);
watchFind(show);
show();
if (shown.test) focusTest("start"); // a link to a test opens at the test
