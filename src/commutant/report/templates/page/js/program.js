// A test's C program: put together when it is first looked at, with a button that copies it.

import { element } from "./dom.js";
import { programText } from "./run.js";

export function programView(test, refusal) {
  if (refusal) return element("p", { class: "quiet" }, `C program: ${refusal}`);
  const code = element("code", { class: "language-c" });
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  const said = element("span", { role: "status", class: "quiet" });
  copy.addEventListener("click", async () => {
    said.textContent = (await copyText(code)) ? "Copied" : "Copying is not allowed here; the program is selected";
  });
  const view = element(
    "details",
    { class: "program" },
    element("summary", null, "C program"),
    element("div", { class: "bar" }, copy, said),
    element("pre", { tabindex: 0, "aria-label": "C program" }, code),
  );
  view.addEventListener("toggle", () => {
    if (view.open && !code.firstChild) code.textContent = programText(test);
  });
  return view;
}

// Copies what an element holds; where no way to copy is allowed, leaves it selected and returns false.
async function copyText(node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
    return true;
  } catch {
    const selection = getSelection();
    selection.selectAllChildren(node);
    const isCopied = document.execCommand("copy");
    if (isCopied) selection.removeAllRanges();
    return isCopied;
  }
}
