"""Conditions as short sentences: `src.0, src.1 in names; src.0 ≠ dst.1; dst.0 = dst.1`.

Between calls of the same name, conditions that are mirror images of each other are printed once, marked "or the calls
exchanged".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from commutant.analyzer.condition import Cube, Fact
from commutant.analyzer.vocabulary import Vocabulary
from commutant.symbolic import Term


def sentences(cubes: Sequence[Cube], calls: tuple[str, ...], vocabulary: Vocabulary) -> list[str]:
    """One sentence per cube, mirror images merged."""
    return [text for text, _ in cases(cubes, calls, vocabulary)]


def cases(cubes: Sequence[Cube], calls: tuple[str, ...], vocabulary: Vocabulary) -> list[tuple[str, Cube]]:
    """The sentences, each with the cube that it says."""
    found: list[tuple[str, Cube]] = []
    seen: set[frozenset[Fact]] = set()
    available = {frozenset(_canonical(fact) for fact in cube) for cube in cubes}
    for cube in cubes:
        images = {
            frozenset(_canonical(_exchange(fact, calls, order)) for fact in cube) for order in _symmetries(calls)
        } & available
        if not images & seen:
            text = sentence(cube, vocabulary)
            found.append((text + ("  (or the calls exchanged)" if len(images) > 1 else ""), cube))
        seen |= images
    return found


def sentence(cube: Cube, vocabulary: Vocabulary) -> str:
    """One cube as a sentence; `always` for the empty one."""
    if not cube:
        return "always"
    parts: list[str] = []
    for holds, word in ((True, "in"), (False, "not in")):
        by_map: dict[str, list[str]] = {}
        for fact in cube:
            if fact.kind == "bool" and fact.holds == holds and _is_presence(fact, vocabulary):
                key, container = vocabulary.sentence_term(fact.left).rsplit(" in ", 1)
                by_map.setdefault(container, []).append(key)
        parts += [f"{_and(keys)} {word} {container}" for container, keys in by_map.items()]
    for fact in cube:
        if fact.kind == "bool" and not _is_presence(fact, vocabulary):
            parts.append(("" if fact.holds else "not ") + vocabulary.sentence_term(fact.left))
    parts += [_same(fact, vocabulary) for fact in cube if fact.kind == "same" and fact.holds]
    parts += _differences([fact for fact in cube if fact.kind == "same" and not fact.holds], vocabulary)
    parts += [_comparison(fact, vocabulary) for fact in cube if fact.kind in ("<=", "==")]
    chosen = ", ".join(vocabulary.short[name] for name in vocabulary.chosen_in(cube))
    return (f"for some {chosen}: " if chosen else "") + "; ".join(parts)


def _is_presence(fact: Fact, vocabulary: Vocabulary) -> bool:
    term = fact.left
    return term[0] == "apply" and bool(vocabulary.functions[term[1]].presence_of)


def _same(fact: Fact, vocabulary: Vocabulary) -> str:
    return f"{vocabulary.sentence_term(fact.left)} = {vocabulary.sentence_term(fact.right)}"


def _differences(facts: Sequence[Fact], vocabulary: Vocabulary) -> list[str]:
    """Disequalities, with those that make a complete group written as `a, b, c all differ`."""
    pairs = {frozenset((vocabulary.sentence_term(f.left), vocabulary.sentence_term(f.right))) for f in facts}
    terms = sorted({term for pair in pairs for term in pair})
    texts: list[str] = []
    while True:
        group = _largest_group(terms, pairs)
        if len(group) < 3:
            break
        texts.append(f"{', '.join(group)} all differ")
        pairs -= {frozenset((a, b)) for a in group for b in group if a != b}
    return texts + [" ≠ ".join(sorted(pair)) for pair in sorted(pairs, key=sorted)]


def _largest_group(terms: Sequence[str], pairs: set[frozenset[str]]) -> list[str]:
    best: list[str] = []
    for start in terms:
        group = [start]
        for term in terms:
            if term not in group and all(frozenset((term, member)) in pairs for member in group):
                group.append(term)
        if len(group) > len(best):
            best = group
    return sorted(best)


def _comparison(fact: Fact, vocabulary: Vocabulary) -> str:
    """`a - b + 1 <= 0` as `a < b`."""
    positive = tuple((term, c) for term, c in fact.left if c > 0)
    negative = tuple((term, -c) for term, c in fact.left if c < 0)
    constant = fact.right
    if fact.kind == "==":
        sign = "=" if fact.holds else "≠"
    else:
        sign = "≤" if fact.holds else ">"
        if constant == 1 and fact.holds:
            sign, constant = "<", 0
        elif constant == 1:
            sign, constant = "≥", 0
    left = vocabulary.sentence_sum(positive, constant if constant > 0 else 0)
    return f"{left} {sign} {vocabulary.sentence_sum(negative, -constant if constant < 0 else 0)}"


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _symmetries(calls: tuple[str, ...]) -> list[tuple[int, ...]]:
    indices = range(len(calls))
    return [order for order in permutations(indices) if all(calls[order[i]] == calls[i] for i in indices)]


def _exchange(fact: Fact, calls: tuple[str, ...], order: tuple[int, ...]) -> Fact:
    names = {f"{call}.{index}.": f"{calls[order[index]]}.{order[index]}." for index, call in enumerate(calls)}

    def change(term: Term) -> Term:
        if term[0] == "constant":
            for before, after in names.items():
                if term[1].startswith(before):
                    return ("constant", after + term[1][len(before) :])
            return term
        if term[0] == "apply":
            return ("apply", term[1], tuple(change(argument) for argument in term[2]))
        if term[0] == "sum":
            return ("sum", tuple((change(inner), c) for inner, c in term[1]), term[2])
        return term

    if fact.kind == "bool":
        return Fact("bool", change(fact.left), None, fact.holds)
    if fact.kind == "same":
        return Fact("same", change(fact.left), change(fact.right), fact.holds)
    return Fact(fact.kind, tuple((change(term), c) for term, c in fact.left), fact.right, fact.holds)


def _canonical(fact: Fact) -> Fact:
    if fact.kind == "same":
        left, right = sorted((fact.left, fact.right), key=repr)
        return Fact("same", left, right, fact.holds)
    if fact.kind in ("<=", "=="):
        return Fact(fact.kind, tuple(sorted(fact.left, key=repr)), fact.right, fact.holds)
    return fact
