// Which tests a state selects. Every text of the run stands once in `strings`, so a search looks through those once and
// then only follows indices: 25,000 tests take a few milliseconds.

import {
  findingsOf, matchFindings, outcomeOf, outcomes, setKeys, setOf, strings, stringsOfTest, testCount, testSummary,
  variableOfFinding, variables,
} from "./run.js";

let lowered = null;

// Indices of the tests that match the state's calls, variable, verdict and words.
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
  if (state.variable) {
    const wanted = variables.indexOf(state.variable);
    filters.push((test) => findingsOf(test).some((finding) => variableOfFinding[finding] === wanted));
  }
  for (const term of state.find.toLowerCase().split(/\s+/).filter(Boolean)) filters.push(termFilter(term));
  const selected = [];
  for (let test = 0; test < testCount; test++) {
    if (filters.every((filter) => filter(test))) selected.push(test);
  }
  return selected;
}

// The sets of calls in which some test shares the variable.
export function setsWithVariable(variable) {
  return new Set(selectTests({ calls: "", outcome: "", find: "", variable }).map((test) => setKeys[setOf(test)]));
}

function termFilter(term) {
  lowered ??= { strings: strings.map(lower), variables: variables.map(lower) };
  const has = (text) => text.includes(term);
  const matches = lowered.strings.map(has);
  const findings = matchFindings(matches, lowered.variables.map(has));
  const words = outcomes.map(([, outcome]) => has(outcome));
  return (test) =>
    words[outcomeOf(test)] ||
    stringsOfTest(test).some((index) => matches[index]) ||
    findingsOf(test).some((finding) => findings[finding]) ||
    has(testSummary(test).id);
}

function lower(text) {
  return text.toLowerCase();
}
