// The packed tables of the run (see commutant/report/page/pack.py), and plain objects made from them on demand.

import { byId } from "./dom.js";

const tables = await unpack(byId("data").textContent);
const columns = tables.tests;
const indexOfId = new Map(columns.id.map((id, index) => [id, index]));

// Places within a packed finding and access.
const KIND = 7;
const FUNCTION = 4;

export const testCount = columns.id.length;
export const isComparison = tables.is_comparison;
export const outcomes = tables.outcomes;
export const variables = tables.variables;
export const strings = tables.strings;
export const setKeys = tables.sets.map(([calls]) => [...calls].sort(compareCodePoints).join(","));

// The tables stand in the page as Base64 of compressed JSON.
async function unpack(text) {
  const compressed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// Sorts as Python does, so that both sides give a set of calls the same key.
function compareCodePoints(one, other) {
  const [a, b] = [[...one], [...other]].map((text) => text.map((character) => character.codePointAt(0)));
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    if (a[index] !== b[index]) return a[index] - b[index];
  }
  return a.length - b.length;
}

export function testIndex(id) {
  return indexOfId.get(id) ?? -1;
}

export function setOf(index) {
  return columns.set[index];
}

export function outcomeOf(index) {
  return columns.outcome[index];
}

export function findingsOf(index) {
  return columns.findings[index];
}

// Of two runs: all findings that a test has or had.
export function findingsOfBoth(index) {
  return isComparison ? [...columns.findings[index], ...columns.was[index]] : columns.findings[index];
}

// Of two runs: "worse", "better", "findings" (same verdict for other reasons), "same", or "" where one says nothing.
export function changeOf(index) {
  const [now, before] = [columns.outcome[index], columns.before[index]];
  const [badness, old] = [tables.badness[now] ?? -1, tables.badness[before] ?? -1];
  if (badness < 0 || old < 0) return "";
  if (badness !== old) return badness > old ? "worse" : "better";
  const names = (findings) => findings.map((finding) => variableOfFinding[finding]).sort().join();
  return names(columns.findings[index]) === names(columns.was[index]) ? "same" : "findings";
}

// The variable of each finding, by finding.
export const variableOfFinding = tables.findings.map(([variable]) => variable);

const NOT_RUN = ["skipped", "not run"];

// What a list shows of a test; `before` is the verdict of the base, if there is one and it is another.
export function testSummary(index) {
  const [outcome, words] = outcomes[columns.outcome[index]] ?? NOT_RUN;
  const isOther = isComparison && columns.outcome[index] !== columns.before[index];
  const [before, wordsBefore] = isOther ? (outcomes[columns.before[index]] ?? NOT_RUN) : ["", ""];
  return {
    id: columns.id[index],
    outcome,
    outcomeWords: words,
    before,
    wordsBefore,
    words: strings[columns.class[index]],
    headline: strings[columns.headline[index]],
    placement: strings[columns.placement[index]],
    lines: columns.findings[index].length,
  };
}

// All there is to a test.
export function testDetail(index) {
  return {
    ...testSummary(index),
    sentence: strings[columns.sentence[index]],
    detail: strings[columns.detail[index]],
    calls: list(columns.calls[index]),
    places: list(columns.places[index]),
    setup: list(columns.setup[index]),
    orders: tables.orders[columns.orders[index]].map(([order, accepted]) => ({
      order: strings[order],
      accepted: accepted.map(([results, observation]) => ({ results: list(results), observation: list(observation) })),
    })),
    refusal: strings[columns.refusal[index]],
    findings: findingsWithState(index),
    causes: tables.explained[columns.explained[index]].map(([cause, sentence, places]) => ({
      ...causeDetail(cause), sentence: strings[sentence], places,
    })),
  };
}

function causeDetail(index) {
  const [title, technique] = tables.causes[index];
  const [heading, advice, anchor] = tables.techniques[technique];
  return { title: strings[title], technique: { heading, advice, anchor } };
}

// What the lines of these tests follow from, the cause of most lines first, and the number of all lines. A cause looks one
// way in a test and another in the next: what to do about it is what is said where it explains most.
export function causesOf(tests) {
  const known = new Map();
  let lines = 0;
  for (const test of tests) {
    for (const [cause, , places] of tables.explained[columns.explained[test]]) {
      const title = tables.causes[cause][0];
      const one = known.get(title) ?? known.set(title, { count: 0, most: 0, cause }).get(title);
      one.count += places.length;
      if (places.length > one.most) Object.assign(one, { most: places.length, cause });
      lines += places.length;
    }
  }
  const ranked = [...known.values()].sort((one, other) => other.count - one.count || one.cause - other.cause);
  return { causes: ranked.map(({ cause, count }) => ({ ...causeDetail(cause), count })), lines };
}

// A test's findings; of two runs each says whether it is new, known or gone.
function findingsWithState(index) {
  const now = columns.findings[index].map(findingDetail);
  if (!isComparison) return now;
  const was = columns.was[index].map(findingDetail);
  const known = new Set(was.map((finding) => finding.identity));
  const still = new Set(now.map((finding) => finding.identity));
  return [
    ...now.map((finding) => ({ ...finding, state: known.has(finding.identity) ? "in both" : "new" })),
    ...was.filter((finding) => !still.has(finding.identity)).map((finding) => ({ ...finding, state: "gone" })),
  ];
}

export function programText(index) {
  return columns.program[index].flatMap((block) => tables.blocks[block].map((part) => tables.parts[part])).join("");
}

// The strings by which a test is found, besides those of its findings.
export function stringsOfTest(index) {
  return [columns.class[index], columns.headline[index], columns.placement[index], columns.detail[index]];
}

export function callsOf(index) {
  return tables.sets[columns.set[index]][0];
}

// For each finding, whether one of the strings flagged in `matches` is its kind.
export function matchKinds(matches) {
  return tables.findings.map((finding) => matches[finding[KIND]]);
}

// For each finding, whether one of the strings flagged in `matches`, or a variable flagged in `matchesVariable`, is in it.
export function matchFindings(matches, matchesVariable) {
  const stacks = tables.stacks.map((stack) => stack.some((frame) => matches[frame]));
  const accesses = tables.accesses.map(([, , , , fun, stack]) => matches[fun] || stacks[stack]);
  return tables.findings.map(
    ([variable, , first, second]) => matchesVariable[variable] || accesses[first] || accesses[second],
  );
}

function findingDetail(index) {
  const [variable, sharing, first, second, firstField, secondField, line, kind, technique, part, use] = tables.findings[index];
  const [fields, touched] = tables.lines[line];
  const [heading, advice, anchor] = tables.techniques[technique];
  const functions = [first, second].map((one) => tables.accesses[one][FUNCTION]).sort();
  return {
    name: variables[variable],
    identity: [variable, ...functions].join(),
    sharing,
    accesses: [access(first, firstField), access(second, secondField)],
    fields: fields.map(([offset, size, name]) => ({ offset, size, name: strings[name] })),
    touched: touched.map(([core, read, written]) => ({ core, read, written })),
    kind: strings[kind],
    role: strings[part],
    inUse: strings[use],
    technique: { heading, advice, anchor },
  };
}

function access(index, field) {
  const [core, write, offset, size, , stack, sentence] = tables.accesses[index];
  return {
    core,
    isWrite: write === 1,
    offset,
    size,
    field: strings[field],
    sentence: strings[sentence],
    stack: tables.stacks[stack].map((frame) => strings[frame]),
  };
}

function list(index) {
  return tables.lists[index].map((item) => strings[item]);
}
