// One test: what it does, what it expects, and the lines that its calls shared.

import { addressWith } from "./address.js";
import { byId, element } from "./dom.js";
import { linePicture } from "./line.js";
import { programView } from "./program.js";
import { testDetail, testIndex } from "./run.js";

const SHARING_WORDS = [
  "true sharing: the same bytes",
  "false sharing: different bytes of one line",
  "neighbouring lines: different lines of one pair",
];
const panel = byId("test");
let shownTest = "";

export function showTest(state) {
  const index = testIndex(state.test);
  if (index < 0) {
    shownTest = "";
    panel.replaceChildren(...(state.test ? [element("p", { class: "bad" }, `No test ${state.test} in this run.`)] : []));
    return;
  }
  if (state.test !== shownTest) {
    shownTest = state.test;
    panel.replaceChildren(...testView(index));
  }
  panel.querySelector(".close").href = addressWith({ test: "" });
  markVariable(state.variable);
}

export function focusTest(block = "nearest") {
  panel.focus({ preventScroll: true });
  panel.scrollIntoView({ block });
}

addEventListener("beforeprint", () => {
  for (const details of panel.querySelectorAll("details")) details.open = true;
});

// The lines of the variable that the reader asked for stand out, with their stacks open.
function markVariable(variable) {
  for (const section of panel.querySelectorAll(".shared")) {
    const isAsked = section.dataset.finding === variable;
    section.classList.toggle("current", isAsked);
    if (isAsked) section.querySelector("details").open = true;
  }
}

function testView(index) {
  const test = testDetail(index);
  panel.setAttribute("aria-label", `Test ${test.id}`);
  return [
    element("div", { class: "test-head" }, element("h2", null, test.headline), element("a", { class: "close", href: "#" }, "Close")),
    element(
      "p",
      null,
      element("span", { class: `outcome outcome-${test.outcome}` }, test.outcomeWords),
      " ",
      test.before ? element("span", { class: "was" }, `was ${test.wordsBefore} `) : null,
      element("code", { class: "quiet" }, test.id),
    ),
    test.detail ? element("p", { class: "bad detail" }, test.detail) : null,
    element("p", null, test.sentence),
    test.words ? element("p", { class: "quiet" }, `Class: ${test.words}`) : null,
    element(
      "div",
      { class: "two" },
      element("div", null, element("h3", null, "Set-up"), steps(test.setup), element("h3", null, "Calls"), calls(test)),
      element("div", null, element("h3", null, "Expected"), test.orders.map((order) => expected(order, test.calls))),
    ),
    programView(index, test.refusal),
    element("h3", null, test.findings.length ? `Shared lines (${test.findings.length})` : "No shared lines"),
    ...sharedLines(test),
  ].filter(Boolean);
}

// The lines by what they follow from; of two runs, those that went come last.
function sharedLines({ findings, causes }) {
  const told = causes.flatMap((cause, number) => {
    const [first, ...others] = cause.places.map((place) => findings[place]);
    return [causeView(cause, number), sharedLine(first, number), ...others.map((finding) => sharedLine(finding, -1))];
  });
  const placed = new Set(causes.flatMap(({ places }) => places));
  return [...told, ...findings.filter((_, place) => !placed.has(place)).map((finding) => sharedLine(finding, -1))];
}

function causeView({ title, sentence, technique }, number) {
  return element(
    "div",
    { class: "cause" },
    element("h4", null, `${number + 1}. ${title}`),
    element("p", { class: "quiet" }, `${sentence}.`, number ? null : [" ", element("b", null, `${technique.heading}.`), ` ${technique.advice}`]),
  );
}

function steps(texts) {
  return texts.length ? element("ol", { start: 0 }, texts.map((text) => element("li", null, text)))
    : element("p", { class: "quiet" }, "none");
}

function calls(test) {
  return element(
    "ol",
    { start: 0 },
    test.calls.map((call, index) => element("li", null, call, element("span", { class: "place" }, test.places[index]))),
  );
}

function expected({ order, accepted }, called) {
  return accepted.map(({ results, observation }, index) => [
    element("p", { class: "quiet" }, index ? "or" : order),
    element(
      "ul",
      null,
      results.map((result, call) => element("li", null, `${called[call]} → ${result}`)),
      observation.map((line) => element("li", { class: "quiet" }, `then ${line}`)),
    ),
  ]);
}

function sharedLine(finding, index) {
  return element(
    "section",
    { class: finding.state === "gone" ? "shared gone" : "shared", "data-finding": finding.name },
    element(
      "h4",
      null,
      element("a", { href: addressWith({ variable: finding.name }) }, finding.name),
      " ",
      finding.role ? [element("span", { class: "kind role" }, finding.role), " "] : null,
      element("span", { class: "kind" }, SHARING_WORDS[finding.sharing]),
      " ",
      element("span", { class: "kind" }, finding.kind),
      finding.state ? [" ", element("span", { class: `kind state-${finding.state.replace(" ", "-")}` }, finding.state)] : null,
    ),
    linePicture(finding),
    finding.inUse ? element("p", { class: "quiet" }, `Also in use on that line: ${finding.inUse}`) : null,
    element(
      "p",
      { class: "advice" },
      element("b", null, `${finding.technique.heading}. `),
      `${finding.technique.advice} `,
      element("span", { class: "quiet" }, `docs/guides/patterns.md#${finding.technique.anchor}`),
    ),
    element(
      "details",
      index === 0 ? { open: "" } : null,
      element("summary", null, "Call stacks"),
      element("div", { class: "stacks" }, finding.accesses.map(stackView)),
    ),
  );
}

function stackView(access) {
  return element(
    "div",
    { class: `stack core-${access.core % 2}` },
    element("p", null, access.sentence),
    element("ol", { start: 0 }, access.stack.map((frame) => {
      const [, name, rest] = /^([^+\s]*)(.*)$/s.exec(frame);
      return element("li", null, name, element("span", null, rest));
    })),
  );
}
