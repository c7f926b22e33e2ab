"""A condition as SMT-LIB 2.6, over the model's own names, so that anyone can check it with a solver of their own.

One script: sorts, functions and constants of the model and the calls, and one closed assertion that holds exactly where
the calls commute, among the states that the model admits. Choices of the implementation are eliminated (see `choices`);
the few that cannot be are bound by `exists`.
"""

from __future__ import annotations

from collections.abc import Sequence

from commutant.analyzer.condition import Conjunction, Fact
from commutant.analyzer.words.vocabulary import Vocabulary, smt_symbol


def script(interface_name: str, calls: tuple[str, ...], cubes: Sequence[Conjunction], vocabulary: Vocabulary) -> str:
    """The SMT-LIB script for one set of calls."""
    lines = [
        f"; {interface_name}: {', '.join(calls)} commute exactly where the assertion holds",
        "; (among the well-formed initial states of the model)",
        "(set-logic ALL)",
    ]
    assertion = _any([_all(cube, vocabulary) for cube in cubes])
    functions = [
        function
        for function in vocabulary.functions.values()
        if not function.is_rare or smt_symbol(function.name) in assertion
    ]
    sorts = {sort for function in functions for sort in (*function.arguments, function.result)}
    sorts |= set(vocabulary.parameters.values())
    lines += [f"(declare-sort {sort} 0)" for sort in sorted(sorts - {"Bool", "Int"})]
    lines += [f"(declare-fun {smt_symbol(f.name)} ({' '.join(f.arguments)}) {f.result})" for f in functions]
    lines += [f"(declare-const {smt_symbol(name)} {sort})" for name, sort in vocabulary.parameters.items()]
    lines += [f"(assert {assertion})", "(check-sat)"]
    return "\n".join(lines) + "\n"


def _any(texts: Sequence[str]) -> str:
    if not texts:
        return "false"
    return texts[0] if len(texts) == 1 else "(or\n  " + "\n  ".join(texts) + ")"


def _all(cube: Conjunction, vocabulary: Vocabulary) -> str:
    texts = [_literal(fact, vocabulary) for fact in cube]
    if not texts:
        return "true"
    text = texts[0] if len(texts) == 1 else f"(and {' '.join(texts)})"
    chosen = " ".join(f"({smt_symbol(name)} {vocabulary.choices[name]})" for name in vocabulary.chosen_in(cube))
    return f"(exists ({chosen}) {text})" if chosen else text


def _literal(fact: Fact, vocabulary: Vocabulary) -> str:
    if fact.kind == "bool":
        text = vocabulary.smt_term(fact.left)
    elif fact.kind == "same":
        text = f"(= {vocabulary.smt_term(fact.left)} {vocabulary.smt_term(fact.right)})"
    else:
        sign = "=" if fact.kind == "==" else "<="
        text = f"({sign} {vocabulary.smt_sum(fact.left, fact.right)} 0)"
    return text if fact.holds else f"(not {text})"
