// Which tests a state selects. Every text of the run stands once in `strings`, so a search looks through those once and
// then only follows indices: 25,000 tests take a few milliseconds.

import {
  callsOf, changeOf, findingsOfBoth, matchFindings, matchKinds, outcomeOf, outcomes, setKeys, setOf, strings,
  stringsOfTest, testCount, testSummary, variableOfFinding, variables,
} from "./run.js";

let lowered = null;

// Indices of the tests that match the state's calls, variable, verdict, change and words.
export function selectTests(state) {
  const filters = [];
  if (state.calls) {
    const chosen = setKeys.map((key) => key === state.calls);
    filters.push((test) => chosen[setOf(test)]);
  }
  if (state.outcome) {
    const wanted = outcomes.findIndex(([value]) => value === state.outcome);
    filters.push((test) => outcomeOf(test) === wanted);
  }
  if (state.change) filters.push((test) => changeOf(test) === state.change);
  if (state.variable) {
    const wanted = variables.indexOf(state.variable);
    filters.push((test) => findingsOfBoth(test).some((finding) => variableOfFinding[finding] === wanted));
  }
  for (const term of state.find.toLowerCase().split(/\s+/).filter(Boolean)) filters.push(termFilter(term));
  const selected = [];
  for (let test = 0; test < testCount; test++) {
    if (filters.every((filter) => filter(test))) selected.push(test);
  }
  return findingsFirst(selected);
}

// What a reader looks for comes first: failures, then tests that share memory, then the others, each as in the run.
const ORDER = ["crashed", "wrong_result", "conflicting", "unstable", "conflict_free", "skipped"];

function findingsFirst(tests) {
  const rank = outcomes.map(([value]) => ORDER.indexOf(value));
  const byRank = ORDER.map(() => []);
  const others = [];
  for (const test of tests) (byRank[rank[outcomeOf(test)]] ?? others).push(test);
  return [...byRank.flat(), ...others];
}

// The sets of calls in which some test shares the variable.
export function setsWithVariable(variable) {
  return new Set(selectTests({ calls: "", outcome: "", change: "", find: "", variable }).map((test) => setKeys[setOf(test)]));
}

const NONE = [];

// Terms that look in one place alone, such as `function:dput`.
const PLACES = {
  call: (has) => (test) => callsOf(test).some((call) => has(call.toLowerCase())),
  type: (has) => inFindings(matchFindings(NONE, lowered.variables.map(has))),
  function: (has) => inFindings(matchFindings(lowered.strings.map(has), NONE)),
  kind: (has) => inFindings(matchKinds(lowered.strings.map(has))),
  verdict: (has) => {
    const words = outcomes.map((outcome) => outcome.some(has));
    return (test) => words[outcomeOf(test)] ?? false;
  },
};

function termFilter(term) {
  lowered ??= { strings: strings.map(lower), variables: variables.map(lower) };
  const [, place, wanted] = /^([a-z]+):(.+)$/s.exec(term) ?? [];
  if (Object.hasOwn(PLACES, place ?? "")) return PLACES[place]((text) => text.includes(wanted));
  const has = (text) => text.includes(term);
  const matches = lowered.strings.map(has);
  const found = inFindings(matchFindings(matches, lowered.variables.map(has)));
  const words = outcomes.map(([, outcome]) => has(outcome));
  return (test) =>
    words[outcomeOf(test)] || stringsOfTest(test).some((index) => matches[index]) || found(test) ||
    has(testSummary(test).id);
}

function inFindings(matched) {
  return (test) => findingsOfBoth(test).some((finding) => matched[finding]);
}

function lower(text) {
  return text.toLowerCase();
}
